/*
 * time_plan.h - what the run plans to do in the time that is left, and the measured times behind
 * it.
 *
 * pace.c makes the plan of the running fold, and time_plan.c the number of folds. All other files
 * read it. Threads: the job's.
 */
#ifndef STK_JOB_STEERING_TIME_PLAN_H
#define STK_JOB_STEERING_TIME_PLAN_H

#include "budget/budget.h"
#include "budget/fold_choice.h"
#include "events/events.h"
#include "job/recipe/recipe.h"
#include "run/run_clock.h"

typedef struct stk_time_plan {
    stk_budget_plan plan; /* of the running fold: epochs, steps, reserve */
    int64_t total_steps;  /* of the running fold; -1: not planned yet */
    int folds;            /* folds that there is time for, at most recipe.folds */
    int views;            /* views of each test picture that there is time for */
    double epoch_s;       /* seconds of an epoch with its validation, at first by a rehearsal; NaN:
                             not known */
    double setup_s;       /* seconds from the beginning of a fold to its first step, without
                             compiling; 0: not measured */
    double predict_s;     /* seconds to predict the test set in these views; NaN: not known */
    bool timed;           /* predict_s was measured; false: it is an estimate from steps */
    bool stop_emitted;    /* the decision "stopping" was emitted */
} stk_time_plan;

/* Nothing is measured: everything that the recipe asks for is planned. */
stk_time_plan stk_time_plan_begin(const stk_recipe *recipe);

/*
 * Takes fewer folds when there is no time for all that were asked for, and between two folds also
 * more again when time was left over; emits a change. `fold` is the running fold; `epochs_done` are
 * its epochs, -1 between two folds.
 */
void stk_time_plan_folds(stk_time_plan *time, const stk_recipe *recipe, stk_run_clock *clock,
                         const stk_events *events, int fold, int epochs_done);

/* Emits such a change: `fewer` folds than were planned, or more. */
void stk_time_plan_emit_folds(const stk_recipe *recipe, const stk_fold_choice *choice, bool fewer,
                              const stk_events *events);

/* The running fold becomes the last one, since its share of the time was over before its first
 * step; emits that. */
void stk_time_plan_only(stk_time_plan *time, const stk_events *events, int fold);

#endif
