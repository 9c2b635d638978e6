/*
 * predict_job.c - `stoker predict`: predictions with the models of one or more run folders.
 *
 * The models predict one after the other. With a budget the file exists before the first model
 * predicts, and each model that has predicted replaces it by a better one.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <stoker/job.h>

#include "backend/opened_decoder.h"
#include "backend/opened_device.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/files/write_target.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/public_struct.h"
#include "base/str.h"
#include "base/text/locale.h"
#include "budget/budget.h"
#include "budget/prediction_choice.h"
#include "dataset/dataset.h"
#include "job/members.h"
#include "job/predict_data.h"
#include "job/recipe/job_options.h"
#include "models/models.h"
#include "predict/ensemble.h"
#include "predict/predict.h"
#include "predict/submission.h"
#include "run/run_clock.h"
#include "train/host_memory.h"

/* Seconds per cell of the file on a slow machine, assumed until a file was written. */
#define CELL_S 1e-6

typedef struct predict_job {
    const stk_predict_options *options;
    const stk_dataset_options *given; /* from the command line */
    const stk_budget_options *budget;
    stk_storage_options storage; /* the options' own, with the run's stop and deadline */
    int views; /* of each picture, as asked for; 0: as many as the run of each model used */
    stk_events events;
    stk_map bad_told; /* bad images so far; events.bad_told refers to it */
    stk_run_clock clock;
    stk_members members;
    stk_dataset *dataset;       /* owned */
    stk_opened_device opened;   /* owned */
    stk_opened_decoder decoder; /* owned; of that device, for all loaders */
    stk_host_memory host;       /* allocates batches where the device reads them fastest */
    stk_ensemble ensemble;
    /* The file. */
    char *path;       /* owned */
    stk_file_how how; /* how it is written */
    bool once;        /* a pipe or device: only the final predictions are written */
    bool kept;        /* the run's own submission exists and is better than priors */
    bool news;        /* the ensemble has changed since the file was written */
    double acc1_sum;  /* validation accuracies of the members so far */
    /* Times, and what there was no time for. */
    size_t begun;     /* members that were begun */
    double model_s;   /* seconds of loading and compiling the last member; NaN: not measured */
    double picture_s; /* seconds per picture of the last member; NaN: not measured */
    size_t halted;    /* rows that the last member predicted before its time was over */
    bool is_halted;   /* the time of the last member was over before it had predicted all rows */
    const char *told_run; /* of the last member whose features were opened */
    bool unread;          /* a member had time for all rows, and no picture could be read */
    int fewest_views;     /* of the members that predicted all rows, where views were asked for */
} predict_job;

static const char *first_run(const predict_job *job) {
    return job->options->runs.count > 0 ? job->options->runs.items[0] : "";
}

static stk_status open_data(predict_job *job, stk_error *err) {
    const stk_predict_data wanted = {.run = first_run(job),
                                     .given = job->given,
                                     .storage = &job->storage,
                                     .members = &job->members,
                                     .events = &job->events};
    return stk_predict_data_open(&wanted, &job->dataset, err);
}

/* `features` are those that the model takes. */
static stk_loader_config loader_of(predict_job *job, const stk_checkpoint_info *info,
                                   const stk_features *features) {
    stk_loader_options automatic = {
        .workers = STK_AUTO_INT, .prefetch = STK_AUTO_INT, .loader_memory = STK_AUTO_BYTES};
    uint64_t image_bytes =
        (uint64_t)info->img_size * (uint64_t)info->img_size * (uint64_t)info->channels;
    stk_loader_config config = {.store = job->dataset->store,
                                .samples = job->dataset->test.items,
                                .count = job->dataset->test.count,
                                .memory = stk_host_memory_for_loader(&job->host),
                                .halt = {stk_run_clock_must_write, &job->clock},
                                .features = features->count > 0 ? features : NULL,
                                .transform = {.size = info->img_size,
                                              .channels = info->channels,
                                              .window = info->window,
                                              .native = info->native,
                                              .crop_fraction = info->crop_fraction,
                                              .interpolation = info->interpolation},
                                .sizing = stk_loader_sizing_for(&automatic, STK_PREDICT_BATCH,
                                                                image_bytes, stk_machine_cores(),
                                                                stk_machine_memory())};
    stk_opened_decoder_hand_out(&job->decoder, false, &config);
    return config;
}

