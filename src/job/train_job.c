/* train_job.c - a training run from options to submission. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/locale.h"
#include "base/mem.h"
#include "job/folds.h"
#include "models/memory_check.h"
#include "predict/predict.h"
#include "predict/submission.h"
#include "weights/pretrained.h"

/* What is said before the run's first line is kept until that was told. */
typedef struct early_words {
    stk_observer observer;
    stk_str text; /* per word: 'w' or 'd', a text, NUL; a decision's reason follows with its NUL */
} early_words;

static void keep_warning(void *user, const char *text) {
    early_words *words = user;
    stk_str_append(&words->text, "w");
    stk_str_append_bytes(&words->text, text, strlen(text) + 1);
}

static void keep_decision(void *user, const stk_event_decision *event) {
    early_words *words = user;
    stk_str_append(&words->text, "d");
    stk_str_append_bytes(&words->text, event->what, strlen(event->what) + 1);
    stk_str_append_bytes(&words->text, event->why, strlen(event->why) + 1);
}

static void tell_early_words(early_words *words, const stk_events *events) {
    const char *p = words->text.text;
    const char *end = p != NULL ? p + words->text.length : NULL;
    while (p < end && stk_str_ok(&words->text)) {
        const char *what = p + 1;
        const char *why = what + strlen(what) + 1;
        if (*p == 'w') {
            stk_events_warning(events, "%s", what);
            p = why;
        } else {
            stk_events_decision(events, what, why);
            p = why + strlen(why) + 1;
        }
    }
}

/* How many images one fold trains on. */
static stk_status count_training(const stk_job *job, size_t *train, size_t *val, stk_error *err) {
    stk_split split;
    stk_status status = stk_job_split(job, 0, &split, NULL, err);
    if (status == STK_OK) {
        *train = split.train_count;
        *val = split.val_count;
        stk_split_free(&split);
    }
    return status;
}

/* The data set's path in a form that works from any folder. */
static stk_status remember_data_path(stk_job *job, stk_error *err) {
    char *absolute = realpath(job->dataset_options->data, NULL);
    stk_status status = STK_OK;
    if (absolute != NULL && strcmp(absolute, job->dataset_options->data) != 0) {
        status = stk_options_resolve(job->options, "data", absolute, "made absolute", err);
    }
    free(absolute);
    return status;
}

stk_status stk_job_write_args(stk_job *job, stk_error *err) {
    stk_str yaml = {0};
    stk_str json = {0};
    stk_status status = remember_data_path(job, err);
    if (status != STK_OK) {
        return status;
    }
    stk_options_yaml(job->options, &yaml);
    stk_options_json(job->options, &json);
    status = stk_run_folder_write(&job->folder, "args.json", &json, err);
    if (status != STK_OK) {
        stk_str_free(&yaml);
        return status;
    }
    return stk_run_folder_write(&job->folder, "args.yaml", &yaml, err);
}

static stk_status choose(stk_job *job, size_t train_count, stk_error *err) {
    stk_device_config device = {.halted = stk_clockwork_must_halt, .user = &job->clock};
    stk_status status = stk_choose(&job->choice, job->options, train_count, &device, err);
    job->host = (stk_host_memory){.backend = job->choice.opened.backend,
                                  .device = job->choice.opened.device};
    return status;
}

stk_compile_config stk_job_compiles(const stk_job *job, bool train) {
    return (stk_compile_config){.batch = train ? job->choice.batch : STK_PREDICT_BATCH,
                                .precision = job->choice.opened.precision,
                                .train = train,
                                .ema = !train && job->state_config.ema,
                                .plain = !job->job_options->compile};
}

