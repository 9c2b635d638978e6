/*
 * state_saver.h - writes the saved state of a run while it trains, and goes back to it.
 *
 * The saved state (saved_state.h) is what --resume continues from. The saver copies the tensors,
 * and a background thread writes the copy, so that training does not wait for the disk. Until the
 * write is finished the previous state counts. Whoever is about to replace a file that a state
 * refers to (the best weights, validation.csv) calls stk_state_saver_wait() first.
 *
 * The saver owns its paths, the writer and the list of pictures. Everything else is borrowed from
 * the job. Threads: the job's; the writer's own thread is inside stk_write_behind.
 */
#ifndef STK_JOB_SAVED_STATE_SAVER_H
#define STK_JOB_SAVED_STATE_SAVER_H

#include "base/numbers/typical.h"
#include "events/events.h"
#include "job/recipe/network.h"
#include "job/saved/fingerprints.h"
#include "job/saved/saved_state.h"
#include "job/saved/val_table.h"
#include "job/saved/write_behind.h"
#include "run/run_clock.h"
#include "run/run_folder.h"

typedef struct stk_state_saver {
    /* Borrowed; set by job.c when it opens the job. */
    const stk_events *events;
    stk_run_clock *clock;
    const stk_job_network *network;
    stk_val_table *table;  /* validation.csv, which belongs to the best weights */
    stk_error *late_error; /* a failure to save is reported there, at the end of the run */
    /* Files. */
    char *path;                 /* owned: state/train.safetensors */
    char *epoch_path;           /* owned: the last state between two epochs */
    char *best_copy;            /* owned: the best weights that the state on disk refers to, once
                                   better weights have replaced them */
    stk_seen_pictures pictures; /* fingerprints of the pictures read so far */
    bool pictures_warned;       /* the warning that fingerprints were not saved was emitted */
    bool loss_warned;           /* the warning that a state was not saved was emitted */
    bool unfinished;            /* when the time was over, a state was still being written */
    /* States. */
    stk_saved_state numbers;     /* of the state to be saved next */
    bool exists;                 /* a state is on the disk */
    stk_train_position position; /* where training stands in that state */
    bool between_epochs;         /* the file at `path` is of a moment between two epochs */
    stk_write_behind writer;     /* writes the copy in the background */
    stk_train_position writing;  /* where training stands in the state being written */
    /* Measured seconds. */
    stk_typical write_s; /* from the begin of a state's file until it is on the disk */
    stk_typical copy_s;  /* of copying the tensors, while training stands still */
    stk_typical wait_s;  /* of stk_state_saver_wait(), where a write was pending */
    stk_typical best_s;  /* of saving the best weights */
} stk_state_saver;

/* Sets paths, and the numbers that stay the same for the whole run. `options` and the earlier
 * `given` (or NULL) say what was asked for. */
STK_CHECKED stk_status stk_state_saver_open(stk_state_saver *saver, const stk_run_folder *folder,
                                            const stk_dataset *dataset, const stk_options *options,
                                            const stk_json *given, const char *pretrained_sum,
                                            stk_error *err);

/* Notes the checksum of the pretrained weights, where others were chosen after opening. */
void stk_state_saver_note_pretrained(stk_state_saver *saver, const char *sum);

/* For a resumed run: its state is on the disk, and training stands at `position` in it. */
void stk_state_saver_continue(stk_state_saver *saver, const stk_train_position *position);

/* Waits for the running write, and frees everything. */
void stk_state_saver_close(stk_state_saver *saver);

/* What a state says besides tensors and position: how far the run as a whole has come. */
typedef struct stk_run_totals {
    int fold;          /* the running fold, from 0 */
    int folds_done;    /* folds whose weights are saved */
    int epochs_before; /* epochs of the folds before */
    double best_acc1;  /* mean of the best epochs of the folds done; NaN: none */
    double best_metric;
    bool cut;      /* a fold ended before its planned end */
    double used_s; /* seconds used by all processes of the run so far */
    int64_t seed;
} stk_run_totals;

/*
 * Saves the tensors and `position`, unless too little time is left for it. Returns once the tensors
 * are copied. A failure is emitted as a warning and reported at the end of the run.
 */
void stk_state_saver_save(stk_state_saver *saver, const stk_run_totals *totals,
                          const stk_train_position *position);

/* Whether there is memory for the copy; otherwise training waits for the disk. */
bool stk_state_saver_copies(const stk_job_network *network);

/* Waits until the running write is on the disk. A disk that hangs is given up. */
void stk_state_saver_wait(stk_state_saver *saver);

/* Finishes a write that has ended; does not wait. */
void stk_state_saver_poll(stk_state_saver *saver);

/* Waits for the running write, and frees the memory of the copy; the next save takes it again. */
void stk_state_saver_free_copy(stk_state_saver *saver);

/* Seconds that stk_state_saver_wait() may take now, with a safety factor; and that it will likely
 * take. */
double stk_state_saver_wait_s(const stk_state_saver *saver);
double stk_state_saver_likely_wait_s(const stk_state_saver *saver);

/* Seconds that saving the best weights takes. */
double stk_state_saver_best_s(const stk_state_saver *saver);

/* Seconds of writing a state beside other work, with a safety factor; 0: none was written yet. */
double stk_state_saver_write_s(const stk_state_saver *saver);

/* Seconds for which training stands still after each validation: best weights and state. */
double stk_state_saver_pause_s(const stk_state_saver *saver);

/* Before best weights are replaced: keeps the file that the state on the disk refers to under
 * another name, with its validation.csv. No write may be running. */
void stk_state_saver_protect_best(stk_state_saver *saver, const char *best_path);

/* New best weights were saved at best_path, in so many seconds. */
void stk_state_saver_best_saved(stk_state_saver *saver, const char *best_path, double seconds);

typedef struct stk_state_wanted {
    int fold;              /* the running fold, from 0 */
    const char *best_path; /* where its best weights lie */
    bool between_epochs;   /* the latest state between two epochs; false: the latest of all */
    size_t batch;          /* the recipe's; a position of another batch is converted to it */
    int64_t accumulate;
    int64_t steps_per_epoch; /* with that batch */
} stk_state_wanted;

/*
 * Loads a saved state of the fold: tensors, position, best weights and their validation.csv.
 * *found is false where there is none.
 */
STK_CHECKED stk_status stk_state_saver_load(stk_state_saver *saver, const stk_state_wanted *wanted,
                                            stk_train_position *position, bool *found,
                                            stk_error *err);

/* Adds to an error of the device or of memory what is saved, and how to resume from it. */
void stk_state_saver_explain(const stk_state_saver *saver, int folds_done, const char *run_folder,
                             stk_error *err);

#endif
