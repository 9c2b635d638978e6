/*
 * folds.c - the samples, the steps and the files of a fold.
 */
#include "job/training/folds.h"

#include <stdio.h>

#include "base/mem.h"

stk_status stk_fold_split(const stk_dataset *dataset, const stk_recipe *recipe, int fold,
                          stk_split *split, const stk_sample **val_samples, stk_error *err) {
    bool refit = stk_recipe_is_refit(recipe, fold);
    bool given = recipe->folds <= 1 && dataset->val.count > 0 && !refit;
    stk_status status = refit ? stk_dataset_split_none(dataset, split, err)
                              : stk_dataset_split(dataset, recipe->val_fraction, recipe->folds,
                                                  fold, recipe->seed, split, err);
    if (status == STK_OK && given) {
        stk_mem_free(split->val);
        split->val = NULL;
        split->val_count = dataset->val.count;
    }
    if (val_samples != NULL) {
        *val_samples = given ? dataset->val.items : dataset->train.items;
    }
    return status;
}

int64_t stk_fold_steps(size_t train_count, size_t batch) {
    return train_count >= batch ? (int64_t)(train_count / batch) : 1;
}

stk_status stk_fold_count_steps(const stk_dataset *dataset, const stk_recipe *recipe, int fold,
                                size_t batch, int64_t *steps, stk_error *err) {
    stk_split split;
    stk_status status = stk_fold_split(dataset, recipe, fold, &split, NULL, err);
    if (status == STK_OK) {
        *steps = stk_fold_steps(split.train_count, batch);
        stk_split_free(&split);
    }
    return status;
}

char *stk_fold_file(const stk_run_folder *folder, const stk_recipe *recipe, int fold,
                    const char *name) {
    char path[80];
    if (stk_recipe_is_refit(recipe, fold)) {
        snprintf(path, sizeof path, "weights/refit%d/%s", fold - recipe->folds, name);
    } else if (recipe->folds > 1) {
        snprintf(path, sizeof path, "weights/fold%d/%s", fold, name);
    } else {
        snprintf(path, sizeof path, "weights/%s", name);
    }
    return stk_run_folder_file(folder, path);
}
