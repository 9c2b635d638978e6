/*
 * metric.h - the table of metrics: what each is called, which tasks it rates, what is better.
 *
 * Threads: safe, nothing is stored.
 */
#ifndef STK_METRICS_METRIC_H
#define STK_METRICS_METRIC_H

#include <stdbool.h>

#include <stoker/status.h>

#include "metrics/task.h"

/* The names, in the order of the values: the choices of an option. */
#define STK_METRIC_NAMES                                                               \
    "acc1 acc5 error logloss macro_f1 micro_f1 samples_f1 auc auc_macro weighted_auc " \
    "pf1 qwk balanced_acc mcc mapk rmse mae r2 auto"

/* docs/metrics.md has the formulas. */
typedef enum stk_metric {
    STK_METRIC_ACC1,
    STK_METRIC_ACC5,
    STK_METRIC_ERROR,
    STK_METRIC_LOGLOSS,
    STK_METRIC_MACRO_F1,
    STK_METRIC_MICRO_F1,
    STK_METRIC_SAMPLES_F1,
    STK_METRIC_AUC,
    STK_METRIC_AUC_MACRO,
    STK_METRIC_WEIGHTED_AUC,
    STK_METRIC_PF1,
    STK_METRIC_QWK,
    STK_METRIC_BALANCED_ACC,
    STK_METRIC_MCC,
    STK_METRIC_MAPK,
    STK_METRIC_RMSE,
    STK_METRIC_MAE,
    STK_METRIC_R2,
    STK_METRIC_AUTO /* stk_metric_default() of the task */
} stk_metric;

/* Those that have a value; STK_METRIC_AUTO has none. */
#define STK_METRIC_COUNT STK_METRIC_AUTO

typedef struct stk_metric_info {
    const char *name;
    const char *description; /* one line */
    unsigned tasks;          /* bit 1 << task: it rates this task */
    bool is_loss;            /* less is better */
    bool percent;            /* from 0 to 100, otherwise a share or in the unit of the targets */
    bool needs_outputs;      /* it is computed from the outputs of all samples, not from sums */
} stk_metric_info;

const stk_metric_info *stk_metric_info_of(stk_metric metric);

/* The metric of that name; AUTO for another name, or NULL. */
stk_metric stk_metric_named(const char *name);

/* True for figures that are better when smaller. */
bool stk_metric_is_loss(stk_metric metric);

/* What rates a task where nothing was asked for, by what a row of the submission takes. */
stk_metric stk_metric_default(stk_task task, stk_answer_kind answer);

/* Whether a metric can rate a task. A task that is not known yet can be rated by all. */
bool stk_metric_rates(stk_metric metric, stk_task task);

/* STK_ERR_USAGE, with the list of those that can, where the metric cannot rate the task. */
STK_CHECKED stk_status stk_metric_check(stk_metric metric, stk_task task, stk_error *err);

/* The name of a metric that results.csv has no fixed column for, in static memory. NULL: it has
 * one, or there is no such metric; `name` may be NULL. */
const char *stk_metric_column(const char *name);

/* True where another answer than the likeliest class, or than every label above one half, scores
 * better: train/calibrate finds a rule. */
bool stk_metric_has_rule(stk_metric metric, stk_task task);

#endif
