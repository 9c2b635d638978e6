/*
 * run_clock.c - budget, deadline and stop requests as seconds that are left.
 *
 * Time for the last files is kept back by what they took before on this machine (budget/margin.c),
 * and more of it while other programs use the same cores.
 */
#include "run/run_clock.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "budget/budget.h"

/* How busy the machine is. */
#define BUSY_LOOK_S 0.1        /* seconds between two looks */
#define BUSY_RUN_NS 200000000  /* CPU time of this thread that one estimate needs */
#define BUSY_FIRST_NS 20000000 /* CPU time that the first estimate needs */

#define DEADLINE_LEAST_S 1.0 /* the nearest deadline that is accepted; --budget has the same */

/* How long fsync may be waited for. */
#define SYNC_SHARE 0.05      /* share of the budget that all fsyncs together may take */
#define SYNC_MOST_S 30.0     /* seconds that all fsyncs together may take at most */
#define SYNC_LATE_SHARE 0.03 /* share of the remaining time for one fsync inside the reserve */
#define SYNC_LEAST_S 0.02    /* one fsync may always take this long; an idle disk never does */

double stk_run_clock_elapsed(const stk_run_clock *clock) {
    return stk_clock_since_s(clock->start_ns);
}

stk_status stk_run_clock_set_deadline(stk_run_clock *clock, const char *text,
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
    double end_s = stk_run_clock_elapsed(clock) + deadline.left_s;
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

int64_t stk_run_clock_end_ns(const stk_run_clock *clock) {
    return isnan(clock->budget_s) ? 0 : clock->start_ns + (int64_t)(clock->budget_s * 1e9);
}

bool stk_run_clock_stopping(const stk_run_clock *clock) {
    return stk_stop_asked(clock->stop) != STK_STOP_NONE;
}

double stk_run_clock_left(const stk_run_clock *clock) {
    double left =
        isnan(clock->budget_s) ? INFINITY : clock->budget_s - stk_run_clock_elapsed(clock);
    bool at_once = stk_stop_asked(clock->stop) == STK_STOP_NOW;
    return at_once ? fmin(left, 0) : fmin(left, stk_stop_left_s(clock->stop));
}

void stk_run_clock_record(stk_run_clock *clock, stk_margin_work work, int64_t start_ns) {
    stk_margin_note(&clock->margin, work, stk_clock_since_s(start_ns));
}

/*
 * Other programs on the same cores make all work longer, the end of the process included. The
 * factor is taken from how long this thread waited for a core per second that it ran.
 */
static void look_how_busy(stk_run_clock *clock) {
    int64_t ran;
    int64_t waited;
    if (clock->looked_ns != 0 && stk_clock_since_s(clock->looked_ns) < BUSY_LOOK_S) {
        return;
    }
    clock->looked_ns = stk_clock_ns();
    int64_t enough = clock->margin.busy > 0 ? BUSY_RUN_NS : BUSY_FIRST_NS;
    if (!stk_clock_thread_ns(&ran, &waited) || ran - clock->ran_ns < enough) {
        return; /* too little CPU time for an estimate; the next look covers this time too */
    }
    clock->margin.busy = 1 + (double)(waited - clock->waited_ns) / (double)(ran - clock->ran_ns);
    clock->ran_ns = ran;
    clock->waited_ns = waited;
}

double stk_run_clock_needed(stk_run_clock *clock, stk_margin_work first) {
    look_how_busy(clock);
    return stk_margin_needed(&clock->margin, first, clock->budget_s);
}

double stk_run_clock_before_writing(stk_run_clock *clock) {
    double needed = stk_run_clock_needed(clock, STK_MARGIN_SUBMISSION) + clock->extra_file_s;
    return stk_run_clock_left(clock) - needed;
}

bool stk_run_clock_must_halt(void *user, double next_s) {
    stk_run_clock *clock = user;
    double may_take_s = stk_margin_stretch(&clock->margin, next_s);
    bool over =
        clock->halt_at_s > 0 && stk_run_clock_elapsed(clock) + may_take_s > clock->halt_at_s;
    return over || (clock->halt_on_stop && stk_run_clock_stopping(clock)) ||
           stk_run_clock_before_writing(clock) < may_take_s;
}

bool stk_run_clock_must_write(void *user) {
    return stk_run_clock_must_halt(user, 0);
}

bool stk_run_clock_is_late(void *user) {
    const stk_run_clock *clock = user;
    return stk_run_clock_left(clock) < stk_margin_took(&clock->margin, STK_MARGIN_CLOSING);
}

double stk_run_clock_disk_limit(void *user) {
    const stk_run_clock *clock = user;
    return stk_run_clock_left(clock) - STK_MARGIN_SAFETY * clock->predict_s -
           stk_margin_took(&clock->margin, STK_MARGIN_CLOSING);
}

double stk_run_clock_sync_limit(void *user, double waited_s) {
    const stk_run_clock *clock = user;
    if (isnan(clock->budget_s)) {
        return INFINITY;
    }
    double left_s = fmax(stk_run_clock_left(clock), 0);
    double all_s = fmin(SYNC_SHARE * clock->budget_s, SYNC_MOST_S);
    double reserve_s =
        clock->predict_s > 0
            ? STK_MARGIN_SAFETY * clock->predict_s +
                  stk_margin_needed(&clock->margin, STK_MARGIN_SUBMISSION, clock->budget_s)
            : stk_budget_reserve(clock->budget_s, NAN);
    double now_s = fmax(left_s - reserve_s, SYNC_LATE_SHARE * left_s);
    return fmax(fmin(all_s - waited_s, now_s), SYNC_LEAST_S);
}

void stk_run_clock_warn_unsynced(int before, const stk_events *events) {
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

stk_status stk_run_clock_failed(const stk_run_clock *clock, stk_status status, stk_error *err) {
    if (status == STK_ERR_STORAGE && stk_run_clock_stopping(clock)) {
        status = STK_ERR_STOPPED;
        if (err != NULL) {
            err->status = status;
        }
    }
    return status;
}

stk_disk *stk_run_clock_enter_disk(stk_run_clock *clock) {
    return stk_disk_enter(&(stk_disk_config){.look_s = STK_DISK_LOOK_S,
                                             .move_s = STK_DISK_MOVE_S,
                                             .sync_s = stk_run_clock_sync_limit,
                                             .stop = clock->stop,
                                             .left_s = stk_run_clock_disk_limit,
                                             .user = clock});
}
