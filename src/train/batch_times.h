/*
 * batch_times.h - what the batches of a validation took, and what it would have taken without the
 * slowest of them, which may have been held up. Pure arithmetic.
 */
#ifndef STK_TRAIN_BATCH_TIMES_H
#define STK_TRAIN_BATCH_TIMES_H

#include <stddef.h>
#include <stdint.h>

/* Begins with last_ns as the moment when the validation begins, all else 0. */
typedef struct stk_batch_times {
    int64_t last_ns;  /* when the last batch came */
    size_t images;    /* of all that came */
    double slowest_s; /* seconds of the slowest batch */
    size_t slowest;   /* images of the slowest batch */
} stk_batch_times;

void stk_batch_times_note(stk_batch_times *times, size_t images, int64_t now_ns);

/* Of the seconds of the whole validation, those that are left when its slowest batch counts as the
 * others do; all of them where there are no others. */
double stk_batch_times_even(const stk_batch_times *times, double seconds);

#endif
