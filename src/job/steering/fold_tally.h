/*
 * fold_tally.h - the folds of a run so far: which one runs, how they ended, what they add up to.
 *
 * The running fold (training/fold_run.h) writes it, and train_job.c between folds. All other files
 * read it.
 */
#ifndef STK_JOB_STEERING_FOLD_TALLY_H
#define STK_JOB_STEERING_FOLD_TALLY_H

#include <stdbool.h>

typedef struct stk_fold_tally {
    int fold;              /* the running fold, from 0 */
    int folds_done;        /* folds whose weights are saved and belong to the ensemble */
    int folds_below_prior; /* folds that were cut short and do not beat class priors */
    bool cut;              /* a fold, or a prediction, ended before what was asked for */
    bool trouble;          /* a fold diverged or lost its weights; other folds may be fine */
    bool weights_lost;     /* the best weights could not be saved: training ends, and prediction
                              uses the weights in memory */
    bool out_of_memory;    /* training cannot go on; the run delivers what it has */
    bool cache_warned;     /* the warning that compiled kernels cannot be stored was emitted */
    /* Results of the folds so far, earlier processes included. */
    int epochs_done;
    double best_acc1;        /* percent: mean over the best epochs of the folds; NaN: none */
    double best_metric;      /* the run's metric: mean over the same epochs */
    const char *stop_reason; /* what ended the last fold, as in summary.json; NULL: not known */
    int epochs_validated;    /* of the last validated model, or of a mean one of earlier processes;
                                0: none */
    /* Sums over all folds of this process. */
    double images;  /* pictures trained on */
    double train_s; /* seconds in steps, waiting included */
    double wait_s;  /* seconds of waiting for batches */
    int workers;    /* decode workers that the last loader ended with; 0: no loader ran */
    int slots;      /* slots that the last loader ended with; 0: no loader ran */
} stk_fold_tally;

#endif