/* Says now, rather than in the middle of something, when a batch cannot fit. */
static stk_status check_memory(const stk_job *job, stk_error *err) {
    const stk_choice *choice = &job->choice;
    const stk_opened_device *opened = &choice->opened;
    stk_compile_config train = stk_job_compiles(job, true);
    stk_compile_config infer = stk_job_compiles(job, false);
    uint64_t slots = (uint64_t)choice->loader.slots * choice->loader.slot_bytes / choice->batch;
    stk_memory_ask ask = {.backend = opened->backend,
                          .device = opened->device,
                          .graph = job->graph,
                          .model = choice->model->name,
                          .state = &job->state_config,
                          .batch = &train,
                          .other = &infer,
                          .picture_bytes = strcmp(opened->name, "cpu") == 0 ? slots : 0};
    return stk_memory_check(&ask, err);
}

/* The network on the device. */
static stk_status open_network(stk_job *job, stk_error *err) {
    const stk_opened_device *opened = &job->choice.opened;
    stk_model_config network = {.img_size = job->choice.img_size,
                                .classes = job->dataset->class_count,
                                .dropout = job->choice.dropout,
                                .drop_path = job->choice.drop_path};
    stk_status status = stk_model_build(job->choice.model, &network, &job->graph, err);
    job->state_config = (stk_state_config){.train = true,
                                           .optimizer = (stk_optimizer)job->choice.train.optimizer,
                                           .ema = job->choice.train.ema > 0};
    if (status == STK_OK) {
        status = check_memory(job, err);
    }
    if (status == STK_OK) {
        status = opened->backend->state_new(&job->state, opened->device, job->graph,
                                            &job->state_config, err);
    }
    return status;
}

/* What is not as the file has it. */
static void tell_pretrained(const stk_job *job, const stk_pretrained_report *report,
                            const stk_events *events) {
    char what[96];
    char why[160];
    if (report->head_anew) {
        snprintf(what, sizeof what, "head for %d classes starts anew", job->dataset->class_count);
        snprintf(why, sizeof why, "the file has %llu", (unsigned long long)report->file_classes);
        stk_events_decision(events, what, report->file_classes > 0 ? why : "the file has none");
    }
    if (report->converted > 0) {
        snprintf(what, sizeof what, "%d tensors converted to fp32", report->converted);
        snprintf(why, sizeof why, "the file has %s", report->type);
        stk_events_decision(events, what, why);
    }
    if (report->prefix[0] != '\0') {
        snprintf(what, sizeof what, "\"%s\" taken off the tensors' names", report->prefix);
        stk_events_decision(events, what, "without it they are the model's");
    }
    if (report->checkpoint_of[0] != '\0') {
        stk_events_warning(events, "the weights fit but are a checkpoint of %s, not of %s",
                           report->checkpoint_of, job->choice.model->name);
    }
}

/* The weights to start from, which must be there and fit before anything is written. */
static stk_status find_pretrained(stk_job *job, const stk_events *events, stk_error *err) {
    const char *model = job->choice.model->name;
    const char *own = job->job_options->model != NULL ? job->job_options->model : model;
    const char *wanted = stk_pretrained_wanted(job->job_options->pretrained, own);
    if (wanted == NULL) {
        return STK_OK;
    }
    stk_pretrained_place place;
    stk_pretrained_report report;
    stk_status status = stk_pretrained_find(wanted, &place, err);
    if (status != STK_OK) {
        return status;
    }
    status = stk_pretrained_check(place.path, model, job->graph, &report, err);
    if (status == STK_OK) {
        /* A path that works from any folder; the hub's links are kept, their targets say nothing.
         */
        char *absolute = place.path[0] != '/' ? realpath(place.path, NULL) : NULL;
        status = stk_options_resolve(job->options, "pretrained",
                                     absolute != NULL ? absolute : place.path, place.why, err);
        free(absolute);
    }
    char *what = stk_str_format("weights from %s", place.path);
    if (status == STK_OK && what == NULL) {
        status = STK_FAIL_MEMORY(err, place.path);
    }
    if (status == STK_OK) {
        stk_events_decision(events, what, place.why);
        tell_pretrained(job, &report, events);
        job->pretrained = place.path;
        place.path = NULL;
    }
    stk_mem_free(what);
    stk_pretrained_place_free(&place);
    return status;
}

