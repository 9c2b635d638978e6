/*
 * pace.c - when a new plan is taken, and what is told of it.
 *
 * A new plan is taken when an epoch begins, when the first steps were measured, and at any step
 * when the running epoch cannot be finished any more, or was thought not to be, or when what there
 * is time for has become quite another; in between noise in the timing would only make it flutter.
 * When a plan has been carried out, and its last validation has told what such a thing takes, there
 * may be time for more than was thought: training goes on, or a line says why it does not.
 */
#include "job/pace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "budget/inference.h"
#include "job/folds.h"

/* Steps before a plan is made from their times. */
#define MEASURED_STEPS 5

/* Of the budget: the most that a validation and the reserve are taken for before that. */
#define FIRST_SHARE 0.5

/* By which part a plan must differ to be told, and to be taken within an epoch. */
#define OTHER_SHARE 0.25

/* Of a fold's time: a plan that leaves this part of it will hold. */
#define SPARE_SHARE 0.1

/* Of a fold's time: for less than this training does not go on behind its plan; and what may be
 * left of it without a word. */
#define GO_ON_SHARE 0.05
#define EARLY_SHARE 0.15

void stk_job_pace_open(stk_fold_pace *pace, stk_job *job) {
    *pace = (stk_fold_pace){.job = job,
                            .start_s = stk_run_clock_elapsed(&job->clock),
                            .told_epochs = job->choice.epochs_wanted,
                            .told_views = job->views};
    stk_job_pace_anew(pace);
}

void stk_job_pace_anew(stk_fold_pace *pace) {
    pace->past = (stk_validations){0};
    pace->by_measure = false;
    pace->told_cut = 0;
    pace->job->planned_total = -1;
}

static stk_inference inference_of(const stk_fold_pace *pace, const stk_train_progress *progress) {
    const stk_job *job = pace->job;
    stk_inference_facts facts = {.budget_s = job->clock.budget_s,
                                 .step_s = progress->step_s,
                                 .wait_s = progress->wait_s,
                                 .batch = job->choice.batch,
                                 .val_s = stk_validations_now(&pace->past, progress->step_s),
                                 .val_images = pace->val_images,
                                 .test_images = job->ensemble.rows,
                                 .views = (int)job->view_options->tta};
    return stk_inference_estimate(&facts);
}

/* Enough steps were timed, or an epoch begins that knows those before. */
static bool is_measured(const stk_train_progress *progress) {
    return progress->steps_timed > MEASURED_STEPS ||
           (progress->step == 0 && !isnan(progress->step_s));
}

/*
 * What follows the training is known from its steps, and the first ones are slow at times: they do
 * not end it while half of the budget is there.
 */
static void doubt(stk_budget_facts *facts) {
    double after_s = facts->val_s + stk_budget_reserve(facts->budget_s, facts->predict_s);
    double most_s = FIRST_SHARE * facts->budget_s;
    if (after_s > most_s) {
        facts->val_s *= most_s / after_s;
        facts->predict_s *= most_s / after_s;
    }
}

/* Facts of this moment, after take_views(); the share is that of the folds that are planned now. */
static stk_budget_facts facts_of(const stk_fold_pace *pace, const stk_train_progress *progress) {
    stk_job *job = pace->job;
    stk_inference inference = inference_of(pace, progress);
    stk_budget_facts facts = {.elapsed_s = stk_run_clock_elapsed(&job->clock),
                              .budget_s = job->clock.budget_s,
                              .fold_start_s = pace->start_s,
                              .share = 1.0 / (job->folds_now - job->fold),
                              .epochs_wanted = job->choice.epochs_wanted,
                              .epoch = progress->epoch,
                              .step = progress->step,
                              .steps_per_epoch = progress->steps_per_epoch,
                              .step_s = progress->step_s,
                              .val_s = inference.val_s,
                              .save_s = stk_job_save_seconds(job),
                              .predict_s = job->predict_s,
                              .final_s = stk_run_clock_needed(&job->clock, STK_MARGIN_SUBMISSION)};
    bool by_steps = isnan(progress->val_s) && !isnan(progress->step_s);
    if (by_steps && !is_measured(progress) && !isnan(facts.budget_s)) {
        doubt(&facts);
    }
    return facts;
}

/* ---- what is told ---- */

static void tell_plan(const stk_job *job, const stk_train_progress *progress) {
    const stk_budget_plan *plan = &job->plan;
    stk_event_plan event = {.fold = job->fold,
                            .epochs = plan->epochs,
                            .steps_per_epoch = progress->steps_per_epoch,
                            .seconds_per_epoch = plan->epoch_s,
                            .total_s = plan->total_s,
                            .left_s = plan->left_s,
                            .reserve_s = plan->reserve_s};
    stk_events_plan(&job->events, &event);
}

/*
 * A plan that differs much from what people know, or cuts what was asked for, or goes back to all
 * of it: with time to spare, or in the last epoch, as noise in the timing would tell both in turns.
 */