/* ---- the file ---- */

static const char *const *class_names(const predict_job *job) {
    return job->members.count > 0 ? (const char *const *)job->members.items[0].info.classes
                                  : job->dataset->classes;
}

/* What the members, or the data set without any, say of their outputs; without predictions. */
static stk_answers answers_of(const predict_job *job, int classes) {
    const stk_dataset *dataset = job->dataset;
    stk_answers answers = {.classes = class_names(job),
                           .class_count = classes,
                           .task = dataset->task,
                           .pictures = dataset->train.count,
                           .exclusive = dataset->targets.exclusive};
    if (job->members.count > 0) {
        const stk_outputs *outputs = &job->members.items[0].info.outputs;
        answers.task = outputs->task;
        answers.pictures = outputs->pictures;
        answers.trained = outputs->has_answer ? &outputs->answer : NULL;
        answers.exclusive = outputs->exclusive;
    }
    return answers;
}

static stk_status submit(predict_job *job, const char *status, stk_outcome *outcome,
                         stk_error *err) {
    int64_t start = stk_clock_ns();
    stk_answers answers = answers_of(job, (int)job->ensemble.classes);
    answers.ensemble = &job->ensemble;
    answers.rule = stk_ensemble_rule(&job->ensemble);
    answers.pool = stk_ensemble_pool(&job->ensemble);
    stk_status written =
        stk_submission_write_how(job->path, &job->how, job->dataset, &answers, err);
    if (written == STK_OK) {
        stk_run_clock_record(&job->clock, STK_MARGIN_SUBMISSION, start);
        job->news = false;
        stk_event_submission event = {.path = job->path,
                                      .status = status,
                                      .rows = (int64_t)job->dataset->row_count,
                                      .models = job->ensemble.models,
                                      .models_wanted = job->members.wanted};
        stk_events_submission(&job->events, &event);
        snprintf(outcome->submission, sizeof outcome->submission, "%s", job->path);
        snprintf(outcome->status, sizeof outcome->status, "%s", status);
    }
    return written;
}

/* Opens the ensemble. Without any model it has the class priors, if the training set can be read.
 */
static stk_status open_ensemble(predict_job *job, stk_error *err) {
    const stk_dataset *dataset = job->dataset;
    int classes = dataset->class_count;
    if (job->members.count > 0) {
        classes = job->members.items[0].info.class_count;
    } else if (classes == 0) {
        return STK_FAIL(err, STK_ERR_DATA, "%s has no trained model yet (weights/best.safetensors)",
                        first_run(job));
    } else {
        stk_events_warning(&job->events, "%s has no trained model: class priors are written",
                           first_run(job));
    }
    const stk_answers answers = answers_of(job, classes);
    const stk_answer answer = stk_submission_answer(dataset, &answers);
    size_t kept = stk_predictions_kept(&answer, dataset->test.count, (size_t)classes);
    stk_status status =
        stk_ensemble_open(&job->ensemble, dataset->test.count, (size_t)classes, kept, err);
    bool same = status == STK_OK && dataset->class_count == classes;
    for (int c = 0; same && c < classes; c++) {
        same = strcmp(dataset->classes[c], class_names(job)[c]) == 0;
    }
    if (same) {
        stk_dataset_priors(dataset, job->ensemble.priors);
    }
    return status;
}

/*
 * The first of NAME.csv, NAME-2.csv and so on that does not exist in the current folder; NULL
 * without memory.
 */
static char *new_name(const char *name) {
    struct stat info;
    char *path = stk_str_format("%s.csv", name);
    for (int i = 2; path != NULL && stk_disk_look_link(path, &info) == 0; i++) {
        stk_mem_free(path);
        path = stk_str_format("%s-%d.csv", name, i);
    }
    return path;
}

/*
 * The file of one run lies in its folder and is replaced there. Predictions of several runs belong
 * to none of them: they go to a new file.
 */
