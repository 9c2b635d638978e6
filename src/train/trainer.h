/*
 * trainer.h - the training of one fold while it runs; for the files of this room only.
 *
 * fold.c owns the struct and runs the loop. validation.c validates, best.c compares, ahead.c
 * collects the results of steps, pacing.c asks how far to go, judge.c says whether training went
 * wrong, position.c saves and restores, sizes.c says how large pictures are. Threads: the caller's.
 */
#ifndef STK_TRAIN_TRAINER_H
#define STK_TRAIN_TRAINER_H

#include "train/calibrate/pooled_rows.h"
#include "train/same_pictures.h"
#include "train/typical_step.h"
#include "train/times.h"
#include "train/train.h"

/* A step that was handed to the device and whose result has not been collected. */
typedef struct stk_pending_step {
    size_t count; /* samples */
    int64_t step; /* of the epoch, from 1 */
    bool update;  /* the step updates the weights */
} stk_pending_step;

typedef struct stk_trainer {
    const stk_train_config *config;
    stk_train_result *result;
    stk_exec_cache own_execs; /* where config->execs is NULL; emptied at the end */
    stk_exec_cache *execs;
    stk_exec *train_exec;         /* owned */
    stk_exec *infer_exec;         /* owned; NULL where nothing is validated or predicted */
    stk_compile_config train_how; /* what they were compiled with */
    stk_compile_config infer_how;
    bool frozen;         /* train_exec trains the head only */
    bool small;          /* executables, loader and validations have the small pictures */
    int validated_epoch; /* the last one that was validated, or saved, with this size; 0: none */
    stk_loader *loader;  /* owned: training batches */
    stk_train_standing standing;
    stk_train_orders orders; /* the last answer of the pace hook */
    /* Learning rate. */
    double schedule;       /* progress of the schedule before the next step, 0 to 1 */
    double schedule_next;  /* progress after it */
    double lr_factor;      /* share of the highest rate */
    double lr;             /* of the last step */
    double lr_scale;       /* 1, halved at every setback */
    int setbacks;          /* times training went back to the last epoch */
    int64_t updates;       /* of the weights so far */
    int64_t steps_waiting; /* steps whose gradients wait for the next update */
    stk_loss_watch watch;
    /* Saving and going on. */
    bool torn;           /* a step was halted: the running statistics are half updated */
    int64_t saved_ns;    /* monotonic clock: when the state was last saved */
    int64_t saved_steps; /* steps_done then; -1: never */
    int64_t went_on_at;  /* steps_done when training last went on after its plan; -1: never */
    /* The running epoch. fold.c calls begin_epoch() when training begins an epoch, resumes within
     * an epoch, or goes on within an epoch after a validation. */
    bool within_epoch;     /* the next begin_epoch() continues an epoch: steps and sums are kept */
    bool epoch_again;      /* the next begin_epoch() continues this epoch after a validation */
    double epoch_before_s; /* seconds that this process spent on the epoch before begin_epoch() */
    bool epoch_counted;    /* result->epochs_done contains this epoch */
    bool epoch_judged;     /* the epoch was validated since begin_epoch() */
    int64_t step_before;   /* steps of the epoch done before begin_epoch() */
    double top_metric;     /* the highest of all epochs */
    int64_t top_epoch;     /* its epoch; 0: none yet */
    int since_best;        /* epochs since that one */
    /* Measured. */
    stk_typical_step typical_step; /* seconds per step, of this process */
    stk_metrics val_metrics;       /* of the running validation */
    stk_pooled_rows val_rows;      /* the same by rows; capacity 0: pictures are rated */
    stk_same_pictures same;        /* that validation beside the one of the best weights */
    double *val_values;            /* owned: (outputs), scratch; NULL without targets */
    float *val_row;                /* owned: (2, outputs), scratch; NULL without targets */
    double val_loss_sum;           /* of that validation, where the task has targets */
    bool val_part;                 /* the last validation ran out of time */
    stk_calibration fitted;        /* owned: to the last validation */
    bool has_fitted;               /* `fitted` is */
    bool rated_plainly;            /* its metric has a rule for which there was no time */
    int64_t val_start_ns;          /* when that validation began */
    stk_batch_times val_times;
    /* Steps in flight. */
    stk_pending_step pending[STK_STEPS_AHEAD];
    int pending_count;
    const stk_batch *held; /* batch of the last step, which may still read it; NULL: none */
    int64_t arrived_ns;    /* when the last result came, or the first step in flight began */
    /* Sums of the running epoch, over steps whose results have come. */
    double loss_sum;
    double correct;
    double images;
    double images_before; /* result->images at begin_epoch() */
    int64_t epoch_updates;
    int64_t epoch_skipped; /* updates that the device skipped, see stk_step_output */
    float loss_scale;      /* of the last result */
    bool told_skips;       /* the decision about skipped updates was emitted */
    int64_t epoch_start_ns;
    double epoch_train_s;
    double epoch_busy_s;     /* seconds in which the device computed */
    uint64_t wait_before_ns; /* the loader's counter when the epoch began */
    stk_account account;     /* where time went; a stretch ends with the event of an epoch */
    int asked_workers;       /* decode workers that the pace last asked for; 0: never */
    int asked_slots;         /* slots that the pace last asked for; 0: never */
    bool told_batch;         /* the event of the first batch was emitted */
} stk_trainer;

/* The network for the size of pictures that training, or validation, has now. */
const stk_graph *stk_trainer_graph(const stk_trainer *t);
const stk_graph *stk_trainer_val_graph(const stk_trainer *t);

