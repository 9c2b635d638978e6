/*
 * run_clock.h - how much time a run has left.
 *
 * The budget, a deadline by the wall clock and a request to stop all end a run. This clock answers
 * one question for all three: how many seconds are left, in all or before the last files must be
 * written.
 * It runs on the monotonic clock and counts from the start of the run. It also remembers how long
 * the last work of a run takes on this machine (budget/margin.h), so that enough time is left for
 * it.
 *
 * Threads: one. Devices and disks call the functions marked "callback" on that thread, too.
 */
#ifndef STK_RUN_RUN_CLOCK_H
#define STK_RUN_RUN_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <stoker/stop.h>

#include "base/files/disk.h"
#include "budget/deadline.h"
#include "budget/margin.h"
#include "events/events.h"

typedef struct stk_run_clock {
    int64_t start_ns;    /* monotonic clock: when the run began */
    double budget_s;     /* seconds from start_ns; NaN: no budget */
    stk_stop *stop;      /* borrowed: requests to stop; may be NULL */
    stk_margin margin;   /* measured durations of the last work of a run */
    double predict_s;    /* seconds to predict the test set once, in one view; 0: not measured, or
                            no prediction will follow */
    double extra_file_s; /* seconds kept back for a file of predictions besides the submission */
    /* A request to stop halts the device at once: what it computes now would not be used. */
    bool halt_on_stop;
    double halt_at_s; /* the device halts here, in seconds from start_ns; 0: as late as it can */
    /* Used by look_how_busy() in run_clock.c alone. */
    int64_t ran_ns;    /* CPU time of the owner's thread at the last look */
    int64_t waited_ns; /* time for which that thread had waited for a core by then */
    int64_t looked_ns; /* monotonic clock: the last look; 0: none yet */
} stk_run_clock;

/* Seconds since the run began. */
double stk_run_clock_elapsed(const stk_run_clock *clock);

/*
 * Ends the budget at a moment of the wall clock such as "14:30" (NULL: no change), unless it ends
 * earlier anyway, and emits that as a decision. The wall clock is read here once: setting it later
 * changes nothing.
 */
STK_CHECKED stk_status stk_run_clock_set_deadline(stk_run_clock *clock, const char *text,
                                                  const stk_events *events, stk_error *err);

/* Monotonic clock: when the budget ends; 0 without a budget. */
int64_t stk_run_clock_end_ns(const stk_run_clock *clock);

/* Seconds until the budget, or the time that a request to stop allows, ends; INFINITY without
 * either. */
double stk_run_clock_left(const stk_run_clock *clock);

/* Seconds until only the time for writing the last files is left. */
double stk_run_clock_before_writing(stk_run_clock *clock);

/* Whether somebody has asked the run to stop. */
bool stk_run_clock_stopping(const stk_run_clock *clock);

/* Records how long one piece of the last work took: it began at start_ns and ends now. */
void stk_run_clock_record(stk_run_clock *clock, stk_margin_work work, int64_t start_ns);

/* Seconds to keep back for the work from `first` to the end of the process. */
double stk_run_clock_needed(stk_run_clock *clock, stk_margin_work first);

/*
 * Callback of a device (stk_halt_fn): whether it must halt before its next piece of work, which may
 * take next_s, so that time for writing is left. `clock` is a stk_run_clock.
 */
bool stk_run_clock_must_halt(void *clock, double next_s);

/* Callback of stk_halt: whether only the time for writing files is left. */
bool stk_run_clock_must_write(void *clock);

/* Callback of stk_halt: whether even a half-written submission is given up; the previous one stays.
 */
bool stk_run_clock_is_late(void *clock);

/* Callback of stk_disk: seconds for which a disk that does not answer may still be waited for. */
double stk_run_clock_disk_limit(void *clock);

/*
 * Callback of stk_disk: seconds for which one fsync may be waited for, after waited_s spent in
 * fsyncs so far; INFINITY without a budget. All fsyncs together get a small share of the budget,
 * and none of the time kept back for prediction.
 */
double stk_run_clock_sync_limit(void *clock, double waited_s);

/* Warns of files that were renamed into place before they were stored, since stk_disk_unsynced()
 * was `before`. */
void stk_run_clock_warn_unsynced(int before, const stk_events *events);

/*
 * The status of a run that failed before it could deliver anything. A storage error becomes
 * STK_ERR_STOPPED after a request to stop, since such a request ends all waiting for disks.
 */
stk_status stk_run_clock_failed(const stk_run_clock *clock, stk_status status, stk_error *err);

/* Enters a disk (base/files/disk.h) whose calls are waited for no longer than this clock allows. */
stk_disk *stk_run_clock_enter_disk(stk_run_clock *clock);

#endif
