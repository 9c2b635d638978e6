/*
 * metric_words.h - finds the metric that a competition's description asks for.
 *
 * The text is prose of strangers, in Markdown. The section on evaluation counts most, then
 * sentences that speak of evaluating, then any mention. Threads: safe, nothing is stored.
 */
#ifndef STK_METRICS_METRIC_WORDS_H
#define STK_METRICS_METRIC_WORDS_H

#include "metrics/metric.h"

/* What a text says of a metric. */
typedef struct stk_metric_mention {
    stk_metric metric;  /* STK_METRIC_AUTO: none was found */
    int k;              /* of MAP@k; 0: not said */
    bool is_open;       /* it rates columns or a ranked list: the sample says which */
    bool in_evaluation; /* the section on evaluation says so */
    char phrase[64];    /* the words, as they stand there */
} stk_metric_mention;

/* Only metrics that rate the task are found; STK_TASK_AUTO: all. */
stk_metric_mention stk_metric_find_in_text(const char *text, stk_task task);

/* Whether this metric is only the nearest to what the words of a mention name, which Stoker does
 * not compute. */
bool stk_metric_is_nearest(stk_metric metric, const char *phrase);

#endif
