/*
 * clockwork.h - how much time is left: the budget, and the seconds that a request to stop allows.
 */
#ifndef STK_JOB_CLOCKWORK_H
#define STK_JOB_CLOCKWORK_H

#include <stdbool.h>
#include <stdint.h>

#include <stoker/stop.h>

#include "budget/deadline.h"
#include "events/events.h"

typedef struct stk_clockwork {
    int64_t start_ns;
    double budget_s;      /* NaN: none */
    stk_stop *stop;       /* borrowed, may be NULL */
    int64_t stop_seen_ns; /* when the request was first noticed; 0: not yet */
    /* What the device does now is of no use after a request to stop, which then halts it. */
    bool hasty;
    double write_s; /* how long writing the predictions was seen to take; 0: not known */
} stk_clockwork;

double stk_clockwork_elapsed(const stk_clockwork *clock);

/*
 * A moment on the wall (NULL: none) as an end of the budget, unless that ends earlier; tells it.
 * The wall is looked at here and never again: what happens to its clock later changes nothing.
 */
STK_CHECKED stk_status stk_clockwork_take_deadline(stk_clockwork *clock, const char *text,
                                                   const stk_events *events, stk_error *err);

/* When the budget ends, for those who wait no longer; 0 without one. */
int64_t stk_clockwork_end_ns(const stk_clockwork *clock);

/* Seconds until the budget or the stop's own deadline ends; INFINITY without either. */
double stk_clockwork_left(stk_clockwork *clock);

/* The same until only the time for writing files is left. */
double stk_clockwork_before_writing(stk_clockwork *clock);

/* A request to stop is there. */
bool stk_clockwork_stopping(stk_clockwork *clock);

/* For a device: whether its next part, which may take next_s, would leave no time for writing. */
bool stk_clockwork_must_halt(void *user, double next_s);

/* For stk_halt: prediction ends when only the time for writing files is left. */
bool stk_clockwork_must_write(void *clock);

#endif