static bool is_news(const stk_fold_pace *pace, const stk_train_progress *progress) {
    const stk_budget_plan *plan = &pace->job->plan;
    int wanted = pace->job->choice.epochs_wanted;
    int known = pace->told_epochs;
    int off = abs(plan->epochs - known);
    bool sure = progress->epoch == wanted || plan->total_s < (1 - SPARE_SHARE) * plan->fold_s;
    return off > OTHER_SHARE * known ||
           (off > 0 && (known == wanted || (plan->epochs == wanted && sure)));
}

/* More or fewer epochs than people know of. */
static void tell_epochs(const stk_fold_pace *pace) {
    const stk_job *job = pace->job;
    const stk_budget_plan *plan = &job->plan;
    int wanted = job->choice.epochs_wanted;
    char what[64];
    char why[200];
    if (wanted > 0) {
        snprintf(what, sizeof what, "%d of %d epochs", plan->epochs, wanted);
    } else {
        snprintf(what, sizeof what, "%d epochs instead of %d", plan->epochs, pace->told_epochs);
    }
    snprintf(
        why, sizeof why,
        "one takes %s with its validation, and %s are left for this fold before the %s kept for "
        "prediction",
        stk_format_span(plan->epoch_s).text, stk_format_span(plan->fold_s).text,
        stk_format_span(plan->reserve_s).text);
    stk_events_decision(&job->events, what, why);
}

/* A decision with what steps and validations take, and the time that there is for them. */
static void tell_times(const stk_job *job, const char *what, const stk_budget_facts *facts,
                       const stk_budget_plan *plan) {
    char took[128] = ""; /* nothing where the time was over before a step was measured */
    char why[256];
    if (!isnan(facts->step_s)) {
        snprintf(took, sizeof took, "a step takes %s and a validation %s, and ",
                 stk_format_span(facts->step_s).text, stk_format_span(facts->val_s).text);
    }
    snprintf(why, sizeof why, "%s%s are left for this fold before the %s kept for prediction", took,
             stk_format_span(plan->fold_s).text, stk_format_span(plan->reserve_s).text);
    stk_events_decision(&job->events, what, why);
}

/* The running epoch ends before its last step. */
static void tell_cut(const stk_fold_pace *pace, const stk_train_progress *progress,
                     const stk_budget_facts *facts) {
    const stk_job *job = pace->job;
    const stk_budget_plan *plan = &job->plan;
    int64_t steps = progress->step + plan->steps_left;
    char what[96];
    if (steps > 0) {
        snprintf(what, sizeof what, "epoch %d ends after %lld of %lld steps", progress->epoch,
                 (long long)steps, (long long)progress->steps_per_epoch);
    } else {
        snprintf(what, sizeof what, "no epoch %d", progress->epoch);
    }
    tell_times(job, what, facts, plan);
}

/* What was planned now. Few steps that were measured tell little, but an end is an end. */
static void tell(stk_fold_pace *pace, const stk_train_progress *progress,
                 const stk_budget_facts *facts, bool measured) {
    const stk_budget_plan *plan = &pace->job->plan;
    bool ends_early = plan->steps_left < progress->steps_per_epoch - progress->step;
    bool news = measured && (!pace->by_measure || is_news(pace, progress));
    if (news) {
        tell_plan(pace->job, progress);
    }
    if (ends_early && pace->told_cut != progress->epoch && (measured || plan->steps_left == 0)) {
        tell_cut(pace, progress, facts);
        pace->told_cut = progress->epoch;
    } else if (news && !ends_early && pace->told_epochs > 0 && plan->epochs != pace->told_epochs) {
        tell_epochs(pace);
    }
    pace->told_epochs = news ? plan->epochs : pace->told_epochs;
}

/* Views that the time kept for prediction in any case does not allow are given up, not training. */
static void take_views(stk_fold_pace *pace, const stk_train_progress *progress) {
    stk_job *job = pace->job;
    stk_inference inference = inference_of(pace, progress);
    int views = inference.views;
    int wanted = (int)job->view_options->tta;
    if (!isnan(inference.view_s)) { /* else what the folds before have measured is as good */
        job->predict_s = inference.predict_s;
        job->clock.predict_s = isnan(job->clock.budget_s) ? 0 : inference.predict_s / views;
        job->views = views;
    }
    bool fewer = views < pace->told_views;
    bool all = views > pace->told_views && views == wanted;
    if (isnan(progress->val_s) || progress->step > 0 || (!fewer && !all)) {
        return; /* an estimate tells nothing: validations decide, and steps flutter */
    }
    pace->told_views = views;
    char what[64];
    char why[160];
    if (all) {
        snprintf(what, sizeof what, "all %d views of each test image", wanted);
    } else {
        snprintf(what, sizeof what, "%d of %d views of each test image", views, wanted);
    }
    snprintf(why, sizeof why, "one of all test images takes %s, and %s",
             stk_format_span(inference.view_s).text,
             all ? "all of them fit into 15 % of the budget"
                 : "more of them than fit into 15 % of the budget would cost training");
    stk_events_decision(&job->events, what, why);
}

/* ---- the plan ---- */

