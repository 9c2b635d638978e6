/*
 * folds.h - what the folds of a run consist of: their samples, their steps, their files; and the
 * score that a fold which was cut short has to beat.
 */
#ifndef STK_JOB_TRAINING_FOLDS_H
#define STK_JOB_TRAINING_FOLDS_H

#include "dataset/dataset.h"
#include "job/recipe/recipe.h"
#include "run/run_folder.h"
#include "metrics/metrics.h"
#include "train/train.h"

/*
 * Splits the training samples for a fold. *val_samples (may be NULL) becomes the list that
 * split->val has indices of. A data set with its own validation set, without folds: split->val is
 * NULL, and *val_samples are all samples of that set. A refit (fold >= recipe->folds) trains on all
 * training samples, and nothing validates.
 */
STK_CHECKED stk_status stk_fold_split(const stk_dataset *dataset, const stk_recipe *recipe,
                                      int fold, stk_split *split, const stk_sample **val_samples,
                                      stk_error *err);

/* Steps of an epoch over so many pictures: the loader drops a last, smaller batch. */
int64_t stk_fold_steps(size_t train_count, size_t batch);

/* Steps of an epoch of this fold with such a batch. */
STK_CHECKED stk_status stk_fold_count_steps(const stk_dataset *dataset, const stk_recipe *recipe,
                                            int fold, size_t batch, int64_t *steps, stk_error *err);

/* Path of a file of a fold's weights: weights/NAME, with several folds weights/fold0/NAME, of a
 * refit weights/refit0/NAME. Freed with stk_mem_free; NULL without memory. */
char *stk_fold_file(const stk_run_folder *folder, const stk_recipe *recipe, int fold,
                    const char *name);

/* ---- prior.c: what class priors would score ---- */

/* Of predictions from the class frequencies alone. */
typedef struct stk_prior_score {
    double loss;       /* log loss of the class shares, with one more image added to each class */
    double acc1;       /* percent: always the most frequent class */
    double train_acc1; /* the same of the training pictures */
    size_t val_count;  /* pictures that validate */
    double metric;     /* NaN: not known, or less tells more */
    size_t scored;     /* what the metric is of: these pictures, or their rows */
} stk_prior_score;

/* Loss and accuracy are those of pictures; the metric is that of rows where the training pictures
 * have rows. In the unit of the validation's loss. `val_samples` is the list that stk_fold_split()
 * returned with the split. */
STK_CHECKED stk_status stk_prior_score_make(const stk_dataset *dataset, const stk_loss *loss,
                                            stk_metric metric, const stk_split *split,
                                            const stk_sample *val_samples, stk_prior_score *score,
                                            stk_error *err);

/* What a model came to. */
typedef struct stk_model_score {
    double loss; /* of its validation */
    double acc1;
    double train_acc1; /* 0: not known, or of pictures that were not seen equally often */
    double metric;     /* of the best epoch; NaN: not known */
    size_t scored;     /* pictures, or rows of pictures, that the metric is of; 0: not known */
} stk_model_score;

/* Of the best epoch; loss and accuracy are those that it is rated by. */
stk_model_score stk_model_score_of(const stk_recipe *recipe, const stk_train_result *result,
                                   double loss, double acc1);

/*
 * Whether a model beats the priors. With metric log loss only the loss counts. Otherwise a better
 * loss, a better accuracy, or a metric that is plainly better are enough: an overconfident model
 * may still be right more often, and one that names rare classes has the better macro F1 without
 * that. A few validation pictures tell little: where they are fewer
 * than 30, training pictures make up for the others, in favour of the model.
 */
bool stk_prior_is_beaten(const stk_prior_score *prior, stk_metric metric,
                         const stk_model_score *model);

#endif
