/* metrics.c - accuracy, log loss, F1, AUC and kappa. */
#include "train/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* Samples, and numbers of all their classes, that a calibration is made from at most. */
#define MOST_KEPT 20000
#define MOST_KEPT_NUMBERS 1000000

stk_status stk_metrics_open(stk_metrics *metrics, int classes, size_t capacity, stk_metric metric,
                            stk_error *err) {
    memset(metrics, 0, sizeof *metrics);
    metrics->classes = classes;
    metrics->capacity = capacity;
    metrics->every = 1;
    metrics->labels = stk_mem_raw(capacity, sizeof *metrics->labels);
    metrics->predicted = stk_mem_raw(capacity, sizeof *metrics->predicted);
    bool good = metrics->labels != NULL && metrics->predicted != NULL;
    if (good && metric == STK_METRIC_AUC) {
        metrics->logits = stk_mem_raw(capacity, (size_t)classes * sizeof *metrics->logits);
        good = metrics->logits != NULL;
    }
    if (!good) {
        stk_metrics_free(metrics);
        return STK_FAIL_MEMORY(err, "validation");
    }
    return STK_OK;
}

size_t stk_metrics_enough(int classes) {
    size_t most = MOST_KEPT_NUMBERS / (size_t)classes;
    return most < 1 ? 1 : most < MOST_KEPT ? most : MOST_KEPT;
}

stk_status stk_metrics_keep_logits(stk_metrics *metrics, stk_error *err) {
    size_t classes = (size_t)metrics->classes;
    size_t most = stk_metrics_enough(metrics->classes);
    if (metrics->logits != NULL) {
        return STK_OK;
    }
    metrics->every = metrics->capacity > most ? (metrics->capacity + most - 1) / most : 1;
    size_t kept = (metrics->capacity + metrics->every - 1) / metrics->every;
    metrics->logits = stk_mem_raw(kept, classes * sizeof *metrics->logits);
    return metrics->logits != NULL ? STK_OK : STK_FAIL_MEMORY(err, "validation");
}

void stk_metrics_free(stk_metrics *metrics) {
    stk_mem_free(metrics->labels);
    stk_mem_free(metrics->predicted);
    stk_mem_free(metrics->logits);
    memset(metrics, 0, sizeof *metrics);
}

void stk_metrics_reset(stk_metrics *metrics) {
    metrics->count = 0;
    metrics->loss_sum = 0;
    metrics->correct1 = 0;
    metrics->correct5 = 0;
}

double stk_metrics_add(stk_metrics *metrics, const float *logits, int label) {
    size_t classes = (size_t)metrics->classes;
    int above = 0; /* classes that are thought likelier; ties count against the label */
    int best = 0;
    double sum = 1; /* of exp(logit - best), the best's own to begin with */
    for (int c = 0; c < metrics->classes; c++) {
        above += c != label && !(logits[c] < logits[label]);
        best = logits[c] > logits[best] ? c : best;
    }
    for (int c = 0; c < metrics->classes; c++) {
        sum += c != best ? exp((double)logits[c] - logits[best]) : 0;
    }
    double loss = log(sum) + logits[best] - logits[label];
    metrics->loss_sum += loss;
    metrics->correct1 += above < 1;
    metrics->correct5 += above < 5;
    if (metrics->logits != NULL && metrics->count % metrics->every == 0) {
        float *row = metrics->logits + metrics->count / metrics->every * classes;
        double log_sum = log(sum) + logits[best];
        for (size_t c = 0; c < classes; c++) {
            row[c] = (float)(logits[c] - log_sum); /* comparable between samples */
        }
    }
    metrics->labels[metrics->count] = label;
    metrics->predicted[metrics->count] = best;
    metrics->count++;
    return loss;
}

/* The mean over classes that occur, as a label or as a prediction. */
static double macro_f1(int classes, const int *labels, const int *predicted, size_t count) {
    double total = 0;
    int present = 0;
    for (int c = 0; c < classes; c++) {
        size_t hits = 0;
        size_t named = 0; /* times predicted + times true */
        for (size_t i = 0; i < count; i++) {
            bool is = labels[i] == c;
            bool said = predicted[i] == c;
            hits += is && said;
            named += (size_t)is + (size_t)said;
        }
        if (named > 0) {
            total += 2.0 * (double)hits / (double)named;
            present++;
        }
    }
    return present > 0 ? total / present : NAN;
}

