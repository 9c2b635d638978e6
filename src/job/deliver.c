/* deliver.c - what a run hands over: its submission, its summary, its outcome or its error. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "job/job_state.h"
#include "predict/submission.h"

/* Of the budget, and in seconds: a first submission that took longer may have been held up. */
#define HELD_UP_SHARE 0.02
#define HELD_UP_LEAST_S 0.25

static stk_status write_ensemble(stk_job *job, double *seconds, stk_error *err) {
    const stk_dataset *dataset = job->dataset;
    stk_halt late = {job->submitted ? stk_run_clock_is_late : NULL, &job->clock};
    int64_t start = stk_clock_ns();
    stk_status status = stk_submission_write_unless(
        job->submission, dataset, dataset->classes, dataset->class_count,
        stk_ensemble_average(&job->ensemble), late, err);
    *seconds = stk_clock_since_s(start);
    return status;
}

/*
 * Time is kept for the last submission by what the first one took, which may have been one moment
 * in which the machine stood still. Where it took long it is written once more: the faster of both
 * counts, and a disk that is slow is so twice.
 */
static double confirm_seconds(stk_job *job, double seconds) {
    double again_s;
    stk_error why = {0};
    double most_s = fmax(HELD_UP_SHARE * job->clock.budget_s, HELD_UP_LEAST_S);
    bool matters = !isnan(job->clock.budget_s) && seconds > most_s;
    return matters && write_ensemble(job, &again_s, &why) == STK_OK ? fmin(seconds, again_s)
                                                                    : seconds;
}

stk_status stk_job_submit(stk_job *job, const char *status, stk_error *err) {
    stk_run_clock *clock = &job->clock;
    double took = stk_margin_took(&clock->margin, STK_MARGIN_SUBMISSION);
    double seconds = 0;
    bool first = !job->submitted;
    stk_error why = {0};
    stk_status written = STK_ERR_STOPPED;
    if (first || stk_run_clock_left(clock) >= took) {
        written = write_ensemble(job, &seconds, &why);
    }
    if (written == STK_ERR_STOPPED) {
        job->cut = true;
        job->unpredicted = true;
        stk_events_warning(&job->events,
                           "there was no time to write better predictions: %s stays "
                           "as it was",
                           job->submission);
        return STK_OK;
    }
    if (written != STK_OK) {
        return STK_FAIL(err, written, "%s", why.message);
    }
    job->submitted = true;
    stk_margin_note(&clock->margin, STK_MARGIN_SUBMISSION,
                    first ? confirm_seconds(job, seconds) : seconds);
    job->models = job->ensemble.models;
    stk_event_submission event = {.path = job->submission,
                                  .status = status,
                                  .rows = (int64_t)job->ensemble.rows,
                                  .models = job->ensemble.models,
                                  .models_wanted = job->folds};
    stk_events_submission(&job->events, &event);
    return STK_OK;
}

void stk_job_write_validation(stk_job *job, bool last) {
    stk_error why = {0};
    if (!job->val.owed) {
        return;
    }
    double seconds = STK_MARGIN_SAFETY * stk_val_table_seconds(&job->val);
    if (!last && job->predict_s > 0) { /* the predictions of one view come first */
        seconds += job->predict_s / job->views;
    }
    if (stk_run_clock_must_halt(&job->clock, seconds)) {
        if (last) {
            job->val.owed = false;
            stk_events_warning(&job->events,
                               "there was no time to write validation.csv with the best epoch of "
                               "fold %d",
                               job->fold);
        }
        return;
    }
    if (stk_val_table_write(&job->val, job->dataset, &why) != STK_OK) {
        stk_events_warning(&job->events, "validation.csv is not written: %s", why.message);
        (void)STK_FAIL(&job->late_error, why.status, "%s", why.message);
    }
}

/* Of this process's budget. */
static double reserve_of(stk_job *job) {
    return isnan(job->clock.budget_s) ? NAN
           : job->planned_total >= 0
               ? job->plan.reserve_s
               : fmax(stk_budget_reserve(job->clock.budget_s, NAN),
                      stk_run_clock_needed(&job->clock, STK_MARGIN_SUBMISSION));
}

