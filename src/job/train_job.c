/* train_job.c - a training run from options to submission. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/text/locale.h"
#include "run/event_buffer.h"
#include "job/training_monitor.h"
#include "job/folds.h"
#include "report/report_options.h"

/* The data set's path in a form that works from any folder. */
static stk_status remember_data_path(stk_job *job, stk_error *err) {
    char *absolute = stk_disk_resolve(job->dataset_options->data);
    stk_status status = STK_OK;
    if (absolute != NULL && strcmp(absolute, job->dataset_options->data) != 0) {
        status = stk_options_resolve(job->options, "data", absolute, "made absolute", err);
    }
    stk_mem_free(absolute);
    return status;
}

stk_status stk_job_write_args(stk_job *job, stk_error *err) {
    stk_status status = remember_data_path(job, err);
    return status == STK_OK ? stk_run_folder_write_options(&job->folder, job->options, err)
                            : status;
}

/* What a GPU is called, without its memory behind the comma; NULL for a CPU. */
static const char *gpu_name(const stk_job *job, char *text, size_t room) {
    const stk_opened_device *opened = &job->choice.opened;
    if (stk_opened_device_is_cpu(opened)) {
        return NULL;
    }
    snprintf(text, room, "%s", opened->backend->describe(opened->device));
    text[strcspn(text, ",")] = '\0';
    return text;
}

void stk_job_tell_start(stk_job *job, size_t train, size_t val) {
    char name[128];
    const char *gpu = gpu_name(job, name, sizeof name);
    stk_event_start event = {.chosen = stk_str_text(&job->choice.line),
                             .run_dir = job->folder.path,
                             .data = job->dataset_options->data,
                             .model = job->choice.model->name,
                             .device = job->choice.opened.name,
                             .precision = stk_precision_name(job->choice.opened.precision),
                             .start_ns = job->clock.start_ns - (int64_t)(job->resume.used_s * 1e9),
                             .img_size = job->choice.img_size,
                             .batch = (int)job->choice.batch,
                             .workers = job->choice.loader.workers,
                             .prefetch = job->choice.loader.prefetch,
                             .classes = job->dataset->class_count,
                             .folds = job->folds,
                             .cores = stk_machine_cores(),
                             .memory_bytes = (int64_t)stk_machine_memory(),
                             .device_name = gpu,
                             .device_bytes = gpu != NULL ? (int64_t)job->memory.total_bytes : -1,
                             .train_images = (int64_t)train,
                             .val_images = (int64_t)val,
                             .test_images = (int64_t)job->dataset->test.count,
                             .budget_s = job->resume.used_s + job->clock.budget_s};
    stk_events_start(&job->events, &event);
}

/* Where the state is saved, and what it says of all of the run. */
static stk_status open_state(stk_job *job, stk_error *err) {
    stk_str given = {0};
    stk_options_given(job->options, job->resume.given, &given);
    job->run_state.given = stk_str_take(&given);
    job->state_path = stk_run_folder_file(&job->folder, STK_SAVED_STATE_FILE);
    job->epoch_path = stk_run_folder_file(&job->folder, STK_SAVED_STATE_EPOCH);
    job->kept_best = stk_run_folder_file(&job->folder, STK_SAVED_STATE_BEST);
    stk_status status = stk_val_table_open(&job->val, &job->folder, err);
    if (status != STK_OK) {
        return status;
    }
    stk_saved_state_describe(&job->run_state, job->dataset);
    memcpy(job->run_state.run, job->folder.id, sizeof job->run_state.run);
    const char *sum =
        job->pretrained_sum[0] != '\0' ? job->pretrained_sum : job->resume.state.pretrained;
    memcpy(job->run_state.pretrained, sum, sizeof job->run_state.pretrained);
    status = stk_seen_pictures_open(&job->pictures, job->dataset,
                                    stk_run_folder_file(&job->folder, STK_FINGERPRINTS_FILE),
                                    job->run_state.samples, err);
    if (status != STK_OK) {
        return status;
    }
    job->state_saved = job->resume.on;
    job->saved = job->resume.state.position;
    return job->run_state.given != NULL && job->state_path != NULL && job->epoch_path != NULL &&
                   job->kept_best != NULL
               ? STK_OK
               : STK_FAIL_MEMORY(err, "the state");
}

