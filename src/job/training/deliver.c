/*
 * deliver.c - submission, validation.csv, summary, outcome.
 */
#include "job/training/job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "predict/submission.h"

/* If the first submission took longer than both of these, something else may have held it up. */
#define HELD_UP_SHARE 0.02   /* share of the budget */
#define HELD_UP_LEAST_S 0.25 /* seconds */

static stk_status write_ensemble(stk_job *job, double *seconds, stk_error *err) {
    const stk_dataset *dataset = job->dataset;
    stk_halt late = {job->out.submitted ? stk_run_clock_is_late : NULL, &job->clock};
    int64_t start = stk_clock_ns();
    stk_answers answers = {.classes = dataset->classes,
                           .class_count = dataset->class_count,
                           .task = dataset->task,
                           .pictures = dataset->train.count,
                           .ensemble = &job->out.ensemble,
                           .exclusive = dataset->targets.exclusive,
                           .rule = stk_ensemble_rule(&job->out.ensemble),
                           .pool = stk_ensemble_pool(&job->out.ensemble)};
    stk_status status =
        stk_submission_write_unless(job->out.submission, dataset, &answers, late, err);
    *seconds = stk_clock_since_s(start);
    return status;
}

/*
 * The time reserved for the last submission rests on how long the first one took. If that was long,
 * the machine may just have stalled: the file is written once more, and the shorter time counts. A
 * slow disk is slow twice.
 */
static double confirm_seconds(stk_job *job, double seconds) {
    double again_s;
    stk_error why = {0};
    double most_s = fmax(HELD_UP_SHARE * job->clock.budget_s, HELD_UP_LEAST_S);
    bool matters = !isnan(job->clock.budget_s) && seconds > most_s;
    return matters && write_ensemble(job, &again_s, &why) == STK_OK ? fmin(seconds, again_s)
                                                                    : seconds;
}

/* Whether the best predictions so far are early ones. */
static bool is_early(const stk_run_outputs *out) {
    return out->ensemble.models == 0 && out->early_epoch > 0;
}

stk_status stk_job_submit(stk_job *job, const char *status, stk_error *err) {
    stk_run_clock *clock = &job->clock;
    double took = stk_margin_took(&clock->margin, STK_MARGIN_SUBMISSION);
    double seconds = 0;
    bool first = !job->out.submitted;
    stk_error why = {0};
    stk_status written = STK_ERR_STOPPED;
    if (first || stk_run_clock_left(clock) >= took) {
        written = write_ensemble(job, &seconds, &why);
    }
    if (written == STK_ERR_STOPPED) {
        job->out.unpredicted = true;
        stk_events_warning(&job->events,
                           "there was no time to write better predictions: %s stays "
                           "as it was",
                           job->out.submission);
        return STK_OK;
    }
    if (written != STK_OK) {
        return STK_FAIL(err, written, "%s", why.message);
    }
    job->out.submitted = true;
    stk_margin_note(&clock->margin, STK_MARGIN_SUBMISSION,
                    first ? confirm_seconds(job, seconds) : seconds);
    bool early = is_early(&job->out);
    job->out.models = early ? 1 : job->out.ensemble.models;
    stk_event_submission event = {.path = job->out.submission,
                                  .status = status,
                                  .rows = (int64_t)job->dataset->row_count,
                                  .models = job->out.models,
                                  .models_wanted = stk_recipe_models(&job->recipe),
                                  .epoch = early ? job->out.early_epoch : 0};
    stk_events_submission(&job->events, &event);
    return STK_OK;
}

void stk_job_write_validation(stk_job *job, bool last) {
    stk_error why = {0};
    if (!job->out.val.owed) {
        return;
    }
    double seconds = STK_MARGIN_SAFETY * stk_val_table_seconds(&job->out.val);
    if (!last && job->time.predict_s > 0) { /* the predictions of one view are more important */
        seconds += job->time.predict_s / job->time.views;
    }
    if (stk_run_clock_must_halt(&job->clock, seconds)) {
        if (last) {
            job->out.val.owed = false;
            char of_fold[32] = "";
            if (job->recipe.folds > 1) {
                snprintf(of_fold, sizeof of_fold, " of fold %d", job->tally.fold + 1);
            }
            stk_events_warning(&job->events,
                               "there was no time to write validation.csv with the best epoch%s",
                               of_fold);
        }
        return;
    }
    if (stk_val_table_write(&job->out.val, job->dataset, &why) != STK_OK) {
        stk_events_warning(&job->events, "validation.csv is not written: %s", why.message);
        (void)STK_FAIL(&job->out.late_error, why.status, "%s", why.message);
    }
}

