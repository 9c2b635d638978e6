/* job_state.h - inside the job room: one training run. */
#ifndef STK_JOB_JOB_STATE_H
#define STK_JOB_JOB_STATE_H

#include <stoker/job.h>

#include "base/files/write_behind.h"
#include "base/numbers/typical.h"
#include "budget/budget.h"
#include "dataset/dataset.h"
#include "events/events.h"
#include "job/recipe.h"
#include "run/run_clock.h"
#include "job/fingerprints.h"
#include "job/job_options.h"
#include "job/oof.h"
#include "job/resume.h"
#include "run/run_folder.h"
#include "job/val_table.h"
#include "predict/ensemble.h"
#include "predict/predict.h"
#include "report/observers/metrics_file.h"
#include "report/runfiles.h"
#include "train/host_memory.h"
#include "train/lr_find.h"
#include "train/train.h"

/* How many images a step has, and how that came about: see batch_size.c. */
typedef struct stk_batch_search {
    stk_batch_facts facts;
    stk_batch_choice chosen;
    stk_batch_curve curve; /* what was measured */
    bool open;             /* it will be measured */
    char skipped[96];      /* why it could have been and was not; "" otherwise */
    double took_s;         /* seconds of measuring */
    double last_s;         /* seconds of measuring the last batch */
    double others_s;       /* seconds of measuring all batches but the first */
    double allowed_s;      /* for all but the first, and for the steps of the first */
} stk_batch_search;

typedef struct stk_job {
    const char *verb;     /* what a run folder is called where nobody said: "train" */
    stk_options *options; /* borrowed, as are its structs below */
    const stk_dataset_options *dataset_options;
    const stk_loader_options *loader_options;
    const stk_job_options *job_options;
    const stk_view_options *view_options;
    stk_storage_options storage; /* those of the options, with the run's stop */
    stk_events events;
    stk_run_clock clock;
    stk_dataset *dataset;
    stk_recipe choice;        /* its batch and accumulate may shrink in a run */
    size_t batch_asked;       /* the batch before it shrank; 0: it has not */
    int64_t accumulate_asked; /* accumulate before it changed */
    size_t infer_batch;       /* pictures of a step of validation and prediction */
    stk_device_memory memory; /* of the device, before anything was taken */
    stk_batch_search batch;
    double foreseen_s;     /* the budget that is planned for; NaN: that of the clock */
    stk_run_folder folder; /* path NULL until it is opened */
    stk_runfiles *files;
    struct stk_training_monitor
        *monitor; /* owned; see training_monitor.h; NULL until there is something to train */
    stk_metrics_file *metrics; /* NULL: nobody wants it */
    stk_map bad_told;          /* what events.bad_told refers to: the bad images so far */
    stk_host_memory host;      /* of the choice's device: where batches lie */
    stk_graph *graph;
    stk_state_config state_config;
    stk_state *state;
    char *pretrained; /* owned: the file that every fold starts from; NULL: none */
    char pretrained_sum[STK_RUN_ID_TEXT]; /* checksum of that file; "": none was looked at */
    stk_ensemble ensemble;
    stk_oof oof;           /* only with folds */
    stk_val_table val;     /* what the best epochs said of the validation pictures */
    char *submission;      /* owned path; NULL without test rows */
    bool submitted;        /* the submission exists */
    int models;            /* whose votes are in the submission */
    int folds;             /* that were asked for */
    int folds_now;         /* that there is time for, by the last plan */
    double epoch_s;        /* of one epoch with its validation; NaN: not measured yet */
    int fold;              /* the one in work, from 0 */
    int folds_done;        /* whose weights are saved and vote */
    int unfit;             /* folds of this process that were cut short below class priors */
    bool trouble;          /* a fold went wrong or lost its weights; others may be fine */
    bool cut;              /* some fold ended before what was asked for */
    bool unpredicted;      /* there was no time for all rows and views, or to write them */
    bool unread;           /* a model was to predict all rows, and no test image could be read */
    stk_budget_plan plan;  /* held: see pace.h */
    int64_t planned_total; /* steps of the running fold; -1: not planned yet */
    bool told_stop;
    bool told_unkept;     /* that a device can keep nothing for the next start */
    int unsynced_before;  /* stk_disk_unsynced() when the run began */
    stk_error late_error; /* nothing was saved, or no memory left: told after delivering */
    bool starved;         /* there is no memory to go on with; what there is is delivered */
    bool weights_lost;    /* the best ones: training ends, they are predicted with from memory */
    double predict_s;     /* estimate for the test set; NaN: not known */
    int views;            /* of each picture that are predicted with; see pace.h */
    stk_resume resume;
    stk_seen_pictures pictures; /* what the pictures are that the state was trained on */
    bool unkept_told;           /* that they could not be kept */
    stk_saved_state run_state;  /* what was to be saved last; see state_saver.c */
    bool state_saved;           /* there is a state to go on from */
    stk_train_position saved;   /* where training stood in that state */
    char *state_path;           /* owned: where it lies */
    char *epoch_path;           /* owned: where its last one between epochs is kept */
    bool between_epochs;        /* what lies at state_path is of such a moment */
    char *kept_best;            /* owned: where the best weights are kept that it speaks of */
    stk_write_behind behind;    /* the state on its way to the disk; see state_saver.c */
    stk_train_position saving;  /* where training stood in the state on its way */
    stk_typical state_write_s;  /* from a save to its bytes on the disk */
    stk_typical state_copy_s;   /* of a save: training stood still for the copy */
    stk_typical state_wait_s;   /* of a save: it waited for the save before it */
    stk_typical checkpoint_s;   /* how long saving the best weights took */
    bool state_lost;            /* it could not be saved, and that was told */
    stk_summary summary;
    double images, train_s, wait_s; /* over all folds */
    int workers, slots;             /* that the last loader ended with; 0: none ran */
} stk_job;

