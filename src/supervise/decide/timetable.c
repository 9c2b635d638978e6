/* timetable.c - plans backwards from the end of the budget. */
#include "supervise/decide/timetable.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "budget/budget.h"

/* Default grace time: seconds, and its largest share of the budget. */
#define GRACE_S 10.0
#define GRACE_SHARE 0.1

/* Time for the last files, after all commands: a share of the budget, within limits. */
#define CLOSING_SHARE 0.02
#define CLOSING_LEAST_S 0.5
#define CLOSING_MOST_S 2.0

/* Grace time of a prediction; it has less to save than a training. */
#define PREDICT_GRACE_S 2.0
#define PREDICT_GRACE_SHARE 0.05

/* Share of the time left after a request to end that training may take to stop. */
#define HURRY_SHARE 0.35

stk_status stk_slice_read(stk_slice *slice, const char *option, const char *text, stk_error *err) {
    char number[32];
    double percent = 0;
    *slice = (stk_slice){.given = text != NULL};
    if (text == NULL) {
        return STK_OK;
    }
    size_t length = strlen(text);
    slice->is_share = length > 1 && length < sizeof number && text[length - 1] == '%';
    if (slice->is_share) {
        snprintf(number, sizeof number, "%.*s", (int)(length - 1), text);
        bool good = stk_parse_double(number, &percent) && percent >= 0 && percent <= 100;
        slice->value = percent / 100;
        return good ? STK_OK
                    : STK_FAIL(err, STK_ERR_USAGE, "--%s %s: a share is from 0%% to 100%%", option,
                               text);
    }
    return stk_parse_duration(text, &slice->value)
               ? STK_OK
               : STK_FAIL(err, STK_ERR_USAGE,
                          "--%s %s is neither a share such as 15%% nor a time such as 90s", option,
                          text);
}

static double slice_of(const stk_slice *slice, double budget_s) {
    return slice->is_share ? slice->value * budget_s : slice->value;
}

static double closing_of(double budget_s) {
    return fmin(fmin(fmax(CLOSING_SHARE * budget_s, CLOSING_LEAST_S), CLOSING_MOST_S),
                budget_s / 4);
}

/* Makes the timetable with --stop-at. */
static stk_status place_at(stk_timetable *table, const stk_timetable_facts *facts, stk_error *err) {
    double budget_s = facts->budget_s;
    table->stop_s = slice_of(&facts->stop_at, budget_s);
    double room_s = table->predict_stop_s - table->stop_s;
    if (room_s < 0) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--stop-at leaves no time before the end of the budget of %s",
                        stk_format_span(budget_s).text);
    }
    if (facts->grace_s > room_s) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--stop-at leaves %s before the end of the budget of %s, and --stop-grace "
                        "asks for %s; give an earlier --stop-at, a larger --budget or a smaller "
                        "--stop-grace",
                        stk_format_span(room_s).text, stk_format_span(budget_s).text,
                        stk_format_span(facts->grace_s).text);
    }
    table->grace_s = fmin(table->grace_s, room_s);
    table->kill_s = table->stop_s + table->grace_s;
    table->reserve_s = budget_s - table->kill_s;
    return STK_OK;
}

static stk_status place_stop(stk_timetable *table, const stk_timetable_facts *facts,
                             stk_error *err) {
    double budget_s = facts->budget_s;
    if (facts->stop_at.given) {
        return place_at(table, facts, err);
    }
    double reserve_s = facts->reserve.given ? slice_of(&facts->reserve, budget_s)
                       : facts->predicts    ? stk_budget_reserve(budget_s, NAN)
                                            : 0;
    table->reserve_s = fmax(reserve_s, budget_s - table->predict_kill_s);
    table->kill_s = budget_s - table->reserve_s;
    table->stop_s = table->kill_s - table->grace_s;
    return table->stop_s > 0
               ? STK_OK
               : STK_FAIL(err, STK_ERR_USAGE,
                          "a reserve of %s and %s of grace leave nothing of the budget of %s for "
                          "training; give a larger --budget or a smaller --%s",
                          stk_format_span(table->reserve_s).text,
                          stk_format_span(table->grace_s).text, stk_format_span(budget_s).text,
                          facts->grace_s > table->reserve_s ? "stop-grace" : "reserve");
}

stk_status stk_timetable_make(stk_timetable *table, const stk_timetable_facts *facts,
                              stk_error *err) {
    double budget_s = facts->budget_s;
    *table = (stk_timetable){.budget_s = budget_s,
                             .reserve_s = NAN,
                             .grace_s = isnan(facts->grace_s) ? GRACE_S : facts->grace_s,
                             .stop_s = INFINITY,
                             .kill_s = INFINITY,
                             .predict_stop_s = INFINITY,
                             .predict_kill_s = INFINITY};
    if (isnan(budget_s)) {
        return facts->reserve.given || facts->stop_at.given
                   ? STK_FAIL(err, STK_ERR_USAGE, "--%s needs a --budget or a --deadline",
                              facts->reserve.given ? "reserve" : "stop-at")
                   : STK_OK;
    }
    if (isnan(facts->grace_s)) {
        table->grace_s = fmin(table->grace_s, GRACE_SHARE * budget_s);
    }
    table->predict_kill_s = budget_s - closing_of(budget_s);
    table->predict_stop_s =
        table->predict_kill_s - fmin(PREDICT_GRACE_S, PREDICT_GRACE_SHARE * budget_s);
    return place_stop(table, facts, err);
}

void stk_timetable_hurry(stk_timetable *table, double now_s, double left_s, bool predicts) {
    table->stop_s = fmin(table->stop_s, now_s);
    table->kill_s = fmin(table->kill_s, now_s + table->grace_s);
    if (isinf(left_s)) {
        return;
    }
    double closing_s = closing_of(left_s);
    double share = predicts ? HURRY_SHARE : 1;
    table->predict_kill_s = fmin(table->predict_kill_s, now_s + left_s - closing_s);
    table->predict_stop_s =
        fmin(table->predict_stop_s, table->predict_kill_s - PREDICT_GRACE_SHARE * left_s);
    table->kill_s = fmin(table->kill_s, now_s + share * (left_s - closing_s));
}
