/*
 * calibration.h - how the outputs of one model become probabilities and labels.
 *
 * A network that was trained with label smoothing says less than it knows, and one that was trained
 * for long says more. So its logits are divided by a temperature before the softmax. And the
 * likeliest class is not the label that scores best in every metric: a label rule says which class
 * is named. src/train fits both on pictures that were held out; a checkpoint keeps them in its
 * metadata as one JSON object. A calibration of zeros is none: temperature 1, the likeliest class.
 * Threads: one at a time.
 */
#ifndef STK_WEIGHTS_CALIBRATION_H
#define STK_WEIGHTS_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

#include "base/str.h"
#include "metrics/pooling.h"
#include "weights/label_rule.h"

/* Temperatures are within these bounds; others are those of a damaged file. */
#define STK_LEAST_TEMPERATURE 0.25
#define STK_MOST_TEMPERATURE 4.0

typedef struct stk_calibration {
    double temperature;  /* 0: there is none, which means 1 */
    stk_label_rule rule; /* as it was fitted; stk_calibration_mean_rule() says whether it is used */
    stk_pooling pool;    /* how a row of several pictures gets its values; the rule is for these */
    /* How it was found. Each figure is of pictures that its fit had not seen. */
    size_t pictures;    /* held-out pictures; 0: it was taken over from validated models */
    double plain_loss;  /* log loss at temperature 1 */
    double loss;        /* log loss at fitted temperatures */
    double plain_score; /* the metric of the likeliest classes; NaN where no rule was fitted */
    double score;       /* the metric with fitted rules */
    size_t rows;        /* above 0: both scores are of so many held-out rows of pictures */
    double pool_scores[STK_POOL_WAYS]; /* of these rows, with rules; where `rows` is above 0 */
    /* Class means that joined the head (train/class_means.h). */
    double means;      /* their weight; 0: none did */
    double means_gain; /* what they gain in the metric on held-out pictures */
} stk_calibration;

/* Frees the numbers and leaves zeros. */
void stk_calibration_free(stk_calibration *calibration);

/* The temperature to divide by: 1 where there is none. */
double stk_calibration_temperature(const stk_calibration *calibration);

/* Rounds a number to four decimals, so that it is the same after it was written and read. */
double stk_calibration_round(double value);

/* Whether a run with this one model would use its rule, see stk_calibration_mean_rule(). */
bool stk_calibration_is_ruled(const stk_calibration *calibration);

/* Appends the JSON object; nothing where there is no calibration: neither temperature nor rule,
 * rows averaged, no class means. */
void stk_calibration_append(const stk_calibration *calibration, stk_str *out);

/*
 * Reads the JSON object of a model with so many classes. NULL, a damaged text, and numbers that no
 * fit gives are no error: there is no calibration then. STK_ERR_MEMORY is the only failure.
 */
STK_CHECKED stk_status stk_calibration_read(const char *text, int classes,
                                            stk_calibration *calibration, stk_error *err);

/* ---- the mean over models ---- */

typedef struct stk_calibration_mean {
    int classes;
    stk_pooling pool;       /* of the first model */
    double weight;          /* of all models added */
    double fitted;          /* of those that have a calibration */
    double log_temperature; /* weighted sum */
    double ruled;           /* weight of the models whose rule is of `rule.kind` */
    double pictures;        /* held-out pictures of these, or rows of pictures */
    double plain_score;     /* sum of their scores, times pictures */
    double score;
    double *sums;        /* (classes + 1), owned: weighted sums of their numbers, or of the
                            logarithms of their weights */
    double with_means;   /* weight of the models whose head class means joined */
    double means;        /* weighted sum of the weights of these means */
    stk_label_rule rule; /* owned: numbers has room for (classes + 1) */
} stk_calibration_mean;

STK_CHECKED stk_status stk_calibration_mean_open(stk_calibration_mean *mean, int classes,
                                                 stk_error *err);
void stk_calibration_mean_free(stk_calibration_mean *mean);

/* Adds one model. A rule of another kind than that of the first model with a rule is left out, and
 * so is one for rows that are pooled otherwise than the first model has it. */
void stk_calibration_mean_add(stk_calibration_mean *mean, const stk_calibration *calibration,
                              double weight);

/* The geometric mean of the temperatures; NaN where no model has a calibration. */
double stk_calibration_mean_temperature(const stk_calibration_mean *mean);

/*
 * The mean of the rules, otherwise the likeliest class. It is used where more than half of the
 * models have a rule and where, on all pictures that were held out, the rules score better than the
 * likeliest classes by more than chance gives. Belongs to `mean`; valid until the next call.
 */
const stk_label_rule *stk_calibration_mean_rule(stk_calibration_mean *mean);

/* The weight of class means in the head of one more model; 0 where most models have none. */
double stk_calibration_mean_means(const stk_calibration_mean *mean);

/* The mean as the calibration of one more model, for stk_calibration_free(). Zeros where no model
 * has one. */
STK_CHECKED stk_status stk_calibration_mean_take(stk_calibration_mean *mean,
                                                 stk_calibration *calibration, stk_error *err);

#endif
