/*
 * prior.h - what class priors would score: the measure that a fold which was cut short has to beat.
 */
#ifndef STK_JOB_TRAINING_PRIOR_H
#define STK_JOB_TRAINING_PRIOR_H

#include "dataset/dataset.h"
#include "train/metrics.h"

/* What class priors would score: predictions from the class frequencies alone. */
typedef struct stk_prior_score {
    double loss; /* log loss of the class shares, with one more image added to each class */
    double acc1; /* percent: always the most frequent class */
} stk_prior_score;

/* `val_samples` is the list that stk_fold_split() returned with the split. */
STK_CHECKED stk_status stk_prior_score_make(const stk_dataset *dataset, const stk_split *split,
                                            const stk_sample *val_samples, stk_prior_score *score,
                                            stk_error *err);

/*
 * Whether a validation beats the priors. With metric log loss only the loss counts. Otherwise a
 * better loss or a better accuracy is enough: an overconfident model may still be right more often.
 */
bool stk_prior_is_beaten(const stk_prior_score *prior, stk_metric metric, double val_loss,
                         double val_acc1);

#endif
