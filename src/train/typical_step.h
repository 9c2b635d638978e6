/*
 * typical_step.h - seconds per step, from the steps of the last seconds. Pure arithmetic.
 *
 * Steps are collected into groups of a quarter of a second, and the typical group counts, so that
 * one stall, however long, is one group among several. Single steps would not do: on a machine that
 * lets a process run for a part of each tenth of a second, most short steps look undisturbed and a
 * few take all the time.
 */
#ifndef STK_TRAIN_TYPICAL_STEP_H
#define STK_TRAIN_TYPICAL_STEP_H

#include <stdint.h>

#include "base/numbers/typical.h"

/* Zero-initialised: nothing was measured. Times are seconds. */
typedef struct stk_typical_step {
    stk_typical step_s; /* per step, in the last groups */
    stk_typical wait_s; /* part of step_s spent waiting for pictures */
    int64_t timed;      /* steps so far, including the first one, which only warms up */
    int64_t steps;      /* steps in the group that is not full yet */
    double seconds;     /* time of that group */
    double waited;      /* part of `seconds` spent waiting for pictures */
} stk_typical_step;

/* Before a step: its pictures were waited for that long. */
void stk_typical_step_wait(stk_typical_step *typical, double seconds);

/* A step took that long, waiting included. */
void stk_typical_step_add(stk_typical_step *typical, double seconds);

/* Steps become others, for which so much is expected until they are measured. */
void stk_typical_step_expect(stk_typical_step *typical, double step_s, double wait_s);

/* Seconds per step, and the part spent waiting for pictures; NaN before the second step. */
double stk_typical_step_s(const stk_typical_step *typical);
double stk_typical_step_wait_s(const stk_typical_step *typical);

#endif
