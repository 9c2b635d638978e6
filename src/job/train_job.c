/*
 * train_job.c - `stoker train`: a training run from options to submission.
 *
 * The order matters: everything is checked before the run folder is opened; a submission from class
 * priors exists before the first step; the summary is the last file.
 */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/public_struct.h"
#include "base/text/locale.h"
#include "job/recipe/recipe_lines.h"
#include "job/training/fitting.h"
#include "job/training/fold_run.h"
#include "job/training/job.h"
#include "report/report_options.h"
#include "run/event_buffer.h"

/* Opens the saver and validation.csv. */
static stk_status open_state(stk_job *job, stk_error *err) {
    stk_status status = stk_val_table_open(&job->out.val, &job->out.folder, err);
    if (status != STK_OK) {
        return status;
    }
    const char *sum = job->network.pretrained_sum[0] != '\0' ? job->network.pretrained_sum
                                                             : job->resume.state.pretrained;
    if (job->resume.on) {
        stk_state_saver_continue(&job->saver, &job->resume.state.position);
    }
    return stk_state_saver_open(&job->saver, &job->out.folder, job->dataset, job->options,
                                job->resume.given, sum, err);
}

/* Opens the files that report on the run; a resumed run continues its own. */
static stk_status open_runfiles(stk_job *job, stk_error *err) {
    stk_resume *resume = &job->resume;
    const stk_tools_options *tools = stk_options_values(job->options, &stk_tools_option_table);
    if (!resume->on) {
        stk_status begun = stk_runfiles_new(&job->out.files, job->out.folder.path, err);
        return begun == STK_OK && tools->tensorboard
                   ? stk_runfiles_add_tensorboard(job->out.files, NULL, err)
                   : begun;
    }
    stk_resume_point point = {.fold = resume->state.fold,
                              .steps_done = resume->state.position.steps_done,
                              .epoch = resume->state.position.epoch,
                              .best_epoch = resume->state.position.best.epoch};
    double last_t = 0;
    char *summary = stk_run_folder_file(&job->out.folder, "summary.json");
    if (summary == NULL) {
        return STK_FAIL_MEMORY(err, "a path");
    }
    stk_status status =
        stk_runfiles_resume(&job->out.files, job->out.folder.path, &point, &last_t, err);
    stk_resume_note_used(resume, last_t);
    if (status == STK_OK && tools->tensorboard) {
        status = stk_runfiles_add_tensorboard(job->out.files, &point, err);
    }
    STK_THEN(status, stk_resume_bad_images(resume, &job->out.folder, &job->bad_told, err));
    if (status == STK_OK) {
        (void)stk_disk_remove(
            summary); /* a folder without a summary belongs to a run that is not finished */
    }
    stk_mem_free(summary);
    return status;
}

/* Opens --metrics-file; nothing is written yet. */
static stk_status open_metrics(stk_job *job, const stk_events *early, stk_error *err) {
    const stk_tools_options *tools = stk_options_values(job->options, &stk_tools_option_table);
    stk_metrics_file_config config = {.path = tools->metrics_file};
    stk_error why = {0};
    if (config.path == NULL) {
        return STK_OK;
    }
    stk_disk_root(config.path, true);
    stk_status status = stk_metrics_file_new(&job->out.metrics, &config, &why);
    if (status == STK_ERR_STORAGE) { /* a disk that does not answer */
        stk_events_warning(early, "going on without it: %s", why.message);
        return STK_OK;
    }
    return status == STK_OK ? STK_OK : STK_FAIL(err, status, "%s", why.message);
}

/* Warns of changes that a resume finds in the run's own files. */
static void warn_changed_files(stk_job *job) {
    stk_error why = {0};
    size_t rows = 0;
    if (stk_seen_pictures_recall(&job->saver.pictures, &why) != STK_OK) {
        stk_events_warning(&job->events,
                           "pictures that were replaced since the run began would not be noticed: "
                           "%s",
                           why.message);
    }
    if (stk_runfiles_table_was_gone(job->out.files, &rows)) {
        stk_events_warning(
            &job->events,
            "results.csv is gone or lacks rows; %zu epochs of it were written again from "
            "events.jsonl",
            rows);
    }
}

/* Warns when --metrics-file could not be written; that is no failure of the run. */
static void warn_metrics_lost(const stk_job *job) {
    stk_error err = {0};
    if (job->out.metrics != NULL && stk_metrics_file_error(job->out.metrics, &err) != STK_OK) {
        stk_events_warning(&job->events, "--metrics-file: %s", err.message);
    }
}

