/*
 * budget.c - how many steps there is time for.
 *
 * Whole epochs are preferred, because each ends with a validation that can pick the best weights.
 * The last one is cut in the middle when it does not fit and the time would be missed otherwise:
 * the schedule comes to its end all the same.
 */
#include "budget/budget.h"

#include <math.h>

/* Share of the budget that is kept while nobody knows how long a prediction takes. */
#define UNKNOWN_SHARE 0.15

/* The same, where training begins late: share of what was left then. Without a model there is
 * nothing to predict with. */
#define UNKNOWN_LATE_SHARE 0.5

/* What is kept beyond the need once it is known. The least is for a stall at the end, which must
 * not cost the prediction, and for noise in the timing of the last epoch. */
#define SPARE_PART (1.0 / 3)    /* part of the need */
#define SPARE_LEAST_SHARE 0.01  /* the least: share of the budget */
#define SPARE_LEAST_MOST_S 10.0 /* the least of a long budget */
#define SPARE_LEAST_S 0.5 /* the least of a short budget; times the factor of a busy machine */

/* Share of the budget: for a last state that takes longer than the prediction no more is kept. */
#define STATE_SHARE 0.02

/* Share of the time of a fold: if whole epochs leave more unused, a part of an epoch follows. */
#define PART_SHARE 0.01

/* Validations, and saving after them, may take so much of the time of training. Of a fold's time no
 * more than a part passes between two of them, or so many epochs where that is more. */
#define VALIDATION_SHARE 0.05
#define PARTS_BETWEEN 4.0
#define EPOCHS_BETWEEN 10

#define FIELD(name) offsetof(stk_budget_options, name)

static const stk_option options[] = {
    STK_OPTION(
        DURATION, "budget", budget_s, STK_OPTION_AUTO, STK_OPTION_RANGE(1, 1e9), .may_change = true,
        .aliases = "time_limit", .metavar = "T",
        .help =
            "time from start to written submission: 11m, 2h30m, 00:11:00 or seconds; auto is none"),
    STK_OPTION(TEXT, "deadline", deadline, .momentary = true, .metavar = "TIME",
               .help = "the same by the clock on the wall: 14:30, 14:30:00 or 2026-11-16T14:30; "
                       "without a date the next such time is meant, and one within the last 3 "
                       "hours is refused; with --budget the earlier counts"),
};

const stk_option_table stk_budget_option_table =
    STK_OPTION_TABLE("Time", options, stk_budget_options);

/* The need with what is kept beyond it. */
static double with_spare(double budget_s, double need_s, double busy) {
    double least_s = fmin(SPARE_LEAST_SHARE * budget_s, SPARE_LEAST_MOST_S);
    least_s = fmax(least_s, SPARE_LEAST_S * fmax(busy, 1));
    return need_s + fmax(SPARE_PART * need_s, least_s);
}

double stk_budget_reserve(double budget_s, double predict_s) {
    return isnan(predict_s) ? UNKNOWN_SHARE * budget_s : with_spare(budget_s, predict_s, 1);
}

double stk_budget_reserve_by(double budget_s, double predict_s, bool timed) {
    double reserve_s = stk_budget_reserve(budget_s, predict_s);
    return timed ? reserve_s : fmax(reserve_s, stk_budget_reserve(budget_s, NAN));
}

/* Seconds, as far as they are known, of what follows training before the last files: the
 * prediction, and beside it the last state. */
static double last_work(const stk_budget_facts *f) {
    double state_s = fmin(f->state_s, STATE_SHARE * f->budget_s);
    return isnan(f->predict_s) ? state_s : fmax(f->predict_s + f->more_s, state_s);
}

/* What a cheap step takes of another. */
static double part_of(const stk_budget_facts *f) {
    return f->cheap_part > 0 ? f->cheap_part : 1;
}

/* Seconds of the next steps. */
static double steps_s(const stk_budget_facts *f, double steps) {
    return (steps - (1 - part_of(f)) * fmin(steps, f->cheap_steps)) * f->step_s;
}

/* How many of the next steps take no longer than `seconds`. */
static double steps_within(const stk_budget_facts *f, double seconds) {
    double part = part_of(f);
    double steps = seconds / f->step_s;
    return steps < part * f->cheap_steps ? steps / part : steps + (1 - part) * f->cheap_steps;
}

int stk_budget_validate_every(const stk_budget_facts *f) {
    double train_s = (double)f->steps_per_epoch * f->step_s;
    double every = ceil((f->val_s + f->save_s) / (VALIDATION_SHARE * train_s));
    double fold_s = (f->budget_s - f->fold_start_s) * f->share;
    double most = fmax(fold_s / (PARTS_BETWEEN * train_s), EPOCHS_BETWEEN);
    bool free = isnan(f->budget_s) || f->epochs_wanted > 0 || isnan(every);
    most = fmin(most, STK_BUDGET_MOST_EPOCHS / PARTS_BETWEEN);
    return free ? 1 : (int)fmin(fmax(every, 1), most);
}

int stk_budget_most_epochs(int epochs_wanted) {
    return epochs_wanted > 0 ? epochs_wanted : STK_BUDGET_MOST_EPOCHS;
}

/* Without a budget: what was asked for. */
static stk_budget_plan free_plan(const stk_budget_facts *f, double epoch_s) {
    stk_budget_plan plan = {.reserve_s = NAN, .left_s = NAN, .fold_s = NAN, .epoch_s = epoch_s};
    plan.epochs = f->epochs_wanted > 0 ? f->epochs_wanted : STK_BUDGET_DEFAULT_EPOCHS;
    plan.steps_left = (plan.epochs - f->epoch + 1) * f->steps_per_epoch - f->step;
    double validations = (plan.epochs - f->epoch + 1) * (f->val_s + f->save_s);
    plan.total_s = steps_s(f, (double)plan.steps_left) + (isnan(validations) ? 0 : validations);
    return plan;
}

