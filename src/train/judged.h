/*
 * judged.h - what a validation said of each sample: the likeliest class, and how likely the true
 * one was thought to be. Kept small: there may be millions of samples. One thread at a time.
 */
#ifndef STK_TRAIN_JUDGED_H
#define STK_TRAIN_JUDGED_H

#include <stddef.h>

#include <stoker/status.h>

typedef struct stk_judgement {
    size_t sample;     /* its number among the samples of the loader */
    int predicted;     /* the likeliest class */
    float probability; /* of the true class */
} stk_judgement;

typedef struct stk_judged {
    stk_judgement *items; /* owned */
    size_t count;
    size_t capacity;
} stk_judged;

STK_CHECKED stk_status stk_judged_open(stk_judged *judged, size_t capacity, stk_error *err);
void stk_judged_free(stk_judged *judged);

/* Forgets what was added. */
void stk_judged_reset(stk_judged *judged);

/*
 * A class that is as likely as the true one is the predicted one, as stk_metrics counts it: the
 * share of samples whose label is predicted is the accuracy. `loss` is what stk_metrics_add says.
 */
void stk_judged_add(stk_judged *judged, size_t sample, const float *logits /* (classes) */,
                    int classes, int label, double loss);

/* In the order of the samples. */
void stk_judged_sort(stk_judged *judged);

#endif
