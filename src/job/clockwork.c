/* clockwork.c - deadlines on the monotonic clock. */
#include "job/clockwork.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "budget/budget.h"

/* How often it is looked how busy the machine is, and on how much running of our own it rests. */
#define BUSY_LOOK_S 0.1
#define BUSY_RUN_NS 200000000
#define BUSY_FIRST_NS 20000000

/* Of a deadline, as of --budget. */
#define DEADLINE_LEAST_S 1.0

/* Of the budget, and in seconds: how long storing files may take. Of what is left: what one may
 * take within the time for prediction. And what each may take in any case, which a disk at rest
 * never does. */
#define SYNC_SHARE 0.05
#define SYNC_MOST_S 30.0
#define SYNC_LATE_SHARE 0.03
#define SYNC_LEAST_S 0.02

double stk_clockwork_elapsed(const stk_clockwork *clock) {
    return stk_clock_since_s(clock->start_ns);
}

stk_status stk_clockwork_take_deadline(stk_clockwork *clock, const char *text,
                                       const stk_events *events, stk_error *err) {
    stk_deadline deadline;
    if (text == NULL) {
        return STK_OK;
    }
    stk_status status = stk_deadline_read(&deadline, text, stk_clock_wall_ns(), err);
    if (status == STK_OK && deadline.left_s < DEADLINE_LEAST_S) {
        status = STK_FAIL(err, STK_ERR_USAGE, "--deadline %s is less than a second away", text);
    }
    if (status != STK_OK) {
        return status;
    }
    double end_s = stk_clockwork_elapsed(clock) + deadline.left_s;
    char what[64];
    char why[96];
    snprintf(what, sizeof what, "deadline %s", deadline.moment);
    snprintf(why, sizeof why, "%s%.0f s from now%s", deadline.days_ahead == 1 ? "tomorrow, " : "",
             deadline.left_s, clock->budget_s < end_s ? "; the budget ends earlier" : "");
    stk_events_decision(events, what, why);
    /* fmin takes the number where the other one is NaN. */
    clock->budget_s = fmin(clock->budget_s, end_s);
    return STK_OK;
}

int64_t stk_clockwork_end_ns(const stk_clockwork *clock) {
    return isnan(clock->budget_s) ? 0 : clock->start_ns + (int64_t)(clock->budget_s * 1e9);
}

bool stk_clockwork_stopping(const stk_clockwork *clock) {
    return stk_stop_asked(clock->stop) != STK_STOP_NONE;
}

double stk_clockwork_left(const stk_clockwork *clock) {
    double left =
        isnan(clock->budget_s) ? INFINITY : clock->budget_s - stk_clockwork_elapsed(clock);
    bool at_once = stk_stop_asked(clock->stop) == STK_STOP_NOW;
    return at_once ? fmin(left, 0) : fmin(left, stk_stop_left_s(clock->stop));
}

void stk_clockwork_note(stk_clockwork *clock, stk_margin_work work, int64_t start_ns) {
    stk_margin_note(&clock->margin, work, stk_clock_since_s(start_ns));
}

/*
 * Other programs on the same cores make everything longer, the end of the process too. How much is
 * known from how long this thread has waited for a core for each second that it ran.
 */
static void look_how_busy(stk_clockwork *clock) {
    int64_t ran;
    int64_t waited;
    if (clock->looked_ns != 0 && stk_clock_since_s(clock->looked_ns) < BUSY_LOOK_S) {
        return;
    }
    clock->looked_ns = stk_clock_ns();
    int64_t enough = clock->margin.busy > 0 ? BUSY_RUN_NS : BUSY_FIRST_NS;
    if (!stk_clock_thread_ns(&ran, &waited) || ran - clock->ran_ns < enough) {
        return; /* too little to tell; the next look covers it */
    }
    clock->margin.busy = 1 + (double)(waited - clock->waited_ns) / (double)(ran - clock->ran_ns);
    clock->ran_ns = ran;
    clock->waited_ns = waited;
}

double stk_clockwork_needed(stk_clockwork *clock, stk_margin_work first) {
    look_how_busy(clock);
    return stk_margin_needed(&clock->margin, first, clock->budget_s);
}

double stk_clockwork_before_writing(stk_clockwork *clock) {
    double needed = stk_clockwork_needed(clock, STK_MARGIN_SUBMISSION) + clock->also_s;
    return stk_clockwork_left(clock) - needed;
}

bool stk_clockwork_must_halt(void *user, double next_s) {
    stk_clockwork *clock = user;
    return (clock->hasty && stk_clockwork_stopping(clock)) ||
           stk_clockwork_before_writing(clock) < stk_margin_stretch(&clock->margin, next_s);
}

bool stk_clockwork_must_write(void *user) {
    return stk_clockwork_must_halt(user, 0);
}

double stk_clockwork_patience(void *user) {
    const stk_clockwork *clock = user;
    return stk_clockwork_left(clock) - STK_MARGIN_SAFETY * clock->predict_s -
           stk_margin_took(&clock->margin, STK_MARGIN_CLOSING);
}

double stk_clockwork_sync_patience(void *user, double waited_s) {
    const stk_clockwork *clock = user;
    if (isnan(clock->budget_s)) {
        return INFINITY;
    }
    double left_s = fmax(stk_clockwork_left(clock), 0);
    double all_s = fmin(SYNC_SHARE * clock->budget_s, SYNC_MOST_S);
    double kept_s =
        fmax(stk_budget_reserve(clock->budget_s, NAN), STK_MARGIN_SAFETY * clock->predict_s);
    double now_s = fmax(left_s - kept_s, SYNC_LATE_SHARE * left_s);
    return fmax(fmin(all_s - waited_s, now_s), SYNC_LEAST_S);
}

void stk_clockwork_tell_unsynced(int before, const stk_events *events) {
    int times = stk_disk_unsynced() - before;
    if (times > 0) {
        stk_events_warning(
            events,
            "the disk is slow: %d %s a file was put in place before it was stored, since "
            "the budget does not wait; a power cut within moments could still harm it",
            times, times == 1 ? "time" : "times");
    }
    if (times > 0 && stk_disk_unstored() > 0) {
        stk_events_warning(events, "and %d of these files could not be stored: look at the disk",
                           stk_disk_unstored());
    }
}

stk_status stk_clockwork_failed(const stk_clockwork *clock, stk_status status, stk_error *err) {
    if (status == STK_ERR_STORAGE && stk_clockwork_stopping(clock)) {
        status = STK_ERR_STOPPED;
        if (err != NULL) {
            err->status = status;
        }
    }
    return status;
}

stk_disk *stk_clockwork_enter_disk(stk_clockwork *clock) {
    return stk_disk_enter(&(stk_disk_config){.look_s = STK_DISK_LOOK_S,
                                             .move_s = STK_DISK_MOVE_S,
                                             .sync_s = stk_clockwork_sync_patience,
                                             .stop = clock->stop,
                                             .left_s = stk_clockwork_patience,
                                             .user = clock});
}

bool stk_clockwork_is_late(void *user) {
    const stk_clockwork *clock = user;
    return stk_clockwork_left(clock) < stk_margin_took(&clock->margin, STK_MARGIN_CLOSING);
}