void stk_job_tell_start(stk_job *job, size_t train, size_t val) {
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
                             .train_images = (int64_t)train,
                             .val_images = (int64_t)val,
                             .test_images = (int64_t)job->dataset->test.count,
                             .budget_s = job->clock.budget_s};
    stk_events_start(&job->events, &event);
}

stk_status stk_job_prepare(stk_job *job, const stk_observer *observer, size_t *train, size_t *val,
                           stk_error *err) {
    stk_events early = {0};
    stk_events_add(&early, observer);
    for (int i = 0; i < 4; i++) {
        /* An empty text is what a script hands over when a variable was not set. */
        static const char *const names[] = {"out", "name", "resume", "deadline"};
        if (stk_options_source(job->options, names[i]) != STK_FROM_DEFAULT &&
            stk_options_get(job->options, names[i])[0] == '\0') {
            return STK_FAIL(err, STK_ERR_USAGE, "--%s is empty; give a value or leave it out",
                            names[i]);
        }
    }
    if (job->dataset_options->data == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--data is missing: give the folder with the pictures; `stoker sample DIR` "
                        "makes one to try");
    }
    const stk_storage_options storage = job->storage; /* the store copies it */
    stk_status status =
        stk_dataset_open(&job->dataset, job->dataset_options, &storage, &early, err);
    if (status == STK_OK && job->resume.on) {
        status = stk_resume_check_folds(&job->resume, job->folds, err);
    }
    if (status == STK_OK && job->resume.on) {
        status = stk_run_state_check(&job->resume.state, job->dataset, err);
    }
    if (status == STK_OK) {
        status = stk_submission_check(job->dataset, &early, err);
    }
    if (status == STK_OK) {
        status = stk_job_settle_folds(job, err);
    }
    if (status == STK_OK) {
        status = count_training(job, train, val, err);
    }
    if (status == STK_OK) {
        status = stk_dataset_check_folds(job->dataset, job->dataset_options->val_fraction,
                                         job->folds, (uint64_t)job->job_options->seed, &early, err);
    }
    if (status == STK_OK) {
        status = choose(job, *train, err);
    }
    if (status == STK_OK) {
        status = open_network(job, err);
    }
    if (status == STK_OK && job->resume.on) {
        status = stk_job_check_resume(job, err);
    }
    /* The last fold has its weights already when it is resumed. */
    bool first_weights = !job->resume.on || job->resume.state.fold + 1 < job->folds;
    if (status == STK_OK && first_weights) {
        status = find_pretrained(job, &early, err);
    }
    return status;
}

stk_status stk_job_claim_folder(stk_job *job, stk_error *err) {
    const char *name = job->job_options->name != NULL ? job->job_options->name : job->verb;
    return stk_run_folder_open(&job->folder, job->job_options->out, name, err);
}

/* Where the state is saved, and what it says of all of the run. */
static stk_status open_state(stk_job *job, stk_error *err) {
    stk_str given = {0};
    stk_options_given(job->options, job->resume.given, &given);
    job->run_state.given = stk_str_take(&given);
    job->state_path = stk_run_folder_file(&job->folder, STK_RUN_STATE_FILE);
    job->epoch_path = stk_run_folder_file(&job->folder, STK_RUN_STATE_EPOCH);
    job->kept_best = stk_run_folder_file(&job->folder, STK_RUN_STATE_BEST);
    stk_run_state_describe(&job->run_state, job->dataset);
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
    if (!resume->on) {
        return stk_runfiles_new(&job->files, job->folder.path, err);
    }
    stk_runfiles_point point = {.fold = resume->state.fold,
                                .epoch = resume->state.position.epoch,
                                .best_epoch = resume->state.position.best.epoch};
    double last_t = 0;
    char *summary = stk_run_folder_file(&job->folder, "summary.json");
    if (summary == NULL) {
        return STK_FAIL_MEMORY(err, "a path");
    }
    stk_status status = stk_runfiles_resume(&job->files, job->folder.path, &point, &last_t, err);
    resume->used_s = fmax(resume->used_s, last_t);
    if (status == STK_OK) {
        status = stk_resume_bad_images(resume, &job->folder, &job->bad_told, err);
    }
    if (status == STK_OK) {
        unlink(summary); /* a folder without it belongs to a run that goes on */
    }
    stk_mem_free(summary);
    return status;
}

