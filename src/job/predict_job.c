/*
 * predict_job.c - predictions from the models of one or more run folders.
 *
 * Models vote one after the other. With a budget the file is there before the first of them, and
 * each that has voted makes a better one.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <stoker/job.h>

#include "backend/opened_device.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/files/write_target.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text/json.h"
#include "base/text/locale.h"
#include "events/public_struct.h"
#include "budget/budget.h"
#include "budget/prediction_choice.h"
#include "dataset/dataset.h"
#include "run/run_clock.h"
#include "job/job_options.h"
#include "job/members.h"
#include "models/models.h"
#include "predict/ensemble.h"
#include "predict/predict.h"
#include "predict/submission.h"
#include "train/host_memory.h"

/* Seconds for a cell of the file, until one was written: a slow machine's. */
#define CELL_S 1e-6

typedef struct predict_job {
    const stk_predict_options *options;
    const stk_dataset_options *given; /* from the command line */
    const stk_budget_options *budget;
    stk_storage_options storage; /* those of the options, with the run's stop and deadline */
    int views;                   /* wanted of each picture */
    stk_events events;
    stk_map bad_told; /* what events.bad_told refers to */
    stk_run_clock clock;
    stk_members members;
    stk_dataset *dataset;
    stk_opened_device opened;
    stk_host_memory host; /* of the device: where batches lie */
    stk_ensemble ensemble;
    char *path;       /* owned: the file that is written */
    stk_file_how how; /* it is */
    bool once;        /* nothing can be taken back there: only the last file is written */
    bool kept;        /* what lies there is worth more than priors */
    bool news;        /* the ensemble has changed since it was last written */
    double acc1_sum;
    /* What is known of the time that models take, and what there was none for. */
    size_t begun;     /* members that were tried */
    double model_s;   /* loading and compiling the last one; NaN: not known */
    double picture_s; /* of it; NaN: not known */
    size_t halted;    /* rows that the last one voted on where time ended it */
    bool is_halted;   /* it did */
    bool unread;      /* one had time for all rows, and no picture could be read */
    int fewest_views; /* of the models that voted on all rows */
} predict_job;

static const char *first_run(const predict_job *job) {
    return job->options->runs.count > 0 ? job->options->runs.items[0] : "";
}

static const char *arg_text(const predict_job *job, const char *key) {
    return stk_json_string(stk_json_get(job->members.args, key));
}

static int64_t arg_number(const predict_job *job, const char *key) {
    uint64_t value = 0;
    (void)stk_json_u64(stk_json_get(job->members.args, key), &value);
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
                        first_run(job));
    }
    stk_status status =
        stk_dataset_open(&job->dataset, &options, &job->storage, &job->events, &cause);
    if (status != STK_OK && status != STK_ERR_STOPPED && job->members.count > 0) {
        /* The training pictures may be gone: the test pictures are enough for trained models. */
        status =
            stk_dataset_open_images(&job->dataset, &options, &job->storage, &job->events, NULL);
    }
    if (status != STK_OK) {
        return STK_FAIL(err, cause.status, "%s", cause.message);
    }
    return STK_OK;
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
                               .sizing = stk_loader_sizing_make(&automatic, STK_PREDICT_BATCH,
                                                                info->img_size, stk_machine_cores(),
                                                                stk_machine_memory())};
}

/* ---- the file ---- */

static const char *const *class_names(const predict_job *job) {
    return job->members.count > 0 ? (const char *const *)job->members.items[0].info.classes
                                  : job->dataset->classes;
}

static stk_status submit(predict_job *job, const char *status, stk_outcome *outcome,
                         stk_error *err) {
    int64_t start = stk_clock_ns();
    stk_status written = stk_submission_write_how(job->path, &job->how, job->dataset,
                                                  class_names(job), (int)job->ensemble.classes,
                                                  stk_ensemble_average(&job->ensemble), err);
    if (written == STK_OK) {
        stk_run_clock_record(&job->clock, STK_MARGIN_SUBMISSION, start);
        job->news = false;
        stk_event_submission event = {.path = job->path,
                                      .status = status,
                                      .rows = (int64_t)job->ensemble.rows,
                                      .models = job->ensemble.models,
                                      .models_wanted = job->members.wanted};
        stk_events_submission(&job->events, &event);
        snprintf(outcome->submission, sizeof outcome->submission, "%s", job->path);
        snprintf(outcome->status, sizeof outcome->status, "%s", status);
    }
    return written;
}

/* Without any model the class priors are still an answer, if the training set can be read. */
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
    stk_status status =
        stk_ensemble_open(&job->ensemble, dataset->test.count, (size_t)classes, err);
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
 * The first of NAME.csv, NAME-2.csv ... that is not there in the current folder. NULL without
 * memory.
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
 * One run's file lies in its folder and is replaced there. What several runs say together belongs
 * to none of them: it becomes a new file.
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