/* The files that tell how the run goes; those of a run that is resumed are continued. */
static stk_status open_runfiles(stk_job *job, stk_error *err) {
    stk_resume *resume = &job->resume;
    const stk_tools_options *tools = stk_options_values(job->options, &stk_tools_option_table);
    if (!resume->on) {
        stk_status begun = stk_runfiles_new(&job->files, job->folder.path, err);
        return begun == STK_OK && tools->tensorboard
                   ? stk_runfiles_add_tensorboard(job->files, NULL, err)
                   : begun;
    }
    stk_runfiles_point point = {.fold = resume->state.fold,
                                .steps_done = resume->state.position.steps_done,
                                .epoch = resume->state.position.epoch,
                                .best_epoch = resume->state.position.best.epoch};
    double last_t = 0;
    char *summary = stk_run_folder_file(&job->folder, "summary.json");
    if (summary == NULL) {
        return STK_FAIL_MEMORY(err, "a path");
    }
    stk_status status = stk_runfiles_resume(&job->files, job->folder.path, &point, &last_t, err);
    resume->used_s = fmax(resume->used_s, last_t);
    if (status == STK_OK && tools->tensorboard) {
        status = stk_runfiles_add_tensorboard(job->files, &point, err);
    }
    if (status == STK_OK) {
        status = stk_resume_bad_images(resume, &job->folder, &job->bad_told, err);
    }
    if (status == STK_OK) {
        (void)stk_disk_remove(summary); /* a folder without it belongs to a run that goes on */
    }
    stk_mem_free(summary);
    return status;
}

/* What other programs want to know, where they asked for it; nothing is written yet. */
static stk_status open_metrics(stk_job *job, const stk_events *early, stk_error *err) {
    const stk_tools_options *tools = stk_options_values(job->options, &stk_tools_option_table);
    stk_metrics_config config = {.path = tools->metrics_file};
    stk_error why = {0};
    if (config.path == NULL) {
        return STK_OK;
    }
    stk_disk_root(config.path, true);
    stk_status status = stk_metrics_file_new(&job->metrics, &config, &why);
    if (status == STK_ERR_STORAGE) { /* a disk that does not answer */
        stk_events_warning(early, "going on without it: %s", why.message);
        return STK_OK;
    }
    return status == STK_OK ? STK_OK : STK_FAIL(err, status, "%s", why.message);
}

/* What a resume finds changed in the run's own files, beyond where it goes on. */
static void tell_found(stk_job *job) {
    stk_error why = {0};
    size_t rows = 0;
    if (stk_seen_pictures_recall(&job->pictures, &why) != STK_OK) {
        stk_events_warning(&job->events,
                           "pictures that were replaced since the run began would not be noticed: "
                           "%s",
                           why.message);
    }
    if (stk_runfiles_table_was_gone(job->files, &rows)) {
        stk_events_warning(
            &job->events,
            "results.csv is gone or lacks rows; %zu epochs of it were written again from "
            "events.jsonl",
            rows);
    }
}

/* That they could not be told all of it is no failure of the run. */
static void tell_metrics_lost(const stk_job *job) {
    stk_error err = {0};
    if (job->metrics != NULL && stk_metrics_file_error(job->metrics, &err) != STK_OK) {
        stk_events_warning(&job->events, "--metrics-file: %s", err.message);
    }
}

