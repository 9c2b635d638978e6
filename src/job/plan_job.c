/*
 * plan_job.c - `stoker plan`: how long a training would take, and how much memory.
 *
 * A few steps of training on the real pictures and a part of a validation are timed, and their
 * results dropped. Everything else is the arithmetic by which a training plans. Nothing is written.
 */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/public_struct.h"
#include "budget/fold_choice.h"
#include "budget/inference.h"
#include "budget/prediction_choice.h"
#include "job/recipe/task_lines.h"
#include "job/training/fitting.h"
#include "job/training/folds.h"
#include "job/training/job.h"
#include "job/training/rehearsal.h"
#include "predict/predict.h"
#include "train/times.h"

/* Measuring ends after MEASURE_S seconds and ENOUGH_STEPS steps. Slow steps get MOST_MEASURE_S
 * seconds, and then LEAST_STEPS are enough. On a CPU, where no batches are made long before they
 * are needed, MANY_STEPS fast ones are enough, too. */
#define MEASURE_S 2.0
#define MANY_STEPS 300
#define ENOUGH_STEPS 12
#define LEAST_STEPS 3
#define MOST_MEASURE_S 4.0

#define INFERENCE_S 1.5 /* seconds for which inference is measured, about */

/* Notes when a batch was done; its results are dropped. */
static void time_batch(void *user, const stk_batch *batch, const size_t *entries,
                       const float *logits) {
    (void)entries;
    (void)logits;
    stk_batch_times_note(user, batch->count, stk_clock_ns());
}

/* Seconds of inference per picture, on the first pictures of the validation set. */
static stk_status measure_inference(stk_job *job, const stk_split *split,
                                    const stk_sample *val_samples, double guess_s,
                                    double *picture_s, stk_error *err) {
    const stk_backend *backend = job->network.opened.backend;
    stk_compile_config how = stk_network_compile_config(&job->network, &job->recipe, false);
    stk_exec *exec = NULL;
    stk_batch_times times = {0};
    bool done = false;
    double wanted = INFERENCE_S / guess_s;
    size_t count = wanted < STK_PREDICT_BATCH ? STK_PREDICT_BATCH : (size_t)fmin(wanted, 1e6);
    stk_evaluation evaluation = {
        .backend = backend,
        .answers = stk_graph_answers(job->network.graph),
        .data = stk_job_loader_config(job, false, val_samples, split->val,
                                      count < split->val_count ? count : split->val_count),
        .on_batch = time_batch,
        .user = &times};
    evaluation.data.batch = how.batch;
    stk_status status = backend->compile(&exec, job->network.state, &how, err);
    if (status == STK_OK) {
        evaluation.exec = exec;
        int64_t start = stk_clock_ns();
        times.last_ns = start;
        status = stk_evaluate(&evaluation, &done, err);
        double seconds = stk_batch_times_even(&times, stk_clock_since_s(start));
        *picture_s = done ? seconds / (double)evaluation.data.count : guess_s;
    }
    backend->exec_free(exec);
    return status;
}

/* Fills in the bytes of a state: each kind of tensor is the difference of two configurations. */
static void note_state(const stk_job *job, stk_estimate *e) {
    const stk_backend *backend = job->network.opened.backend;
    stk_state_config none = {0};
    stk_state_config sgd = {.train = true};
    stk_state_config adamw = {.train = true, .optimizer = STK_ADAMW};
    stk_state_config plain = job->network.state_config;
    plain.ema = false;
    uint64_t learning = backend->state_bytes(job->network.graph, &sgd);
    uint64_t moment = backend->state_bytes(job->network.graph, &adamw) - learning;
    uint64_t all = backend->state_bytes(job->network.graph, &plain);
    e->weights = backend->state_bytes(job->network.graph, &none);
    e->gradients = learning - e->weights - moment;
    e->optimiser = all - e->weights - e->gradients;
    e->average = backend->state_bytes(job->network.graph, &job->network.state_config) - all;
}

static stk_status note_memory(const stk_job *job, stk_estimate *e, stk_error *err) {
    const stk_opened_device *opened = &job->network.opened;
    const stk_loader_sizing *loader = &job->recipe.loader;
    stk_compile_config train = stk_network_compile_config(&job->network, &job->recipe, true);
    stk_compile_config infer = stk_network_compile_config(&job->network, &job->recipe, false);
    uint64_t exec_bytes = 0;
    note_state(job, e);
    stk_status status = opened->backend->exec_need(opened->device, job->network.graph, &train,
                                                   &exec_bytes, &e->workspace, err);
    STK_THEN(status, opened->backend->exec_need(opened->device, job->network.graph, &infer,
                                                &e->inference, NULL, err));
    e->activations = exec_bytes - e->workspace;
    e->decoder = job->network.decoder.bytes;
    e->device_bytes = e->weights + e->gradients + e->optimiser + e->average + exec_bytes +
                      e->inference + e->decoder;
    e->device_total = job->network.memory.total_bytes;
    e->device_free = job->network.memory.free_bytes + e->decoder; /* before it was opened */
    e->batches =
        (uint64_t)(loader->tune_slots ? loader->most_slots : loader->slots) * loader->slot_bytes;
    e->reads = loader->read_memory;
    e->cache = stk_store_cache_memory(job->dataset->store);
    if (stk_state_saver_copies(&job->network)) {
        bool waiting = job->recipe.train.accumulate > 1; /* gradients are saved as well */
        e->saving = e->weights + (waiting ? e->gradients : 0) + e->optimiser + e->average;
    }
    e->workers = loader->workers;
    return status;
}

