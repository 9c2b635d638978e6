/* predict_job.c - predictions from the models of a run folder. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <stoker/job.h>

#include "backend/opened_device.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/locale.h"
#include "base/mem.h"
#include "base/machine.h"
#include "dataset/dataset.h"
#include "job/clockwork.h"
#include "job/job_options.h"
#include "models/models.h"
#include "predict/ballot.h"
#include "predict/predict.h"
#include "predict/submission.h"
#include "train/host_memory.h"
#include "weights/checkpoint.h"

#define MOST_MODELS 128
#define MOST_ARGS_BYTES ((size_t)1 << 20)

typedef struct predict_job {
    const stk_predict_options *options;
    const stk_dataset_options *given; /* from the command line */
    stk_storage_options storage;      /* those of the options, with the run's stop */
    stk_events events;
    stk_map bad_told; /* what events.bad_told refers to */
    stk_clockwork clock;
    stk_json *args; /* of the run */
    stk_dataset *dataset;
    stk_opened_device opened;
    stk_host_memory host;      /* of the device: where batches lie */
    char *models[MOST_MODELS]; /* owned paths */
    int model_count;
    stk_checkpoint_info info; /* of the first model: the classes */
    stk_ballot ballot;
    double acc1_sum;
} predict_job;

static stk_status read_args(predict_job *job, stk_error *err) {
    const char *run = job->options->run;
    if (run == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE, "--run is missing: give the run folder of a training");
    }
    if (!stk_path_is_dir(run)) {
        return STK_FAIL(err, STK_ERR_USAGE, "--run %s: there is no such folder", run);
    }
    char *path = stk_path_join(run, "args.json");
    char *text = NULL;
    size_t size = 0;
    stk_error cause = {0};
    stk_status status = path != NULL ? stk_file_read(path, MOST_ARGS_BYTES, &text, &size, &cause)
                                     : STK_FAIL_MEMORY(&cause, "a path");
    if (status == STK_OK) {
        status = stk_json_parse(text, size, &job->args, &cause);
    }
    if (status != STK_OK) {
        status =
            STK_FAIL(err, STK_ERR_USAGE, "--run %s is not a run folder: %s", run, cause.message);
    }
    stk_mem_free(text);
    stk_mem_free(path);
    return status;
}

static stk_status add_model(predict_job *job, const char *name, bool *there, stk_error *err) {
    char *path = stk_path_join(job->options->run, name);
    if (path == NULL) {
        return STK_FAIL_MEMORY(err, "a path");
    }
    *there = stk_path_is_file(path);
    if (*there && job->model_count < MOST_MODELS) {
        job->models[job->model_count++] = path;
    } else {
        stk_mem_free(path);
    }
    return STK_OK;
}

/* The single model of a run, or one per fold; folds that are missing are passed over. */
static stk_status find_models(predict_job *job, stk_error *err) {
    bool there = false;
    stk_status status = add_model(job, "weights/best.safetensors", &there, err);
    uint64_t folds = 1;
    (void)stk_json_u64(stk_json_get(job->args, "folds"), &folds);
    for (uint64_t fold = 0; fold < folds && fold < MOST_MODELS && folds > 1 && status == STK_OK;
         fold++) {
        char name[64];
        snprintf(name, sizeof name, "weights/fold%d/best.safetensors", (int)fold);
        status = add_model(job, name, &there, err);
    }
    return status;
}

static const char *arg_text(const predict_job *job, const char *key) {
    return stk_json_string(stk_json_get(job->args, key));
}

static int64_t arg_number(const predict_job *job, const char *key) {
    uint64_t value = 0;
    (void)stk_json_u64(stk_json_get(job->args, key), &value);
    return (int64_t)value;
}

/* The run's own data set, opened as the run opened it. */
static stk_dataset_options run_data(const predict_job *job) {
    stk_dataset_options options = *job->given;
    const char *mismatch = arg_text(job, "mismatch");
    const char *rare = arg_text(job, "rare_class");
    options.data = arg_text(job, "data");
    options.id_column = options.id_column != NULL ? options.id_column : arg_text(job, "id_column");
    options.label_column =
        options.label_column != NULL ? options.label_column : arg_text(job, "label_column");
    options.image_ext = options.image_ext != NULL ? options.image_ext : arg_text(job, "image_ext");
    options.mismatch =
        mismatch != NULL && strcmp(mismatch, "skip") == 0 ? STK_MISMATCH_SKIP : STK_MISMATCH_ERROR;
    options.rare_class = rare == NULL || strcmp(rare, "error") == 0 ? STK_RARE_ERROR
                         : strcmp(rare, "train") == 0               ? STK_RARE_TRAIN
                                                                    : STK_RARE_DROP;
    options.classes = arg_number(job, "classes");
    options.per_class = arg_number(job, "per_class");
    options.val_per_class = arg_number(job, "val_per_class");
    options.subset_seed = arg_number(job, "subset_seed");
    options.fold_column = NULL; /* how the training samples were divided no longer matters */
    options.group_column = NULL;
    return options;
}