static stk_status name_file(predict_job *job, stk_error *err) {
    const char *name = job->given->data != NULL ? "predictions" : "submission";
    bool several = job->options->runs.count > 1;
    if (job->options->out != NULL) {
        job->path = stk_mem_strdup(job->options->out);
    } else {
        job->path = several ? new_name(name) : stk_str_format("%s/%s.csv", first_run(job), name);
    }
    job->how = (stk_file_how){.chosen = job->options->out != NULL || several,
                              .stop = job->clock.stop,
                              .deadline_ns = stk_run_clock_end_ns(&job->clock)};
    return job->path != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a path");
}

/* Finds out where to write. Fails, before anything is read, if nothing can be written there. */
static stk_status find_place(predict_job *job, stk_error *err) {
    stk_write_target place = {0};
    stk_error why = {0};
    stk_status status = name_file(job, err);
    STK_THEN(status, stk_write_target_find(&place, job->path, job->how.chosen, err));
    if (status != STK_OK) {
        return status;
    }
    job->once = place.stream;
    stk_write_target_free(&place);
    status = stk_write_target_check(job->options->out != NULL ? "--out" : "cannot write", job->path,
                                    &why);
    return status == STK_OK ? STK_OK
                            : STK_FAIL(err, status == STK_ERR_USAGE ? STK_ERR_STORAGE : status,
                                       "%s", why.message);
}

/*
 * With a budget, writes class priors first, so that a file exists at the deadline. The submission
 * that a training left is such a file already.
 */
static stk_status open_file(predict_job *job, stk_outcome *outcome, stk_error *err) {
    bool own = !job->how.chosen && job->given->data == NULL;
    job->kept = own && stk_path_is_file(job->path);
    stk_margin_note(&job->clock.margin, STK_MARGIN_SUBMISSION,
                    CELL_S * (double)(job->ensemble.rows * (job->ensemble.classes + 2)));
    bool first = !isnan(job->clock.budget_s) && job->members.count > 0 && !job->kept && !job->once;
    return first ? submit(job, "prior", outcome, err) : STK_OK;
}

/* ---- the models ---- */

/* One model's network with its weights. */
typedef struct loaded_model {
    stk_graph *graph;
    stk_state *state;
    stk_features features; /* freed with stk_predict_data_features_free() */
} loaded_model;

/* The numbers beside the pictures that the model takes. Models of one run lack the same columns:
 * this is told once. */
static stk_status open_features(predict_job *job, const stk_member *member, loaded_model *l,
                                stk_error *err) {
    bool told = job->told_run == member->run;
    job->told_run = member->run;
    return stk_predict_data_features(job->dataset, member, told ? NULL : &job->events, &l->features,
                                     err);
}

static stk_status load(predict_job *job, const stk_member *member, loaded_model *l,
                       stk_error *err) {
    const stk_checkpoint_info *info = &member->info;
    const stk_backend *backend = job->opened.backend;
    const stk_model *model = NULL;
    stk_model_config config = {.img_size = info->img_size,
                               .classes = info->class_count,
                               .channels = info->channels,
                               .features = info->features,
                               .steps = info->outputs.steps};
    stk_state_config weights = {.train = false};
    stk_status status = open_features(job, member, l, err);
    STK_THEN(status, stk_model_find(info->model, &model, err));
    STK_THEN(status, stk_model_build(model, &config, &l->graph, err));
    if (status == STK_OK) {
        memcpy(l->graph->mean, info->mean, sizeof l->graph->mean);
        memcpy(l->graph->std, info->std, sizeof l->graph->std);
        status = backend->state_new(&l->state, job->opened.device, l->graph, &weights, err);
    }
    return status == STK_OK ? stk_checkpoint_load(member->path, backend, l->state, l->graph, err)
                            : status;
}

static int views_of(const predict_job *job, const stk_member *member) {
    return job->views > 0 ? job->views : member->views;
}

/* How many models and views there is time for, once a model has begun: the others are counted with
 * as many views. `views_done` are those of the running model; 0: none is running. */
