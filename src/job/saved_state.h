/*
 * saved_state.h - what state/ of a run folder holds: all that --resume goes on from.
 *
 * state/train.safetensors has the tensors of the fold in work and, in its notes, the numbers below.
 * It is replaced in one step, so that a kill at any moment leaves the one before. Next to it lies
 * best.safetensors whenever the best weights have been replaced since: then it is the file that the
 * numbers speak of, with validation.csv, its table; and epoch.safetensors, a file of the same kind,
 * while train.safetensors is of a moment within an epoch: the end of the last one before, to go
 * back to.
 */
#ifndef STK_JOB_SAVED_STATE_H
#define STK_JOB_SAVED_STATE_H

#include "base/files/file.h"
#include "base/numbers/digest.h"
#include "dataset/dataset.h"
#include "engine/backend.h"
#include "run/run_folder.h"
#include "train/position.h"

#define STK_SAVED_STATE_FILE "state/train.safetensors"
#define STK_SAVED_STATE_EPOCH "state/epoch.safetensors"
#define STK_SAVED_STATE_BEST "state/best.safetensors"
#define STK_SAVED_STATE_VALIDATION "state/validation.csv"

typedef struct stk_saved_state {
    int fold; /* in work, from 0 */
    stk_train_position position;
    /* of the folds before it */
    int folds_done;
    int epochs_before;
    double best_acc1;
    double best_metric;
    bool cut;
    double used_s;    /* by all processes up to here */
    int64_t best_sum; /* of the file of the best weights, see stk_saved_state_sum; 0: not known */
    /* what it is trained on */
    int classes;
    int64_t train_images;
    int64_t val_images; /* of a validation set of their own */
    char samples[STK_SHA256_TEXT];
    int64_t seed;
    char pretrained[STK_RUN_ID_TEXT]; /* checksum of the weights it started from; "": of none */
    char run[STK_RUN_ID_TEXT];        /* the id of the run; "": an older version wrote it */
    char *given;                      /* owned: see stk_options_given */
} stk_saved_state;

void stk_saved_state_free(stk_saved_state *state);

/* A checksum of all of a file, above 0; 0 where it cannot be read. */
int64_t stk_saved_state_sum(const char *path);

/* The fields that describe the data; the others are left alone. */
void stk_saved_state_describe(stk_saved_state *state, const stk_dataset *dataset);

/* STK_ERR_DATA with a sentence when the data is not what the state was trained on. */
STK_CHECKED stk_status stk_saved_state_check(const stk_saved_state *state,
                                             const stk_dataset *dataset, stk_error *err);

/* Takes the writer, as stk_train_state_save does. */
STK_CHECKED stk_status stk_saved_state_write(stk_file_writer *writer, const stk_saved_state *run,
                                             const stk_backend *backend, stk_state *state,
                                             const stk_graph *graph, stk_error *err);

/*
 * The numbers alone; the caller frees them. Damaged bytes anywhere in the file, and any number that
 * does not fit another, are STK_ERR_DATA.
 */
STK_CHECKED stk_status stk_saved_state_read(const char *path, stk_saved_state *run, stk_error *err);

/* STK_ERR_DATA unless the file whose numbers were read has every tensor of the state. */
STK_CHECKED stk_status stk_saved_state_fits(const char *path, const stk_saved_state *run,
                                            const stk_backend *backend, const stk_state *state,
                                            const stk_graph *graph, stk_error *err);

/* The tensors of a file whose numbers were read. */
STK_CHECKED stk_status stk_saved_state_load(const char *path, const stk_saved_state *run,
                                            const stk_backend *backend, stk_state *state,
                                            const stk_graph *graph, stk_error *err);

#endif