/* Seconds of this process's budget that were kept back; NaN without a budget. */
static double reserve_of(stk_job *job) {
    return isnan(job->clock.budget_s) ? NAN
           : job->time.total_steps >= 0
               ? job->time.plan.reserve_s
               : fmax(stk_budget_reserve(job->clock.budget_s, NAN),
                      stk_run_clock_needed(&job->clock, STK_MARGIN_SUBMISSION));
}

/* Kernels that this process compiled; the next one finds them on the disk. */
static int compiled_kernels(const stk_job *job) {
    const stk_opened_device *opened = &job->network.opened;
    stk_device_counts counts = {0};
    if (opened->backend != NULL && opened->backend->counts != NULL) {
        opened->backend->counts(opened->device, &counts);
    }
    return counts.unkept == NULL ? counts.kernels_compiled : 0;
}

void stk_job_emit_untrained(stk_job *job) {
    char compiled[96] = "";
    char why[300];
    if (job->tally.folds_done > 0 || job->tally.folds_below_prior > 0 ||
        job->tally.epochs_done > 0 || isnan(job->clock.budget_s) ||
        stk_run_clock_stopping(&job->clock)) {
        return;
    }
    int kernels = compiled_kernels(job);
    if (kernels > 0) {
        snprintf(compiled, sizeof compiled,
                 "; %d kernels were compiled first, which the next start finds done", kernels);
    }
    snprintf(why, sizeof why,
             "of the budget of %s, %s are kept for prediction and the last files, and the rest was "
             "too short for %s%s",
             stk_format_span(job->clock.budget_s).text, stk_format_span(reserve_of(job)).text,
             job->tally.images > 0 ? "an epoch and its validation" : "one step", compiled);
    stk_events_decision(&job->events, "no model was trained", why);
}

/* What the run came to: "failed", "prior", "partial" or "complete". */
static const char *status_of(const stk_job *job, stk_status status) {
    const stk_run_outputs *out = &job->out;
    const stk_fold_tally *tally = &job->tally;
    bool trained = tally->folds_done > 0 || out->models > 0; /* weights may be in memory only */
    bool delivered = trained || out->submitted;
    bool whole =
        trained && !tally->cut && tally->folds_done >= job->recipe.models_asked && !is_early(out);
    /* A submission of earlier processes averages their models, unless no test picture could be
     * read. */
    bool earlier = out->submitted && job->resume.state.folds_done > 0 && !out->unread;
    bool predicted = out->models > 0 || earlier;
    return status != STK_OK || !delivered                       ? "failed"
           : !trained || (out->ensemble.rows > 0 && !predicted) ? "prior"
           : whole                                              ? "complete"
                                                                : "partial";
}

/* What ended the run; the exit code says the same. */
static const char *stop_reason_of(const stk_job *job, stk_status status) {
    const char *of_fold = job->tally.stop_reason;
    if (status != STK_OK || job->out.late_error.status != STK_OK) {
        return "error";
    }
    if (of_fold == NULL || (job->out.unpredicted && strcmp(of_fold, "error") != 0)) {
        return stk_run_clock_stopping(&job->clock) ? "signal" : "budget";
    }
    return of_fold;
}

/* The figure of pictures that the judged models were not trained on, and where it comes from. */
static void note_held_out(stk_job *job, stk_summary *s) {
    char count[32];
    char of[64] = "";
    char calibrated[64];
    const char *refits = job->recipe.refits > 0 && job->tally.folds_done > job->recipe.folds
                             ? "; refits trained on them, too"
                             : "";
    bool out_of_fold = isfinite(s->oof_metric);
    s->held_out = out_of_fold ? s->oof_metric : stk_job_held_out(job, s->best_metric);
    if (strcmp(s->status, "prior") == 0) { /* no judged model was delivered */
        s->held_out = NAN;
    }
    if (!isfinite(s->held_out)) {
        return;
    }
    size_t scored = out_of_fold ? job->out.oof.scored : job->out.val_scored;
    const char *what = out_of_fold ? "out-of-fold predictions" : "validation";
    if (scored > 0) {
        snprintf(of, sizeof of, " of %s %s%s", stk_format_count(count, sizeof count, scored),
                 job->dataset->train_has_rows ? "row" : "picture", scored == 1 ? "" : "s");
    }
    stk_job_describe_calibration(job, calibrated, sizeof calibrated);
    snprintf(job->out.held_out_from, sizeof job->out.held_out_from, "%s%s%s%s", what, of,
             calibrated, refits);
    s->held_out_from = job->out.held_out_from;
}

/* How the rows of the submission were made; those of earlier processes as this one would. */
static stk_pooling pool_of(const stk_job *job) {
    bool predicted = job->out.ensemble.models > 0 || is_early(&job->out);
    stk_pooling pool = predicted ? stk_ensemble_pool(&job->out.ensemble) : stk_job_pool(job);
    return pool == STK_POOL_AUTO ? STK_POOL_MEAN : pool;
}

