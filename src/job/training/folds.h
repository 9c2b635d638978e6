/*
 * folds.h - what the folds of a run consist of: their samples, their steps, their files.
 */
#ifndef STK_JOB_TRAINING_FOLDS_H
#define STK_JOB_TRAINING_FOLDS_H

#include "dataset/dataset.h"
#include "job/recipe/recipe.h"
#include "run/run_folder.h"

/*
 * Splits the training samples for a fold. *val_samples (may be NULL) becomes the list that
 * split->val has indices of. A data set with its own validation set, without folds: split->val is
 * NULL, and *val_samples are all samples of that set.
 */
STK_CHECKED stk_status stk_fold_split(const stk_dataset *dataset, const stk_recipe *recipe,
                                      int fold, stk_split *split, const stk_sample **val_samples,
                                      stk_error *err);

/* Steps of an epoch of this fold with such a batch. */
STK_CHECKED stk_status stk_fold_count_steps(const stk_dataset *dataset, const stk_recipe *recipe,
                                            int fold, size_t batch, int64_t *steps, stk_error *err);

/* Path of a file of a fold's weights: weights/NAME, with several folds weights/fold0/NAME. Freed
 * with stk_mem_free; NULL without memory. */
char *stk_fold_file(const stk_run_folder *folder, const stk_recipe *recipe, int fold,
                    const char *name);

#endif
