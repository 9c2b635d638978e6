/* clockwork.c - deadlines on the monotonic clock. */
#include "job/clockwork.h"

#include <math.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/error.h"

/* Kept for writing the last files: a part of the budget within these seconds. */
#define WRITE_SHARE 0.02
#define WRITE_LEAST_S 0.2
#define WRITE_MOST_S 2.0

/* Of a deadline, as of --budget. */
#define DEADLINE_LEAST_S 1.0

double stk_clockwork_elapsed(const stk_clockwork *clock) {
    return stk_clock_since_s(clock->start_ns);
}

stk_status stk_clockwork_take_deadline(stk_clockwork *clock, const char *text,
                                       stk_deadline *deadline, stk_error *err) {
    stk_status status = stk_deadline_read(deadline, text, stk_clock_wall_ns(), err);
    if (status == STK_OK && deadline->left_s < DEADLINE_LEAST_S) {
        status = STK_FAIL(err, STK_ERR_USAGE, "--deadline %s is less than a second away", text);
    }
    if (status == STK_OK) {
        /* fmin takes the number where the other one is NaN. */
        clock->budget_s = fmin(clock->budget_s, stk_clockwork_elapsed(clock) + deadline->left_s);
    }
    return status;
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

bool stk_clockwork_must_halt(void *user, double next_s) {
    stk_clockwork *clock = user;
    double margin = isnan(clock->budget_s) ? WRITE_LEAST_S : WRITE_SHARE * clock->budget_s;
    return (clock->hasty && stk_clockwork_stopping(clock)) ||
           stk_clockwork_left(clock) < fmin(fmax(margin, WRITE_LEAST_S), WRITE_MOST_S) + next_s;
}

bool stk_clockwork_must_write(void *user) {
    return stk_clockwork_must_halt(user, 0);
}