/* The run folder's first files, and a valid submission before anything is learnt. */
static stk_status begin(stk_job *job, early_words *words, size_t train, size_t val,
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
    for (int i = 0; i < job->events.count; i++) {
        stk_events_add(&all, job->events.observers[i]);
    }
    job->events = all;
    stk_job_tell_start(job, train, val);
    stk_choice_tell(&job->choice, job->options, &job->events, train);
    if (job->resume.on) {
        stk_resume_tell(&job->resume, &job->events);
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
    tell_early_words(words, &job->events);
    if (job->folds > 1) {
        status = stk_oof_open(&job->oof, job->dataset, err);
    }
    if (status != STK_OK) {
        return status;
    }
    status = stk_ballot_open(&job->ballot, job->dataset->test.count,
                             (size_t)job->dataset->class_count, err);
    if (status == STK_OK && job->ballot.rows > 0) {
        stk_dataset_priors(job->dataset, job->ballot.priors);
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

stk_status stk_job_submit(stk_job *job, const char *status, stk_error *err) {
    const stk_dataset *dataset = job->dataset;
    stk_clockwork *clock = &job->clock;
    stk_halt late = {job->submitted ? stk_clockwork_is_late : NULL, clock};
    double took = stk_margin_took(&clock->margin, STK_MARGIN_SUBMISSION);
    stk_error why = {0};
    int64_t start = stk_clock_ns();
    stk_status written = STK_ERR_STOPPED;
    if (!job->submitted || stk_clockwork_left(clock) >= took) {
        written = stk_submission_write_unless(job->submission, dataset, dataset->classes,
                                              dataset->class_count, stk_ballot_count(&job->ballot),
                                              late, &why);
    }
    if (written == STK_ERR_STOPPED) {
        job->cut = true;
        stk_events_warning(&job->events,
                           "there was no time to write better predictions: %s stays "
                           "as it was",
                           job->submission);
        return STK_OK;
    }
    if (written != STK_OK) {
        return STK_FAIL(err, written, "%s", why.message);
    }
    stk_clockwork_note(clock, STK_MARGIN_SUBMISSION, start);
    job->submitted = true;
    job->models = job->ballot.models;
    stk_event_submission event = {.path = job->submission,
                                  .status = status,
                                  .rows = (int64_t)job->ballot.rows,
                                  .models = job->ballot.models,
                                  .models_wanted = job->folds};
    stk_events_submission(&job->events, &event);
    return STK_OK;
}

/* What the folds of earlier processes have come to counts as if they had been trained now. */
static stk_status revive_folds(stk_job *job, stk_error *err) {
    const stk_run_state *before = &job->resume.state;
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
        if (job->weights_lost) {
            break;
        }
        if (job->fold > 0) {
            stk_job_plan_folds(job, -1);
        }
        if (job->fold >= job->folds_now || stk_clockwork_stopping(&job->clock) ||
            stk_clockwork_must_write(&job->clock)) {
            job->cut = true;
            job->summary.stop_reason =
                NULL; /* whatever ended the fold before did not end the run */
            break;
        }
        status = stk_job_fold(job, err);
    }
    return status;
}

static void finish_summary(stk_job *job, stk_status status) {
    stk_summary *s = &job->summary;
    bool trained = job->folds_done > 0 || job->models > 0; /* weights may be in memory alone */
    bool delivered = trained || job->submitted;
    bool whole = trained && !job->cut && job->folds_done == job->folds;
    /* A submission from earlier processes has their models, whether they were asked again or not.
     */
    bool voted = job->models > 0 || (job->submitted && job->resume.state.folds_done > 0);
    s->status = status != STK_OK || !delivered                 ? "failed"
                : !trained || (job->ballot.rows > 0 && !voted) ? "prior"
                : whole                                        ? "complete"
                                                               : "partial";
    if (status != STK_OK) {
        s->stop_reason = "error";
    } else if (s->stop_reason == NULL) {
        s->stop_reason = stk_clockwork_stopping(&job->clock) ? "signal" : "budget";
    }
    s->folds_done = job->folds_done;
    s->folds_planned = job->folds;
    s->images_per_second = job->train_s > 0 ? job->images / job->train_s : NAN;
    s->wait_fraction = job->train_s > 0 ? job->wait_s / job->train_s : NAN;
    s->budget_s = job->resume.used_s + job->clock.budget_s; /* NaN without one */
    s->reserve_s = isnan(s->budget_s) ? NAN
                   : job->planned_total >= 0
                       ? job->plan.reserve_s
                       : fmax(stk_budget_reserve(job->clock.budget_s, NAN),
                              stk_clockwork_needed(&job->clock, STK_MARGIN_SUBMISSION));
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
    s->used_s = job->resume.used_s + stk_clockwork_elapsed(&job->clock);
}

static void fill_outcome(const stk_job *job, stk_outcome *outcome) {
    snprintf(outcome->run_dir, sizeof outcome->run_dir, "%s",
             job->folder.path != NULL ? job->folder.path : "");
    snprintf(outcome->submission, sizeof outcome->submission, "%s",
             job->submitted ? job->submission : "");
    snprintf(outcome->status, sizeof outcome->status, "%s", job->summary.status);
    outcome->best_acc1 = job->summary.best_acc1;
    outcome->models = job->models;
    outcome->rows = job->submitted ? (int64_t)job->ballot.rows : 0;
}

/* What was asked for must exist, or the run has failed whatever the reason was. */
static stk_status judge(const stk_job *job, stk_error *err) {
    if (job->write_error.status != STK_OK) {
        return STK_FAIL(err, job->write_error.status, "%s", job->write_error.message);
    }
    if (job->folds_done > 0 || job->submitted) {
        return stk_runfiles_error(job->files, err);
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
                    "the budget of %.3g s was too short for a single epoch, and there are no test "
                    "images to predict from class priors; give a larger --budget",
                    job->clock.budget_s);
}

void stk_job_close(stk_job *job) {
    if (job->choice.opened.backend != NULL) {
        job->choice.opened.backend->state_free(job->state);
    }
    stk_graph_free(job->graph);
    stk_ballot_free(&job->ballot);
    stk_oof_free(&job->oof);
    stk_runfiles_free(job->files);
    stk_choice_free(&job->choice);
    stk_run_folder_close(&job->folder);
    stk_map_free(&job->bad_told);
    stk_dataset_free(job->dataset);
    stk_mem_free(job->submission);
    stk_mem_free(job->pretrained);
    stk_mem_free(job->state_path);
    stk_mem_free(job->epoch_path);
    stk_mem_free(job->kept_best);
    stk_run_state_free(&job->run_state);
    stk_resume_free(&job->resume);
}

void stk_job_open(stk_job *job, stk_options *options, const stk_run *run) {
    const stk_budget_options *budget = stk_options_values(options, &stk_budget_option_table);
    job->options = options;
    job->dataset_options = stk_options_values(options, &stk_dataset_option_table);
    job->storage =
        *(const stk_storage_options *)stk_options_values(options, &stk_storage_option_table);
    job->loader_options = stk_options_values(options, &stk_loader_option_table);
    job->job_options = stk_options_values(options, &stk_job_option_table);
    job->view_options = stk_options_values(options, &stk_view_option_table);
    job->views = (int)job->view_options->tta;
    job->clock = (stk_clockwork){.start_ns = stk_clock_ns(), .budget_s = budget->budget_s};
    job->folds = (int)job->job_options->folds;
    job->folds_now = job->folds;
    job->epoch_s = NAN;
    job->planned_total = -1;
    job->predict_s = NAN;
    job->summary.best_acc1 = NAN;
    job->summary.best_metric = NAN;
    job->summary.oof_acc1 = NAN;
    job->summary.oof_metric = NAN;
    job->summary.status = "failed";
    if (run != NULL) {
        job->clock.stop = run->stop;
        job->storage.stop = run->stop;
        job->clock.start_ns = run->start_ns != 0 ? run->start_ns : job->clock.start_ns;
        stk_events_add(&job->events, run->observer);
    }
    job->storage.deadline_ns = stk_clockwork_end_ns(&job->clock);
}

/* A deadline by the clock on the wall becomes a budget, once and for all. */
static stk_status take_deadline(stk_job *job, const stk_observer *observer, stk_error *err) {
    const stk_budget_options *budget = stk_options_values(job->options, &stk_budget_option_table);
    stk_events events = {0};
    stk_events_add(&events, observer);
    stk_status status = stk_clockwork_take_deadline(&job->clock, budget->deadline, &events, err);
    job->storage.deadline_ns = stk_clockwork_end_ns(&job->clock);
    return status;
}

/* What takes its time is done before the summary, which says how long all took. */
static void finish_work(stk_job *job) {
    job->choice.opened.backend->state_free(job->state);
    job->state = NULL;
    if (job->files != NULL) {
        /* Without time for it the plot lacks the last epochs. */
        double plot_s = STK_MARGIN_SAFETY * stk_runfiles_plot_s(job->files);
        stk_runfiles_finish(job->files,
                            stk_clockwork_left(&job->clock) >=
                                stk_clockwork_needed(&job->clock, STK_MARGIN_CLOSING) + plot_s);
    }
}

/* From the first file to the last. */
static stk_status run_job(stk_job *job, early_words *words, stk_error *err) {
    size_t train = 0;
    size_t val = 0;
    stk_status status = stk_job_prepare(job, &words->observer, &train, &val, err);
    if (status == STK_OK && !job->resume.on) {
        status = stk_job_claim_folder(job, err);
    }
    if (status != STK_OK) {
        return status;
    }
    status = begin(job, words, train, val, err);
    if (status == STK_OK) {
        status = run_folds(job, err);
    }
    finish_work(job);
    finish_summary(job, status);
    if (job->files != NULL) {
        stk_events_stop(&job->events, &job->summary);
    }
    status = status == STK_OK ? judge(job, err) : status;
    stk_job_tell_kept(job, err);
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
    stk_job job = {.verb = "train", .folder = {.lock_fd = -1}};
    early_words words = {.observer = {.warning = keep_warning, .decision = keep_decision}};
    words.observer.user = &words;
    stk_locale locale = stk_locale_enter();
    const stk_job_options *given = stk_options_values(options, &stk_job_option_table);
    stk_status status = STK_OK;
    if (given->resume != NULL) {
        status = stk_resume_open(&job.resume, options, &job.folder, err);
    }
    stk_job_open(&job, options, run);
    if (status == STK_OK) {
        status = take_deadline(&job, &words.observer, err);
    }
    if (status == STK_OK) {
        status = job.resume.complete ? say_complete(&job, err) : run_job(&job, &words, err);
    }
    if (outcome != NULL) {
        fill_outcome(&job, outcome);
    }
    stk_str_free(&words.text);
    stk_job_close(&job);
    stk_locale_leave(locale);
    return status;
}
