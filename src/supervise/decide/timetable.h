/*
 * timetable.h - when training and prediction are stopped so that the run ends within its budget.
 *
 * Planned backwards from the end of the budget: the last files, the prediction, and a grace time in
 * which a training that was asked to stop can save its state. All moments are seconds since the
 * start of the run. Pure. Threads: safe.
 */
#ifndef STK_SUPERVISE_DECIDE_TIMETABLE_H
#define STK_SUPERVISE_DECIDE_TIMETABLE_H

#include <stdbool.h>

#include <stoker/status.h>

/* A share of the budget or a time: "15%", "90s". */
typedef struct stk_slice {
    bool given;
    bool is_share;
    double value; /* 0 to 1, or seconds */
} stk_slice;

/* Reads the option's text; NULL: not given. STK_ERR_USAGE names the option. */
STK_CHECKED stk_status stk_slice_read(stk_slice *slice, const char *option, const char *text,
                                      stk_error *err);

typedef struct stk_timetable_facts {
    double budget_s;   /* NaN: none */
    stk_slice reserve; /* for prediction; not given: 15 %, or 0 without a prediction */
    stk_slice stop_at; /* when training is asked to stop; not given: follows from the reserve */
    double grace_s;    /* from asking to killing; NaN: 10 s, at most a tenth of the budget */
    bool predicts;     /* there is a prediction command */
} stk_timetable_facts;

/* Without a budget all moments are INFINITY, and budget_s and reserve_s are NaN. */
typedef struct stk_timetable {
    double budget_s;
    double reserve_s;      /* from kill_s to the end of the budget */
    double grace_s;        /* from stop_s to kill_s */
    double stop_s;         /* training is asked to stop */
    double kill_s;         /* what is left of training is killed */
    double predict_stop_s; /* prediction is asked to stop */
    double predict_kill_s; /* prediction is killed; after it only files are written */
} stk_timetable;

/* STK_ERR_USAGE: the parts do not fit into the budget. */
STK_CHECKED stk_status stk_timetable_make(stk_timetable *table, const stk_timetable_facts *facts,
                                          stk_error *err);

/* After a request to end: training stops now, and all ends within left_s (INFINITY: no limit). */
void stk_timetable_hurry(stk_timetable *table, double now_s, double left_s, bool predicts);

#endif
