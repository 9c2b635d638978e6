/*
 * job.c - opening and closing a job, and what all its verbs share: the loader configuration,
 * args.yaml and the first event.
 */
#include "job/training/job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/text/locale.h"
#include "job/recipe/recipe_lines.h"

/* Validation and prediction use two slots. During a validation the training's batches stay ready
 * beside them. */
#define EVALUATION_SLOTS 2

/* CPU time of one training picture: share of the budget, and the least limit in seconds. */
#define SLOW_PART 0.02
#define SLOW_LEAST_S 0.1

/* Sets the pointers of the parts to each other and to their surroundings. */
static void connect_parts(stk_job *job) {
    job->batch_search.network = &job->network;
    job->batch_search.recipe = &job->recipe;
    job->batch_search.options = job->job_options;
    job->batch_search.loader_options = job->loader_options;
    job->batch_search.clock = &job->clock;
    job->batch_search.budget_s = NAN;
    job->saver.events = &job->events;
    job->saver.clock = &job->clock;
    job->saver.network = &job->network;
    job->saver.table = &job->out.val;
    job->saver.late_error = &job->out.late_error;
}

void stk_job_open(stk_job *job, stk_options *options, const stk_run *run) {
    const stk_budget_options *budget = stk_options_values(options, &stk_budget_option_table);
    job->options = options;
    job->dataset_options = stk_options_values(options, &stk_dataset_option_table);
    job->storage =
        *(const stk_storage_options *)stk_options_values(options, &stk_storage_option_table);
    job->loader_options = stk_options_values(options, &stk_loader_option_table);
    job->job_options = stk_options_values(options, &stk_job_option_table);
    job->storage.cache_later = job->job_options->tune;
    job->clock = (stk_run_clock){.start_ns = stk_clock_ns(), .budget_s = budget->budget_s};
    job->recipe = stk_recipe_begin(options);
    job->network = stk_network_begin(job->job_options);
    connect_parts(job);
    job->tally.best_acc1 = NAN;
    job->tally.best_metric = NAN;
    if (run != NULL) {
        job->clock.stop = run->stop;
        job->storage.stop = run->stop;
        job->clock.start_ns = run->start_ns != 0 ? run->start_ns : job->clock.start_ns;
        stk_events_add(&job->events, run->observer);
    }
    job->storage.deadline_ns = stk_run_clock_end_ns(&job->clock);
    job->storage.events = &job->events;
}

void stk_job_close(stk_job *job) {
    stk_run_outputs *out = &job->out;
    stk_training_monitor_close(job->monitor);
    stk_network_free(&job->network);
    stk_state_saver_close(&job->saver);
    stk_ensemble_free(&out->ensemble);
    stk_calibration_mean_free(&out->validated);
    stk_oof_free(&out->oof);
    stk_runfiles_free(out->files);
    stk_metrics_file_free(out->metrics);
    stk_network_close_device(&job->network);
    if (job->saver.unfinished) {
        stk_run_folder_sweep(&out->folder);
    }
    stk_run_folder_close(&out->folder);
    stk_map_free(&job->bad_told);
    stk_outputs_free(&job->outputs);
    stk_mem_free(job->positive_weights);
    stk_dataset_free(job->dataset);
    stk_mem_free(out->submission);
    stk_val_table_free(&out->val);
    stk_str_free(&job->chosen);
    stk_resume_free(&job->resume);
}

stk_status stk_job_look_at_first(const char *verb, stk_options *options, const stk_run *run,
                                 stk_job_look *look, void *result, stk_error *err) {
    stk_job job = {.verb = verb, .out = {.folder = {.lock_fd = -1}}};
    stk_locale locale = stk_locale_enter();
    stk_job_open(&job, options, run);
    stk_status status =
        job.job_options->resume == NULL
            ? look(&job, run != NULL ? run->observer : NULL, result, err)
            : STK_FAIL(err, STK_ERR_USAGE,
                       "--resume is for train; %s looks at a training that begins", verb);
    stk_job_close(&job);
    stk_locale_leave(locale);
    return status;
}

stk_status stk_job_take_deadline(stk_job *job, const stk_observer *observer, stk_error *err) {
    const stk_budget_options *budget = stk_options_values(job->options, &stk_budget_option_table);
    stk_events events = {0};
    stk_events_add(&events, observer);
    stk_status status = stk_run_clock_set_deadline(&job->clock, budget->deadline, &events, err);
    job->storage.deadline_ns = stk_run_clock_end_ns(&job->clock);
    return status;
}

/*
 * CPU time that one training picture may take, unless others take as long; 0: no limit. With a
 * budget no single picture is worth a large part of the time.
 */
static int64_t picture_limit_ns(double budget_s) {
    double seconds = fmax(SLOW_PART * budget_s, SLOW_LEAST_S);
    return isnan(budget_s) || seconds * 1e9 >= (double)STK_IMAGE_MAX_CPU_NS
               ? 0
               : (int64_t)(seconds * 1e9);
}

