/* clockwork.c - deadlines on the monotonic clock. */
#include "job/clockwork.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"

/*
 * Kept for writing the last files: a part of the budget within these seconds, and somewhat more
 * than writing predictions took before.
 */
#define WRITE_SHARE 0.02
#define WRITE_LEAST_S 0.2
#define WRITE_MOST_S 2.0
#define WRITE_MARGIN 1.5

/* Of a deadline, as of --budget. */
#define DEADLINE_LEAST_S 1.0

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

bool stk_clockwork_stopping(stk_clockwork *clock) {
    bool asked = stk_stop_asked(clock->stop) != STK_STOP_NONE;
    if (asked && clock->stop_seen_ns == 0) {
        clock->stop_seen_ns = stk_clock_ns();
    }
    return asked;
}

double stk_clockwork_left(stk_clockwork *clock) {
    double left =
        isnan(clock->budget_s) ? INFINITY : clock->budget_s - stk_clockwork_elapsed(clock);
    if (stk_clockwork_stopping(clock)) {
        int allowed = stk_stop_deadline_s(clock->stop);
        if (allowed > 0) {
            left = fmin(left, allowed - stk_clock_since_s(clock->stop_seen_ns));
        }
        if (stk_stop_asked(clock->stop) == STK_STOP_NOW) {
            left = 0;
        }
    }
    return left;
}

double stk_clockwork_before_writing(stk_clockwork *clock) {
    double margin = isnan(clock->budget_s) ? WRITE_LEAST_S : WRITE_SHARE * clock->budget_s;
    double kept = fmin(fmax(margin, WRITE_LEAST_S), WRITE_MOST_S);
    return stk_clockwork_left(clock) - kept - WRITE_MARGIN * clock->write_s;
}

bool stk_clockwork_must_halt(void *user, double next_s) {
    stk_clockwork *clock = user;
    return (clock->hasty && stk_clockwork_stopping(clock)) ||
           stk_clockwork_before_writing(clock) < next_s;
}

bool stk_clockwork_must_write(void *user) {
    return stk_clockwork_must_halt(user, 0);
}