/* Takes the options and the surroundings over; `verb` and `folder` are set already. */
void stk_job_open(stk_job *job, stk_options *options, const stk_run *run);
void stk_job_close(stk_job *job);

/* A deadline by the clock on the wall becomes a budget, once and for all; `observer` hears it. */
STK_CHECKED stk_status stk_job_take_deadline(stk_job *job, const stk_observer *observer,
                                             stk_error *err);

/*
 * Everything up to the first line: data set, choices, device. Nothing is written, so that the input
 * may still be refused. `observer` hears what is said meanwhile; *train and *val are how many
 * images a fold has.
 */
STK_CHECKED stk_status stk_job_prepare(stk_job *job, const stk_observer *observer, size_t *train,
                                       size_t *val, stk_error *err);

/* The run folder, once nothing can be refused any more. */
STK_CHECKED stk_status stk_job_claim_folder(stk_job *job, stk_error *err);

/* The batch of the run that is resumed, which may have had no memory for the one that was chosen;
 * and a line about that. */
void stk_job_take_batch(stk_job *job);
void stk_job_tell_batch(const stk_job *job);

/*
 * Out of memory: halves the batch of training or, where `validating`, of inference, and the other
 * one where that is as small as can be: both take memory at the same time. `what` becomes the
 * decision in words. False: nothing can be halved any more.
 */
bool stk_job_shrink(stk_job *job, bool validating, char *what, size_t room);

/*
 * Where there is no memory to go on with the run delivers what it has, and then tells that: why,
 * and what cannot be done; or that nothing smaller than a batch can be tried.
 */
void stk_job_starve(stk_job *job, const stk_error *why, const char *what);
void stk_job_starve_at(stk_job *job, size_t batch, const stk_error *why);

/* How this run's network is compiled: for training, or for validation and prediction. */
stk_compile_config stk_job_compiles(const stk_job *job, bool train);

/*
 * What memory and data set make of the batch, and all that follows from it. Where it is still to be
 * measured, that is told, and training with it works all the same.
 */
STK_CHECKED stk_status stk_job_plan_batch(stk_job *job, size_t train_count, stk_error *err);

/* Measures what is still open, and tells what is taken. Leaves nonsense in the state. */
STK_CHECKED stk_status stk_job_measure_batch(stk_job *job, stk_error *err);

/* args.yaml and args.json, as far as options are resolved by now. */
STK_CHECKED stk_status stk_job_write_args(stk_job *job, stk_error *err);

void stk_job_tell_start(stk_job *job, size_t train, size_t val);

/* The weights that this fold begins with; what the optimiser keeps is zero. */
STK_CHECKED stk_status stk_job_first_weights(stk_job *job, stk_error *err);

/* Trains and predicts one fold. */
STK_CHECKED stk_status stk_job_fold(stk_job *job, stk_error *err);

/*
 * What the weights in the state say of samples (indices NULL: of the first `count`), `split` being
 * "test" or "val"; *probs and *have are freed by the caller also after an error.
 */
