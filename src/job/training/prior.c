/*
 * prior.c - the score of class priors on a validation set.
 */
#include "job/training/folds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "metrics/metrics.h"
#include "metrics/pooling.h"
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

/* The training pictures of classes, and what is validated: the same shares are predicted
 * everywhere, so that counts say all. */
typedef struct same_shares {
    int classes;
    const size_t *counts; /* (classes): training pictures */
    size_t trained;       /* their sum */
    size_t most;          /* the class with the most of them, the first one of several */
    const size_t *seen;   /* (classes): what validates */
    size_t scored;        /* its sum */
} same_shares;

/* The mean over the columns that have both kinds of pictures; all their scores are equal. */
static double area_of_shares(const same_shares *s, double (*area)(stk_scored *, size_t)) {
    stk_scored rows[2] = {{0, true}, {0, false}};
    bool any = false;
    for (int c = s->classes == 2 ? 1 : 0; c < s->classes; c++) {
        any = any || (s->seen[c] > 0 && s->seen[c] < s->scored);
    }
    return any ? area(rows, 2) : NAN;
}

/* Only the commonest class is ever named. */
static double macro_f1_of_shares(const same_shares *s) {
    size_t present = 1;
    for (int c = 0; c < s->classes; c++) {
        present += s->seen[c] > 0 && (size_t)c != s->most;
    }
    double hits = (double)s->seen[s->most];
    return 2 * hits / ((double)s->scored + hits) / (double)present;
}

/* The mean over the classes that occur of the share that is found: all of one, none of the others.
 */
static double balanced_of_shares(const same_shares *s) {
    size_t present = 0;
    for (int c = 0; c < s->classes; c++) {
        present += s->seen[c] > 0;
    }
    return (s->seen[s->most] > 0 ? 1.0 : 0) / (double)present;
}

static double pf1_of_shares(const same_shares *s) {
    double share = ((double)s->counts[1] + 1) / ((double)s->trained + 2);
    double positives = (double)s->seen[1];
    const stk_pf1_sums sums = {share * positives, share * ((double)s->scored - positives),
                               s->seen[1]};
    return stk_metrics_pf1(&sums);
}

/* Every list has the k commonest classes; those that are as common as the right one stand before
 * it. `sorted` has the counts in falling order. */
static double mapk_of_shares(const same_shares *s, const size_t *sorted, int k) {
    double sum = 0;
    for (int c = 0; c < s->classes; c++) {
        int place = 0;
        while (s->seen[c] > 0 && place <= k && place < s->classes &&
               sorted[place] >= s->counts[c]) {
            place++;
        }
        sum += (double)s->seen[c] * stk_metrics_average_precision(place, k);
    }
    return sum / (double)s->scored;
}

static int falling(const void *a, const void *b) {
    const size_t *x = a;
    const size_t *y = b;
    return (*x < *y) - (*x > *y);
}

/* The metric of predictions that have the shares of the classes everywhere; NaN for metrics of
 * which less is better and for percent, which follow the loss or the accuracy: these are compared
 * anyhow. */
static stk_status rate_shares(const same_shares *s, stk_metric metric, int k, double *value,
                              stk_error *err) {
    size_t right = s->seen[s->most];
    *value = NAN;
    if (s->scored == 0) { /* no row has a known answer */
        return STK_OK;
    }
    switch (metric) {
    case STK_METRIC_MACRO_F1:
        *value = macro_f1_of_shares(s);
        break;
    case STK_METRIC_MICRO_F1:
        *value = (double)right / (double)s->scored;
        break;
    case STK_METRIC_BALANCED_ACC:
        *value = balanced_of_shares(s);
        break;
    case STK_METRIC_MCC:
        *value = 0;
        break;
    case STK_METRIC_QWK:
        *value = right == s->scored ? 1 : 0;
        break;
    case STK_METRIC_AUC:
    case STK_METRIC_AUC_MACRO:
        *value = area_of_shares(s, stk_metrics_auc);
        break;
    case STK_METRIC_WEIGHTED_AUC:
        *value = area_of_shares(s, stk_metrics_weighted_auc);
        break;
    case STK_METRIC_PF1:
        *value = s->classes == 2 ? pf1_of_shares(s) : NAN;
        break;
    case STK_METRIC_MAPK: {
        size_t *sorted = stk_mem_raw((size_t)s->classes, sizeof *sorted);
        if (sorted == NULL) {
            return STK_FAIL_MEMORY(err, "the class priors");
        }
        memcpy(sorted, s->counts, (size_t)s->classes * sizeof *sorted);
        qsort(sorted, (size_t)s->classes, sizeof *sorted, falling);
        *value = mapk_of_shares(s, sorted, k > 0 ? k : STK_METRICS_USUAL_K);
        stk_mem_free(sorted);
        break;
    }
    default:
        break;
    }
    return STK_OK;
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
                               .metric = score_of_same_answers(metric),
                               .scored = split->val_count};
    stk_mem_free(means);
    stk_mem_free(row);
    return ok ? STK_OK : STK_FAIL_MEMORY(err, "the means of the labels");
}

