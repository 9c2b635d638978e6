/* metrics.h - accuracy, log loss and other figures of a validation. Threads: one at a time. */
#ifndef STK_TRAIN_METRICS_H
#define STK_TRAIN_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

/* In the order of the option's choices. */
typedef enum stk_metric {
    STK_METRIC_ACC1,     /* percent of samples whose likeliest class is right */
    STK_METRIC_ACC5,     /* percent of samples whose class is among the five likeliest */
    STK_METRIC_LOGLOSS,  /* mean cross-entropy; less is better */
    STK_METRIC_MACRO_F1, /* mean over the classes of the harmonic mean of precision and recall */
    STK_METRIC_AUC, /* area under the ROC curve; more than two classes: mean of one against all */
    STK_METRIC_QWK  /* quadratic weighted kappa, the classes taken as steps of a scale */
} stk_metric;

typedef struct stk_metrics {
    int classes;
    size_t count;
    size_t capacity;
    double loss_sum;
    size_t correct1;
    size_t correct5;
    int *labels;    /* capacity; owned */
    int *predicted; /* capacity; owned: the likeliest class */
    /* Owned: (kept samples, classes), logarithms of probabilities; NULL: none are kept. For AUC all
     * are kept. */
    float *logits;
    size_t every; /* samples 0, every, 2 every and so on are kept */
} stk_metrics;

/* Allocates for `capacity` samples. `metric` is the one that will be asked for besides accuracy and
 * log loss. */
STK_CHECKED stk_status stk_metrics_open(stk_metrics *metrics, int classes, size_t capacity,
                                        stk_metric metric, stk_error *err);
void stk_metrics_free(stk_metrics *metrics);

/* So many samples are enough for a calibration, and take it a fraction of a second. */
size_t stk_metrics_enough(int classes);

/* From now on keeps logits for a calibration (calibrate.h): of all samples, or of as many as are
 * enough for it. Nothing may have been added. */
STK_CHECKED stk_status stk_metrics_keep_logits(stk_metrics *metrics, stk_error *err);

/* Forgets what was added. */
void stk_metrics_reset(stk_metrics *metrics);

/* Returns the cross-entropy of the sample. */
double stk_metrics_add(stk_metrics *metrics, const float *logits /* (classes) */, int label);

/* NaN when nothing was added. */
double stk_metrics_value(const stk_metrics *metrics, stk_metric metric);

/* Macro F1 or kappa of these predicted classes; NaN for other metrics and without samples. */
double stk_metrics_of_labels(stk_metric metric, int classes, const int *labels,
                             const int *predicted, size_t count);

/* True for figures that are better when smaller. */
bool stk_metric_is_loss(stk_metric metric);

/* True for figures for which the likeliest class is not the best label: calibrate.h finds a rule.
 */
bool stk_metric_has_rule(stk_metric metric);

#endif
