/*
 * timetable.h - when a command is stopped so that what comes behind it is done in time. Pure.
 *
 * From the end backwards: the last files, the prediction, some grace for the training to put itself
 * in order once it was asked to stop. All moments are seconds since the start of the run.
 */
#ifndef STK_SUPERVISE_DECIDE_TIMETABLE_H
#define STK_SUPERVISE_DECIDE_TIMETABLE_H

#include <stdbool.h>

#include <stoker/status.h>

/* A part of the budget or a time: "15%", "90s". */
typedef struct stk_slice {
    bool given;
    bool is_share;
    double value; /* 0 to 1, or seconds */
} stk_slice;

/* NULL is not given. STK_ERR_USAGE names the option. */
STK_CHECKED stk_status stk_slice_read(stk_slice *slice, const char *option, const char *text,
                                      stk_error *err);

typedef struct stk_timetable_facts {
    double budget_s;   /* NaN: none */
    stk_slice reserve; /* for prediction; not given: 15 %, nothing where nothing is predicted */
    stk_slice stop_at; /* when training is asked to stop; not given: by the reserve */
    double grace_s;    /* from asking to killing, kept as it is; NaN: the usual one, 10 s and at
                          most a tenth of the budget */
    bool predicts;
} stk_timetable_facts;

/* INFINITY without a budget; budget_s is NaN then, and reserve_s too. */
typedef struct stk_timetable {
    double budget_s;
    double reserve_s; /* from the training's end at the latest to that of the budget */
    double grace_s;
    double stop_s;         /* training is asked to stop */
    double kill_s;         /* whatever is left of it is killed */
    double predict_stop_s; /* prediction is asked to stop */
    double predict_kill_s; /* and killed; what follows are the last files */
} stk_timetable;

/* STK_ERR_USAGE where the parts do not fit into the budget. */
STK_CHECKED stk_status stk_timetable_make(stk_timetable *table, const stk_timetable_facts *facts,
                                          stk_error *err);

/* Somebody asked to end now: all that is left happens within left_s (INFINITY: as before). */
void stk_timetable_hurry(stk_timetable *table, double now_s, double left_s, bool predicts);

#endif
