/* metric.c - the table of metrics. */
#include "metrics/metric.h"

#include "base/error.h"
#include "base/str.h"

#define SINGLE (1U << STK_TASK_SINGLE)
#define BINARY (1U << STK_TASK_BINARY)
#define LABELS (1U << STK_TASK_MULTILABEL)
#define ORDINAL (1U << STK_TASK_ORDINAL)
#define NUMBERS (1U << STK_TASK_REGRESSION)
#define RANKING (1U << STK_TASK_RANKING)
#define CLASSES (SINGLE | BINARY | ORDINAL | RANKING)

/* In the order of stk_metric. */
static const stk_metric_info infos[STK_METRIC_COUNT + 1] = {
    {.name = "acc1",
     .description = "percent of pictures whose likeliest class, or whole set of labels, is right",
     .tasks = CLASSES | LABELS,
     .percent = true},
    {.name = "acc5",
     .description = "percent of pictures whose class is among the five likeliest",
     .tasks = CLASSES,
     .percent = true},
    {.name = "error",
     .description = "percent of pictures whose likeliest class, or set of labels, is wrong",
     .tasks = CLASSES | LABELS,
     .is_loss = true,
     .percent = true},
    {.name = "logloss",
     .description = "mean cross-entropy",
     .tasks = CLASSES | LABELS,
     .is_loss = true},
    {.name = "macro_f1",
     .description = "mean over classes or labels of the F1 score",
     .tasks = CLASSES | LABELS},
    {.name = "micro_f1",
     .description = "F1 score of all decisions together",
     .tasks = CLASSES | LABELS},
    {.name = "samples_f1",
     .description = "mean over pictures of the F1 score of their labels",
     .tasks = LABELS},
    {.name = "auc",
     .description = "area under the ROC curve, one class or label against the others",
     .tasks = SINGLE | BINARY | ORDINAL | LABELS,
     .needs_outputs = true},
    {.name = "auc_macro",
     .description = "mean over columns of the area under the ROC curve",
     .tasks = SINGLE | BINARY | ORDINAL | LABELS,
     .needs_outputs = true},
    {.name = "weighted_auc",
     .description = "area under the ROC curve, true-positive rates up to 0.4 counted twice",
     .tasks = BINARY,
     .needs_outputs = true},
    {.name = "pf1",
     .description = "F1 score with probabilities instead of decisions",
     .tasks = BINARY},
    {.name = "qwk",
     .description = "quadratic weighted kappa, the classes taken as steps of a scale",
     .tasks = SINGLE | BINARY | ORDINAL},
    {.name = "balanced_acc",
     .description = "mean over classes of the share of their pictures that is right",
     .tasks = CLASSES},
    {.name = "mcc", .description = "Matthews correlation coefficient", .tasks = CLASSES},
    {.name = "mapk",
     .description = "mean average precision of the five likeliest classes",
     .tasks = SINGLE | ORDINAL | RANKING},
    {.name = "rmse",
     .description = "root of the mean squared error",
     .tasks = NUMBERS,
     .is_loss = true},
    {.name = "mae", .description = "mean absolute error", .tasks = NUMBERS, .is_loss = true},
    {.name = "r2", .description = "share of the variance that is explained", .tasks = NUMBERS},
    {.name = "auto", .description = "as the task says"},
};

/* In the order of stk_task. */
static const struct {
    const char *words;
    stk_metric first; /* rates it where neither a metric nor another answer was asked for */
} tasks[] = {
    {"one class per picture", STK_METRIC_ACC1},
    {"one class per picture", STK_METRIC_ACC1},
    {"two classes", STK_METRIC_AUC},
    {"several labels per picture", STK_METRIC_MICRO_F1},
    {"steps of a scale", STK_METRIC_QWK},
    {"numbers", STK_METRIC_RMSE},
    {"a ranked list of classes", STK_METRIC_MAPK},
};

const stk_metric_info *stk_metric_info_of(stk_metric metric) {
    return &infos[metric];
}

stk_metric stk_metric_named(const char *name) {
    int m = 0;
    while (name != NULL && m < STK_METRIC_COUNT && !stk_str_equal(name, infos[m].name)) {
        m++;
    }
    return name != NULL ? (stk_metric)m : STK_METRIC_AUTO;
}

bool stk_metric_is_loss(stk_metric metric) {
    return infos[metric].is_loss;
}

stk_metric stk_metric_default(stk_task task, stk_answer_kind answer) {
    bool classes = task == STK_TASK_SINGLE || task == STK_TASK_BINARY;
    /* Graders rate probabilities that sum to 1 as probabilities. */
    return classes && answer == STK_ANSWER_PROBABILITIES                ? STK_METRIC_LOGLOSS
           : task == STK_TASK_BINARY && answer == STK_ANSWER_LABEL      ? STK_METRIC_ACC1
           : task == STK_TASK_MULTILABEL && answer == STK_ANSWER_SCORES ? STK_METRIC_AUC_MACRO
                                                                        : tasks[task].first;
}

bool stk_metric_rates(stk_metric metric, stk_task task) {
    return metric == STK_METRIC_AUTO || task == STK_TASK_AUTO ||
           (infos[metric].tasks & (1U << task)) != 0;
}

stk_status stk_metric_check(stk_metric metric, stk_task task, stk_error *err) {
    stk_str able = {0};
    if (stk_metric_rates(metric, task)) {
        return STK_OK;
    }
    for (int m = 0; m < STK_METRIC_COUNT; m++) {
        if (stk_metric_rates((stk_metric)m, task)) {
            stk_str_appendf(&able, "%s%s", able.length > 0 ? ", " : "", infos[m].name);
        }
    }
    stk_status status = STK_FAIL(
        err, STK_ERR_USAGE, "--metric %s: it cannot rate what this data set asks for, %s; pass %s",
        infos[metric].name, tasks[task].words, stk_str_ok(&able) ? stk_str_text(&able) : "auto");
    stk_str_free(&able);
    return status;
}

const char *stk_metric_column(const char *name) {
    stk_metric m = stk_metric_named(name);
    bool fixed = m == STK_METRIC_ACC1 || m == STK_METRIC_ACC5 || m == STK_METRIC_LOGLOSS;
    return m == STK_METRIC_AUTO || fixed ? NULL : infos[m].name;
}

bool stk_metric_has_rule(stk_metric metric, stk_task task) {
    bool of_sets = metric == STK_METRIC_MACRO_F1 || metric == STK_METRIC_MICRO_F1 ||
                   metric == STK_METRIC_SAMPLES_F1;
    return task == STK_TASK_MULTILABEL
               ? of_sets
               : metric == STK_METRIC_MACRO_F1 || metric == STK_METRIC_QWK ||
                     metric == STK_METRIC_BALANCED_ACC || metric == STK_METRIC_MCC ||
                     (metric == STK_METRIC_PF1 && task == STK_TASK_BINARY) ||
                     (metric == STK_METRIC_MAPK && task == STK_TASK_RANKING);
}
