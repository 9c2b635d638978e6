/*
 * fold_run.h - one fold of a run: split, training with checkpoints, prediction.
 *
 * train_job.c calls stk_job_run_fold(). All else here is for the four files that run the fold:
 * fold_run.c has its steps in their order, fold_hooks.c what training calls meanwhile,
 * fold_result.c what the fold came to, fold_means.c what may be added to its weights. The first
 * three, and no others, write job->tally while the fold runs.
 */
#ifndef STK_JOB_TRAINING_FOLD_RUN_H
#define STK_JOB_TRAINING_FOLD_RUN_H

#include "budget/inference.h"
#include "job/steering/pace.h"
#include "job/training/folds.h"
#include "job/training/job.h"

/*
 * Trains fold job->tally.fold and predicts with its best weights. When memory runs out, training
 * goes back to the last saved state with a smaller batch. An error that leaves something to deliver
 * is stored in job->out.late_error and is no failure of this call.
 */
STK_CHECKED stk_status stk_job_run_fold(stk_job *job, stk_error *err);

typedef struct stk_running_fold {
    stk_job *job;
    stk_split split;               /* owned */
    const stk_sample *val_samples; /* borrowed: split.val has indices into this list */
    char *best_path;               /* owned: best.safetensors */
    char *last_path;               /* owned: last.safetensors */
    /* Owned: the other name of the best weights. A fold's weights get it if they do not beat class
     * priors; a refit's if it was finished, because until then nothing may predict with them. */
    char *other_path;
    stk_prior_score prior;       /* see stk_fold_prior() */
    bool prior_scored;           /* `prior` is made */
    bool below_prior;            /* the best weights of a fold do not beat priors */
    bool unfinished;             /* a refit that did not come to its end */
    double means_wanted;         /* of a refit: weight of class means in the head; 0: none */
    double left_s;               /* stk_run_clock_before_writing() when the pace was last asked */
    stk_fold_pace pace;          /* how far the fold goes */
    double compile_start_s;      /* on the clock: when a network was last begun to compile */
    stk_inference_watch watch;   /* times of the running validation */
    bool resumed;                /* an earlier process began the fold */
    bool begun;                  /* a saved state was loaded: training continues at `position` */
    stk_train_position position; /* set if `begun` */
    stk_train_result result;
    /* Owned: of the best weights so far; of a refit, from the first step on, the mean of the
     * validated models. After training it is that of the weights that predict. */
    stk_calibration calibration;
} stk_running_fold;

/* ---- fold_hooks.c ---- */

/* What training calls: the pace, checkpoints, saved states. */
stk_train_hooks stk_fold_hooks(stk_running_fold *fold);

/* Saves the state of the run with this position of the fold. */
void stk_fold_save_position(const stk_running_fold *fold, const stk_train_position *position);

/*
 * Loads the latest saved state of this fold; with `between_epochs` the latest that was saved
 * between two epochs. Its position is converted to the recipe's batch. *found is false where there
 * is none.
 */
STK_CHECKED stk_status stk_fold_load_state(const stk_running_fold *fold, bool between_epochs,
                                           stk_train_position *position, bool *found,
                                           stk_error *err);

/* The same; if an earlier process saved the state, its learning-rate schedule is fitted to the
 * present plan. */
STK_CHECKED stk_status stk_fold_load_replanned(const stk_running_fold *fold, bool between_epochs,
                                               stk_train_position *position, bool *found,
                                               stk_error *err);

/* Saves the weights in the state as those that predict; the epoch is the best one. *calibration
 * takes the pool that is decided. */
STK_CHECKED stk_status stk_fold_save_weights(const stk_running_fold *fold,
                                             stk_calibration *calibration, stk_error *err);

/* ---- fold_means.c ---- */

/* How many pictures stk_fold_join_means() will take the features of; 0: it is not called for. */
size_t stk_fold_means_images(const stk_running_fold *fold);

/*
 * Where most classes have few pictures: lets the means of the classes join the head of the weights
 * that predict, as far as that helps, and saves them again. There has to be time for it beside
 * prediction. The state has other weights afterwards. What fails here is told, and no failure of
 * the fold.
 */
void stk_fold_join_means(stk_running_fold *fold);

/* ---- fold_result.c ---- */

/* Emits that the end of the budget halted a step: nothing else would say so. */
void stk_fold_emit_halted(const stk_running_fold *fold);

/* Adds up the work of a training, successful or not. */
void stk_fold_add_work(const stk_running_fold *fold);

/* What class priors score on the fold's validation, which does not change while it runs. */
STK_CHECKED stk_status stk_fold_prior(stk_running_fold *fold, stk_error *err);

/*
 * Leaves a fold that was cut short and does not beat class priors out of the ensemble: it would
 * make the predictions worse. Its weights go to below_prior.safetensors, where predict does not
 * look. Without folds and without a test set the weights stay: nothing else could be delivered.
 */
STK_CHECKED stk_status stk_fold_check_prior(stk_running_fold *fold, stk_error *err);

/* Gives the weights of a refit their name if it has come to its end. Otherwise it is left out of
 * the ensemble: nothing has shown what it is worth. */
void stk_fold_check_refit(stk_running_fold *fold, bool failed);

/* Where the weights that predict lie: the best of a fold, or those of a finished refit. */
const char *stk_fold_weights(const stk_running_fold *fold);

/* Reads the weights that predict into the state. Where averages validate and predict, they begin
 * with these. */
STK_CHECKED stk_status stk_fold_load_weights(const stk_running_fold *fold, stk_error *err);

/* Reads the calibration of the weights that predict, unless it is too late to predict, and adds it
 * to those of the run if the fold was validated. */
void stk_fold_take_calibration(stk_running_fold *fold);

/* Adds the figures of the fold to the tally; after an error without raising folds_done. */
void stk_fold_add_result(stk_running_fold *fold, bool failed);

#endif
