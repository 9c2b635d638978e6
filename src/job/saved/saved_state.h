/*
 * saved_state.h - the files in state/ of a run folder, from which --resume continues.
 *
 * train.safetensors has the tensors of the running fold and, in its metadata, the numbers below. It
 * is replaced atomically. Three more files may lie beside it. best.safetensors and validation.csv
 * are the best weights that the state refers to and their table, if newer ones have replaced them
 * in the run folder. epoch.safetensors is the last state between two epochs, if train.safetensors
 * is a state within an epoch.
 */
#ifndef STK_JOB_SAVED_SAVED_STATE_H
#define STK_JOB_SAVED_SAVED_STATE_H

#include "base/files/file.h"
#include "base/numbers/digest.h"
#include "dataset/dataset.h"
#include "engine/backend.h"
#include "report/status/run_status.h"
#include "run/run_folder.h"
#include "train/position.h"

/* STK_SAVED_STATE_FILE, the state itself, is in run_status.h. */
#define STK_SAVED_STATE_EPOCH "state/epoch.safetensors"
#define STK_SAVED_STATE_BEST "state/best.safetensors"
#define STK_SAVED_STATE_VALIDATION "state/validation.csv"

typedef struct stk_saved_state {
    int fold; /* the running fold, from 0 */
    stk_train_position position;
    /* The folds before the running one. */
    int folds_done;     /* folds whose weights are saved */
    int epochs_before;  /* sum of their epochs */
    double best_acc1;   /* percent: mean over their best epochs */
    double best_metric; /* the run's metric: mean over their best epochs */
    bool cut;           /* a fold ended early */
    double used_s;      /* seconds used by all processes of the run */
    int64_t best_sum;   /* checksum of the best weights, see stk_saved_state_sum; 0: not known */
    /* The data. */
    int classes;
    int64_t train_images;
    int64_t val_images;            /* of a separate validation set */
    char samples[STK_SHA256_TEXT]; /* digest of the list of samples */
    /* The run. */
    int64_t seed;
    char pretrained[STK_RUN_ID_TEXT]; /* checksum of the pretrained weights; "": none */
    char run[STK_RUN_ID_TEXT];        /* id of the run; "": an older version wrote it */
    char *given;                      /* owned: options that were given, see stk_options_given */
} stk_saved_state;

void stk_saved_state_free(stk_saved_state *state);

/* Checksum of a whole file, above 0; 0: it cannot be read. */
int64_t stk_saved_state_sum(const char *path);

/* Fills in the fields that describe the data, and no others. */
void stk_saved_state_describe(stk_saved_state *state, const stk_dataset *dataset);

/* STK_ERR_DATA: the data set is not the one that the state was trained on. */
STK_CHECKED stk_status stk_saved_state_check(const stk_saved_state *state,
                                             const stk_dataset *dataset, stk_error *err);

/* Writes tensors and numbers. Takes the writer, as stk_train_state_save does. */
STK_CHECKED stk_status stk_saved_state_write(stk_file_writer *writer, const stk_saved_state *run,
                                             const stk_backend *backend, stk_state *state,
                                             const stk_graph *graph, stk_error *err);

/*
 * Reads the numbers; the caller frees them. STK_ERR_DATA: damaged bytes anywhere in the file, or
 * numbers that contradict each other.
 */
STK_CHECKED stk_status stk_saved_state_read(const char *path, stk_saved_state *run, stk_error *err);

/* STK_ERR_DATA unless the file has every tensor of this network's state; `run` was read from it. */
STK_CHECKED stk_status stk_saved_state_fits(const char *path, const stk_saved_state *run,
                                            const stk_backend *backend, const stk_state *state,
                                            const stk_graph *graph, stk_error *err);

/* Loads the tensors of a file whose numbers were read. */
STK_CHECKED stk_status stk_saved_state_load(const char *path, const stk_saved_state *run,
                                            const stk_backend *backend, stk_state *state,
                                            const stk_graph *graph, stk_error *err);

#endif