/* Where to write. What cannot be written is told before anything is read. */
static stk_status find_place(predict_job *job, stk_error *err) {
    stk_write_target place = {0};
    stk_error why = {0};
    stk_status status = name_file(job, err);
    status =
        status == STK_OK ? stk_write_target_find(&place, job->path, job->how.chosen, err) : status;
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
 * With a budget the first file: a deadline must find one. The run's own submission, which a
 * training has left, is such a one already.
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
typedef struct loaded {
    stk_graph *graph;
    stk_state *state;
} loaded;

static stk_status load(const predict_job *job, const stk_member *member, loaded *l,
                       stk_error *err) {
    const stk_checkpoint_info *info = &member->info;
    const stk_backend *backend = job->opened.backend;
    const stk_model *model = NULL;
    stk_model_config config = {.img_size = info->img_size, .classes = info->class_count};
    stk_state_config weights = {.train = false};
    stk_status status = stk_model_find(info->model, &model, err);
    if (status == STK_OK) {
        status = stk_model_build(model, &config, &l->graph, err);
    }
    if (status == STK_OK) {
        memcpy(l->graph->mean, info->mean, sizeof l->graph->mean);
        memcpy(l->graph->std, info->std, sizeof l->graph->std);
        status = backend->state_new(&l->state, job->opened.device, l->graph, &weights, err);
    }
    return status == STK_OK ? stk_checkpoint_load(member->path, backend, l->state, l->graph, err)
                            : status;
}

/* What there is time for: with views_done of the model at work, 0 before it begins. */
static stk_prediction_choice choice_now(predict_job *job, double picture_s, int views_done) {
    stk_prediction_facts facts = {.left_s = stk_run_clock_before_writing(&job->clock),
                                  .rows = (int64_t)job->ensemble.rows,
                                  .picture_s = picture_s,
                                  .model_s = job->model_s,
                                  .models = (int)(job->members.count - job->begun),
                                  .views = job->views,
                                  .views_done = views_done};
    return stk_prediction_choose(&facts);
}

static bool wants_view(void *user, const stk_predicted *so_far) {
    predict_job *job = user;
    double picture_s = so_far->pass_s / (double)job->ensemble.rows;
    return choice_now(job, picture_s, so_far->views).views > so_far->views;
}

/* Remembers what the model's vote took, and what of it there was no time for. */
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

/* Lets a model vote. */
static stk_status vote(predict_job *job, const stk_member *member, const loaded *l,
                       stk_error *err) {
    double *probs = stk_mem_new(job->ensemble.rows, job->ensemble.classes * sizeof *probs);
    bool *have = stk_mem_new(job->ensemble.rows, sizeof *have);
    stk_predicted predicted = {0};
    stk_prediction prediction = {.backend = job->opened.backend,
                                 .state = l->state,
                                 .graph = l->graph,
                                 .precision = job->opened.precision,
                                 .data = loader_of(job, &member->info),
                                 .split = "test",
                                 .events = &job->events,
                                 .halt = {stk_run_clock_must_write, &job->clock},
                                 .views = job->views,
                                 .wants_view = wants_view,
                                 .user = job};
    stk_status status = probs != NULL && have != NULL
                            ? stk_predict_samples(&prediction, probs, have, &predicted, err)
                            : STK_FAIL_MEMORY(err, "predictions");
    if (status == STK_OK) {
        job->model_s += predicted.start_s;
        record_member(job, &predicted, have);
        status = stk_member_arrange(member, probs, job->ensemble.rows, err);
    }
    int models = job->ensemble.models;
    if (status == STK_OK) {
        stk_ensemble_add(&job->ensemble, probs, have, member->weight);
    }
    if (job->ensemble.models > models) { /* one that could say nothing does not count */
        job->news = true;
        job->acc1_sum += member->info.acc1;
    }
    stk_mem_free(probs);
    stk_mem_free(have);
    return status;
}

/* Weights that cannot be used are told and passed over: the others can. */
static stk_status run_member(predict_job *job, const stk_member *member, stk_error *err) {
    loaded l = {0};
    stk_error why = {0};
    int64_t start = stk_clock_ns();
    stk_status status = load(job, member, &l, &why);
    job->begun++;
    if (status == STK_OK) {
        job->model_s = stk_clock_since_s(start);
        status = vote(job, member, &l, err);
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
    return status;
}

/* The first begins in any case; a later one only where it seems to come to its end. */
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

/* One sentence of all that there was no time for; false when there is nothing to say. */
static bool tell_left_out(const predict_job *job) {
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

/* Without a budget nothing is delivered by half: a request to stop leaves the old file. */
static stk_status deliver(predict_job *job, stk_outcome *outcome, stk_error *err) {
    bool voted = job->ensemble.models > 0;
    if (stk_run_clock_stopping(&job->clock) && (isnan(job->clock.budget_s) || !voted)) {
        return STK_FAIL(err, STK_ERR_STOPPED, "stopped before the predictions were written");
    }
    bool cut = tell_left_out(job);
    if (!voted && cut && job->kept) {
        stk_events_warning(&job->events, "%s is left as it was", job->path);
        snprintf(outcome->submission, sizeof outcome->submission, "%s", job->path);
        snprintf(outcome->status, sizeof outcome->status, "partial");
        return STK_OK;
    }
    if (!voted && job->unread) {
        stk_events_warning(&job->events,
                           "none of the %zu test images could be read: class priors are written",
                           job->ensemble.rows);
    }
    bool whole = !cut && job->ensemble.models == job->members.wanted;
    const char *status = !voted ? "prior" : whole ? "complete" : "partial";
    bool there = !job->news && strcmp(outcome->status, status) == 0;
    return there ? STK_OK : submit(job, status, outcome, err);
}

static stk_status run_job(predict_job *job, stk_outcome *outcome, stk_error *err) {
    stk_device_config config = {.threads = stk_machine_cores(),
                                .deterministic = job->options->deterministic,
                                .halted = stk_run_clock_must_halt,
                                .user = &job->clock};
    stk_status status =
        stk_run_clock_set_deadline(&job->clock, job->budget->deadline, &job->events, err);
    job->storage.deadline_ns = stk_run_clock_end_ns(&job->clock);
    if (status == STK_OK) {
        status = stk_members_find(&job->members, job->options, &job->events, err);
    }
    if (status == STK_OK) {
        status = find_place(job, err);
    }
    if (status == STK_OK) {
        status = stk_opened_device_open(&job->opened, job->options->device,
                                        (stk_precision)job->options->precision, &config, err);
        job->clock.margin.end_s = stk_opened_device_end_s(&job->opened);
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
        status = open_ensemble(job, err);
    }
    if (status == STK_OK) {
        status = open_file(job, outcome, err);
    }
    if (status == STK_OK) {
        status = run_members(job, outcome, err);
    }
    return status == STK_OK ? deliver(job, outcome, err) : status;
}

/* A stop halts the device at once: a prediction that is half done is not delivered. */
static void open_job(predict_job *job, const stk_options *options, const stk_run *run) {
    const stk_budget_options *budget = stk_options_values(options, &stk_budget_option_table);
    const stk_view_options *views = stk_options_values(options, &stk_view_option_table);
    const stk_storage_options *storage = stk_options_values(options, &stk_storage_option_table);
    *job = (predict_job){
        .options = stk_options_values(options, &stk_predict_option_table),
        .given = stk_options_values(options, &stk_dataset_option_table),
        .budget = budget,
        .storage = *storage,
        .views = (int)views->tta,
        .fewest_views = (int)views->tta,
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
    stk_opened_device_close(&job->opened);
    stk_mem_free(job->path);
}

stk_status stk_predict(stk_options *options, const stk_run *run, stk_outcome *outcome,
                       stk_error *err) {
    stk_outcome own = {.size = sizeof own};
    predict_job job;
    outcome = outcome != NULL ? outcome : &own;
    stk_status sound = stk_public_check_run(run, err);
    sound = sound == STK_OK ? STK_PUBLIC_CHECK(stk_outcome, outcome, err) : sound;
    if (sound != STK_OK) {
        return sound;
    }
    *outcome = (stk_outcome){.size = sizeof *outcome};
    open_job(&job, options, run);
    stk_locale locale = stk_locale_enter();
    stk_disk *disk = stk_run_clock_enter_disk(&job.clock);
    for (size_t i = 0; i < job.options->runs.count; i++) {
        stk_disk_root(job.options->runs.items[i], false);
    }
    int unsynced = stk_disk_unsynced();
    stk_status status = run_job(&job, outcome, err);
    stk_run_clock_warn_unsynced(unsynced, &job.events);
    if (outcome->status[0] == '\0') {
        status = stk_run_clock_failed(&job.clock, status, err);
    }
    stk_locale_leave(locale);
    snprintf(outcome->run_dir, sizeof outcome->run_dir, "%s", first_run(&job));
    outcome->best_acc1 = job.ensemble.models > 0 ? job.acc1_sum / job.ensemble.models : NAN;
    outcome->models = job.ensemble.models;
    outcome->rows = status == STK_OK ? (int64_t)job.ensemble.rows : 0;
    close_job(&job);
    stk_disk_leave(disk);
    return status;
}