static double kappa(const int *labels, const int *predicted, size_t count) {
    double observed = 0;
    double mean[2] = {0, 0};
    double square[2] = {0, 0};
    double n = (double)count;
    for (size_t i = 0; i < count; i++) {
        double a = labels[i];
        double b = predicted[i];
        observed += (a - b) * (a - b) / n;
        mean[0] += a / n;
        mean[1] += b / n;
        square[0] += a * a / n;
        square[1] += b * b / n;
    }
    /* The mean of (a - b)^2 for independent a and b. */
    double expected = square[0] + square[1] - 2 * mean[0] * mean[1];
    return expected > 0 ? 1 - observed / expected : 1;
}

typedef struct scored {
    float score;
    bool positive;
} scored;

static int by_score(const void *a, const void *b) {
    float x = ((const scored *)a)->score;
    float y = ((const scored *)b)->score;
    return x < y ? -1 : x > y;
}

/* The share of (positive, negative) pairs in the right order, ties counted half, from ranks. */
static double auc_of_class(const stk_metrics *metrics, int c, scored *rows) {
    size_t positives = 0;
    for (size_t i = 0; i < metrics->count; i++) {
        rows[i].score = metrics->logits[i * (size_t)metrics->classes + (size_t)c];
        rows[i].positive = metrics->labels[i] == c;
        if (isnan(rows[i].score)) {
            return NAN; /* NaN has no rank */
        }
        positives += rows[i].positive;
    }
    size_t negatives = metrics->count - positives;
    if (positives == 0 || negatives == 0) {
        return NAN;
    }
    qsort(rows, metrics->count, sizeof *rows, by_score);
    double ranks = 0;
    for (size_t i = 0; i < metrics->count;) {
        size_t end = i;
        size_t inside = 0;
        while (end < metrics->count && rows[end].score == rows[i].score) {
            inside += rows[end++].positive;
        }
        ranks += (double)inside * ((double)(i + end + 1) / 2);
        i = end;
    }
    double p = (double)positives;
    return (ranks - p * (p + 1) / 2) / (p * (double)negatives);
}

static double auc(const stk_metrics *metrics) {
    scored *rows = stk_mem_raw(metrics->count, sizeof *rows);
    if (rows == NULL || metrics->logits == NULL) {
        stk_mem_free(rows);
        return NAN;
    }
    double sum = 0;
    int present = 0;
    for (int c = metrics->classes == 2 ? 1 : 0; c < metrics->classes; c++) {
        double one = auc_of_class(metrics, c, rows);
        if (!isnan(one)) {
            sum += one;
            present++;
        }
    }
    stk_mem_free(rows);
    return present > 0 ? sum / present : NAN;
}

double stk_metrics_of_labels(stk_metric metric, int classes, const int *labels,
                             const int *predicted, size_t count) {
    if (count == 0) {
        return NAN;
    }
    return metric == STK_METRIC_MACRO_F1 ? macro_f1(classes, labels, predicted, count)
           : metric == STK_METRIC_QWK    ? kappa(labels, predicted, count)
                                         : NAN;
}

double stk_metrics_value(const stk_metrics *metrics, stk_metric metric) {
    if (metrics->count == 0) {
        return NAN;
    }
    switch (metric) {
    case STK_METRIC_ACC1:
        return 100.0 * (double)metrics->correct1 / (double)metrics->count;
    case STK_METRIC_ACC5:
        return 100.0 * (double)metrics->correct5 / (double)metrics->count;
    case STK_METRIC_LOGLOSS:
        return metrics->loss_sum / (double)metrics->count;
    case STK_METRIC_AUC:
        return auc(metrics);
    case STK_METRIC_MACRO_F1:
    case STK_METRIC_QWK:
        return stk_metrics_of_labels(metric, metrics->classes, metrics->labels, metrics->predicted,
                                     metrics->count);
    }
    return NAN;
}

bool stk_metric_is_loss(stk_metric metric) {
    return metric == STK_METRIC_LOGLOSS;
}

bool stk_metric_has_rule(stk_metric metric) {
    return metric == STK_METRIC_MACRO_F1 || metric == STK_METRIC_QWK;
}