/* The run folder's first files, and a valid submission before anything is learnt. */
static stk_status begin(stk_job *job, stk_event_buffer *buffer, size_t train, size_t val,
                        stk_error *err) {
    stk_status status = open_state(job, err);
    if (status == STK_OK) { /* before the options: it may find damage, and then nothing changes */
        status = open_runfiles(job, err);
    }
    if (status == STK_OK) {
        status = stk_job_write_args(job, err);
    }
    if (status != STK_OK) {
        return status;
    }
    /* In front of the caller's observer, which may look at the files. */
    stk_events all = {.bad_told = &job->bad_told};
    stk_events_add(&all, stk_runfiles_observer(job->files));
    if (job->metrics != NULL) {
        stk_events_add(&all, stk_metrics_file_observer(job->metrics));
    }
    for (int i = 0; i < job->events.count; i++) {
        stk_events_add(&all, job->events.observers[i]);
    }
    job->events = all;
    stk_job_tell_start(job, train, val);
    stk_recipe_emit(&job->choice, job->options, &job->events, train);
    if (job->resume.on) {
        stk_resume_tell(&job->resume, &job->events);
        tell_found(job);
        stk_job_tell_batch(job);
    }
    if (job->folder.moved != NULL) {
        stk_events_decision(&job->events, "earlier run kept", job->folder.moved);
    }
    if (job->folds > 1 && job->dataset->val.count > 0) {
        stk_events_warning(&job->events,
                           "the %zu images of the validation folder are not used: "
                           "--folds validates on parts of the training set",
                           job->dataset->val.count);
    }
    stk_event_buffer_emit(buffer, &job->events);
    if (job->folds > 1) {
        status = stk_oof_open(&job->oof, job->dataset, err);
    }
    if (status != STK_OK) {
        return status;
    }
    status = stk_ensemble_open(&job->ensemble, job->dataset->test.count,
                               (size_t)job->dataset->class_count, err);
    if (status == STK_OK && job->ensemble.rows > 0) {
        stk_dataset_priors(job->dataset, job->ensemble.priors);
        job->submission = stk_run_folder_file(&job->folder, "submission.csv");
        if (job->submission == NULL) {
            return STK_FAIL_MEMORY(err, "a path");
        }
        /* What a run that is resumed has come to is worth more than priors. */
        job->submitted = job->resume.on && stk_path_is_file(job->submission);
        status = job->submitted ? STK_OK : stk_job_submit(job, "prior", err);
    }
    return status;
}

/* What the folds of earlier processes have come to counts as if they had been trained now. */
static stk_status revive_folds(stk_job *job, stk_error *err) {
    const stk_saved_state *before = &job->resume.state;
    stk_status status = STK_OK;
    job->folds_done = before->folds_done;
    job->cut = before->cut;
    job->summary.epochs_done = before->epochs_before;
    job->summary.best_acc1 = before->best_acc1;
    job->summary.best_metric = before->best_metric;
    for (job->fold = 0; job->fold < before->fold && status == STK_OK; job->fold++) {
        status = stk_job_revive_fold(job, err);
    }
    return status;
}

static stk_status run_folds(stk_job *job, stk_error *err) {
    stk_status status = job->resume.on ? revive_folds(job, err) : STK_OK;
    for (; job->fold < job->folds && status == STK_OK; job->fold++) {
        if (job->weights_lost || job->starved) {
            break;
        }
        if (job->fold > 0) {
            stk_job_plan_folds(job, -1);
        }
        if (job->fold >= job->folds_now || stk_run_clock_stopping(&job->clock) ||
            stk_run_clock_must_write(&job->clock)) {
            job->cut = true;
            job->summary.stop_reason =
                NULL; /* whatever ended the fold before did not end the run */
            break;
        }
        status = stk_job_fold(job, err);
        stk_job_settle_state(job);
    }
    return status;
}

/* What takes its time is done before the summary, which says how long all took. */
static void finish_work(stk_job *job) {
    stk_training_monitor_emit_samples(job);
    job->summary.verdict = stk_training_monitor_verdict(job);
    job->choice.opened.backend->state_free(job->state);
    job->state = NULL;
    if (job->files != NULL) {
        /* Without time for them plot and page lack the last epochs. */
        double spare_s = stk_run_clock_left(&job->clock) -
                         stk_run_clock_needed(&job->clock, STK_MARGIN_CLOSING) -
                         STK_MARGIN_SAFETY * stk_runfiles_plot_s(job->files);
        stk_runfiles_finish(job->files, spare_s, job->dataset->source);
    }
}

/*
 * What of the files that tell of the run could not be written. What was asked for is there all the
 * same, and the exit code is that of the summary. The run's own files are told nothing: the stop is
 * their last event.
 */
static void tell_lacking(const stk_job *job) {
    stk_str text = {0};
    stk_events others = {0};
    for (int i = 0; i < job->events.count; i++) {
        if (job->events.observers[i] != stk_runfiles_observer(job->files)) {
            stk_events_add(&others, job->events.observers[i]);
        }
    }
    if (stk_runfiles_lacking(job->files, &text)) {
        stk_events_warning(&others, "%s", stk_str_text(&text));
    }
    stk_str_free(&text);
}