/* Counts rows instead of pictures, each with the answer that all of its pictures have; a row whose
 * pictures differ has none. `seen` is zeros. */
static stk_status count_rows(const stk_split *split, const stk_sample *val_samples, size_t *seen,
                             size_t *scored, stk_error *err) {
    stk_row_picture *rows = stk_mem_raw(split->val_count, sizeof *rows);
    if (rows == NULL) {
        return STK_FAIL_MEMORY(err, "the class priors");
    }
    for (size_t i = 0; i < split->val_count; i++) {
        size_t sample = split->val != NULL ? split->val[i] : i;
        rows[i] = stk_row_picture_of(val_samples[sample].row, sample);
    }
    stk_rows_sort(rows, split->val_count);
    for (size_t first = 0, end; first < split->val_count; first = end) {
        int label = val_samples[rows[first].place].label;
        bool known = true;
        end = stk_rows_end(rows, split->val_count, first);
        for (size_t i = first; i < end; i++) {
            known = known && val_samples[rows[i].place].label == label;
        }
        seen[label] += known;
        *scored += known;
    }
    stk_mem_free(rows);
    return STK_OK;
}

stk_status stk_prior_score_make(const stk_dataset *dataset, const stk_loss *loss, stk_metric metric,
                                const stk_split *split, const stk_sample *val_samples,
                                stk_prior_score *score, stk_error *err) {
    if (!stk_task_has_classes(dataset->task)) {
        return score_means(dataset, loss, metric, split, val_samples, score, err);
    }
    size_t classes = (size_t)dataset->class_count;
    size_t *counts = stk_mem_new(classes, 2 * sizeof *counts);
    if (counts == NULL) {
        return STK_FAIL_MEMORY(err, "the class priors");
    }
    size_t *seen = counts + classes;
    for (size_t i = 0; i < split->train_count; i++) {
        counts[dataset->train.items[split->train[i]].label]++;
    }
    size_t most = 0;
    for (size_t c = 1; c < classes; c++) {
        most = counts[c] > counts[most] ? c : most;
    }
    double sum = 0;
    for (size_t i = 0; i < split->val_count; i++) {
        size_t label = (size_t)label_of(split, val_samples, i);
        sum -= log(((double)counts[label] + 1) / (double)(split->train_count + classes));
        seen[label]++;
    }
    *score =
        (stk_prior_score){.loss = sum / (double)split->val_count,
                          .acc1 = 100.0 * (double)seen[most] / (double)split->val_count,
                          .train_acc1 = 100.0 * (double)counts[most] / (double)split->train_count,
                          .val_count = split->val_count,
                          .metric = NAN};
    stk_status status = STK_OK;
    score->scored = split->val_count;
    if (dataset->train_has_rows) {
        memset(seen, 0, classes * sizeof *seen);
        score->scored = 0;
        status = count_rows(split, val_samples, seen, &score->scored, err);
    }
    const same_shares shares = {dataset->class_count, counts, split->train_count, most, seen,
                                score->scored};
    STK_THEN(status, rate_shares(&shares, metric, dataset->answer.most, &score->metric, err));
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
    double scored = (double)(model->scored > 0 ? model->scored : prior->scored);
    double noise = PLAINLY_BETTER * sqrt(0.25 / scored);
    bool plainly_better = model->metric > prior->metric + noise;
    return model->loss < prior->loss || plainly_better ||
           (metric != STK_METRIC_LOGLOSS && right_more);
}

stk_model_score stk_model_score_of(const stk_recipe *recipe, const stk_train_result *result,
                                   double loss, double acc1) {
    bool as_they_are = recipe->sampling == STK_SAMPLING_NATURAL;
    const stk_event_epoch *best = &result->best;
    return (stk_model_score){loss, acc1, as_they_are ? best->train_acc1 : 0, best->val_metric,
                             result->best_scored};
}