static stk_status open_data(predict_job *job, stk_error *err) {
    if (job->given->data != NULL) {
        return stk_dataset_open_images(&job->dataset, job->given, &job->storage, &job->events, err);
    }
    stk_dataset_options options = run_data(job);
    stk_error cause = {0};
    if (options.data == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE, "%s/args.json names no data; give --data",
                        job->options->run);
    }
    stk_status status =
        stk_dataset_open(&job->dataset, &options, &job->storage, &job->events, &cause);
    if (status != STK_OK && status != STK_ERR_STOPPED && job->model_count > 0) {
        /* The training pictures may be gone: the test pictures are enough for trained models. */
        status =
            stk_dataset_open_images(&job->dataset, &options, &job->storage, &job->events, NULL);
    }
    if (status != STK_OK) {
        return STK_FAIL(err, cause.status, "%s", cause.message);
    }
    return STK_OK;
}

static bool same_classes(const stk_checkpoint_info *a, const stk_checkpoint_info *b) {
    bool same = a->class_count == b->class_count;
    for (int i = 0; same && i < a->class_count; i++) {
        same = strcmp(a->classes[i], b->classes[i]) == 0;
    }
    return same;
}

static stk_loader_config loader_of(predict_job *job, const stk_checkpoint_info *info) {
    stk_loader_options automatic = {
        .workers = STK_AUTO_INT, .prefetch = STK_AUTO_INT, .loader_memory = STK_AUTO_BYTES};
    return (stk_loader_config){.store = job->dataset->source,
                               .samples = job->dataset->test.items,
                               .count = job->dataset->test.count,
                               .memory = stk_host_memory_for_loader(&job->host),
                               .transform = {.size = info->img_size,
                                             .crop_fraction = info->crop_fraction,
                                             .interpolation = info->interpolation},
                               .plan = stk_loader_plan_make(&automatic, STK_PREDICT_BATCH,
                                                            info->img_size, stk_machine_cores(),
                                                            stk_machine_memory())};
}

/* Nothing of a prediction is delivered by half, so a request to stop ends it between batches. */
static bool must_end(void *user) {
    return stk_clockwork_stopping(user);
}

static bool device_must_end(void *user, double next_s) {
    (void)next_s;
    return stk_clockwork_stopping(user);
}

/* Loads one model and lets it vote. */
static stk_status run_model(predict_job *job, const char *path, const stk_checkpoint_info *info,
                            stk_error *err) {
    const stk_model *model = NULL;
    stk_graph *graph = NULL;
    stk_state *state = NULL;
    stk_model_config config = {.img_size = info->img_size, .classes = info->class_count};
    stk_state_config weights = {.train = false};
    bool done; /* only a request to stop ends it early, and run_job looks for that */
    double *probs = stk_mem_new(job->ballot.rows, job->ballot.classes * sizeof *probs);
    bool *have = stk_mem_new(job->ballot.rows, sizeof *have);
    stk_status status = probs != NULL && have != NULL ? stk_model_find(info->model, &model, err)
                                                      : STK_FAIL_MEMORY(err, "predictions");
    if (status == STK_OK) {
        status = stk_model_build(model, &config, &graph, err);
    }
    if (status == STK_OK) {
        memcpy(graph->mean, info->mean, sizeof graph->mean);
        memcpy(graph->std, info->std, sizeof graph->std);
        status = job->opened.backend->state_new(&state, job->opened.device, graph, &weights, err);
    }
    if (status == STK_OK) {
        status = stk_checkpoint_load(path, job->opened.backend, state, graph, err);
    }
    if (status == STK_OK) {
        stk_prediction prediction = {.backend = job->opened.backend,
                                     .state = state,
                                     .graph = graph,
                                     .precision = job->opened.precision,
                                     .data = loader_of(job, info),
                                     .split = "test",
                                     .events = &job->events,
                                     .halt = {must_end, &job->clock}};
        status = stk_predict_samples(&prediction, probs, have, &done, err);
    }
    if (status == STK_OK) {
        stk_ballot_add(&job->ballot, probs, have);
    }
    job->opened.backend->state_free(state);
    stk_graph_free(graph);
    stk_mem_free(probs);
    stk_mem_free(have);
    return status;
}

static stk_status run_models(predict_job *job, stk_error *err) {
    stk_status status = STK_OK;
    for (int i = 0;
         i < job->model_count && status == STK_OK && !stk_clockwork_stopping(&job->clock); i++) {
        stk_checkpoint_info info;
        status = stk_checkpoint_info_read(job->models[i], &info, err);
        if (status == STK_OK && !same_classes(&info, &job->info)) {
            status = STK_FAIL(err, STK_ERR_DATA, "%s and %s do not know the same classes",
                              job->models[0], job->models[i]);
        }
        if (status == STK_OK) {
            status = run_model(job, job->models[i], &info, err);
            job->acc1_sum += info.acc1;
        }
        stk_checkpoint_info_free(&info);
    }
    return status;
}

