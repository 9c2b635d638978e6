/* sound_times.h - what must be true of all times, for the tests of where the time went. */
#ifndef STK_TESTS_SOUND_TIMES_H
#define STK_TESTS_SOUND_TIMES_H

#include "check.h"

#include <math.h>

#include <stoker/events.h>

static inline double sum_of_times(const stk_times *t) {
    return t->read_s + t->decode_s + t->queue_s + t->copy_s + t->compute_s + t->update_s +
           t->validate_s + t->checkpoint_s + t->other_s;
}

/* The parts make up total_s, and none is below 0. */
static inline void check_sound(const stk_times *t, double total_s) {
    CHECK(fabs(t->total_s - total_s) <= 1e-9 * fmax(total_s, 1));
    CHECK(fabs(sum_of_times(t) - total_s) <= 1e-9 * fmax(total_s, 1));
    CHECK(t->read_s >= 0 && t->decode_s >= 0 && t->queue_s >= 0 && t->copy_s >= 0);
    CHECK(t->compute_s >= 0 && t->update_s >= 0 && t->validate_s >= 0);
    CHECK(t->checkpoint_s >= 0 && t->other_s >= 0);
}

#endif