/*
 * Fewer folds leave more time for this one. The first steps alone are too noisy to give folds up,
 * unless with all of them there would be one epoch of each at most.
 */
static stk_budget_plan plan_again(const stk_fold_pace *pace, const stk_train_progress *progress,
                                  const stk_budget_plan *plan) {
    stk_job *job = pace->job;
    int folds = job->folds_now;
    if (!isnan(plan->epoch_s)) { /* as in take_views() */
        job->epoch_s = plan->epoch_s;
    } else if (progress->step > 0) { /* one step, and most of the time is gone */
        double fold_s = stk_run_clock_elapsed(&job->clock) - pace->start_s;
        job->epoch_s = fold_s / (double)progress->step * (double)progress->steps_per_epoch;
    }
    if (isnan(progress->val_s) && plan->epochs > progress->epoch) {
        return *plan;
    }
    stk_job_plan_folds(job, progress->epoch - 1);
    if (job->folds_now == folds) {
        return *plan;
    }
    stk_budget_facts facts = facts_of(pace, progress);
    return stk_budget_make(&facts);
}

/* Whether the held plan has to be left for this one. */
static bool must_change(const stk_fold_pace *pace, const stk_train_progress *progress,
                        const stk_budget_plan *plan) {
    int64_t epoch_rest = progress->steps_per_epoch - progress->step;
    int64_t held = pace->job->planned_total - progress->steps_done;
    bool other =
        pace->by_measure && fabs((double)(plan->steps_left - held)) > OTHER_SHARE * (double)held;
    return progress->step == 0 || held < epoch_rest || plan->steps_left < epoch_rest || other;
}

/* The plan stays what it is: nothing will come of another one. Where there is none yet, it ends
 * here: an epoch that an earlier process has trained may still be validated and saved. */
static stk_train_pace end(stk_job *job, const stk_train_progress *progress) {
    bool planned = job->planned_total >= 0;
    if (!job->told_stop) {
        job->told_stop = true;
        stk_events_decision(&job->events, "stopping",
                            "the best weights are kept and predicted with; Ctrl-C again ends at "
                            "once");
    }
    return (stk_train_pace){.epochs = planned ? job->plan.epochs : progress->epoch,
                            .total_steps = planned ? job->planned_total : progress->steps_done,
                            .stop = true};
}

static stk_train_pace held_plan(const stk_job *job) {
    return (stk_train_pace){
        .epochs = job->plan.epochs, .total_steps = job->planned_total, .stop = job->weights_lost};
}

/*
 * The plan has been carried out. A plan that rested on times which were not true leaves time for
 * another one; the rest of an epoch counts as much as a new one.
 */
static void plan_more(stk_fold_pace *pace, const stk_train_progress *progress,
                      const stk_budget_facts *facts) {
    stk_job *job = pace->job;
    stk_budget_plan plan = stk_budget_make(facts);
    double all_s = plan.fold_s + facts->elapsed_s - facts->fold_start_s;
    char what[96];
    if (isnan(facts->budget_s) || job->weights_lost ||
        progress->epoch > stk_budget_most_epochs(facts->epochs_wanted)) {
        return;
    }
    if ((double)plan.steps_left * facts->step_s >= GO_ON_SHARE * all_s && plan.steps_left > 0) {
        snprintf(what, sizeof what, "training goes on for %lld step%s", (long long)plan.steps_left,
                 plan.steps_left == 1 ? "" : "s");
        tell_times(job, what, facts, &plan);
        job->plan = plan;
        job->planned_total = progress->steps_done + plan.steps_left;
        pace->told_epochs = plan.epochs;
        pace->told_cut = progress->epoch; /* the line says how far it goes */
    } else if (plan.fold_s > EARLY_SHARE * all_s) {
        snprintf(what, sizeof what, "training ends after %lld step%s",
                 (long long)progress->steps_done, progress->steps_done == 1 ? "" : "s");
        tell_times(job, what, facts, &plan);
    }
}

stk_train_pace stk_job_pace(stk_fold_pace *pace, const stk_train_progress *progress) {
    stk_job *job = pace->job;
    if (!progress->over && stk_run_clock_stopping(&job->clock)) {
        return end(job, progress);
    }
    if (progress->validations > pace->past.count) {
        stk_validations_note(&pace->past, progress->val_s, progress->val_even_s, progress->step_s);
    }
    take_views(pace, progress);
    stk_budget_facts facts = facts_of(pace, progress);
    if (progress->over) {
        if (!stk_run_clock_stopping(&job->clock)) {
            plan_more(pace, progress, &facts);
        }
        return held_plan(job);
    }
    stk_budget_plan plan = stk_budget_make(&facts);
    bool measured = is_measured(progress);
    bool first = measured && !pace->by_measure;
    bool stinted = plan.steps_left < progress->steps_per_epoch - progress->step;
    if (first || must_change(pace, progress, &plan)) {
        job->plan = measured || stinted ? plan_again(pace, progress, &plan) : plan;
        job->planned_total = progress->steps_done + job->plan.steps_left;
        tell(pace, progress, &facts, measured);
        pace->by_measure = measured;
    }
    return held_plan(job);
}
