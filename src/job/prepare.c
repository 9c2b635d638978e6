/*
 * prepare.c - everything before a run's first line: options, data set, choices, device, and what
 * all begins with that trains or predicts: loader, network, first weights. Nothing is written here.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "job/training_monitor.h"
#include "job/folds.h"
#include "predict/submission.h"
#include "weights/pretrained.h"

/* Evaluation makes two batches at a time do: it runs while the training's are kept ready. */
#define EVALUATION_SLOTS 2

/* Of a budget: what one picture may take in training, and what it may take of any. */
#define SLOW_PART 0.02
#define SLOW_LEAST_S 0.1

void stk_job_open(stk_job *job, stk_options *options, const stk_run *run) {
    const stk_budget_options *budget = stk_options_values(options, &stk_budget_option_table);
    job->options = options;
    job->dataset_options = stk_options_values(options, &stk_dataset_option_table);
    job->storage =
        *(const stk_storage_options *)stk_options_values(options, &stk_storage_option_table);
    job->loader_options = stk_options_values(options, &stk_loader_option_table);
    job->job_options = stk_options_values(options, &stk_job_option_table);
    job->storage.cache_later = job->job_options->tune;
    job->view_options = stk_options_values(options, &stk_view_option_table);
    job->views = (int)job->view_options->tta;
    job->infer_batch = STK_PREDICT_BATCH;
    job->clock = (stk_run_clock){.start_ns = stk_clock_ns(), .budget_s = budget->budget_s};
    job->folds = (int)job->job_options->folds;
    job->folds_now = job->folds;
    job->epoch_s = NAN;
    job->foreseen_s = NAN;
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
    job->storage.deadline_ns = stk_run_clock_end_ns(&job->clock);
    job->storage.events = &job->events;
}

stk_status stk_job_take_deadline(stk_job *job, const stk_observer *observer, stk_error *err) {
    const stk_budget_options *budget = stk_options_values(job->options, &stk_budget_option_table);
    stk_events events = {0};
    stk_events_add(&events, observer);
    stk_status status = stk_run_clock_set_deadline(&job->clock, budget->deadline, &events, err);
    job->storage.deadline_ns = stk_run_clock_end_ns(&job->clock);
    return status;
}