void stk_job_finish_summary(stk_job *job, stk_status status) {
    stk_summary *s = &job->out.summary;
    bool has_oof = job->out.oof.dataset != NULL;
    s->status = status_of(job, status);
    s->stop_reason = stop_reason_of(job, status);
    s->epochs_done = job->tally.epochs_done;
    s->best_acc1 = job->tally.best_acc1;
    s->best_metric = job->tally.best_metric;
    s->oof_acc1 = has_oof ? job->out.oof.acc1 : NAN;
    s->oof_metric = has_oof ? job->out.oof.metric : NAN;
    note_held_out(job, s);
    s->temperature = stk_calibration_mean_temperature(&job->out.validated);
    s->verdict = stk_training_monitor_verdict(job->monitor);
    s->folds_done = job->tally.folds_done;
    s->folds_planned = stk_recipe_models(&job->recipe);
    s->images_per_second = job->tally.train_s > 0 ? job->tally.images / job->tally.train_s : NAN;
    s->wait_fraction = job->tally.train_s > 0 ? job->tally.wait_s / job->tally.train_s : NAN;
    s->budget_s = job->resume.used_s + job->clock.budget_s; /* NaN without one */
    s->reserve_s = reserve_of(job);
    s->batch = (int)job->recipe.batch;
    s->workers = job->tally.workers > 0 ? job->tally.workers : job->recipe.loader.workers;
    s->prefetch = job->tally.slots > 0 && job->recipe.loader.tune_slots
                      ? (job->tally.slots + s->workers - 1) / s->workers
                      : job->recipe.loader.prefetch;
    s->device = job->network.opened.name;
    s->precision = stk_precision_name(job->network.opened.precision);
    s->bad_images = (int64_t)job->bad_told.count;
    s->metric = stk_options_get(job->options, "metric");
    s->task = job->dataset != NULL ? stk_task_name(job->dataset->task) : NULL;
    bool pools = job->dataset != NULL && job->dataset->row_count < job->dataset->test.count;
    s->pool = pools ? stk_pooling_name(pool_of(job)) : NULL;
    s->submission = job->out.submitted ? "submission.csv" : NULL;
    s->used_s = job->resume.used_s + stk_run_clock_elapsed(&job->clock);
}

stk_status stk_job_deliver_complete(stk_job *job, stk_error *err) {
    stk_run_outputs *out = &job->out;
    char why[160];
    snprintf(why, sizeof why,
             "%s is complete; --epochs N trains more, or --budget where the time was the limit",
             out->folder.path);
    stk_events_decision(&job->events, "nothing left to do", why);
    out->summary.status = "complete";
    out->summary.best_acc1 = job->resume.state.position.best.val_acc1;
    out->submission = stk_run_folder_file(&out->folder, "submission.csv");
    out->submitted = out->submission != NULL && stk_path_is_file(out->submission);
    return out->submission != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a path");
}

void stk_job_fill_outcome(const stk_run_outputs *out, stk_outcome *outcome) {
    bool begun = out->summary.status != NULL; /* else the input was refused */
    snprintf(outcome->run_dir, sizeof outcome->run_dir, "%s",
             out->folder.path != NULL ? out->folder.path : "");
    snprintf(outcome->submission, sizeof outcome->submission, "%s",
             out->submitted ? out->submission : "");
    snprintf(outcome->status, sizeof outcome->status, "%s", begun ? out->summary.status : "failed");
    outcome->best_acc1 = begun ? out->summary.best_acc1 : NAN;
    outcome->models = out->models;
    outcome->rows = out->submitted ? (int64_t)out->row_count : 0;
}

stk_status stk_job_check_delivered(const stk_job *job, stk_error *err) {
    if (job->out.late_error.status != STK_OK) {
        return STK_FAIL(err, job->out.late_error.status, "%s", job->out.late_error.message);
    }
    if (job->tally.folds_done > 0 || job->out.submitted) {
        return STK_OK;
    }
    if (strcmp(job->out.summary.stop_reason, "signal") == 0) {
        return STK_FAIL(err, STK_ERR_STOPPED,
                        "stopped before the first epoch was done: no weights were saved");
    }
    if (strcmp(job->out.summary.stop_reason, "error") == 0) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "training diverged in the first epoch; use a lower --lr than %.3g",
                        job->recipe.lr);
    }
    if (job->tally.folds_below_prior > 0) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "no fold's model beats class priors; train longer, or with another --lr "
                        "than %.3g",
                        job->recipe.lr);
    }
    return STK_FAIL(err, STK_ERR_USAGE,
                    "the budget of %s was too short for a single epoch, and there are no test "
                    "images to predict from class priors; give a larger --budget",
                    stk_format_span(job->clock.budget_s).text);
}
