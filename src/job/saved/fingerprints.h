/*
 * fingerprints.h - fingerprints of the pictures that a run has read, so that a resume notices a
 * picture that was replaced under the same name.
 *
 * The loader stores a fingerprint of every picture that it reads (loader/loader.h). They are saved
 * in state/pictures.safetensors, one tensor for the training pictures and one for a separate
 * validation set, and a later process compares. Pictures that no process has read yet are not
 * compared. Threads: decode workers fill the arrays; the calls below belong to one thread at a
 * time.
 */
#ifndef STK_JOB_SAVED_FINGERPRINTS_H
#define STK_JOB_SAVED_FINGERPRINTS_H

#include "dataset/dataset.h"
#include "job/saved/write_behind.h"
#include "loader/loader.h"

#define STK_FINGERPRINTS_FILE "state/pictures.safetensors"

typedef struct stk_seen_list {
    size_t count;          /* samples */
    uint64_t *before;      /* (count), owned: fingerprints of earlier processes */
    _Atomic uint64_t *now; /* (count), owned: fingerprints of this process */
} stk_seen_list;

typedef struct stk_seen_pictures {
    stk_seen_list train;
    stk_seen_list val;       /* of a separate validation set */
    char *path;              /* owned: the file */
    const char *samples;     /* borrowed: digest of the names of the samples */
    size_t saved;            /* fingerprints in the file */
    stk_write_behind writer; /* writes the file in the background */
} stk_seen_pictures;

/* Begins without any fingerprint. Takes `path`; NULL (no memory) is an error. */
STK_CHECKED stk_status stk_seen_pictures_open(stk_seen_pictures *pictures,
                                              const stk_dataset *dataset, char *path,
                                              const char *samples, stk_error *err);
void stk_seen_pictures_free(stk_seen_pictures *pictures);

/*
 * Reads the fingerprints of earlier processes. A missing file is no error. A damaged file, or a
 * file of other pictures, is an error; then no earlier fingerprints are known.
 */
STK_CHECKED stk_status stk_seen_pictures_recall(stk_seen_pictures *pictures, stk_error *err);

/*
 * Writes the file in the background when there are new fingerprints and no write is running. An
 * error may be that of the previous write.
 */
STK_CHECKED stk_status stk_seen_pictures_save(stk_seen_pictures *pictures, stk_error *err);

/* The arrays for a loader of this list. */
stk_fingerprints stk_seen_pictures_of(const stk_seen_list *list);

#endif