/* Without any model the class priors are still an answer, if the training set can be read. */
static stk_status open_ballot(predict_job *job, stk_error *err) {
    size_t classes = (size_t)job->dataset->class_count;
    if (job->model_count > 0) {
        stk_status status = stk_checkpoint_info_read(job->models[0], &job->info, err);
        if (status != STK_OK) {
            return status;
        }
        classes = (size_t)job->info.class_count;
    } else if (classes == 0) {
        return STK_FAIL(err, STK_ERR_DATA, "%s has no trained model yet (weights/best.safetensors)",
                        job->options->run);
    } else {
        stk_events_warning(&job->events, "%s has no trained model: class priors are written",
                           job->options->run);
    }
    stk_status status = stk_ballot_open(&job->ballot, job->dataset->test.count, classes, err);
    if (status == STK_OK && (size_t)job->dataset->class_count == classes) {
        stk_dataset_priors(job->dataset, job->ballot.priors);
    }
    return status;
}

static stk_status write_predictions(predict_job *job, stk_outcome *outcome, stk_error *err) {
    const char *const *classes =
        job->model_count > 0 ? (const char *const *)job->info.classes : job->dataset->classes;
    const char *name = job->given->data != NULL ? "predictions.csv" : "submission.csv";
    char *path = job->options->out != NULL ? stk_mem_strdup(job->options->out)
                                           : stk_path_join(job->options->run, name);
    stk_status status =
        path != NULL ? stk_submission_write(path, job->dataset, classes, (int)job->ballot.classes,
                                            stk_ballot_count(&job->ballot), err)
                     : STK_FAIL_MEMORY(err, "a path");
    if (status == STK_OK) {
        stk_event_submission event = {.path = path,
                                      .status = job->model_count > 0 ? "complete" : "prior",
                                      .rows = (int64_t)job->ballot.rows,
                                      .models = job->ballot.models};
        stk_events_submission(&job->events, &event);
        snprintf(outcome->submission, sizeof outcome->submission, "%s", path);
        snprintf(outcome->status, sizeof outcome->status, "%s", event.status);
    }
    stk_mem_free(path);
    return status;
}

static stk_status run_job(predict_job *job, stk_outcome *outcome, stk_error *err) {
    stk_device_config config = {.threads = stk_machine_cores(),
                                .deterministic = job->options->deterministic,
                                .halted = device_must_end,
                                .user = &job->clock};
    stk_status status = read_args(job, err);
    if (status == STK_OK) {
        status = find_models(job, err);
    }
    if (status == STK_OK) {
        status = stk_opened_device_open(&job->opened, job->options->device,
                                        (stk_precision)job->options->precision, &config, err);
        job->host = (stk_host_memory){job->opened.backend, job->opened.device};
    }
    if (status == STK_OK) {
        status = open_data(job, err);
    }
    if (status == STK_OK && job->dataset->test.count == 0) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "%s has no test images; give a folder of pictures with --data",
                          job->dataset->root);
    }
    if (status == STK_OK) {
        status = open_ballot(job, err);
    }
    if (status == STK_OK) {
        status = run_models(job, err);
    }
    if (status == STK_OK && stk_stop_asked(job->clock.stop) != STK_STOP_NONE) {
        status = STK_FAIL(err, STK_ERR_STOPPED, "stopped before the predictions were written");
    }
    return status == STK_OK ? write_predictions(job, outcome, err) : status;
}

stk_status stk_predict(stk_options *options, const stk_run *run, stk_outcome *outcome,
                       stk_error *err) {
    stk_outcome own = {0};
    outcome = outcome != NULL ? outcome : &own;
    memset(outcome, 0, sizeof *outcome);
    predict_job job = {.options = stk_options_values(options, &stk_predict_option_table),
                       .given = stk_options_values(options, &stk_dataset_option_table),
                       .storage = *(const stk_storage_options *)stk_options_values(
                           options, &stk_storage_option_table),
                       .clock = {.budget_s = NAN}};
    job.events.bad_told = &job.bad_told;
    if (run != NULL) {
        job.clock.stop = run->stop;
        job.storage.stop = run->stop;
        stk_events_add(&job.events, run->observer);
    }
    stk_locale locale = stk_locale_enter();
    stk_status status = run_job(&job, outcome, err);
    stk_locale_leave(locale);
    snprintf(outcome->run_dir, sizeof outcome->run_dir, "%s",
             job.options->run != NULL ? job.options->run : "");
    outcome->best_acc1 = job.ballot.models > 0 ? job.acc1_sum / job.ballot.models : NAN;
    outcome->models = job.ballot.models;
    outcome->rows = status == STK_OK ? (int64_t)job.ballot.rows : 0;
    for (int i = 0; i < job.model_count; i++) {
        stk_mem_free(job.models[i]);
    }
    stk_checkpoint_info_free(&job.info);
    stk_ballot_free(&job.ballot);
    stk_map_free(&job.bad_told);
    stk_dataset_free(job.dataset);
    stk_opened_device_close(&job.opened);
    stk_json_free(job.args);
    return status;
}
