/*
 * clockwork.h - how much time is left: the budget, and the seconds that a request to stop allows.
 */
#ifndef STK_JOB_CLOCKWORK_H
#define STK_JOB_CLOCKWORK_H

#include <stdbool.h>
#include <stdint.h>

#include <stoker/stop.h>

#include "base/disk.h"
#include "budget/deadline.h"
#include "budget/margin.h"
#include "events/events.h"

typedef struct stk_clockwork {
    int64_t start_ns;
    double budget_s;   /* NaN: none */
    stk_stop *stop;    /* borrowed, may be NULL */
    stk_margin margin; /* what the last work of a run took so far */
    double predict_s;  /* what one view of all that is to be predicted takes; 0: nothing is known to
                          come */
    double also_s;     /* kept for a file of predictions beside the submission; 0: there is none */
    int64_t ran_ns;    /* CPU time of the job's thread at the last look at how busy it is */
    int64_t waited_ns; /* time that the thread had waited for a core by then */
    int64_t looked_ns; /* when the last look was */
    /* What the device does now is of no use after a request to stop, which then halts it. */
    bool hasty;
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
double stk_clockwork_left(const stk_clockwork *clock);

/* The same until only the time for writing files is left. */
double stk_clockwork_before_writing(stk_clockwork *clock);

/* A request to stop is there. */
bool stk_clockwork_stopping(const stk_clockwork *clock);

/* Keeps how long one of the last works took that began at start_ns and ends now. */
void stk_clockwork_note(stk_clockwork *clock, stk_margin_work work, int64_t start_ns);

/* Seconds to keep for the work from `first` to the end of the process. */
double stk_clockwork_needed(stk_clockwork *clock, stk_margin_work first);

/* For a device: whether its next part, which may take next_s, would leave no time for writing. */
bool stk_clockwork_must_halt(void *user, double next_s);

/* For stk_halt: prediction ends when only the time for writing files is left. */
bool stk_clockwork_must_write(void *clock);

/* For stk_disk: seconds for which a disk that does not answer may still be waited for. */
double stk_clockwork_patience(void *clock);

/*
 * For stk_disk: seconds for which storing a file is waited for, after waited_s that this took so
 * far; INFINITY without a budget. All of it together is a small part of the budget, and before the
 * time that is kept for prediction.
 */
double stk_clockwork_sync_patience(void *clock, double waited_s);

/* Warns of files that were not waited for since stk_disk_unsynced() was `before`. */
void stk_clockwork_tell_unsynced(int before, const stk_events *events);

/*
 * What to make of a failure before anything could be delivered: one of storage becomes
 * STK_ERR_STOPPED once a request to stop was made, since then no disk is waited for.
 */
stk_status stk_clockwork_failed(const stk_clockwork *clock, stk_status status, stk_error *err);

/* Enters a disk (base/disk.h) that is waited for no longer than the clock allows. */
stk_disk *stk_clockwork_enter_disk(stk_clockwork *clock);

/* For stk_halt: even a submission that is half written is given up; the one before is there. */
bool stk_clockwork_is_late(void *clock);

#endif
