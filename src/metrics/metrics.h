/*
 * metrics.h - collects a validation, of any task, and computes its figures.
 *
 * A collector keeps what its metric needs and no more: sums, a label and a named class per sample,
 * and rows of outputs only for areas under the ROC curve and for a calibration. Rows take 1 GiB at
 * most. Where those of all samples would take more, every k-th sample is kept, and the areas are
 * those of the kept samples. Threads: one at a time.
 */
#ifndef STK_METRICS_METRICS_H
#define STK_METRICS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metrics/formulas.h"
#include "metrics/metric.h"

/* Answers that MAP@k counts where nothing says otherwise. */
#define STK_METRICS_USUAL_K 5

typedef struct stk_metrics_config {
    stk_task task;     /* STK_TASK_AUTO means single */
    int outputs;       /* per sample: classes, labels or targets */
    size_t capacity;   /* samples */
    stk_metric metric; /* the one that will be asked for besides accuracy and the loss */
    int k;             /* answers that MAP@k counts; 0: the usual ones */
} stk_metrics_config;

typedef struct stk_metrics {
    stk_task task;
    stk_metric metric;
    int outputs;
    int k;
    size_t count;
    size_t capacity;
    double loss_sum;
    double clipped_sum; /* of the losses as graders clip them */
    /* Classes. */
    size_t correct1; /* several labels: samples with every label right */
    size_t correct5;
    double precision_sum; /* of average precisions */
    stk_pf1_sums pf1;
    int *labels;    /* (capacity), owned; NULL: the task has no classes */
    int *predicted; /* (capacity), owned: the named class */
    size_t *tally;  /* (outputs, 2), owned: scratch of metrics that are tallied, or NULL */
    /* The last sample as it was counted, for stk_metrics_decide_...(). */
    double last_precision;
    double last_probability;
    int last_label;
    /* Several labels. */
    stk_set_tally sets; /* owned */
    int8_t *last_set;   /* (outputs), owned: targets of the sample that is added */
    bool *chosen;       /* (outputs), owned: labels that are named */
    /* Numbers. */
    stk_target_sums *targets; /* (outputs), owned */
    /* Rows, owned; NULL: none are kept. */
    float *logits;   /* (kept samples, outputs): logarithms of the classes' probabilities, or logits
                        of labels */
    int8_t *answers; /* (kept samples, outputs): targets of labels; NULL without labels */
    size_t every;    /* samples 0, every, 2 every and so on are kept */
} stk_metrics;

STK_CHECKED stk_status stk_metrics_open(stk_metrics *metrics, const stk_metrics_config *config,
                                        stk_error *err);
void stk_metrics_free(stk_metrics *metrics);

/* So many samples are enough for a calibration, and take it a fraction of a second. */
size_t stk_metrics_enough(int outputs);

/* From now on keeps rows for a calibration: of all samples, or of as many as are enough for it.
 * Nothing may have been added. Regressions keep none. */
STK_CHECKED stk_status stk_metrics_keep_logits(stk_metrics *metrics, stk_error *err);

/* Of the samples so far, those whose rows are kept. */
size_t stk_metrics_kept(const stk_metrics *metrics);

/* Forgets what was added. */
void stk_metrics_reset(stk_metrics *metrics);

/* Adds a sample of one class and returns its cross-entropy. A class that is as likely as the
 * label's own counts as likelier. */
double stk_metrics_add(stk_metrics *metrics, const float *outputs /* (outputs) */, int label);

/*
 * Adds a sample of several labels, or of numbers. NaN targets are not known and do not count. For
 * labels the outputs are logits; those above 0 are named. Returns the mean loss of the known
 * targets: binary cross-entropy, or squared error; 0 where none is known.
 */
double stk_metrics_add_targets(stk_metrics *metrics, const float *outputs /* (outputs) */,
                               const float *targets /* (outputs) */);

/* The same for labels that were chosen by a rule. */
double stk_metrics_add_chosen(stk_metrics *metrics, const float *outputs, const float *targets,
                              const bool *chosen /* (outputs) */);

/* What a rule made of the last sample, instead of what its outputs say: the class that is named,
 * the place of its label in the ranked list (from 1; 0: not in it), the positive's probability.
 * Accuracy and loss stay those of the outputs. */
void stk_metrics_decide_class(stk_metrics *metrics, int predicted);
void stk_metrics_decide_place(stk_metrics *metrics, int place);
void stk_metrics_decide_probability(stk_metrics *metrics, double probability);

/* NaN when nothing was added, and for metrics that do not rate the task. */
double stk_metrics_value(const stk_metrics *metrics, stk_metric metric);

/* The mean of the returned losses, which are not clipped. */
double stk_metrics_loss(const stk_metrics *metrics);

#endif
