/*
 * step_pace.h - what a step takes, from the steps of the last seconds.
 *
 * Steps are taken together until they make up a group of a quarter of a second, and the typical
 * group counts: one stall, however long, is one group of several. Single steps would not do: on a
 * machine that lets a process run for a part of each tenth of a second, most short steps look
 * undisturbed and the others take all the time. Pure arithmetic.
 */
#ifndef STK_TRAIN_STEP_PACE_H
#define STK_TRAIN_STEP_PACE_H

#include <stdint.h>

#include "base/numbers/typical.h"

/* Zero-initialised: nothing was measured. Times are seconds. */
typedef struct stk_step_pace {
    stk_typical step_s; /* of the last groups: per step */
    stk_typical wait_s; /* of these, waiting for pictures */
    int64_t timed;      /* steps, the first one included, which only warms up */
    int64_t steps;      /* of the group that is not full yet */
    double seconds;     /* of the steps of that group */
    double waited;      /* of these seconds: waiting for pictures */
} stk_step_pace;

/* Pictures of a step that is about to begin were waited for. */
void stk_step_pace_wait(stk_step_pace *pace, double seconds);

/* A step took that long, waiting included. */
void stk_step_pace_step(stk_step_pace *pace, double seconds);

/* Seconds per step, and how long of these it waits for pictures; NaN before the second step. */
double stk_step_pace_step_s(const stk_step_pace *pace);
double stk_step_pace_wait_s(const stk_step_pace *pace);

#endif