/* Lets the files of the run observe it, before the caller's observer, which may read the files. */
static void add_observers(stk_job *job) {
    stk_events all = {.bad_told = &job->bad_told};
    stk_events_add(&all, stk_runfiles_observer(job->out.files));
    if (job->out.metrics != NULL) {
        stk_events_add(&all, stk_metrics_file_observer(job->out.metrics));
    }
    for (int i = 0; i < job->events.count; i++) {
        stk_events_add(&all, job->events.observers[i]);
    }
    job->events = all;
}

/* Emits what the run is, and what was decided so far. */
static void emit_begin(stk_job *job, stk_event_buffer *buffer, size_t train, size_t val) {
    stk_job_emit_start(job, train, val);
    stk_job_emit_recipe(job, train);
    if (job->resume.on) {
        stk_resume_emit(&job->resume, job->recipe.folds, &job->events);
        warn_changed_files(job);
        stk_recipe_emit_resumed_batch(&job->recipe, &job->events);
    }
    if (job->out.folder.moved != NULL) {
        stk_events_decision(&job->events, "earlier run kept", job->out.folder.moved);
    }
    if (job->recipe.folds > 1 && job->dataset->val.count > 0) {
        stk_events_warning(&job->events,
                           "the %zu images of the validation set are not used: "
                           "--folds validates on parts of the training set",
                           job->dataset->val.count);
    }
    stk_event_buffer_emit(buffer, &job->events);
}

/* Says that not every class of every test picture is kept. */
static void emit_kept(const stk_job *job, size_t kept) {
    const stk_dataset *d = job->dataset;
    const char *what_of = d->task == STK_TASK_MULTILABEL ? "labels" : "classes";
    char what[96];
    char why[96];
    char a[32];
    char b[32];
    snprintf(what, sizeof what, "the %zu likeliest %s of each test picture are kept", kept,
             what_of);
    snprintf(why, sizeof why, "there are %s %s and %s pictures",
             stk_format_count(a, sizeof a, (uint64_t)d->class_count), what_of,
             stk_format_count(b, sizeof b, d->test.count));
    stk_events_decision(&job->events, what, why);
}

/* Opens the predictions of the test set, and submits class priors. */
static stk_status open_predictions(stk_job *job, stk_error *err) {
    stk_run_outputs *out = &job->out;
    out->row_count = job->dataset->row_count;
    const stk_dataset *d = job->dataset;
    size_t classes = (size_t)d->class_count;
    size_t kept = stk_predictions_kept(&d->answer, d->test.count, classes);
    stk_status status = stk_ensemble_open(&out->ensemble, d->test.count, classes, kept, err);
    if (status == STK_OK && kept > 0) {
        emit_kept(job, kept);
    }
    STK_THEN(status, stk_calibration_mean_open(&out->validated, job->dataset->class_count, err));
    if (status != STK_OK || out->ensemble.rows == 0) {
        return status;
    }
    stk_dataset_priors(job->dataset, out->ensemble.priors);
    out->submission = stk_run_folder_file(&out->folder, "submission.csv");
    if (out->submission == NULL) {
        return STK_FAIL_MEMORY(err, "a path");
    }
    /* The submission of a resumed run is worth more than priors. */
    out->submitted = job->resume.on && stk_path_is_file(out->submission);
    out->models = out->submitted ? stk_runfiles_models(out->files) : 0;
    return out->submitted ? STK_OK : stk_job_submit(job, "prior", err);
}

/* Writes the first files, emits the first events, and submits class priors. */
static stk_status begin(stk_job *job, stk_event_buffer *buffer, size_t train, size_t val,
                        stk_error *err) {
    stk_status status = open_state(job, err);
    if (status == STK_OK) { /* before args.yaml: it may find damage, and then nothing is changed */
        status = open_runfiles(job, err);
    }
    STK_THEN(status, stk_job_write_args(&job->out.folder, job->options, err));
    if (status != STK_OK) {
        return status;
    }
    add_observers(job);
    emit_begin(job, buffer, train, val);
    return open_predictions(job, err);
}

/* Says what the run is, now that something else was chosen, and notes the weights of the model. */
static stk_status begin_again(stk_job *job, size_t train, size_t val, stk_error *err) {
    stk_state_saver_note_pretrained(&job->saver, job->network.pretrained_sum);
    stk_str_clear(&job->chosen);
    stk_recipe_describe(job->options, &job->chosen);
    if (!stk_str_ok(&job->chosen)) {
        return STK_FAIL_MEMORY(err, "options");
    }
    stk_job_emit_start(job, train, val);
    return STK_OK;
}

