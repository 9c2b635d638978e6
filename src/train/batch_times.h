/*
 * batch_times.h - the time of a validation with its slowest batch evened out: that batch may have
 * been held up by something else. Pure arithmetic.
 */
#ifndef STK_TRAIN_BATCH_TIMES_H
#define STK_TRAIN_BATCH_TIMES_H

#include <stddef.h>
#include <stdint.h>

/* Initialised with last_ns = start of the validation and zeros. */
typedef struct stk_batch_times {
    int64_t last_ns;  /* monotonic clock: when the last batch was done */
    size_t images;    /* of all batches so far */
    double slowest_s; /* seconds of the slowest batch */
    size_t slowest;   /* images of the slowest batch */
} stk_batch_times;

void stk_batch_times_note(stk_batch_times *times, size_t images, int64_t now_ns);

/* `seconds` of the whole validation, had its slowest batch been as fast as the others; unchanged
 * when there is only one batch. */
double stk_batch_times_even(const stk_batch_times *times, double seconds);

#endif
