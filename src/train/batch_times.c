/* batch_times.c - finds the slowest batch of a validation and evens it out. */
#include "train/batch_times.h"

#include <math.h>

void stk_batch_times_note(stk_batch_times *times, size_t images, int64_t now_ns) {
    double seconds = (double)(now_ns - times->last_ns) * 1e-9;
    if (seconds > times->slowest_s) {
        times->slowest_s = seconds;
        times->slowest = images;
    }
    times->images += images;
    times->last_ns = now_ns;
}

double stk_batch_times_even(const stk_batch_times *times, double seconds) {
    double others = (double)(times->images - times->slowest);
    double others_s = fmax(seconds - times->slowest_s, 0);
    return others > 0
               ? others_s + fmin(times->slowest_s, others_s / others * (double)times->slowest)
               : seconds;
}
