/*
 * pace.c - when a new plan is taken, and what is emitted about it.
 *
 * The plan is computed before every step and held unless there is a reason to change it: an epoch
 * begins; the first steps were measured; the running epoch cannot be finished any more, or can be
 * after all; or the number of steps has become quite different. Without that rule noise in the
 * timing would change the plan all the time. After the last planned validation there may be time
 * left: then training goes on, or a decision says why it does not.
 */
#include "job/steering/pace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "budget/inference.h"

#define MEASURED_STEPS 5 /* steps that must be timed before a plan rests on them */

/* Before so many steps were timed, validation and reserve may take at most this share of the
 * budget. */
#define FIRST_SHARE 0.5

/* Least relative change for which a plan is emitted, or taken within an epoch. */
#define OTHER_SHARE 0.25

/* Shares of a fold's time. */
#define SPARE_SHARE 0.1  /* unused time from which on a plan will hold */
#define GO_ON_SHARE 0.01 /* unused time from which on training continues after its plan */
#define EARLY_SHARE 0.15 /* most that may stay unused without a decision event */

void stk_fold_pace_begin(stk_fold_pace *pace) {
    pace->start_s = stk_run_clock_elapsed(pace->clock);
    pace->epochs_emitted = pace->recipe->epochs_wanted;
    pace->views_emitted = pace->time->views;
    if (!isnan(pace->time->predict_s) && !isnan(pace->clock->budget_s)) {
        pace->clock->predict_s = pace->time->predict_s / pace->time->views; /* of earlier folds */
    }
    pace->timed_before = pace->time->timed;
    pace->asked = false;
    stk_fold_pace_reset(pace);
}

void stk_fold_pace_leave_out(stk_fold_pace *pace, double seconds) {
    pace->start_s += seconds;
}

void stk_fold_pace_reset(stk_fold_pace *pace) {
    pace->past = (stk_validations){0};
    pace->unread_s = NAN;
    pace->by_measure = false;
    pace->cut_emitted = 0;
    pace->time->total_steps = -1;
}

/* Seconds of a step of the present kind; NaN: it was not measured. */
static double known_step_s(const stk_train_standing *standing) {
    return standing->expected ? NAN : standing->step_s;
}

static stk_inference inference_of(const stk_fold_pace *pace, const stk_train_standing *standing) {
    stk_inference_facts facts = {.budget_s = pace->clock->budget_s,
                                 .step_s = standing->step_s,
                                 .wait_s = standing->wait_s,
                                 .batch = pace->recipe->batch,
                                 .pixels = stk_recipe_eval_pixels(pace->recipe),
                                 .val_s = stk_validations_now(&pace->past, known_step_s(standing)),
                                 .val_images = pace->val_images,
                                 .test_images = pace->test_images,
                                 .unread_s = pace->unread_s,
                                 .predicted =
                                     stk_recipe_predicted(pace->recipe, pace->recipe->refits),
                                 .views = pace->recipe->views,
                                 .least_views = pace->recipe->least_views};
    return stk_inference_estimate(&facts);
}

/* Whether enough steps, or a whole epoch, were timed. */
static bool is_measured(const stk_train_standing *standing) {
    return standing->steps_timed > MEASURED_STEPS ||
           (standing->step == 0 && !isnan(standing->step_s) && !standing->expected);
}

/*
 * Before the first validation its time is estimated from steps, and the first steps may be slow. An
 * estimate from them must not end the training while half of the budget is left. After a change of
 * the pictures' size everything is an estimate, and half of what is left then is for training.
 */
static void doubt(stk_budget_facts *facts, bool expected) {
    double after_s =
        facts->val_s + stk_budget_reserve_by(facts->budget_s, facts->predict_s, facts->timed);
    double all_s = expected ? facts->budget_s - facts->elapsed_s : facts->budget_s;
    double most_s = FIRST_SHARE * fmax(all_s, 0);
    if (after_s > most_s) {
        facts->val_s *= most_s / after_s;
        facts->predict_s *= most_s / after_s;
    }
}