/*
 * What this fold may still use. Its share is of what was left when it began: a share of what is
 * left now would be granted anew at every question, until nothing remained for the other folds.
 */
static double fold_time(const stk_budget_facts *f, double reserve_s) {
    double granted = (f->budget_s - f->fold_start_s - reserve_s) * f->share;
    return granted - (f->elapsed_s - f->fold_start_s);
}

/* A part of one more epoch, when whole ones leave much of the time. */
static stk_budget_plan with_part(const stk_budget_facts *f, stk_budget_plan plan, double time,
                                 double val_s) {
    double fold_s = time + f->elapsed_s - f->fold_start_s;
    double part_s = time - plan.total_s - val_s;
    if (part_s < PART_SHARE * fold_s || part_s < f->step_s) {
        return plan;
    }
    stk_budget_facts after = *f; /* these steps */
    after.cheap_steps = fmax(f->cheap_steps - (double)plan.steps_left, 0);
    int64_t steps = (int64_t)steps_within(&after, part_s);
    plan.epochs++;
    plan.steps_left += steps;
    plan.total_s += steps_s(&after, (double)steps) + val_s;
    return plan;
}

/* How many of the `wanted` epochs after the `rest` of the running one fit into `time`, and their
 * seconds. */
static double later_epochs(const stk_budget_facts *f, int64_t rest, double wanted, double time,
                           double epoch_s, double *seconds) {
    double cheap = fmax(f->cheap_steps - (double)rest, 0);
    double saves_s = (1 - part_of(f)) * f->step_s; /* a cheap step beside another */
    double epochs = 0;
    *seconds = 0;
    while (cheap > 0 && epochs < wanted) {
        double of_epoch = fmin(cheap, (double)f->steps_per_epoch);
        double cost_s = epoch_s - of_epoch * saves_s;
        if (time - *seconds < cost_s) {
            return epochs;
        }
        *seconds += cost_s;
        cheap -= of_epoch;
        epochs++;
    }
    double usual = fmin(fmax(floor((time - *seconds) / epoch_s), 0), wanted - epochs);
    *seconds += usual * epoch_s;
    return epochs + usual;
}

stk_budget_plan stk_budget_make(const stk_budget_facts *f) {
    double val_s = (isnan(f->val_s) ? 0 : f->val_s) + f->save_s;
    int every = f->validate_every > 0 ? f->validate_every : 1;
    double epoch_s = (double)f->steps_per_epoch * f->step_s + val_s / every;
    if (isnan(f->budget_s)) {
        return free_plan(f, epoch_s);
    }
    stk_budget_plan plan = {.epoch_s = epoch_s, .left_s = f->budget_s - f->elapsed_s};
    double work_s = last_work(f);
    double need = work_s + f->final_s;
    plan.reserve_s = need;
    if (!isnan(f->predict_s)) {
        plan.reserve_s = with_spare(f->budget_s, work_s, f->busy) + f->final_s;
    }
    if (isnan(f->predict_s) || !f->timed) {
        double late_s = UNKNOWN_LATE_SHARE * (f->budget_s - f->fold_start_s);
        plan.reserve_s = fmax(plan.reserve_s, fmin(stk_budget_reserve(f->budget_s, NAN), late_s));
    }
    int most = stk_budget_most_epochs(f->epochs_wanted);
    double time = fold_time(f, plan.reserve_s);
    plan.fold_s = fmax(time, 0);
    if (f->epoch > most) {
        plan.epochs = most;
        return plan;
    }
    int64_t rest = f->steps_per_epoch - f->step;          /* of the running epoch */
    bool stinted = f->epochs_wanted > 0 || f->epoch == 1; /* ending now cuts the training short */
    double spare = plan.reserve_s - need;
    double slack = f->step > 0 ? spare / 2 * f->share : 0; /* only for the running epoch */
    if (time + slack <= 0) {
        plan.epochs = f->epoch;
        plan.cut = stinted;
        return plan;
    }
    if (isnan(f->step_s)) { /* nothing was measured: begin as planned */
        plan.epochs = most;
        plan.steps_left = (most - f->epoch) * f->steps_per_epoch + rest;
        plan.total_s = NAN;
        return plan;
    }
    double this_epoch_s = steps_s(f, (double)rest) + val_s;
    if (time + slack < this_epoch_s) {
        double steps = floor(steps_within(f, time - val_s));
        plan.epochs = f->epoch;
        plan.cut = stinted;
        plan.steps_left = steps > 0 ? (int64_t)steps : 0;
        bool validated = plan.steps_left + f->step > 0;
        plan.total_s = steps_s(f, (double)plan.steps_left) + (validated ? val_s : 0);
        return plan;
    }
    double wanted = most - f->epoch;
    double others_s;
    double epochs = later_epochs(f, rest, wanted, time - this_epoch_s, epoch_s, &others_s);
    plan.cut = epochs < wanted && f->epochs_wanted > 0;
    plan.epochs = f->epoch + (int)epochs;
    plan.steps_left = rest + (int64_t)epochs * f->steps_per_epoch;
    plan.total_s = this_epoch_s + others_s;
    return epochs < wanted ? with_part(f, plan, time, val_s) : plan;
}