STK_CHECKED stk_status stk_job_predict_with_best(stk_job *job, const char *split,
                                                 const stk_sample *samples, const size_t *indices,
                                                 size_t count, double **probs, bool **have,
                                                 stk_predicted *predicted, stk_error *err);

/* What a model says of the test set joins the ensemble; how many rows it has predicted. Where it
 * could read no picture, that is told. */
size_t stk_job_vote(stk_job *job, const stk_predicted *predicted, const double *probs,
                    const bool *have);

/* The test set joins the ensemble, and a better submission replaces the one before. */
STK_CHECKED stk_status stk_job_predict_test(stk_job *job, stk_error *err);

/* The fold's own validation samples go to oof.csv, which with many classes takes long to write. */
STK_CHECKED stk_status stk_job_predict_oof(stk_job *job, const stk_split *split,
                                           const stk_sample *val_samples, stk_error *err);

/* A fold that an earlier process has finished: its model predicts both sets again as the fold
 * itself did; the files that it wrote are there already. */
STK_CHECKED stk_status stk_job_revive_fold(stk_job *job, stk_error *err);

/*
 * Writes validation.csv where that is owed and there is time for it; without any at the `last` try
 * that is told, as is an error.
 */
void stk_job_write_validation(stk_job *job, bool last);

/* Keeps the best weights that the saved state speaks of, and what they said of the validation
 * pictures, before others take their place; the state must be settled. */
void stk_job_keep_best(stk_job *job, const char *best_path);

/* Adds to the sentence of an error of the device what is left and how to go on from it. */
void stk_job_tell_kept(const stk_job *job, stk_error *err);

/* Once the network is there, and before anything is written: whether the state is of such a run. */
STK_CHECKED stk_status stk_job_check_resume(const stk_job *job, stk_error *err);

/*
 * Saves what --resume goes on from: it is copied, and is saved only when it is settled. A failure
 * is told then, and again at the end of the run.
 */
void stk_job_save_state(stk_job *job, const stk_train_position *position);

/* Whether there is memory enough for that copy; otherwise training waits for the disk. */
bool stk_job_copies_state(const stk_job *job);

/* Waits until what is being saved is on the disk, and does what is left to be done then. To be
 * called before anything is replaced that a state speaks of, and before the run ends. */
void stk_job_settle_state(stk_job *job);

/* The same where there is nothing to wait for. */
void stk_job_look_at_state(stk_job *job);

/* Seconds that settling may take now. */
double stk_job_settle_seconds(const stk_job *job);

/* The same as far as it is likely, without a safety. */
double stk_job_state_rest_seconds(const stk_job *job);

/* Seconds that saving the best weights takes; 0: not known. */
double stk_job_best_seconds(const stk_job *job);

/* Seconds that training stands still after each validation, for the best weights and the state. */
double stk_job_save_seconds(const stk_job *job);

/*
 * Back to what was saved of this fold: tensors, position, best weights. The latest, or the latest
 * between two epochs.
 */
STK_CHECKED stk_status stk_job_load_state(stk_job *job, const char *best_path, bool between_epochs,
                                          stk_train_position *position, bool *there,
                                          stk_error *err);

/*
 * Writes the submission from what the ensemble holds now; "prior", "partial" or "complete". Where
 * there is one already and no time for another, it stays, and that is told.
 */
STK_CHECKED stk_status stk_job_submit(stk_job *job, const char *status, stk_error *err);

/* One line where the budget allowed no model. */
void stk_job_tell_untrained(stk_job *job);

/* The summary's keys that are known at the end only; `status` is how the run went. */
void stk_job_finish_summary(stk_job *job, stk_status status);

void stk_job_fill_outcome(const stk_job *job, stk_outcome *outcome);

/* What was asked for must exist, or the run has failed whatever the reason was. */
STK_CHECKED stk_status stk_job_judge(const stk_job *job, stk_error *err);

/*
 * Runs the learning-rate test on the first weights, which are there again afterwards, and puts the
 * curve into the run folder. `data` has the samples of the fold.
 */
STK_CHECKED stk_status stk_job_test_lr(stk_job *job, const stk_loader_config *data, int steps,
                                       double seconds, stk_lr_curve *curve, stk_error *err);

/* The same before training, where option lr asks for it: sets the rate of all folds and says so.
 * Asked to stop meanwhile it leaves the rate open. */
STK_CHECKED stk_status stk_job_find_lr(stk_job *job, const stk_loader_config *data, stk_error *err);

/* The loader configuration for one split; what training and prediction have in common. */
stk_loader_config stk_job_loader(stk_job *job, bool train);

#endif
