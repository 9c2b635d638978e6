/*
 * folds.h - what concerns all folds of a run: how samples are split, where weights lie, and whether
 * a fold is better than class priors.
 */
#ifndef STK_JOB_TRAINING_FOLDS_H
#define STK_JOB_TRAINING_FOLDS_H

#include "dataset/dataset.h"
#include "job/training/job.h"

/* When a column of the table gives the folds (--fold-column), their number goes into the recipe. */
STK_CHECKED stk_status stk_job_take_given_folds(stk_job *job, stk_error *err);

/*
 * Splits the training samples for a fold. *val_samples (may be NULL) becomes the list that
 * split->val has indices of. A data set with its own validation set, without folds: split->val is
 * NULL, all samples of that set count, and *val_samples are these.
 */
STK_CHECKED stk_status stk_job_split(const stk_job *job, int fold, stk_split *split,
                                     const stk_sample **val_samples, stk_error *err);

/* Steps of an epoch of this fold with such a batch. */
STK_CHECKED stk_status stk_job_count_steps(const stk_job *job, int fold, size_t batch,
                                           int64_t *steps, stk_error *err);

/* Path of a file of the running fold's weights: weights/NAME, with folds weights/fold0/NAME. Freed
 * with stk_mem_free; NULL without memory. */
char *stk_job_fold_file(const stk_job *job, const char *name);

/* What class priors would score: predictions from the class frequencies alone. */
typedef struct stk_prior_score {
    double loss; /* log loss of the class shares, with one more image added to each class */
    double acc1; /* percent: always the most frequent class */
} stk_prior_score;

/* `val_samples` is what stk_job_split() returned with the split. */
STK_CHECKED stk_status stk_prior_score_make(const stk_dataset *dataset, const stk_split *split,
                                            const stk_sample *val_samples, stk_prior_score *score,
                                            stk_error *err);

/*
 * Whether a validation is better. With metric log loss only the loss counts. Otherwise a better
 * loss or a better accuracy is enough: an overconfident model may still be right more often.
 */
bool stk_prior_is_beaten(const stk_prior_score *prior, stk_metric metric, double val_loss,
                         double val_acc1);

/* Whether the best epoch of a fold that was cut short beats class priors; emits it if not. */
STK_CHECKED stk_status stk_job_fold_counts(const stk_job *job, const stk_split *split,
                                           const stk_sample *val_samples,
                                           const stk_event_epoch *best, bool *counts,
                                           stk_error *err);

/* Scores the out-of-fold predictions so far for the summary; with `emit` also as a decision. */
STK_CHECKED stk_status stk_job_score_oof(stk_job *job, bool emit, stk_error *err);

#endif