/*
 * Seconds of what comes with the prediction of the test set. The weights are read, which takes as
 * long as saving them. With several folds the validation set is predicted for oof.csv. The network
 * waits in the executable cache. Features for class means take a pass over their pictures.
 */
static double beside_prediction(const stk_fold_pace *pace, const stk_inference *inference) {
    double oof_s = pace->recipe->folds > 1 ? pace->time->views * inference->val_s : 0;
    bool any = pace->test_images > 0 || pace->recipe->folds > 1;
    oof_s = isnan(oof_s) ? 0 : oof_s;
    if (pace->means_images > 0 && !isnan(inference->predict_s)) { /* prediction goes first */
        oof_s += (STK_MARGIN_SAFETY - 1) * inference->predict_s +
                 STK_MARGIN_SAFETY * (double)pace->means_images * inference->picture_s;
    }
    return (any ? stk_state_saver_best_s(pace->saver) : 0) + oof_s;
}

/* The facts for the budget; call choose_views() first. The share is that of the folds planned now.
 */
static stk_budget_facts facts_of(const stk_fold_pace *pace, const stk_train_standing *standing) {
    stk_inference inference = inference_of(pace, standing);
    stk_budget_facts facts = {.elapsed_s = stk_run_clock_elapsed(pace->clock),
                              .budget_s = pace->clock->budget_s,
                              .fold_start_s = pace->start_s,
                              .share = 1.0 / (pace->time->folds - pace->tally->fold),
                              .epochs_wanted = pace->recipe->epochs_wanted,
                              .epoch = standing->epoch,
                              .step = standing->step,
                              .steps_per_epoch = standing->steps_per_epoch,
                              .step_s = standing->step_s,
                              .cheap_steps = (double)standing->frozen_left,
                              .cheap_part = standing->frozen_part,
                              .val_s = inference.val_s,
                              .save_s = stk_state_saver_pause_s(pace->saver),
                              .predict_s = pace->time->predict_s,
                              .timed = pace->time->timed,
                              .more_s = beside_prediction(pace, &inference),
                              .state_s = stk_state_saver_write_s(pace->saver),
                              .final_s = stk_run_clock_needed(pace->clock, STK_MARGIN_SUBMISSION),
                              .busy = stk_margin_stretch(&pace->clock->margin, 1)};
    bool unknown = pace->val_images > 0 && isnan(standing->val_s);
    /* Patience counts validations. */
    facts.validate_every =
        pace->recipe->train.patience > 0 || unknown ? 1 : stk_budget_validate_every(&facts);
    bool by_steps = isnan(standing->val_s) || standing->expected;
    if (by_steps && !isnan(standing->step_s) && !is_measured(standing) && !isnan(facts.budget_s)) {
        doubt(&facts, standing->expected);
    }
    return facts;
}

/* ---- events ---- */

static void emit_plan(const stk_fold_pace *pace, const stk_train_standing *standing) {
    const stk_budget_plan *plan = &pace->time->plan;
    stk_event_plan event = {.fold = pace->tally->fold,
                            .epochs = plan->epochs,
                            .steps_per_epoch = standing->steps_per_epoch,
                            .seconds_per_epoch = plan->epoch_s,
                            .total_s = plan->total_s,
                            .left_s = plan->left_s,
                            .reserve_s = plan->reserve_s,
                            .folds = pace->recipe->folds,
                            .refits = pace->recipe->refits};
    stk_events_plan(pace->events, &event);
}

/*
 * Whether a plan is worth an event: it differs much from the last one emitted, it cuts what was
 * asked for, or it restores all of it. A restored plan counts only with time to spare or in the
 * last epoch, because noise in the timing would otherwise emit both in turn.
 */
static bool is_news(const stk_fold_pace *pace, const stk_train_standing *standing) {
    const stk_budget_plan *plan = &pace->time->plan;
    int wanted = pace->recipe->epochs_wanted;
    int known = pace->epochs_emitted;
    int off = abs(plan->epochs - known);
    bool sure = standing->epoch == wanted || plan->total_s < (1 - SPARE_SHARE) * plan->fold_s;
    return off > OTHER_SHARE * known ||
           (off > 0 && (known == wanted || (plan->epochs == wanted && sure)));
}