static stk_prediction_choice choice_now(predict_job *job, double picture_s, int views_done) {
    stk_prediction_facts facts = {.left_s = stk_run_clock_before_writing(&job->clock),
                                  .rows = (int64_t)job->ensemble.rows,
                                  .picture_s = picture_s,
                                  .model_s = job->model_s,
                                  .models = (int)(job->members.count - job->begun),
                                  .views = views_of(job, &job->members.items[job->begun - 1]),
                                  .views_done = views_done};
    return stk_prediction_choose(&facts);
}

static bool wants_view(void *user, const stk_predicted *so_far) {
    predict_job *job = user;
    double picture_s = so_far->pass_s / (double)job->ensemble.rows;
    return choice_now(job, picture_s, so_far->views).views > so_far->views;
}

/* Records how long a model took, and what there was no time for. */
static void record_member(predict_job *job, const stk_predicted *predicted, const bool *have) {
    size_t rows = 0;
    for (size_t r = 0; r < job->ensemble.rows; r++) {
        rows += have[r];
    }
    job->is_halted = predicted->views == 0;
    job->halted = job->is_halted ? rows : 0;
    job->unread = job->unread || (rows == 0 && !job->is_halted);
    if (predicted->views > 0) {
        job->picture_s = predicted->pass_s / (double)job->ensemble.rows;
        job->fewest_views =
            predicted->views < job->fewest_views ? predicted->views : job->fewest_views;
    }
}

/* Predicts with one model and adds it to the ensemble. */
static stk_status predict_with(predict_job *job, const stk_member *member, const loaded_model *l,
                               stk_error *err) {
    stk_predictions probs = {0};
    bool *have = stk_mem_new(job->ensemble.rows, sizeof *have);
    stk_predicted predicted = {0};
    stk_prediction prediction = {
        .backend = job->opened.backend,
        .state = l->state,
        .graph = l->graph,
        .compile = {.batch = STK_PREDICT_BATCH, .precision = job->opened.precision},
        .data = loader_of(job, &member->info, &l->features),
        .split = "test",
        .events = &job->events,
        .outputs = &member->info.outputs,
        .temperature = stk_calibration_temperature(&member->info.calibration),
        .views = views_of(job, member),
        .wants_view = wants_view,
        .user = job};
    stk_status status = stk_predictions_open(&probs, job->ensemble.rows, job->ensemble.classes,
                                             job->ensemble.sum.kept, err);
    if (status == STK_OK) {
        status = have != NULL ? stk_predict_samples(&prediction, &probs, have, &predicted, err)
                              : STK_FAIL_MEMORY(err, "predictions");
    }
    if (status == STK_OK) {
        job->model_s += predicted.start_s;
        record_member(job, &predicted, have);
        status = stk_member_arrange(member, &probs, err);
    }
    int models = job->ensemble.models;
    if (status == STK_OK) {
        stk_ensemble_add(&job->ensemble, &probs, have, &member->info.calibration, member->weight);
    }
    if (job->ensemble.models > models) { /* a model that predicted no row is no member */
        job->news = true;
        job->acc1_sum += member->info.acc1;
    }
    stk_predictions_free(&probs);
    stk_mem_free(have);
    return status;
}

/* Loads and runs one model. Weights that cannot be used are skipped with a warning. */
static stk_status run_member(predict_job *job, const stk_member *member, stk_error *err) {
    loaded_model l = {0};
    stk_error why = {0};
    int64_t start = stk_clock_ns();
    stk_status status = load(job, member, &l, &why);
    job->begun++;
    if (status == STK_OK) {
        job->model_s = stk_clock_since_s(start);
        status = predict_with(job, member, &l, err);
    } else if (status == STK_ERR_STOPPED) {
        job->is_halted = true;
        status = STK_OK;
    } else if (status == STK_ERR_DATA || status == STK_ERR_STORAGE) {
        stk_members_leave_out(&job->members, &why, &job->events);
        status = STK_OK;
    } else {
        status = STK_FAIL(err, status, "%s", why.message);
    }
    job->opened.backend->state_free(l.state);
    stk_graph_free(l.graph);
    stk_predict_data_features_free(&l.features, job->dataset);
    return status;
}

/* The first model begins in any case; a later one only if it is expected to finish. */
static bool has_time(predict_job *job) {
    return !job->is_halted && !stk_run_clock_must_write(&job->clock) &&
           (job->ensemble.models == 0 || choice_now(job, job->picture_s, 0).models > 0);
}

