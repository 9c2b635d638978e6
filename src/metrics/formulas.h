/*
 * formulas.h - the figures themselves, from plain arrays and sums. Where scikit-learn has a figure,
 * these are its conventions. Threads: safe, nothing is stored.
 */
#ifndef STK_METRICS_FORMULAS_H
#define STK_METRICS_FORMULAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metrics/metric.h"

/* ---- classes.c: one named class per sample ---- */

/* Quadratic weighted kappa; 1 where all are of one class and named so. */
double stk_metrics_kappa(const int *labels, const int *predicted, size_t count);

/* The mean over classes that occur, as a label or as a prediction. `tally` has room for
 * 2 x classes. */
double stk_metrics_macro_f1(int classes, const int *labels, const int *predicted, size_t count,
                            size_t *tally);

/* The mean over classes that occur as a label of the share of their samples that is named so. */
double stk_metrics_balanced(int classes, const int *labels, const int *predicted, size_t count,
                            size_t *tally);

/* Matthews correlation coefficient, of two classes or more; 0 where all are of one class, or named
 * so. */
double stk_metrics_matthews(int classes, const int *labels, const int *predicted, size_t count,
                            size_t *tally);

/* Whether the figure of one named class per sample needs a tally. */
bool stk_metrics_is_tallied(stk_metric metric);

/* Macro F1, micro F1, kappa, balanced accuracy or Matthews' coefficient of these predicted classes;
 * NaN for other metrics and without samples. `tally` as above, where the metric is tallied. */
double stk_metrics_of_labels(stk_metric metric, int classes, const int *labels,
                             const int *predicted, size_t count, size_t *tally);

/* ---- curves.c: ROC ---- */

typedef struct stk_scored {
    float score;
    bool positive;
} stk_scored;

/* The area under the ROC curve; NaN without positives, without negatives and where a score is NaN.
 * Sorts the rows. */
double stk_metrics_auc(stk_scored *rows, size_t count);

/* The same, the strip of true-positive rates up to 0.4 counted twice; a perfect order gives 1. */
double stk_metrics_weighted_auc(stk_scored *rows, size_t count);

/* ---- ranks.c ---- */

/* Of a list of k in which the right answer has this place, from 1: 1 / place, or 0. */
double stk_metrics_average_precision(int place, int k);

/* ---- pf1.c ---- */

typedef struct stk_pf1_sums {
    double hits;      /* sum of the positives' probabilities */
    double misses;    /* sum of the negatives' probabilities */
    size_t positives; /* samples */
} stk_pf1_sums;

void stk_pf1_add(stk_pf1_sums *sums, double probability, bool positive);

/* 0 without positives, and where no probability is above 0. */
double stk_metrics_pf1(const stk_pf1_sums *sums);

/* ---- logloss.c ---- */

/* A loss with its probability clipped at 1e-15, as graders do. */
double stk_metrics_clipped(double loss);

/* The cross-entropy of a sigmoid's logit against 0 or 1. */
double stk_metrics_binary_loss(double logit, bool is);

/* ---- sets.c: several labels per sample ---- */

/* Values of known targets are 0 and 1. */
#define STK_TARGET_UNKNOWN (-1)

/* Counts of decisions on labels. */
typedef struct stk_set_tally {
    int labels;
    size_t *hits;       /* (labels), owned: chosen and true */
    size_t *named;      /* (labels), owned: times chosen + times true */
    size_t count;       /* samples */
    size_t exact;       /* samples with every known label right */
    double samples_sum; /* of the samples' F1 scores */
} stk_set_tally;

STK_CHECKED stk_status stk_set_tally_open(stk_set_tally *tally, int labels, stk_error *err);
void stk_set_tally_free(stk_set_tally *tally);
void stk_set_tally_reset(stk_set_tally *tally);
void stk_set_tally_add(stk_set_tally *tally, const int8_t *targets /* (labels) */,
                       const bool *chosen /* (labels) */);

/* Micro, macro or samples F1, acc1 or error; NaN for other metrics and without samples. Nothing to
 * find and nothing chosen counts as 0. */
double stk_set_tally_value(const stk_set_tally *tally, stk_metric metric);

/* ---- regression.c: numbers ---- */

/* Sums of one target. */
typedef struct stk_target_sums {
    size_t count;    /* known values */
    double squared;  /* sum of squared errors */
    double absolute; /* sum of absolute errors */
    double mean;     /* of the known values so far */
    double spread;   /* sum of their squared distances from their mean */
} stk_target_sums;

void stk_target_sums_add(stk_target_sums *sums, double output, double target);

/* RMSE, MAE or R2: the mean over the targets of which a value is known; NaN without any. */
double stk_target_sums_value(const stk_target_sums *sums /* (targets) */, int targets,
                             stk_metric metric);

#endif