/* Emits a new number of epochs. */
static void emit_epochs(const stk_fold_pace *pace, const stk_budget_facts *facts) {
    const stk_budget_plan *plan = &pace->time->plan;
    int wanted = pace->recipe->epochs_wanted;
    char what[64];
    char why[200];
    if (wanted > 0) {
        snprintf(what, sizeof what, "%d of %d epochs", plan->epochs, wanted);
    } else {
        snprintf(what, sizeof what, "%d epochs instead of %d", plan->epochs, pace->epochs_emitted);
    }
    snprintf(
        why, sizeof why,
        "one takes %s with its%s validation, and %s are left for this fold before the %s kept for "
        "prediction",
        stk_format_span(plan->epoch_s).text, facts->validate_every > 1 ? " part of a" : "",
        stk_format_span(plan->fold_s).text, stk_format_span(plan->reserve_s).text);
    stk_events_decision(pace->events, what, why);
}

/* Emits a decision with the times of steps and validations, and the time that is left for them. */
static void emit_times(const stk_fold_pace *pace, const char *what, const stk_budget_facts *facts,
                       const stk_budget_plan *plan) {
    char took[128] = ""; /* "" where time was up before a step was measured */
    char why[256];
    if (!isnan(facts->step_s)) {
        snprintf(took, sizeof took, "a step takes %s and a validation %s, and ",
                 stk_format_span(facts->step_s).text, stk_format_span(facts->val_s).text);
    }
    snprintf(why, sizeof why, "%s%s are left for this fold before the %s kept for prediction", took,
             stk_format_span(plan->fold_s).text, stk_format_span(plan->reserve_s).text);
    stk_events_decision(pace->events, what, why);
}

/* Emits that a fold ends long before its time, after the most epochs. */
static void emit_most(const stk_fold_pace *pace, const stk_budget_plan *plan) {
    char what[64];
    char why[160];
    snprintf(what, sizeof what, "training ends after %d epochs", STK_BUDGET_MOST_EPOCHS);
    snprintf(why, sizeof why,
             "further ones would teach it no more; %s are left for this fold (--epochs N asks for "
             "another number)",
             stk_format_span(plan->fold_s).text);
    stk_events_decision(pace->events, what, why);
}

/* Emits that the running epoch ends before its last step. */
static void emit_cut(const stk_fold_pace *pace, const stk_train_standing *standing,
                     const stk_budget_facts *facts) {
    const stk_budget_plan *plan = &pace->time->plan;
    int64_t steps = standing->step + plan->steps_left;
    char what[96];
    if (steps > 0) {
        snprintf(what, sizeof what, "epoch %d ends after %lld of %lld steps", standing->epoch,
                 (long long)steps, (long long)standing->steps_per_epoch);
    } else {
        snprintf(what, sizeof what, "no epoch %d", standing->epoch);
    }
    emit_times(pace, what, facts, plan);
}

/* Emits a plan that was just taken. A plan from few measured steps is not news, but an end is. */
static void emit(stk_fold_pace *pace, const stk_train_standing *standing,
                 const stk_budget_facts *facts, bool measured) {
    const stk_budget_plan *plan = &pace->time->plan;
    bool ends_early = plan->steps_left < standing->steps_per_epoch - standing->step;
    bool news = measured && (!pace->by_measure || is_news(pace, standing));
    if (news) {
        emit_plan(pace, standing);
    }
    if (ends_early && pace->cut_emitted != standing->epoch && (measured || plan->steps_left == 0)) {
        emit_cut(pace, standing, facts);
        pace->cut_emitted = standing->epoch;
    } else if (news && !ends_early && pace->epochs_emitted > 0 &&
               plan->epochs != pace->epochs_emitted) {
        emit_epochs(pace, facts);
    }
    pace->epochs_emitted = news ? plan->epochs : pace->epochs_emitted;
}

