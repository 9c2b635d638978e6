/*
 * sample_results.h - what one validation predicted for each sample.
 *
 * Per sample the most likely class and the probability of the true class, and nothing more: there
 * may be millions of samples. Threads: one at a time.
 */
#ifndef STK_TRAIN_SAMPLE_RESULTS_H
#define STK_TRAIN_SAMPLE_RESULTS_H

#include <stddef.h>

#include <stoker/status.h>

typedef struct stk_sample_result {
    size_t sample;     /* the sample's number, as in stk_batch.samples */
    int predicted;     /* the most likely class */
    float probability; /* of the true class */
} stk_sample_result;

typedef struct stk_sample_results {
    stk_sample_result *items; /* owned */
    size_t count;
    size_t capacity; /* fixed by open */
} stk_sample_results;

STK_CHECKED stk_status stk_sample_results_open(stk_sample_results *results, size_t capacity,
                                               stk_error *err);
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

/* Sorts by the sample's number. */
void stk_sample_results_sort(stk_sample_results *results);

#endif
