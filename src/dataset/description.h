/*
 * description.h - only for this room: what description.md says about the task.
 *
 * Competitions describe their metric in prose. The metric tells what the labels alone do not:
 * whether whole numbers are classes or amounts, and whether a probability or a label is wanted.
 * Threads: one.
 */
#ifndef STK_DATASET_DESCRIPTION_H
#define STK_DATASET_DESCRIPTION_H

#include "dataset/listing.h"
#include "metrics/metric.h"

typedef struct stk_hints {
    char *text;         /* owned: the description; NULL: there is none */
    const char *file;   /* its name */
    stk_metric metric;  /* STK_METRIC_AUTO: none was found */
    bool given;         /* the options name it, not the text */
    char phrase[64];    /* the words for it; "": none */
    bool probabilities; /* the metric rates probabilities */
    bool labels;        /* the metric rates labels or sets of labels */
    bool steps;         /* classes are steps of a scale */
    bool numbers;       /* the metric rates numbers */
    int k;              /* of MAP@k, where the text says it; 0: not */
    int ranked;         /* a list of so many names is wanted; 0: none */
} stk_hints;            /* starts zeroed */

/* Reads description.md, or another text of that name, at the top of the location. */
STK_CHECKED stk_status stk_hints_read(stk_hints *hints, const stk_listing *listing, stk_error *err);
void stk_hints_free(stk_hints *hints);

/* From now on this metric, which the options name, counts instead of the text's. */
void stk_hints_name_metric(stk_hints *hints, stk_metric metric);

/* Which of two classes the text says is 1 ("1 = dog", "probability that it is a dog"): 0 or 1; -1:
 * it says nothing. */
int stk_hints_positive(const stk_hints *hints, const char *first, const char *second);

#endif
