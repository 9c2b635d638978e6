/* classes.c - figures of one named class per sample: F1, kappa, balanced accuracy and Matthews'
 * coefficient. */
#include <math.h>
#include <string.h>

#include "metrics/formulas.h"

double stk_metrics_macro_f1(int classes, const int *labels, const int *predicted, size_t count,
                            size_t *tally) {
    size_t *hits = tally;
    size_t *named = tally + classes; /* times predicted + times true */
    double total = 0;
    int present = 0;
    memset(tally, 0, 2 * (size_t)classes * sizeof *tally);
    for (size_t i = 0; i < count; i++) {
        hits[labels[i]] += labels[i] == predicted[i];
        named[labels[i]]++;
        named[predicted[i]]++;
    }
    for (int c = 0; c < classes; c++) {
        total += named[c] > 0 ? 2.0 * (double)hits[c] / (double)named[c] : 0;
        present += named[c] > 0;
    }
    return present > 0 ? total / present : NAN;
}

double stk_metrics_balanced(int classes, const int *labels, const int *predicted, size_t count,
                            size_t *tally) {
    size_t *hits = tally;
    size_t *wanted = tally + classes; /* times true */
    double total = 0;
    int present = 0;
    memset(tally, 0, 2 * (size_t)classes * sizeof *tally);
    for (size_t i = 0; i < count; i++) {
        hits[labels[i]] += labels[i] == predicted[i];
        wanted[labels[i]]++;
    }
    for (int c = 0; c < classes; c++) {
        total += wanted[c] > 0 ? (double)hits[c] / (double)wanted[c] : 0;
        present += wanted[c] > 0;
    }
    return present > 0 ? total / present : NAN;
}

double stk_metrics_matthews(int classes, const int *labels, const int *predicted, size_t count,
                            size_t *tally) {
    size_t *wanted = tally; /* times true */
    size_t *named = tally + classes;
    double n = (double)count;
    double right = 0;
    double both = 0;           /* sum over the classes of times true x times predicted */
    double square[2] = {0, 0}; /* sums of their squares */
    memset(tally, 0, 2 * (size_t)classes * sizeof *tally);
    for (size_t i = 0; i < count; i++) {
        right += labels[i] == predicted[i];
        wanted[labels[i]]++;
        named[predicted[i]]++;
    }
    for (int c = 0; c < classes; c++) {
        double a = (double)wanted[c];
        double b = (double)named[c];
        both += a * b;
        square[0] += a * a;
        square[1] += b * b;
    }
    /* Sums of whole numbers: those of one class are exactly n^2. */
    double spread = sqrt(n * n - square[0]) * sqrt(n * n - square[1]);
    return spread > 0 ? (right * n - both) / spread : 0;
}

double stk_metrics_kappa(const int *labels, const int *predicted, size_t count) {
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

/* With one class per sample every wrong name is one miss and one false alarm, so that micro F1 is
 * the share of right ones. */
static double micro_f1(const int *labels, const int *predicted, size_t count) {
    size_t right = 0;
    for (size_t i = 0; i < count; i++) {
        right += labels[i] == predicted[i];
    }
    return (double)right / (double)count;
}

bool stk_metrics_is_tallied(stk_metric metric) {
    return metric == STK_METRIC_MACRO_F1 || metric == STK_METRIC_BALANCED_ACC ||
           metric == STK_METRIC_MCC;
}

double stk_metrics_of_labels(stk_metric metric, int classes, const int *labels,
                             const int *predicted, size_t count, size_t *tally) {
    if (count == 0) {
        return NAN;
    }
    return metric == STK_METRIC_MACRO_F1
               ? stk_metrics_macro_f1(classes, labels, predicted, count, tally)
           : metric == STK_METRIC_MICRO_F1 ? micro_f1(labels, predicted, count)
           : metric == STK_METRIC_QWK      ? stk_metrics_kappa(labels, predicted, count)
           : metric == STK_METRIC_BALANCED_ACC
               ? stk_metrics_balanced(classes, labels, predicted, count, tally)
           : metric == STK_METRIC_MCC
               ? stk_metrics_matthews(classes, labels, predicted, count, tally)
               : NAN;
}