/* Whether the next epoch begins with pictures of another size than the last one. */
bool stk_trainer_size_changes(const stk_trainer *t);

/* Whether training continues at this position with small pictures. */
bool stk_trainer_is_small_at(const stk_trainer *t, const stk_train_position *position);

/* Notes the other size: what was measured is converted to it. Executables and loader are the
 * caller's to replace. */
void stk_trainer_set_size(stk_trainer *t, bool small);

/* Asks the pace hook how far to go, and sets how far the next step moves the schedule. */
void stk_trainer_ask_pace(stk_trainer *t);

/* Gives the loader the workers and slots that the pace last asked for. */
void stk_trainer_resize_loader(stk_trainer *t);

/* Whether all planned steps are done, or something else has ended the training. */
bool stk_trainer_is_finished(const stk_trainer *t);

/* At the end of an epoch: whether another one follows as things stand now. */
bool stk_trainer_has_next_epoch(stk_trainer *t);

/*
 * Whether training goes on after the last planned step. The last validation may have shown that
 * there is time for the rest of the epoch, or for more epochs. The learning rate becomes that of
 * the longer training.
 */
bool stk_trainer_goes_on(stk_trainer *t);

/* Counts a step that began at start_ns; its result is collected later. */
void stk_trainer_note_step(stk_trainer *t, size_t count, bool update, int64_t start_ns);

/* Steps become others: they are expected to take what the standing says, until some were timed. */
void stk_trainer_expect_steps(stk_trainer *t);

/* Collects the results that have come; with `wait` all, so that the weights may be read. */
STK_CHECKED stk_status stk_trainer_collect(stk_trainer *t, bool wait, stk_error *err);

/* Returns the batch of the last step to the loader. */
void stk_trainer_let_go(stk_trainer *t);

/*
 * Validates the weights into t->val_metrics. *done is false where time ran out before enough of the
 * samples were seen: the epoch is not used. Without a validation set nothing happens.
 */
STK_CHECKED stk_status stk_trainer_validate(stk_trainer *t, bool *done, stk_error *err);

/* The task of a training; single where nothing says otherwise. */
stk_task stk_trainer_task(const stk_train_config *config);

/* The mean loss of the last validation, in the unit of the training loss; NaN without samples. */
double stk_trainer_val_loss(const stk_trainer *t);

/* Percent of the epoch's training samples that were right; NaN where the task has no right. */
double stk_trainer_train_acc1(const stk_trainer *t);

/* What the metric of the last validation is of: pictures, or rows of pictures. */
size_t stk_trainer_val_scored(const stk_trainer *t);

/* The metric of the validation: of rows where the submission has rows of several pictures. */
double stk_trainer_val_metric(stk_trainer *t);

/* Prepares t->val_rows, if rows are to be rated. */
STK_CHECKED stk_status stk_trainer_open_rows(stk_trainer *t, const stk_metrics_config *rated,
                                             stk_error *err);

/* Whether a calibration is fitted to validations. */
bool stk_trainer_is_calibrated(const stk_train_config *config);

/*
 * The metric of the last validation, as it rates the epoch. Where the metric has a rule for its
 * answers a calibration is fitted, and the metric is that of these answers, judged by pictures that
 * the fit has not seen: an epoch with the best answers may have poor ones without the rule.
 */
STK_CHECKED stk_status stk_trainer_rate(stk_trainer *t, double *metric, stk_error *err);

/*
 * Whether the weights of this epoch become the best ones. A validation that ran out of time ends
 * the training: its weights come from the lowest learning rate, where the last weights are nearly
 * always the best. So they count unless the images that were seen speak against them. Best weights
 * of an earlier process are known by their figures only.
 */
bool stk_trainer_is_best(const stk_trainer *t, const stk_event_epoch *epoch);

/* Notes the highest metric of weights that are saved; patience waits for a higher one. A metric
 * that is not defined counts as higher where its epoch is the best. */
void stk_trainer_note_gain(stk_trainer *t, bool best, double metric);

/* Keeps the calibration of weights that are about to be saved as the best ones; fits it first where
 * rating has not. Where time has run out the one before stays: it was fitted to nearly the same
 * weights. */
STK_CHECKED stk_status stk_trainer_keep_calibration(stk_trainer *t, stk_error *err);

/* Checks the mean loss of a step; sets result->diverged and the reason when it exploded. */
void stk_trainer_judge_loss(stk_trainer *t, double loss, int64_t step);

/* At the end of an epoch: checks its mean training and validation loss, skipped updates and the
 * weights; sets result->diverged and the reason. */
STK_CHECKED stk_status stk_trainer_judge_epoch(stk_trainer *t, double train_loss, double val_loss,
                                               stk_error *err);

/* Checks that all weights are finite; sets result->diverged and the reason when they are not. */
STK_CHECKED stk_status stk_trainer_judge_weights(stk_trainer *t, stk_error *err);

/* Continues at a saved position. */
void stk_trainer_put(stk_trainer *t, const stk_train_position *from);

/*
 * Calls the save_state hook, unless training may be going wrong. `whole`: the running epoch is over
 * and counted.
 */
void stk_trainer_save(stk_trainer *t, bool whole);

/* The same within an epoch, unless the weights are not finite or nothing has changed. */
STK_CHECKED stk_status stk_trainer_save_within(stk_trainer *t, stk_error *err);

/* Whether hooks.save_every_s have passed since the last save. */
bool stk_trainer_save_is_due(const stk_trainer *t);

#endif
