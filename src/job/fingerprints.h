/*
 * fingerprints.h - the pictures that a run is trained on, so that a resume notices one that was
 * replaced under its name.
 *
 * The loader notes a fingerprint of every picture that it reads (loader/loader.h). They are kept in
 * state/pictures.safetensors, a tensor for the training pictures and one for a validation folder's
 * own, and a later process compares. What it cannot know of, a picture that no process has read
 * yet, it does not judge. Threads: the loader's workers fill the arrays; the calls below belong to
 * one thread at a time.
 */
#ifndef STK_JOB_FINGERPRINTS_H
#define STK_JOB_FINGERPRINTS_H

#include "base/files/write_behind.h"
#include "dataset/dataset.h"
#include "loader/loader.h"

#define STK_FINGERPRINTS_FILE "state/pictures.safetensors"

typedef struct stk_seen_list {
    size_t count;          /* of the samples */
    uint64_t *before;      /* owned; of earlier processes */
    _Atomic uint64_t *now; /* owned; of this one */
} stk_seen_list;

typedef struct stk_seen_pictures {
    stk_seen_list train;
    stk_seen_list val;       /* of a validation folder */
    char *path;              /* owned: where they are kept */
    const char *samples;     /* borrowed: what the pictures are called, as a digest */
    size_t saved;            /* how many the file knows */
    stk_write_behind behind; /* the file on its way to the disk */
} stk_seen_pictures;

/* Begins without any; takes `path` over, which may be NULL for want of memory. */
STK_CHECKED stk_status stk_seen_pictures_open(stk_seen_pictures *pictures,
                                              const stk_dataset *dataset, char *path,
                                              const char *samples, stk_error *err);
void stk_seen_pictures_free(stk_seen_pictures *pictures);

/*
 * Takes up those of earlier processes. No file is fine; one that is damaged or of other pictures is
 * an error, after which nothing is known.
 */
STK_CHECKED stk_status stk_seen_pictures_recall(stk_seen_pictures *pictures, stk_error *err);

/*
 * Sends the file to the disk anew where more is known than it has, unless the one before is still
 * on its way. An error may be that of the one before.
 */
STK_CHECKED stk_status stk_seen_pictures_save(stk_seen_pictures *pictures, stk_error *err);

/* What a loader of one of the lists is to be handed. */
stk_fingerprints stk_seen_pictures_of(const stk_seen_list *list);

#endif