static stk_status run_members(predict_job *job, stk_outcome *outcome, stk_error *err) {
    const stk_members *members = &job->members;
    stk_status status = STK_OK;
    while (status == STK_OK && job->begun < members->count && has_time(job)) {
        int models = job->ensemble.models;
        status = run_member(job, &members->items[job->begun], err);
        bool better = job->ensemble.models > models && job->begun < members->count;
        if (status == STK_OK && better && !isnan(job->clock.budget_s) && !job->once) {
            status = submit(job, "partial", outcome, err);
        }
    }
    bool all_tried = job->begun == members->count && !job->is_halted && !job->unread;
    if (status == STK_OK && members->count > 0 && job->ensemble.models == 0 && all_tried) {
        status = STK_FAIL(err, members->error.status, "%s", members->error.message);
    }
    return status;
}

/* ---- the end ---- */

/* Warns, in one sentence, of everything that there was no time for. False: there was time for all
 * of it. */
static bool warn_left_out(const predict_job *job) {
    const stk_ensemble *ensemble = &job->ensemble;
    stk_str text = {0};
    if (job->begun < job->members.count || (job->is_halted && job->halted == 0)) {
        stk_str_appendf(&text, "; %d of the %zu models predicted", ensemble->models,
                        job->members.count);
    }
    if (job->fewest_views < job->views) {
        stk_str_appendf(&text, "; images were seen in %d of %d views", job->fewest_views,
                        job->views);
    }
    if (job->is_halted && job->halted > 0) {
        stk_str_appendf(&text, "; the last model predicted %zu of %zu images, the others have %s",
                        job->halted, ensemble->rows,
                        ensemble->models > 1 ? "what the other models say" : "class priors");
    }
    bool any = text.length > 0;
    if (any) {
        stk_events_warning(&job->events, "there was no time for all of it%s", stk_str_text(&text));
    }
    stk_str_free(&text);
    return any;
}

/* Without a budget no partial result is delivered: a request to stop leaves the old file. */
static stk_status deliver(predict_job *job, stk_outcome *outcome, stk_error *err) {
    bool predicted = job->ensemble.models > 0;
    if (stk_run_clock_stopping(&job->clock) && (isnan(job->clock.budget_s) || !predicted)) {
        return STK_FAIL(err, STK_ERR_STOPPED, "stopped before the predictions were written");
    }
    bool cut = warn_left_out(job);
    if (!predicted && cut && job->kept) {
        stk_events_warning(&job->events, "%s is left as it was", job->path);
        snprintf(outcome->submission, sizeof outcome->submission, "%s", job->path);
        snprintf(outcome->status, sizeof outcome->status, "partial");
        return STK_OK;
    }
    if (!predicted && job->unread) {
        stk_events_warning(&job->events,
                           "none of the %zu test images could be read: class priors are written",
                           job->ensemble.rows);
    }
    bool whole = !cut && job->ensemble.models == job->members.wanted;
    const char *status = !predicted ? "prior" : whole ? "complete" : "partial";
    bool there = !job->news && strcmp(outcome->status, status) == 0;
    return there ? STK_OK : submit(job, status, outcome, err);
}

/* Opens the device and its decoder. */
static stk_status open_device(predict_job *job, const stk_decoder_wish *wish, stk_error *err) {
    stk_device_config config = {.threads = stk_machine_cores(),
                                .deterministic = job->options->deterministic,
                                .halted = stk_run_clock_must_halt,
                                .user = &job->clock};
    stk_status status = stk_opened_device_open(
        &job->opened, job->options->device, (stk_precision)job->options->precision, &config, err);
    job->clock.margin.end_s = stk_opened_device_end_s(&job->opened);
    job->host = (stk_host_memory){job->opened.backend, job->opened.device};
    STK_THEN(status, stk_opened_decoder_open(&job->decoder, &job->opened, wish, err));
    if (status == STK_OK) {
        stk_opened_decoder_emit(&job->decoder, &job->events);
    }
    return status;
}

