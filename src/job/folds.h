/* folds.h - what concerns the folds of a run together: how many, which count, what they score. */
#ifndef STK_JOB_FOLDS_H
#define STK_JOB_FOLDS_H

#include "dataset/dataset.h"
#include "job/job_state.h"

/* Where a column of the table gives the folds, job->folds is how many it has. */
STK_CHECKED stk_status stk_job_settle_folds(stk_job *job, stk_error *err);

/*
 * How the training samples are divided for a fold. A given validation set is the same for everybody
 * without folds: then split->val is NULL, all of it counts, and *val_samples, which may be asked
 * for with NULL, are its samples instead of the training set's.
 */
STK_CHECKED stk_status stk_job_split(const stk_job *job, int fold, stk_split *split,
                                     const stk_sample **val_samples, stk_error *err);

/* Where a file of the running fold's weights lies: weights/NAME, with folds weights/fold0/NAME; to
 * be freed, NULL without memory. */
char *stk_job_fold_file(const stk_job *job, const char *name);

/*
 * Looks whether there is time for all folds that were asked for, and takes fewer where there is
 * not; between folds also more than before, with what was left over. `epochs_done` are those of the
 * running fold; -1: none is running.
 */
void stk_job_plan_folds(stk_job *job, int epochs_done);

/* What knowing nothing but how often each class is trained on would score. */
typedef struct stk_prior_score {
    double
        loss; /* log loss of the shares of the classes, each class counted once more than it is */
    double acc1; /* percent: always the most frequent class */
} stk_prior_score;

/* `val_samples` are what the split's validation part is of, as stk_job_split tells them. */
STK_CHECKED stk_status stk_prior_score_make(const stk_dataset *dataset, const stk_split *split,
                                            const stk_sample *val_samples, stk_prior_score *score,
                                            stk_error *err);

/*
 * Whether a validation beats it: by the log loss where the run's metric is that; otherwise one of
 * the two is enough, since a model that is too sure of itself may still be right more often.
 */
bool stk_prior_is_beaten(const stk_prior_score *prior, stk_metric metric, double val_loss,
                         double val_acc1);

/* Whether a model that was cut short beats it with its best epoch; one that does not is told. */
STK_CHECKED stk_status stk_job_fold_counts(const stk_job *job, const stk_split *split,
                                           const stk_sample *val_samples,
                                           const stk_event_epoch *best, bool *counts,
                                           stk_error *err);

/*
 * What the out-of-fold predictions so far score, for the summary; with `tell` it is one line too.
 */
STK_CHECKED stk_status stk_job_score_oof(stk_job *job, bool tell, stk_error *err);

#endif
