/*
 * prior.c - the score of class priors on a validation set.
 */
#include "job/training/folds.h"

#include <math.h>

#include "base/error.h"
#include "base/mem.h"

/* So many validation pictures tell enough by themselves. */
#define TELLING_PICTURES 30

/* The least share of a label that counts, so that its logarithm is finite. */
#define LEAST_SHARE 1e-6

/* What the means of the training records lose on the validation samples, in the unit of the loss.
 */
static stk_status score_means(const stk_dataset *dataset, const stk_split *split,
                              const stk_sample *val_samples, stk_prior_score *score,
                              stk_error *err) {
    const stk_targets *t = &dataset->targets;
    double *means = stk_mem_new((size_t)t->outputs, sizeof *means);
    float *row = stk_mem_new((size_t)t->outputs, sizeof *row);
    double loss = 0;
    bool ok = means != NULL && row != NULL;
    if (ok) {
        stk_targets_means(t, means);
    }
    for (size_t i = 0; ok && i < split->val_count; i++) {
        const stk_sample *sample = &val_samples[split->val != NULL ? split->val[i] : i];
        stk_targets_learned(t, (size_t)sample->record, row);
        for (int k = 0; k < t->outputs; k++) {
            double p = fmin(fmax(means[k], LEAST_SHARE), 1 - LEAST_SHARE);
            double lost =
                t->is_labels ? -row[k] * log(p) - (1 - row[k]) * log1p(-p) : row[k] * row[k] / 2;
            loss += isnan(lost) ? 0 : lost;
        }
    }
    *score = (stk_prior_score){.loss = loss / (double)split->val_count,
                               .acc1 = NAN,
                               .train_acc1 = NAN,
                               .val_count = split->val_count};
    stk_mem_free(means);
    stk_mem_free(row);
    return ok ? STK_OK : STK_FAIL_MEMORY(err, "the means of the labels");
}

stk_status stk_prior_score_make(const stk_dataset *dataset, const stk_split *split,
                                const stk_sample *val_samples, stk_prior_score *score,
                                stk_error *err) {
    if (!stk_task_has_classes(dataset->task)) {
        return score_means(dataset, split, val_samples, score, err);
    }
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
    *score =
        (stk_prior_score){.loss = loss / (double)split->val_count,
                          .acc1 = 100.0 * (double)right / (double)split->val_count,
                          .train_acc1 = 100.0 * (double)counts[most] / (double)split->train_count,
                          .val_count = split->val_count};
    stk_mem_free(counts);
    return STK_OK;
}

/* Of few validation pictures, with training pictures for those that are missing. */
static double told_accuracy(const stk_prior_score *prior, double acc1, double train_acc1) {
    double part = fmin((double)prior->val_count / TELLING_PICTURES, 1);
    return part * acc1 + (1 - part) * train_acc1;
}

/* What guessing scores in a metric of ranks or agreement; NaN: in others it depends on the shares.
 */
static double chance_of(stk_metric metric) {
    switch (metric) {
    case STK_METRIC_AUC:
    case STK_METRIC_AUC_MACRO:
    case STK_METRIC_WEIGHTED_AUC:
        return 0.5;
    case STK_METRIC_QWK:
    case STK_METRIC_R2:
        return 0;
    default:
        return NAN;
    }
}

bool stk_prior_is_beaten(const stk_prior_score *prior, stk_metric metric,
                         const stk_model_score *model) {
    bool right_more = model->acc1 > prior->acc1;
    if (!right_more && model->train_acc1 > 0) {
        right_more = told_accuracy(prior, model->acc1, model->train_acc1) >
                     told_accuracy(prior, prior->acc1, prior->train_acc1);
    }
    /* Ranks may be good where probabilities are not. */
    double noise = 1 / sqrt((double)prior->val_count);
    bool ranks_better = model->metric > chance_of(metric) + noise;
    return model->loss < prior->loss || ranks_better ||
           (metric != STK_METRIC_LOGLOSS && right_more);
}

stk_model_score stk_model_score_of(const stk_recipe *recipe, const stk_event_epoch *best,
                                   double loss, double acc1) {
    bool as_they_are = recipe->sampling == STK_SAMPLING_NATURAL;
    return (stk_model_score){loss, acc1, as_they_are ? best->train_acc1 : 0, best->val_metric};
}