void stk_job_close(stk_job *job) {
    stk_training_monitor_close(job);
    if (job->choice.opened.backend != NULL) {
        job->choice.opened.backend->state_free(job->state);
    }
    stk_job_settle_state(job);
    stk_write_behind_free(&job->behind);
    stk_graph_free(job->graph);
    stk_ensemble_free(&job->ensemble);
    stk_oof_free(&job->oof);
    stk_runfiles_free(job->files);
    stk_metrics_file_free(job->metrics);
    stk_recipe_free(&job->choice);
    stk_run_folder_close(&job->folder);
    stk_map_free(&job->bad_told);
    stk_dataset_free(job->dataset);
    stk_mem_free(job->submission);
    stk_mem_free(job->pretrained);
    stk_mem_free(job->state_path);
    stk_mem_free(job->epoch_path);
    stk_mem_free(job->kept_best);
    stk_val_table_free(&job->val);
    stk_seen_pictures_free(&job->pictures);
    stk_saved_state_free(&job->run_state);
    stk_resume_free(&job->resume);
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

static stk_status choose(stk_job *job, stk_error *err) {
    stk_device_config device = {.halted = stk_run_clock_must_halt, .user = &job->clock};
    stk_status status = stk_recipe_begin(&job->choice, job->options, &device, err);
    job->clock.margin.end_s = stk_opened_device_end_s(&job->choice.opened);
    job->host = (stk_host_memory){.backend = job->choice.opened.backend,
                                  .device = job->choice.opened.device};
    return status;
}

stk_compile_config stk_job_compiles(const stk_job *job, bool train) {
    return (stk_compile_config){.batch = train ? job->choice.batch : job->infer_batch,
                                .precision = job->choice.opened.precision,
                                .train = train,
                                .ema = !train && job->state_config.ema,
                                .plain = !job->job_options->compile};
}

/*
 * With a budget, CPU time that a training picture may take unless others take as long: no picture
 * is worth a large part of all the time there is. Without one every picture has its turn.
 */
static int64_t training_patience_ns(const stk_job *job) {
    double seconds = fmax(SLOW_PART * job->clock.budget_s, SLOW_LEAST_S);
    return isnan(job->clock.budget_s) || seconds * 1e9 >= (double)STK_IMAGE_MAX_CPU_NS
               ? 0
               : (int64_t)(seconds * 1e9);
}

stk_loader_config stk_job_loader(stk_job *job, bool train) {
    stk_loader_sizing plan = job->choice.loader;
    if (!train) {
        plan.slots = EVALUATION_SLOTS;
        plan.most_slots = EVALUATION_SLOTS;
        plan.tune_slots = false;
    }
    return (stk_loader_config){.store = job->dataset->source,
                               .halt = {stk_run_clock_must_write, &job->clock},
                               .memory = stk_host_memory_for_loader(&job->host),
                               .stop = job->clock.stop,
                               .transform = {.size = job->choice.img_size,
                                             .train = train,
                                             .augment = job->choice.augment,
                                             .crop_fraction = job->choice.model->crop_fraction,
                                             .interpolation = job->choice.model->interpolation},
                               .batch = train ? job->choice.batch : job->infer_batch,
                               .sizing = plan,
                               .patience_ns = train ? training_patience_ns(job) : 0,
                               .sampling = train ? (stk_sampling)job->loader_options->sampling
                                                 : STK_SAMPLING_NATURAL,
                               .seed = (uint64_t)job->job_options->seed + (uint64_t)job->fold};
}

/* First weights; each fold starts from its own, or from the given ones with a head of its own. */
static stk_status init_weights(stk_job *job, stk_error *err) {
    stk_status status =
        stk_state_first_weights_unless(job->choice.opened.backend, job->state, job->graph,
                                       (uint64_t)job->job_options->seed + (uint64_t)job->fold,
                                       stk_run_clock_must_write, &job->clock, err);
    if (status == STK_OK && job->pretrained != NULL) {
        stk_pretrained_report report;
        status =
            stk_pretrained_load(job->pretrained, job->choice.model->name,
                                job->choice.opened.backend, job->state, job->graph, &report, err);
    }
    return status;
}

stk_status stk_job_first_weights(stk_job *job, stk_error *err) {
    stk_status status = init_weights(job, err);
    return status == STK_OK
               ? stk_train_reset_state(job->choice.opened.backend, job->state, job->graph, err)
               : status;
}

/* The network on the device. */
static stk_status open_network(stk_job *job, size_t train_count, stk_error *err) {
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
        status = stk_job_plan_batch(job, train_count, err);
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

/* A checksum of all of a file, as the state has it. */
static stk_status sum_file(const char *path, char text[STK_RUN_ID_TEXT], stk_error *err) {
    uint64_t sum = 0;
    stk_status status = stk_checksum_file(path, &sum, err);
    snprintf(text, STK_RUN_ID_TEXT, "%016llx", (unsigned long long)sum);
    return status;
}

/* Folds that are still to begin must begin like those before. */
static stk_status check_pretrained(stk_job *job, const char *path, stk_error *err) {
    const char *before = job->resume.on ? job->resume.state.pretrained : "";
    stk_status status = sum_file(path, job->pretrained_sum, err);
    if (status == STK_OK && before[0] != '\0' && strcmp(before, job->pretrained_sum) != 0) {
        status =
            STK_FAIL(err, STK_ERR_DATA,
                     "%s is not the file that the run was begun with: its contents changed, "
                     "and folds that are still to begin would start from other weights; put it "
                     "back, or begin a new run",
                     path);
    }
    return status;
}

/* Says that the weights a run began with are others now, where it does not need them any more. */
static void tell_replaced_pretrained(const stk_job *job, const stk_events *events) {
    const char *path = job->job_options->pretrained;
    const char *before = job->resume.state.pretrained;
    char now[STK_RUN_ID_TEXT];
    if (path != NULL && before[0] != '\0' && stk_path_is_file(path) &&
        sum_file(path, now, NULL) == STK_OK && strcmp(before, now) != 0) {
        stk_events_warning(events,
                           "%s is not the file that the run was begun with; the run goes on with "
                           "its own weights and does not read it again",
                           path);
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
        status = check_pretrained(job, place.path, err);
    }
    if (status == STK_OK) {
        /* A path that works from any folder; the hub's links are kept, their targets say nothing.
         */
        char *absolute = place.path[0] != '/' ? stk_disk_resolve(place.path) : NULL;
        status = stk_options_resolve(job->options, "pretrained",
                                     absolute != NULL ? absolute : place.path, place.why, err);
        stk_mem_free(absolute);
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
        status = stk_saved_state_check(&job->resume.state, job->dataset, err);
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
        status = choose(job, err);
    }
    if (status == STK_OK) {
        status = open_network(job, *train, err);
    }
    if (status == STK_OK && job->resume.on) {
        status = stk_job_check_resume(job, err);
    }
    /* The last fold has its weights already when it is resumed. */
    bool first_weights = !job->resume.on || job->resume.state.fold + 1 < job->folds;
    if (status == STK_OK && first_weights) {
        status = find_pretrained(job, &early, err);
    } else if (status == STK_OK) {
        tell_replaced_pretrained(job, &early);
    }
    return status;
}

stk_status stk_job_claim_folder(stk_job *job, stk_error *err) {
    const char *name = job->job_options->name != NULL ? job->job_options->name : job->verb;
    return stk_run_folder_open(&job->folder, job->job_options->out, name, err);
}