/* Fills in what follows from the measured times, computed as a training does. */
static void work_out(const stk_job *job, stk_estimate *e) {
    e->epoch_s = (double)e->steps_per_epoch * e->step_s + e->val_s;
    e->images_per_second = (double)e->batch / e->step_s;
    e->folds_wanted = stk_recipe_models(&job->recipe);
    e->refits = job->recipe.refits;
    e->epochs_wanted = job->recipe.epochs_wanted;
    e->reserve_s = isnan(e->budget_s) ? NAN : stk_budget_reserve(e->budget_s, e->predict_s);
    stk_fold_facts facts = {.elapsed_s = e->setup_s,
                            .budget_s = e->budget_s,
                            .folds_wanted = e->folds_wanted,
                            .epochs_wanted = e->epochs_wanted,
                            .between = true,
                            .epoch_s = e->epoch_s,
                            .predict_s = e->predict_s,
                            .timed = true};
    stk_fold_choice choice = stk_budget_choose_folds(&facts);
    e->folds = choice.folds;
    int64_t cheap_steps = job->recipe.train.freeze_epochs * e->steps_per_epoch;
    stk_budget_facts first = {.elapsed_s = e->setup_s,
                              .budget_s = e->budget_s,
                              .fold_start_s = e->setup_s,
                              .share = 1.0 / choice.folds,
                              .epochs_wanted = e->epochs_wanted,
                              .epoch = 1,
                              .steps_per_epoch = e->steps_per_epoch,
                              .step_s = e->step_s,
                              .cheap_steps = (double)cheap_steps,
                              .cheap_part = STK_FROZEN_PART,
                              .val_s = e->val_s,
                              .predict_s = e->predict_s,
                              .timed = true};
    stk_budget_plan plan = stk_budget_make(&first);
    e->epochs = plan.epochs;
    e->steps = plan.steps_left;
    e->cut = plan.cut || e->folds < e->folds_wanted;
    /* Folds are given up when all of them, with this number of epochs, do not fit. */
    bool weighed = e->epochs_wanted > 0 || e->folds < e->folds_wanted;
    e->epochs_weighed = weighed ? choice.all_epochs : e->epochs;
    int64_t left_out = weighed ? 0 : e->epochs * e->steps_per_epoch - e->steps;
    double cheap = (double)(weighed || cheap_steps < e->steps ? cheap_steps : e->steps);
    double fold_s = e->epochs_weighed * e->epoch_s -
                    ((1 - STK_FROZEN_PART) * cheap + (double)left_out) * e->step_s;
    e->total_s = e->setup_s + e->folds_wanted * (fmax(fold_s, 0) + e->predict_s);
}

/* Views that a training would keep time for; picture_s are the seconds of a picture in one view. */
static int views_kept(const stk_job *job, const stk_estimate *e, double picture_s) {
    const stk_recipe *recipe = &job->recipe;
    size_t predicted = stk_recipe_predicted(recipe, recipe->refits);
    stk_view_facts facts = {.budget_s = e->budget_s,
                            .view_s = picture_s * (double)e->test_images,
                            .all_s = picture_s * (double)predicted,
                            .views = recipe->views,
                            .least_views = recipe->least_views};
    return stk_views_in_reserve(&facts);
}