/* Chooses what is still to be chosen: what fits into the time, and the measured batch. */
static stk_status choose_rest(stk_job *job, size_t *train, size_t *val, stk_error *err) {
    stk_fit fit;
    size_t said_train = *train;
    stk_recipe said = job->recipe;
    stk_status status = stk_job_fit(job, stk_run_clock_left(&job->clock), &fit, train, val, err);
    bool other = job->recipe.model != said.model || job->recipe.img_size != said.img_size ||
                 job->recipe.batch != said.batch || *train != said_train ||
                 fabs(job->recipe.lr - said.lr) > 0; /* false for NaN */
    if (status == STK_OK && other) {
        status = begin_again(job, *train, *val, err);
    }
    if (status == STK_OK) {
        stk_job_emit_fit(job, &fit);
    }
    if (status == STK_OK && stk_job_is_to_fit(job) && !job->batch_search.to_be_measured) {
        status = stk_job_write_args(&job->out.folder, job->options, err);
    }
    STK_THEN(status, stk_job_measure_batch(job, err));
    if (status == STK_OK) {
        stk_recipe_emit_row(&job->recipe, job->options, &job->events);
    }
    return status == STK_OK && job->recipe.folds > 1
               ? stk_oof_open(&job->out.oof, job->dataset, err)
               : status;
}

/* Takes over the results of folds that earlier processes finished. */
static stk_status take_earlier_folds(stk_job *job, stk_error *err) {
    const stk_saved_state *before = &job->resume.state;
    stk_status status = STK_OK;
    job->tally.folds_done = before->folds_done;
    job->tally.cut = before->cut;
    job->tally.epochs_done = before->epochs_before;
    job->tally.epochs_validated = before->fold > 0 ? before->epochs_before / before->fold : 0;
    job->tally.best_acc1 = before->best_acc1;
    job->tally.best_metric = before->best_metric;
    for (job->tally.fold = 0; job->tally.fold < before->fold && status == STK_OK;
         job->tally.fold++) {
        bool whole = false;
        status = stk_job_repeat_predictions(job, &whole, err);
        job->tally.cut = job->tally.cut || !whole;
    }
    return status;
}

static stk_status run_folds(stk_job *job, stk_error *err) {
    stk_status status = job->resume.on ? take_earlier_folds(job, err) : STK_OK;
    for (; job->tally.fold < stk_recipe_models(&job->recipe) && status == STK_OK;
         job->tally.fold++) {
        if (job->tally.weights_lost || job->tally.out_of_memory) {
            break;
        }
        if (stk_recipe_is_refit(&job->recipe, job->tally.fold) && job->tally.folds_done == 0) {
            stk_events_decision(&job->events, "no refit", "no model that was validated counts");
            break;
        }
        if (job->tally.fold > 0) {
            stk_time_plan_folds(&job->time, &job->recipe, &job->clock, &job->events,
                                job->tally.fold, -1);
        }
        if (job->tally.fold >= job->time.folds || stk_run_clock_stopping(&job->clock) ||
            stk_run_clock_must_write(&job->clock)) {
            job->tally.cut = job->tally.cut || stk_run_clock_stopping(&job->clock) ||
                             job->tally.folds_done < job->recipe.models_asked;
            job->tally.stop_reason = NULL; /* what ended the fold before did not end the run */
            break;
        }
        status = stk_job_run_fold(job, err);
        stk_state_saver_wait(&job->saver);
    }
    return status;
}

static stk_status open_monitor(stk_job *job, stk_error *err) {
    stk_training_monitor_config config = {.events = &job->events,
                                          .network = &job->network,
                                          .recipe = &job->recipe,
                                          .search = &job->batch_search,
                                          .store = job->dataset->store,
                                          .start_ns = job->clock.start_ns -
                                                      (int64_t)(job->resume.used_s * 1e9),
                                          .tune = job->job_options->tune};
    return stk_training_monitor_open(&job->monitor, &config, err);
}

/* Does all slow work before the summary, which says how long the run took. */
static void finish_work(stk_job *job) {
    stk_training_monitor_emit_samples(job->monitor);
    stk_network_free_state(&job->network);
    if (job->out.files != NULL) {
        /* If there is no time, the plot and the report lack the last epochs. */
        double spare_s = stk_run_clock_left(&job->clock) -
                         stk_run_clock_needed(&job->clock, STK_MARGIN_CLOSING) -
                         STK_MARGIN_SAFETY * stk_runfiles_draw_s(job->out.files);
        stk_runfiles_finish(job->out.files, spare_s, job->dataset->store);
    }
}