static stk_status run_job(predict_job *job, stk_outcome *outcome, stk_error *err) {
    const stk_decoder_wish wish = {.decode = (stk_decode)job->options->decode,
                                   .deterministic = job->options->deterministic};
    stk_status status = stk_opened_decoder_check(job->options->device, &wish, err);
    STK_THEN(status,
             stk_run_clock_set_deadline(&job->clock, job->budget->deadline, &job->events, err));
    job->storage.deadline_ns = stk_run_clock_end_ns(&job->clock);
    STK_THEN(status, stk_members_find(&job->members, job->options, &job->events, err));
    STK_THEN(status, find_place(job, err));
    STK_THEN(status, open_device(job, &wish, err));
    STK_THEN(status, open_data(job, err));
    if (status == STK_OK && job->dataset->test.count == 0) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "%s has no test images; give a folder of pictures with --data",
                          job->dataset->root);
    }
    STK_THEN(status, open_ensemble(job, err));
    STK_THEN(status, open_file(job, outcome, err));
    STK_THEN(status, run_members(job, outcome, err));
    return status == STK_OK ? deliver(job, outcome, err) : status;
}

/* A stop halts the device at once: a prediction that is half done is not delivered. */
static void open_job(predict_job *job, const stk_options *options, const stk_run *run) {
    const stk_budget_options *budget = stk_options_values(options, &stk_budget_option_table);
    const stk_view_options *views = stk_options_values(options, &stk_view_option_table);
    const stk_storage_options *storage = stk_options_values(options, &stk_storage_option_table);
    int wanted = stk_is_auto_int(views->tta) ? 0 : (int)views->tta;
    *job = (predict_job){
        .options = stk_options_values(options, &stk_predict_option_table),
        .given = stk_options_values(options, &stk_dataset_option_table),
        .budget = budget,
        .storage = *storage,
        .views = wanted,
        .fewest_views = wanted,
        .clock = {.start_ns = stk_clock_ns(), .budget_s = budget->budget_s, .halt_on_stop = true},
        .news = true,
        .model_s = NAN,
        .picture_s = NAN};
    job->events.bad_told = &job->bad_told;
    job->storage.events = &job->events;
    if (run != NULL) {
        job->clock.stop = run->stop;
        job->clock.start_ns = run->start_ns != 0 ? run->start_ns : job->clock.start_ns;
        job->storage.stop = run->stop;
        stk_events_add(&job->events, run->observer);
    }
}

static void close_job(predict_job *job) {
    stk_members_free(&job->members);
    stk_ensemble_free(&job->ensemble);
    stk_map_free(&job->bad_told);
    stk_dataset_free(job->dataset);
    stk_opened_decoder_close(&job->decoder);
    stk_opened_device_close(&job->opened);
    stk_mem_free(job->path);
}

stk_status stk_predict(stk_options *options, const stk_run *run, stk_outcome *outcome,
                       stk_error *err) {
    stk_outcome own = {.size = sizeof own};
    predict_job job;
    outcome = outcome != NULL ? outcome : &own;
    stk_status sound = STK_PUBLIC_BEGIN(stk_outcome, outcome, run, err);
    if (sound != STK_OK) {
        return sound;
    }
    open_job(&job, options, run);
    stk_locale locale = stk_locale_enter();
    stk_disk *disk = stk_run_clock_enter_disk(&job.clock);
    for (size_t i = 0; i < job.options->runs.count; i++) {
        stk_disk_root(job.options->runs.items[i], false);
    }
    int unsynced = stk_disk_unsynced();
    stk_status status = run_job(&job, outcome, err);
    stk_run_clock_warn_unsynced(unsynced, &job.events);
    (void)stk_opened_decoder_warn_lost(&job.decoder, &job.events);
    if (outcome->status[0] == '\0') {
        status = stk_run_clock_failed(&job.clock, status, err);
    }
    stk_locale_leave(locale);
    snprintf(outcome->run_dir, sizeof outcome->run_dir, "%s", first_run(&job));
    outcome->best_acc1 = job.ensemble.models > 0 ? job.acc1_sum / job.ensemble.models : NAN;
    outcome->models = job.ensemble.models;
    outcome->rows = status == STK_OK ? (int64_t)job.dataset->row_count : 0;
    close_job(&job);
    stk_disk_leave(disk);
    return status;
}