static stk_status estimate(stk_job *job, stk_estimate *e, const stk_split *split,
                           const stk_sample *val_samples, stk_error *err) {
    bool cpu = stk_opened_device_is_cpu(&job->network.opened);
    const stk_rehearsal_length length = {
        MEASURE_S, ENOUGH_STEPS, MOST_MEASURE_S, LEAST_STEPS, cpu ? MANY_STEPS : INT64_MAX,
        INFINITY};
    stk_rehearsal m = {.step_s = NAN};
    stk_status status = note_memory(job, e, err);
    STK_THEN(status, stk_job_rehearse(job, split, &length, &m, err));
    e->wait_fraction = m.wait_fraction;
    if (status == STK_OK && stk_run_clock_stopping(&job->clock)) {
        return STK_FAIL(err, STK_ERR_STOPPED, "stopped before enough was measured");
    }
    if (status == STK_OK && isnan(m.step_s)) {
        return STK_FAIL(err, STK_ERR_DATA, "no step could be measured: the training went wrong");
    }
    double picture_s = NAN;
    double guess_s = m.step_s / (double)m.batch * STK_INFERENCE_PART;
    guess_s *= stk_recipe_eval_pixels(&job->recipe);
    STK_THEN(status, measure_inference(job, split, val_samples, guess_s, &picture_s, err));
    if (status == STK_OK) {
        e->setup_s = m.setup_s;
        e->step_s = m.step_s / (double)m.batch * (double)e->batch;
        e->steps_per_epoch = stk_fold_steps(split->train_count, job->recipe.batch);
        e->val_s = picture_s * (double)e->val_images;
        e->predict_s = picture_s * (double)e->test_images;
        e->predict_s *= views_kept(job, e, picture_s);
        work_out(job, e);
    }
    return status;
}

/* Fills in the batch, which was chosen as a training would, and what was measured for it. */
static void note_batch(const stk_job *job, stk_estimate *e) {
    const stk_batch_curve *curve = &job->batch_search.curve;
    e->batch = (int64_t)job->recipe.batch;
    e->accumulate = job->recipe.train.accumulate;
    snprintf(e->batch_why, sizeof e->batch_why, "%s", job->batch_search.why);
    for (size_t i = 0; i < curve->count; i++) {
        e->measured[i].batch = (int64_t)curve->points[i].batch;
        e->measured[i].images_per_second = curve->points[i].images_per_second;
    }
    e->measured_count = (int)curve->count;
}

/* The budget is that of the training; it does not limit the planning. */
static stk_status take_budget(stk_job *job, stk_estimate *e, stk_error *err) {
    const stk_budget_options *budget = stk_options_values(job->options, &stk_budget_option_table);
    stk_status status =
        stk_run_clock_set_deadline(&job->clock, budget->deadline, &job->events, err);
    e->budget_s = job->clock.budget_s;
    job->batch_search.budget_s = e->budget_s;
    job->clock.budget_s = NAN;
    job->storage.deadline_ns = 0;
    return status;
}

/* What is learned, and what the submission takes. */
static stk_status note_task(const stk_job *job, stk_estimate *e, stk_error *err) {
    const stk_dataset *dataset = job->dataset;
    stk_submission_look look;
    snprintf(e->task, sizeof e->task, "%s", stk_task_name(dataset->task));
    snprintf(e->metric, sizeof e->metric, "%s", stk_options_get(job->options, "metric"));
    snprintf(e->reason, sizeof e->reason, "%s", dataset->reason != NULL ? dataset->reason : "");
    if (dataset->test.count > 0) {
        stk_task_describe_answer(dataset, e->submission_takes, sizeof e->submission_takes);
    }
    stk_status status = stk_task_look_at_submission(dataset, &look, err);
    e->submission_rows = look.rows;
    e->submission_columns = look.columns;
    snprintf(e->submission_header, sizeof e->submission_header, "%s", look.header);
    snprintf(e->submission_like, sizeof e->submission_like, "%s",
             dataset->template_file != NULL ? dataset->template_file : "");
    return status;
}

static stk_status run_plan(stk_job *job, const stk_observer *observer, void *result,
                           stk_error *err) {
    stk_estimate *e = result;
    size_t train = 0;
    size_t val = 0;
    stk_fit fit;
    stk_split split = {0};
    const stk_sample *val_samples = NULL;
    job->fits = true;
    stk_status status = take_budget(job, e, err);
    STK_THEN(status, stk_job_prepare(job, observer, &train, &val, err));
    STK_THEN(status, stk_job_fit(job, e->budget_s - stk_run_clock_elapsed(&job->clock), &fit,
                                 &train, &val, err));
    if (status == STK_OK) {
        stk_job_emit_fit(job, &fit);
        status = stk_job_begin_first_fold(job, train, &split, &val_samples, err);
        note_batch(job, e);
    }
    if (status != STK_OK) {
        return status;
    }
    snprintf(e->device, sizeof e->device, "%s", job->network.opened.name);
    snprintf(e->precision, sizeof e->precision, "%s",
             stk_precision_name(job->network.opened.precision));
    e->train_images = (int64_t)train;
    e->val_images = (int64_t)val;
    e->test_images = (int64_t)job->dataset->test.count;
    status = note_task(job, e, err);
    STK_THEN(status, estimate(job, e, &split, val_samples, err));
    stk_split_free(&split);
    return status;
}

stk_status stk_plan_run(stk_options *options, const stk_run *run, stk_estimate *e, stk_error *err) {
    stk_status status = STK_PUBLIC_BEGIN(stk_estimate, e, run, err);
    return status == STK_OK ? stk_job_look_at_first("plan", options, run, run_plan, e, err)
                            : status;
}