/* Programs read the summary, and a folder without one is that of a run which was killed. */
static stk_status check_summary(const stk_job *job, stk_error *err) {
    stk_error why = {0};
    stk_status status = job->files != NULL ? stk_runfiles_summary_error(job->files, &why) : STK_OK;
    return status == STK_OK
               ? STK_OK
               : STK_FAIL(err, status, "the run is done, but summary.json is missing: %s",
                          why.message);
}

/* From the first file to the last. */
static stk_status run_job(stk_job *job, stk_event_buffer *buffer, stk_error *err) {
    size_t train = 0;
    size_t val = 0;
    stk_events early = {0};
    stk_events_add(&early, &buffer->observer);
    stk_status status = open_metrics(job, &early, err);
    if (status == STK_OK) {
        status = stk_job_prepare(job, &buffer->observer, &train, &val, err);
    }
    if (status == STK_OK && !job->resume.on) {
        status = stk_job_claim_folder(job, err);
    }
    if (status != STK_OK) {
        stk_event_buffer_emit_warnings(buffer, &job->events);
        return stk_run_clock_failed(&job->clock, status, err);
    }
    status = begin(job, buffer, train, val, err);
    if (status == STK_OK) {
        status = stk_training_monitor_open(job, err);
    }
    if (status == STK_OK) {
        status = stk_job_measure_batch(job, err);
    }
    if (status == STK_OK) {
        status = run_folds(job, err);
    }
    if (status == STK_OK) {
        stk_job_tell_untrained(job);
    }
    finish_work(job);
    stk_job_finish_summary(job, status);
    tell_metrics_lost(job);
    stk_run_clock_warn_unsynced(job->unsynced_before, &job->events);
    if (job->files != NULL) {
        stk_events_stop(&job->events, &job->summary);
        tell_lacking(job);
    }
    status = status == STK_OK ? stk_job_judge(job, err) : status;
    stk_job_tell_kept(job, err);
    status = status == STK_OK ? check_summary(job, err) : status;
    if (job->metrics != NULL) {
        stk_metrics_file_finish(job->metrics, stk_status_exit_code(status));
    }
    return status;
}

/* A run that is to be resumed and has nothing left to do. */
static stk_status say_complete(stk_job *job, stk_error *err) {
    char why[160];
    snprintf(why, sizeof why,
             "%s is complete; --epochs N trains more, or --budget where the time was the limit",
             job->folder.path);
    stk_events_decision(&job->events, "nothing left to do", why);
    job->summary.status = "complete";
    job->summary.best_acc1 = job->resume.state.position.best.val_acc1;
    job->submission = stk_run_folder_file(&job->folder, "submission.csv");
    job->submitted = job->submission != NULL && stk_path_is_file(job->submission);
    return job->submission != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a path");
}

stk_status stk_train(stk_options *options, const stk_run *run, stk_outcome *outcome,
                     stk_error *err) {
    stk_error own = {0};
    err = err != NULL ? err : &own; /* the summary needs to know whether something failed */
    stk_job job = {
        .verb = "train", .folder = {.lock_fd = -1}, .unsynced_before = stk_disk_unsynced()};
    stk_event_buffer buffer;
    stk_event_buffer_open(&buffer);
    stk_locale locale = stk_locale_enter();
    const stk_job_options *given = stk_options_values(options, &stk_job_option_table);
    stk_status status = STK_OK;
    job.clock = (stk_run_clock){.start_ns = stk_clock_ns(), /* until the options tell more */
                                .budget_s = NAN,
                                .stop = run != NULL ? run->stop : NULL};
    stk_disk *disk = stk_run_clock_enter_disk(&job.clock);
    if (given->resume != NULL) {
        status = stk_resume_open(&job.resume, options, &job.folder, err);
        status = stk_run_clock_failed(&job.clock, status, err);
    }
    stk_job_open(&job, options, run);
    if (status == STK_OK) {
        status = stk_job_take_deadline(&job, &buffer.observer, err);
    }
    if (status == STK_OK) {
        status = job.resume.complete ? say_complete(&job, err) : run_job(&job, &buffer, err);
    }
    if (outcome != NULL) {
        stk_job_fill_outcome(&job, outcome);
    }
    stk_event_buffer_free(&buffer);
    stk_job_close(&job);
    stk_disk_leave(disk);
    stk_locale_leave(locale);
    return status;
}