/* Chooses the views that may be kept time for: each one takes time from training. */
static void choose_views(stk_fold_pace *pace, const stk_train_standing *standing) {
    stk_inference inference = inference_of(pace, standing);
    int views = inference.views;
    pace->picture_s = isnan(inference.picture_s) ? pace->picture_s : inference.picture_s;
    int wanted = pace->recipe->views;
    bool first_read = standing->validations > 0 || pace->val_images == 0;
    if (isnan(pace->unread_s) && standing->step == 0 && first_read) {
        pace->unread_s = inference.picture_s;
    }
    /* A measurement of an earlier fold stays until this fold has a validation. */
    bool better =
        pace->val_images > 0 ? inference.timed || !pace->time->timed : !pace->timed_before;
    if (!isnan(inference.view_s) && better) {
        pace->time->predict_s = inference.predict_s;
        pace->time->timed = inference.timed;
        pace->clock->predict_s = isnan(pace->clock->budget_s) ? 0 : inference.predict_s / views;
        pace->time->views = views;
    }
    bool fewer = views < pace->views_emitted;
    bool all = views > pace->views_emitted && views == wanted;
    bool asked = pace->recipe->least_views == wanted; /* others come and go without a word */
    if (isnan(standing->val_s) || standing->step > 0 || !asked || (!fewer && !all)) {
        return; /* estimates from steps vary too much: wait for a validation */
    }
    pace->views_emitted = views;
    char what[64];
    char why[160];
    if (all) {
        snprintf(what, sizeof what, "all %d views of each test image", wanted);
    } else {
        snprintf(what, sizeof what, "%d of %d views of each test image", views, wanted);
    }
    snprintf(why, sizeof why, "one view of all test images takes %s, and %s",
             stk_format_span(inference.view_s).text,
             all ? "all of them fit into 15 % of the budget"
                 : "views beyond 15 % of the budget would take too much time from training");
    stk_events_decision(pace->events, what, why);
}

/* ---- the plan ---- */

/*
 * Plans once more after the number of folds was reconsidered: fewer folds leave more time for this
 * one. The first steps alone are too noisy to give folds up, unless each fold would get at most one
 * epoch.
 */
static stk_budget_plan plan_again(const stk_fold_pace *pace, const stk_train_standing *standing,
                                  const stk_budget_plan *plan) {
    int folds = pace->time->folds;
    if (!isnan(plan->epoch_s)) { /* otherwise earlier measurements stay */
        pace->time->epoch_s = plan->epoch_s;
    } else if (standing->step > 0) { /* one step took most of the time */
        double fold_s = stk_run_clock_elapsed(pace->clock) - pace->start_s;
        pace->time->epoch_s = fold_s / (double)standing->step * (double)standing->steps_per_epoch;
    }
    if (isnan(standing->val_s) && plan->epochs > standing->epoch) {
        return *plan;
    }
    stk_time_plan_folds(pace->time, pace->recipe, pace->clock, pace->events, pace->tally->fold,
                        standing->epoch - 1);
    bool idle = plan->steps_left == 0 && !pace->asked && pace->tally->folds_done == 0;
    if (pace->time->folds == folds && !idle) {
        return *plan;
    }
    stk_budget_facts facts = facts_of(pace, standing);
    stk_budget_plan again = stk_budget_make(&facts);
    if (again.steps_left == 0 && idle) { /* one model that is trained is worth more than none */
        stk_time_plan_only(pace->time, pace->events, pace->tally->fold);
        facts = facts_of(pace, standing);
        again = stk_budget_make(&facts);
    }
    return again;
}

/* Whether the new plan must replace the current one. */
static bool must_change(const stk_fold_pace *pace, const stk_train_standing *standing,
                        const stk_budget_plan *plan) {
    int64_t epoch_rest = standing->steps_per_epoch - standing->step;
    int64_t held = pace->time->total_steps - standing->steps_done;
    bool other =
        pace->by_measure && fabs((double)(plan->steps_left - held)) > OTHER_SHARE * (double)held;
    return standing->step == 0 || held < epoch_rest || plan->steps_left < epoch_rest || other;
}

