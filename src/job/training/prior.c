/*
 * prior.c - the score of class priors on a validation set.
 */
#include "job/training/folds.h"

#include <math.h>

#include "base/error.h"
#include "base/mem.h"
#include "metrics/metrics.h"
#include "train/plain_loss.h"

/* What the metric must be better by, in units of the standard error of a share of 0.5. */
#define PLAINLY_BETTER 1.0

/* So many validation pictures tell enough by themselves. */
#define TELLING_PICTURES 30

/* The least share of a label that counts, so that its logarithm is finite. */
#define LEAST_SHARE 1e-6

static int label_of(const stk_split *split, const stk_sample *val_samples, size_t i) {
    return val_samples[split->val != NULL ? split->val[i] : i].label;
}

/* What a network that always says the mean puts out. */
static double output_of_mean(const stk_targets *t, const stk_loss *loss, int k, double mean) {
    double learned = t->is_labels ? mean : stk_targets_learned_number(t, k, mean);
    double p = fmin(fmax(learned, LEAST_SHARE), 1 - LEAST_SHARE);
    return loss->kind == STK_LOSS_SIGMOID ? log(p / (1 - p)) : learned;
}

/* What the same answer everywhere scores in a metric of several labels or of numbers. */
static double score_of_same_answers(stk_metric metric) {
    return metric == STK_METRIC_AUC_MACRO ? 0.5 : metric == STK_METRIC_R2 ? 0 : NAN;
}

/* The metric of predictions that have the shares of the classes everywhere. Metrics of which less
 * is better follow the loss or the accuracy, which are compared anyhow. */
static stk_status rate_shares(const stk_dataset *dataset, const size_t *counts, stk_metric metric,
                              const stk_split *split, const stk_sample *val_samples,
                              stk_prior_score *score, stk_error *err) {
    stk_metrics rated;
    const stk_metrics_config config = {.task = dataset->task,
                                       .outputs = dataset->class_count,
                                       .capacity = split->val_count,
                                       .metric = metric,
                                       .k = dataset->answer.most};
    if (stk_metric_is_loss(metric) || stk_metric_info_of(metric)->percent) {
        return STK_OK;
    }
    stk_status status = stk_metrics_open(&rated, &config, err);
    if (status != STK_OK) {
        return status;
    }
    float *shares = stk_mem_new((size_t)dataset->class_count, sizeof *shares);
    for (int c = 0; shares != NULL && c < dataset->class_count; c++) {
        shares[c] = logf((float)counts[c] + 1);
    }
    for (size_t i = 0; shares != NULL && i < split->val_count; i++) {
        stk_metrics_add(&rated, shares, label_of(split, val_samples, i));
    }
    score->metric = stk_metrics_value(&rated, metric);
    stk_metrics_free(&rated);
    status = shares != NULL ? STK_OK : STK_FAIL_MEMORY(err, "the class priors");
    stk_mem_free(shares);
    return status;
}

/* What the means of the training records lose on the validation samples, in the unit of the loss.
 */
static stk_status score_means(const stk_dataset *dataset, const stk_loss *loss, stk_metric metric,
                              const stk_split *split, const stk_sample *val_samples,
                              stk_prior_score *score, stk_error *err) {
    const stk_targets *t = &dataset->targets;
    double *means = stk_mem_new((size_t)t->outputs, sizeof *means);
    float *row = stk_mem_new((size_t)t->outputs, sizeof *row);
    double sum = 0;
    bool ok = means != NULL && row != NULL;
    if (ok) {
        stk_targets_means(t, means);
    }
    for (size_t i = 0; ok && i < split->val_count; i++) {
        const stk_sample *sample = &val_samples[split->val != NULL ? split->val[i] : i];
        stk_targets_learned(t, (size_t)sample->record, row);
        for (int k = 0; k < t->outputs; k++) {
            double lost = stk_plain_loss(loss, output_of_mean(t, loss, k, means[k]), row[k]);
            sum += isnan(lost) ? 0 : lost;
        }
    }
    *score = (stk_prior_score){.loss = sum / (double)split->val_count,
                               .acc1 = NAN,
                               .train_acc1 = NAN,
                               .val_count = split->val_count,
                               .metric = score_of_same_answers(metric)};
    stk_mem_free(means);
    stk_mem_free(row);
    return ok ? STK_OK : STK_FAIL_MEMORY(err, "the means of the labels");
}

stk_status stk_prior_score_make(const stk_dataset *dataset, const stk_loss *loss, stk_metric metric,
                                const stk_split *split, const stk_sample *val_samples,
                                stk_prior_score *score, stk_error *err) {
    if (!stk_task_has_classes(dataset->task)) {
        return score_means(dataset, loss, metric, split, val_samples, score, err);
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
    double sum = 0;
    size_t right = 0;
    for (size_t i = 0; i < split->val_count; i++) {
        size_t label = (size_t)label_of(split, val_samples, i);
        sum -= log(((double)counts[label] + 1) / (double)(split->train_count + classes));
        right += label == most;
    }
    *score =
        (stk_prior_score){.loss = sum / (double)split->val_count,
                          .acc1 = 100.0 * (double)right / (double)split->val_count,
                          .train_acc1 = 100.0 * (double)counts[most] / (double)split->train_count,
                          .val_count = split->val_count,
                          .metric = NAN};
    stk_status status = rate_shares(dataset, counts, metric, split, val_samples, score, err);
    stk_mem_free(counts);
    return status;
}

/* Of few validation pictures, with training pictures for those that are missing. */
static double told_accuracy(const stk_prior_score *prior, double acc1, double train_acc1) {
    double part = fmin((double)prior->val_count / TELLING_PICTURES, 1);
    return part * acc1 + (1 - part) * train_acc1;
}

bool stk_prior_is_beaten(const stk_prior_score *prior, stk_metric metric,
                         const stk_model_score *model) {
    bool right_more = model->acc1 > prior->acc1;
    if (!right_more && model->train_acc1 > 0) {
        right_more = told_accuracy(prior, model->acc1, model->train_acc1) >
                     told_accuracy(prior, prior->acc1, prior->train_acc1);
    }
    double noise = PLAINLY_BETTER * sqrt(0.25 / (double)prior->val_count);
    bool plainly_better = model->metric > prior->metric + noise;
    return model->loss < prior->loss || plainly_better ||
           (metric != STK_METRIC_LOGLOSS && right_more);
}

stk_model_score stk_model_score_of(const stk_recipe *recipe, const stk_event_epoch *best,
                                   double loss, double acc1) {
    bool as_they_are = recipe->sampling == STK_SAMPLING_NATURAL;
    return (stk_model_score){loss, acc1, as_they_are ? best->train_acc1 : 0, best->val_metric};
}