stk_loader_config stk_job_loader_config(stk_job *job, bool train, const stk_sample *samples,
                                        const size_t *indices, size_t count) {
    stk_loader_sizing sizing = job->recipe.loader;
    if (!train) {
        sizing.slots = EVALUATION_SLOTS;
        sizing.most_slots = EVALUATION_SLOTS;
        sizing.tune_slots = false;
    }
    stk_loader_config config = {
        .store = job->dataset->store,
        .samples = samples,
        .indices = indices,
        .count = count,
        .targets = stk_task_has_classes(job->dataset->task) ? NULL : &job->dataset->targets,
        .features = job->dataset->features.count > 0 ? &job->dataset->features : NULL,
        .halt = {stk_run_clock_must_write, &job->clock},
        .memory = stk_host_memory_for_loader(&job->network.host),
        .stop = job->clock.stop,
        .transform = {.size = train ? job->recipe.img_size : job->recipe.eval_size,
                      .channels = job->recipe.channels,
                      .window = job->recipe.window,
                      .train = train,
                      .augment = job->recipe.augment,
                      .native = job->recipe.native,
                      .crop_fraction = job->recipe.eval_crop,
                      .interpolation = job->recipe.model->interpolation},
        .sizing = sizing,
        .slow_after_ns = train ? picture_limit_ns(job->clock.budget_s) : 0,
        .sampling = train ? job->recipe.sampling : STK_SAMPLING_NATURAL,
        .seed = job->recipe.seed + (uint64_t)job->tally.fold};
    stk_opened_decoder_hand_out(&job->network.decoder, train, &config);
    return config;
}

/* Stores the data set's path as an absolute one: it works from any folder. */
static stk_status resolve_data_path(stk_options *options, stk_error *err) {
    const stk_dataset_options *given = stk_options_values(options, &stk_dataset_option_table);
    char *absolute = stk_disk_resolve(given->data);
    stk_status status = STK_OK;
    if (absolute != NULL && strcmp(absolute, given->data) != 0) {
        status = stk_options_resolve(options, "data", absolute, "made absolute", err);
    }
    stk_mem_free(absolute);
    return status;
}

stk_status stk_job_write_args(const stk_run_folder *folder, stk_options *options, stk_error *err) {
    stk_status status = resolve_data_path(options, err);
    return status == STK_OK ? stk_run_folder_write_options(folder, options, err) : status;
}

/* A GPU's name without the memory after the comma; NULL for a CPU. */
static const char *gpu_name(const stk_opened_device *opened, char *text, size_t room) {
    if (stk_opened_device_is_cpu(opened)) {
        return NULL;
    }
    snprintf(text, room, "%s", opened->backend->describe(opened->device));
    text[strcspn(text, ",")] = '\0';
    return text;
}

void stk_job_emit_start(stk_job *job, size_t train, size_t val) {
    char name[128];
    const char *gpu = gpu_name(&job->network.opened, name, sizeof name);
    stk_event_start event = {.chosen = stk_str_text(&job->chosen),
                             .run_dir = job->out.folder.path,
                             .data = job->dataset_options->data,
                             .model = job->recipe.model->name,
                             .device = job->network.opened.name,
                             .precision = stk_precision_name(job->network.opened.precision),
                             .start_ns = job->clock.start_ns - (int64_t)(job->resume.used_s * 1e9),
                             .img_size = job->recipe.img_size,
                             .batch = (int)job->recipe.batch,
                             .workers = job->recipe.loader.workers,
                             .prefetch = job->recipe.loader.prefetch,
                             .classes = job->dataset->class_count,
                             .folds = job->recipe.folds,
                             .refits = job->recipe.refits,
                             .cores = stk_machine_cores(),
                             .memory_bytes = (int64_t)stk_machine_memory(),
                             .device_name = gpu,
                             .device_bytes =
                                 gpu != NULL ? (int64_t)job->network.memory.total_bytes : -1,
                             .train_images = (int64_t)train,
                             .val_images = (int64_t)val,
                             .test_images = (int64_t)job->dataset->test.count,
                             .budget_s = job->resume.used_s + job->clock.budget_s,
                             .metric = stk_options_get(job->options, "metric"),
                             .task = stk_task_name(job->dataset->task)};
    stk_events_start(&job->events, &event);
}

void stk_job_emit_recipe(const stk_job *job, size_t train) {
    stk_recipe_emit(&job->recipe, job->options, &job->network.opened, &job->network.decoder,
                    job->batch_search.why, train, &job->events);
}

stk_lr_test stk_job_lr_test(stk_job *job) {
    return (stk_lr_test){.network = &job->network,
                         .recipe = &job->recipe,
                         .options = job->options,
                         .clock = &job->clock,
                         .events = &job->events,
                         .folder = &job->out.folder};
}