/* Ends the fold with the current plan after a request to stop. Without a plan the fold ends at this
 * step: an epoch that an earlier process trained may still be validated and saved. */
static stk_train_orders end(stk_fold_pace *pace, const stk_train_standing *standing) {
    bool planned = pace->time->total_steps >= 0;
    if (!pace->time->stop_emitted) {
        pace->time->stop_emitted = true;
        stk_events_decision(pace->events, "stopping",
                            "the best weights are kept and predicted with; Ctrl-C again ends at "
                            "once");
    }
    return (stk_train_orders){.epochs = planned ? pace->time->plan.epochs : standing->epoch,
                              .total_steps =
                                  planned ? pace->time->total_steps : standing->steps_done,
                              .stop = true};
}

static stk_train_orders held_plan(const stk_fold_pace *pace, const stk_budget_facts *facts) {
    return (stk_train_orders){.epochs = pace->time->plan.epochs,
                              .total_steps = pace->time->total_steps,
                              .validate_every = facts->validate_every,
                              .stop = pace->tally->weights_lost};
}

/*
 * Called when all planned steps are done. If the plan rested on wrong times, time is left for more
 * steps: of the next epoch, or of the epoch that was cut.
 */
static void plan_more(stk_fold_pace *pace, const stk_train_standing *standing,
                      const stk_budget_facts *facts) {
    stk_budget_plan plan = stk_budget_make(facts);
    double all_s = plan.fold_s + facts->elapsed_s - facts->fold_start_s;
    char what[96];
    if (isnan(facts->budget_s) || pace->tally->weights_lost) {
        return;
    }
    bool early = plan.fold_s > EARLY_SHARE * all_s;
    if (standing->epoch > stk_budget_most_epochs(facts->epochs_wanted)) {
        if (early && facts->epochs_wanted == 0) {
            emit_most(pace, &plan);
        }
        return;
    }
    if ((double)plan.steps_left * facts->step_s >= GO_ON_SHARE * all_s && plan.steps_left > 0) {
        snprintf(what, sizeof what, "training goes on for %lld step%s", (long long)plan.steps_left,
                 plan.steps_left == 1 ? "" : "s");
        emit_times(pace, what, facts, &plan);
        pace->time->plan = plan;
        pace->time->total_steps = standing->steps_done + plan.steps_left;
        pace->epochs_emitted = plan.epochs;
        pace->cut_emitted = standing->epoch; /* the decision above says how far training goes */
    } else if (early) {
        snprintf(what, sizeof what, "training ends after %lld step%s",
                 (long long)standing->steps_done, standing->steps_done == 1 ? "" : "s");
        emit_times(pace, what, facts, &plan);
    }
}

stk_train_orders stk_fold_pace_step(stk_fold_pace *pace, const stk_train_standing *standing) {
    if (!standing->over && stk_run_clock_stopping(pace->clock)) {
        return end(pace, standing);
    }
    if (standing->validations > pace->past.count) {
        stk_validations_note(&pace->past, standing->val_s, standing->val_even_s,
                             known_step_s(standing));
    }
    if (standing->steps_done == 0 && !pace->asked) {
        pace->time->setup_s = stk_run_clock_elapsed(pace->clock) - pace->start_s;
    }
    choose_views(pace, standing);
    stk_budget_facts facts = facts_of(pace, standing);
    if (standing->over) {
        if (!stk_run_clock_stopping(pace->clock)) {
            plan_more(pace, standing, &facts);
        }
        return held_plan(pace, &facts);
    }
    stk_budget_plan plan = stk_budget_make(&facts);
    bool measured = is_measured(standing);
    bool first = measured && !pace->by_measure;
    bool cuts_epoch = plan.steps_left < standing->steps_per_epoch - standing->step;
    if (first || must_change(pace, standing, &plan)) {
        pace->time->plan = measured || cuts_epoch ? plan_again(pace, standing, &plan) : plan;
        pace->time->total_steps = standing->steps_done + pace->time->plan.steps_left;
        emit(pace, standing, &facts, measured);
        pace->by_measure = measured;
    }
    pace->asked = true;
    return held_plan(pace, &facts);
}