/*
 * Warns of report files that could not be written. What was asked for exists all the same, so the
 * exit code stays. The run's own files do not receive this warning: the stop is their last event.
 */
static void warn_lacking(const stk_job *job) {
    stk_str text = {0};
    stk_events others = {0};
    for (int i = 0; i < job->events.count; i++) {
        if (job->events.observers[i] != stk_runfiles_observer(job->out.files)) {
            stk_events_add(&others, job->events.observers[i]);
        }
    }
    if (stk_runfiles_lacking(job->out.files, &text)) {
        stk_events_warning(&others, "%s", stk_str_text(&text));
    }
    stk_str_free(&text);
}

/* A missing summary is an error: to programs its folder looks like that of a killed run. */
static stk_status check_summary(const stk_job *job, stk_error *err) {
    stk_error why = {0};
    stk_status status =
        job->out.files != NULL ? stk_runfiles_summary_error(job->out.files, &why) : STK_OK;
    return status == STK_OK
               ? STK_OK
               : STK_FAIL(err, status, "the run is done, but summary.json is missing: %s",
                          why.message);
}

/* The run, from its first file to its last. */
static stk_status run_job(stk_job *job, stk_event_buffer *buffer, stk_error *err) {
    size_t train = 0;
    size_t val = 0;
    stk_events early = {0};
    stk_events_add(&early, &buffer->observer);
    stk_status status = open_metrics(job, &early, err);
    STK_THEN(status, stk_job_prepare(job, &buffer->observer, &train, &val, err));
    if (status == STK_OK && !job->resume.on) {
        status = stk_job_claim_folder(&job->out.folder, job->job_options, job->verb, err);
    }
    if (status != STK_OK) {
        stk_event_buffer_emit_warnings(buffer, &job->events);
        return stk_run_clock_failed(&job->clock, status, err);
    }
    job->out.val_scored = job->dataset->train_has_rows
                              ? 0
                              : val; /* an earlier process may have validated with them */
    status = begin(job, buffer, train, val, err);
    STK_THEN(status, open_monitor(job, err));
    STK_THEN(status, choose_rest(job, &train, &val, err));
    STK_THEN(status, run_folds(job, err));
    if (status == STK_OK) {
        stk_job_emit_untrained(job);
    }
    finish_work(job);
    stk_job_finish_summary(job, status);
    warn_metrics_lost(job);
    stk_run_clock_warn_unsynced(job->out.unsynced_before, &job->events);
    if (job->out.files != NULL) {
        stk_events_stop(&job->events, &job->out.summary);
        warn_lacking(job);
    }
    STK_THEN(status, stk_job_check_delivered(job, err));
    stk_state_saver_explain(&job->saver, job->tally.folds_done, job->out.folder.path, err);
    STK_THEN(status, check_summary(job, err));
    if (job->out.metrics != NULL) {
        stk_metrics_file_finish(job->out.metrics, stk_status_exit_code(status));
    }
    return status;
}

stk_status stk_train(stk_options *options, const stk_run *run, stk_outcome *outcome,
                     stk_error *err) {
    stk_error own = {0};
    err = err != NULL ? err : &own; /* the summary needs to know whether something failed */
    stk_status status = STK_PUBLIC_BEGIN(stk_outcome, outcome, run, err);
    if (status != STK_OK) {
        return status;
    }
    stk_job job = {.verb = "train",
                   .fits = true,
                   .out = {.folder = {.lock_fd = -1}, .unsynced_before = stk_disk_unsynced()}};
    stk_event_buffer buffer;
    stk_event_buffer_open(&buffer);
    stk_locale locale = stk_locale_enter();
    const stk_job_options *given = stk_options_values(options, &stk_job_option_table);
    job.clock = (stk_run_clock){.start_ns = stk_clock_ns(), /* until the options are read */
                                .budget_s = NAN,
                                .stop = run != NULL ? run->stop : NULL};
    stk_disk *disk = stk_run_clock_enter_disk(&job.clock);
    if (given->resume != NULL) {
        status = stk_resume_open(&job.resume, options, &job.out.folder, err);
        status = stk_run_clock_failed(&job.clock, status, err);
    }
    stk_job_open(&job, options, run);
    STK_THEN(status, stk_job_take_deadline(&job, &buffer.observer, err));
    STK_THEN(status, job.resume.complete ? stk_job_deliver_complete(&job, err)
                                         : run_job(&job, &buffer, err));
    if (outcome != NULL) {
        stk_job_fill_outcome(&job.out, outcome);
    }
    stk_event_buffer_free(&buffer);
    stk_job_close(&job);
    stk_disk_leave(disk);
    stk_locale_leave(locale);
    return status;
}
