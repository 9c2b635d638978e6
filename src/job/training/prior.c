/*
 * prior.c - the score of class priors on a validation set.
 */
#include "job/training/folds.h"

#include <math.h>

#include "base/error.h"
#include "base/mem.h"

stk_status stk_prior_score_make(const stk_dataset *dataset, const stk_split *split,
                                const stk_sample *val_samples, stk_prior_score *score,
                                stk_error *err) {
    size_t classes = (size_t)dataset->class_count;
    size_t *counts = stk_mem_new(classes, sizeof *counts);
    if (counts == NULL) {
        return STK_FAIL_MEMORY(err, "the class priors");
    }
    for (size_t i = 0; i < split->train_count; i++) {
        counts[dataset->train.items[split->train[i]].label]++;
    }
    size_t most = 0;
    for (size_t c = 1; c < classes; c++) {
        most = counts[c] > counts[most] ? c : most;
    }
    double loss = 0;
    size_t right = 0;
    for (size_t i = 0; i < split->val_count; i++) {
        size_t label = (size_t)val_samples[split->val != NULL ? split->val[i] : i].label;
        loss -= log(((double)counts[label] + 1) / (double)(split->train_count + classes));
        right += label == most;
    }
    *score = (stk_prior_score){.loss = loss / (double)split->val_count,
                               .acc1 = 100.0 * (double)right / (double)split->val_count};
    stk_mem_free(counts);
    return STK_OK;
}

bool stk_prior_is_beaten(const stk_prior_score *prior, stk_metric metric, double val_loss,
                         double val_acc1) {
    return val_loss < prior->loss || (metric != STK_METRIC_LOGLOSS && val_acc1 > prior->acc1);
}
