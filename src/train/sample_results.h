/*
 * sample_results.h - what one validation predicted for each sample.
 *
 * Per sample the most likely class and the probability of the true class; or the few labels that
 * are predicted; or the numbers. Nothing more: there may be millions of samples, and thousands of
 * labels. Threads: one at a time.
 */
#ifndef STK_TRAIN_SAMPLE_RESULTS_H
#define STK_TRAIN_SAMPLE_RESULTS_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

#include "metrics/task.h"

/* Of a sample with more predicted labels the likeliest ones are stored. */
#define STK_RESULT_MOST_LABELS 32

typedef struct stk_sample_result {
    size_t sample;     /* the sample's number, as in stk_batch.samples */
    size_t place;      /* of its labels or numbers; stk_sample_results_labels() needs it */
    int predicted;     /* the most likely class; or how many labels are stored */
    float probability; /* of the true class; of labels the mean probability of what is true; NaN for
                          numbers */
} stk_sample_result;

typedef struct stk_sample_results {
    stk_sample_result *items; /* owned */
    size_t count;
    size_t capacity; /* fixed by open */
    /* Several labels, or numbers. */
    int width;      /* that each sample has room for; 0: the task has classes */
    int *labels;    /* (capacity, width), owned: rising; NULL: the task has none */
    float *numbers; /* (capacity, width), owned; NULL: the task has none */
} stk_sample_results;

/* `outputs`: classes, labels or numbers of each sample. */
STK_CHECKED stk_status stk_sample_results_open(stk_sample_results *results, size_t capacity,
                                               stk_task task, int outputs, stk_error *err);
void stk_sample_results_free(stk_sample_results *results);

/* Removes all results and keeps the memory. */
void stk_sample_results_reset(stk_sample_results *results);

/*
 * Adds one sample; `loss` comes from stk_metrics_add(). When another class is as likely as the true
 * one, that other class counts as predicted. stk_metrics does the same, so the share of samples
 * whose label is predicted is the accuracy.
 */
void stk_sample_results_add(stk_sample_results *results, size_t sample,
                            const float *logits /* (classes) */, int classes, int label,
                            double loss);

/*
 * Adds a sample of several labels. Those with a logit above 0 are predicted, as stk_metrics has it.
 * The probability is the mean over the labels that are true or predicted, or over all where there
 * are none of these, of the probability given to what is true of each. NaN targets do not count.
 */
void stk_sample_results_add_labels(stk_sample_results *results, size_t sample,
                                   const float *logits /* (labels) */,
                                   const float *targets /* (labels) */, int labels);

/* Adds a sample of numbers; as many as the results were opened for. */
void stk_sample_results_add_numbers(stk_sample_results *results, size_t sample,
                                    const float *numbers);

/* The stored labels, or numbers, of a result. */
const int *stk_sample_results_labels(const stk_sample_results *results,
                                     const stk_sample_result *result);
const float *stk_sample_results_numbers(const stk_sample_results *results,
                                        const stk_sample_result *result);

/* Sorts by the sample's number. */
void stk_sample_results_sort(stk_sample_results *results);

#endif
