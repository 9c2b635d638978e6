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
    bool in_evaluation; /* the section on evaluation says so */
    char phrase[64];    /* the words, as they stand there */
} stk_metric_mention;

/* Only metrics that rate the task are found; STK_TASK_AUTO: all. */
stk_metric_mention stk_metric_find_in_text(const char *text, stk_task task);

#endif