void stk_job_tell_untrained(stk_job *job) {
    char why[200];
    if (job->folds_done > 0 || job->unfit > 0 || job->summary.epochs_done > 0 ||
        isnan(job->clock.budget_s) || stk_run_clock_stopping(&job->clock)) {
        return;
    }
    snprintf(why, sizeof why,
             "of the budget of %s, %s are kept for prediction and the last files, and the rest was "
             "too short for %s",
             stk_format_span(job->clock.budget_s).text, stk_format_span(reserve_of(job)).text,
             job->images > 0 ? "an epoch and its validation" : "one step");
    stk_events_decision(&job->events, "no model was trained", why);
}

void stk_job_finish_summary(stk_job *job, stk_status status) {
    stk_summary *s = &job->summary;
    bool trained = job->folds_done > 0 || job->models > 0; /* weights may be in memory alone */
    bool delivered = trained || job->submitted;
    bool whole = trained && !job->cut && job->folds_done == job->folds;
    /* A submission from earlier processes has their models, whether they were asked again or not,
     * unless they could not read anything. */
    bool earlier = job->submitted && job->resume.state.folds_done > 0 && !job->unread;
    bool voted = job->models > 0 || earlier;
    s->status = status != STK_OK || !delivered                   ? "failed"
                : !trained || (job->ensemble.rows > 0 && !voted) ? "prior"
                : whole                                          ? "complete"
                                                                 : "partial";
    if (status != STK_OK || job->late_error.status != STK_OK) {
        s->stop_reason = "error"; /* as the exit code will say */
    } else if (s->stop_reason == NULL ||
               (job->unpredicted && strcmp(s->stop_reason, "error") != 0)) {
        s->stop_reason = stk_run_clock_stopping(&job->clock) ? "signal" : "budget";
    }
    s->folds_done = job->folds_done;
    s->folds_planned = job->folds;
    s->images_per_second = job->train_s > 0 ? job->images / job->train_s : NAN;
    s->wait_fraction = job->train_s > 0 ? job->wait_s / job->train_s : NAN;
    s->budget_s = job->resume.used_s + job->clock.budget_s; /* NaN without one */
    s->reserve_s = reserve_of(job);
    s->batch = (int)job->choice.batch;
    s->workers = job->workers > 0 ? job->workers : job->choice.loader.workers;
    s->prefetch = job->slots > 0 && job->choice.loader.tune_slots
                      ? (job->slots + s->workers - 1) / s->workers
                      : job->choice.loader.prefetch;
    s->device = job->choice.opened.name;
    s->precision = stk_precision_name(job->choice.opened.precision);
    s->bad_images = (int64_t)job->bad_told.count;
    s->metric = stk_options_get(job->options, "metric");
    s->submission = job->submitted ? "submission.csv" : NULL;
    s->used_s = job->resume.used_s + stk_run_clock_elapsed(&job->clock);
}

void stk_job_fill_outcome(const stk_job *job, stk_outcome *outcome) {
    snprintf(outcome->run_dir, sizeof outcome->run_dir, "%s",
             job->folder.path != NULL ? job->folder.path : "");
    snprintf(outcome->submission, sizeof outcome->submission, "%s",
             job->submitted ? job->submission : "");
    snprintf(outcome->status, sizeof outcome->status, "%s", job->summary.status);
    outcome->best_acc1 = job->summary.best_acc1;
    outcome->models = job->models;
    outcome->rows = job->submitted ? (int64_t)job->ensemble.rows : 0;
}

/* What was asked for must exist, or the run has failed whatever the reason was. */
stk_status stk_job_judge(const stk_job *job, stk_error *err) {
    if (job->late_error.status != STK_OK) {
        return STK_FAIL(err, job->late_error.status, "%s", job->late_error.message);
    }
    if (job->folds_done > 0 || job->submitted) {
        return STK_OK;
    }
    if (strcmp(job->summary.stop_reason, "signal") == 0) {
        return STK_FAIL(err, STK_ERR_STOPPED,
                        "stopped before the first epoch was done: no weights were saved");
    }
    if (strcmp(job->summary.stop_reason, "error") == 0) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "training diverged in the first epoch; use a lower --lr than %.3g",
                        job->choice.lr);
    }
    if (job->unfit > 0) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "no fold's model beats class priors; train longer, or with another --lr "
                        "than %.3g",
                        job->choice.lr);
    }
    return STK_FAIL(err, STK_ERR_USAGE,
                    "the budget of %s was too short for a single epoch, and there are no test "
                    "images to predict from class priors; give a larger --budget",
                    stk_format_span(job->clock.budget_s).text);
}
