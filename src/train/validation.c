/*
 * validation.c - one validation of a fold: what it counts, when it ends early, what is fitted to
 * it.
 */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "train/calibrate/calibrate.h"
#include "train/plain_loss.h"

/* A validation that ended early must have seen one LEAST_PARTth of its images, or LEAST_COMPARED of
 * them, to replace weights that are saved. Time for all of them was planned: if it was enough for
 * fewer, the machine has become slow, and saving other weights could cost the prediction. */
#define LEAST_PART 4
#define LEAST_COMPARED 512

/* Logits to which a calibration is fitted in milliseconds, when the time is over. */
#define MOST_HURRIED 50000

static void tell_bad_val(void *user, const char *path, const char *reason) {
    const stk_trainer *t = user;
    stk_events_bad_image(t->config->events, path, "val", reason);
}

stk_task stk_trainer_task(const stk_train_config *c) {
    return c->outputs != NULL && c->outputs->task != STK_TASK_AUTO ? c->outputs->task
                                                                   : STK_TASK_SINGLE;
}

double stk_trainer_train_acc1(const stk_trainer *t) {
    bool numbers = stk_trainer_task(t->config) == STK_TASK_REGRESSION;
    return numbers ? NAN : 100.0 * t->correct / t->images;
}

double stk_trainer_val_loss(const stk_trainer *t) {
    if (stk_task_has_classes(stk_trainer_task(t->config))) {
        return stk_metrics_loss(&t->val_metrics);
    }
    return t->val_metrics.count > 0 ? t->val_loss_sum / (double)t->val_metrics.count : NAN;
}

static stk_metric metric_of(const stk_trainer *t) {
    return (stk_metric)t->config->options->metric;
}

/* The row that a sample of the validation belongs to: one of several, or a row alone. */
static int64_t row_of(const stk_train_config *c, size_t sample) {
    return stk_row_picture_of(c->val_data.samples[sample].row, sample).row;
}

stk_status stk_trainer_open_rows(stk_trainer *t, const stk_metrics_config *rated, stk_error *err) {
    const stk_train_config *c = t->config;
    size_t count = c->val_data.count;
    if (!c->by_rows || count == 0) {
        return STK_OK;
    }
    int64_t *rows = stk_mem_raw(count, sizeof *rows);
    if (rows == NULL) {
        return STK_FAIL_MEMORY(err, "validation");
    }
    for (size_t i = 0; i < count; i++) {
        rows[i] = row_of(c, c->val_data.indices != NULL ? c->val_data.indices[i] : i);
    }
    bool chosen = c->pool != STK_POOL_AUTO || stk_trainer_is_calibrated(c);
    stk_status status =
        stk_pooled_rows_open(&t->val_rows, rated, rows, chosen ? c->pool : STK_POOL_MEAN, err);
    stk_mem_free(rows);
    return status;
}

/* Rows that were rated; 0: pictures are, also where no row has a known answer. */
static size_t rated_rows(const stk_trainer *t) {
    return t->val_rows.capacity > 0 && t->val_metrics.count > 0 ? t->val_rows.pooled[0].count : 0;
}

size_t stk_trainer_val_scored(const stk_trainer *t) {
    size_t rows = rated_rows(t);
    return rows > 0 ? rows : t->val_metrics.count;
}

double stk_trainer_val_metric(stk_trainer *t) {
    double of_rows = t->val_rows.capacity > 0 && t->val_metrics.count > 0
                         ? stk_pooled_rows_value(&t->val_rows)
                         : NAN;
    return rated_rows(t) > 0 ? of_rows : stk_metrics_value(&t->val_metrics, metric_of(t));
}

static void count_row(stk_trainer *t, size_t sample, const float *outputs, int label,
                      const float *targets) {
    if (t->val_rows.capacity > 0) {
        stk_pooled_rows_add(&t->val_rows, row_of(t->config, sample), outputs, label, targets);
    }
}

/* Counts a sample of several labels or of numbers, and returns its loss. */
static double count_targets(stk_trainer *t, size_t sample, const float *logits,
                            const float *learned) {
    const stk_train_config *c = t->config;
    stk_sample_results *results = c->sample_results;
    size_t outputs = (size_t)c->graph->classes;
    double loss = 0;
    for (size_t k = 0; k < outputs; k++) {
        loss += isnan(learned[k]) ? 0 : stk_plain_loss(&c->graph->loss, logits[k], learned[k]);
    }
    t->val_loss_sum += loss;
    if (stk_trainer_task(c) == STK_TASK_MULTILABEL) {
        stk_metrics_add_targets(&t->val_metrics, logits, learned);
        count_row(t, sample, logits, 0, learned);
        if (results != NULL) {
            stk_sample_results_add_labels(results, sample, logits, learned, (int)outputs);
        }
        return loss;
    }
    stk_outputs_values(c->outputs, logits, 1, t->val_values);
    for (size_t k = 0; k < outputs; k++) {
        t->val_row[k] = (float)t->val_values[k];
    }
    stk_outputs_restore(c->outputs, learned, t->val_row + outputs);
    stk_metrics_add_targets(&t->val_metrics, t->val_row, t->val_row + outputs);
    count_row(t, sample, t->val_row, 0, t->val_row + outputs);
    if (results != NULL) {
        stk_sample_results_add_numbers(results, sample, t->val_row);
    }
    return loss;
}

/* The same of a sample of one class. */
static double count_class(stk_trainer *t, size_t sample, const float *logits, int label) {
    const stk_train_config *c = t->config;
    double loss = stk_metrics_add(&t->val_metrics, logits, label);
    count_row(t, sample, logits, label, NULL);
    if (c->sample_results != NULL) {
        stk_sample_results_add(c->sample_results, sample, logits, c->graph->classes, label, loss);
    }
    return loss;
}

static void count_validation(void *user, const stk_batch *batch, const size_t *entries,
                             const float *logits) {
    stk_trainer *t = user;
    stk_batch_times_note(&t->val_times, batch->count, stk_clock_ns());
    int classes = t->config->graph->classes;
    for (size_t i = 0; i < batch->count; i++) {
        const float *row = logits + i * (size_t)classes;
        if (batch->bad[i]) {
            continue;
        }
        size_t right = t->val_metrics.correct1;
        double loss =
            batch->targets != NULL
                ? count_targets(t, batch->samples[i], row, batch->targets + i * (size_t)classes)
                : count_class(t, batch->samples[i], row, batch->labels[i]);
        stk_same_pictures_add(&t->same, entries[i], t->val_metrics.correct1 > right, loss);
    }
}

/* Whether only time for writing files is left. */
static bool is_too_late(const stk_trainer *t) {
    const stk_halt *halt = &t->config->val_data.halt;
    return halt->asked != NULL && halt->asked(halt->user);
}

/*
 * A validation that ran out of time has seen a random part of its samples. That rates weights that
 * will not be validated again, see stk_trainer_is_best(). It is not used when it has seen too few,
 * or when there is no time to predict with these weights. Without best weights any image is enough.
 */
static bool is_enough(const stk_trainer *t) {
    const stk_train_config *c = t->config;
    size_t seen = t->val_metrics.count;
    size_t part = (c->val_data.count + LEAST_PART - 1) / LEAST_PART;
    size_t least = !t->result->has_best ? 1 : part < LEAST_COMPARED ? part : LEAST_COMPARED;
    bool enough = seen >= least;
    char what[64];
    if (is_too_late(t)) {
        return false;
    }
    if (enough) {
        snprintf(what, sizeof what, "validated with %zu of %zu images", seen, c->val_data.count);
    } else {
        snprintf(what, sizeof what, "epoch %d is not used", t->standing.epoch);
    }
    stk_events_decision(c->events, what,
                        enough ? "the rest of the time is for predicting"
                               : "the time for predicting began before enough of it could be "
                                 "validated");
    return enough;
}

/* For stk_halt. */
static bool must_end(void *user) {
    const stk_trainer *t = user;
    const stk_train_hooks *hooks = &t->config->hooks;
    return hooks->validation_must_end(hooks->user, t->val_metrics.count,
                                      stk_clock_since_s(t->val_start_ns));
}

stk_status stk_trainer_validate(stk_trainer *t, bool *done, stk_error *err) {
    const stk_train_config *c = t->config;
    stk_metrics_reset(&t->val_metrics);
    stk_pooled_rows_reset(&t->val_rows);
    t->val_loss_sum = 0;
    stk_same_pictures_reset(&t->same);
    t->val_part = false;
    if (c->sample_results != NULL) {
        stk_sample_results_reset(c->sample_results);
    }
    *done = true;
    if (c->val_data.count == 0) {
        return STK_OK;
    }
    t->val_start_ns = stk_clock_ns();
    t->val_times = (stk_batch_times){.last_ns = t->val_start_ns};
    t->result->validating = true;
    stk_evaluation evaluation = {.backend = c->backend,
                                 .exec = t->infer_exec,
                                 .answers = stk_graph_answers(c->graph),
                                 .data = c->val_data,
                                 /* What training replaces, validation gives up. */
                                 .final_limit_ns = c->train_data.slow_after_ns,
                                 .on_batch = count_validation,
                                 .bad = tell_bad_val,
                                 .user = t};
    evaluation.data.batch = c->val_compile.batch;
    evaluation.data.transform.size = stk_trainer_val_graph(t)->img_size;
    if (c->hooks.validation_must_end != NULL) {
        evaluation.data.halt = (stk_halt){must_end, t};
    }
    stk_status status = stk_evaluate(&evaluation, done, err);
    double seconds = stk_clock_since_s(t->val_start_ns);
    t->account.spent.validate_s += seconds;
    t->val_part = !*done;
    if (status == STK_OK && (*done || is_enough(t))) {
        double part = *done ? 1 : (double)t->val_metrics.count / (double)c->val_data.count;
        t->standing.validations++;
        t->standing.val_s = seconds / part;
        t->standing.val_even_s = stk_batch_times_even(&t->val_times, seconds) / part;
        *done = true;
    }
    return status;
}

bool stk_trainer_is_calibrated(const stk_train_config *c) {
    return c->calibration != NULL && c->options->calibrate && c->val_data.count > 0;
}

/* Fits a calibration to the last validation, unless there is no time for it. */
static stk_status fit_calibration(stk_trainer *t, stk_error *err) {
    const stk_train_config *c = t->config;
    int64_t start = stk_clock_ns();
    size_t numbers = t->val_metrics.count * (size_t)c->graph->classes;
    if (is_too_late(t) || (t->val_part && numbers > MOST_HURRIED)) {
        return STK_OK;
    }
    const stk_calibrate_config how = {
        .metric = metric_of(t), .stranger = c->stranger, .exclusive = c->exclusive};
    stk_status status = stk_calibrate(&t->val_metrics, &how, &t->fitted, err);
    if (status == STK_OK && t->val_rows.capacity > 0) {
        status = stk_pooled_rows_fit(&t->val_rows, &how, &t->fitted, err);
    }
    double seconds = stk_clock_since_s(start);
    t->has_fitted = status == STK_OK;
    t->account.spent.validate_s += seconds;
    t->standing.val_s += seconds;
    t->standing.val_even_s += seconds;
    return status;
}

/* The metric of the last validation, whose answers follow the fitted calibration. Without a rule
 * they are the likeliest classes, which all pictures rate, or the labels above one half. */
static double rated_by_fit(const stk_trainer *t, double of_outputs) {
    const stk_calibration *fitted = &t->fitted;
    return stk_calibration_is_ruled(fitted)                    ? fitted->score
           : stk_task_has_classes(stk_trainer_task(t->config)) ? of_outputs
                                                               : fitted->plain_score;
}

stk_status stk_trainer_rate(stk_trainer *t, double *metric, stk_error *err) {
    const stk_train_config *c = t->config;
    bool has_rule =
        stk_trainer_is_calibrated(c) && stk_metric_has_rule(metric_of(t), stk_trainer_task(c));
    stk_calibration_free(&t->fitted);
    t->has_fitted = false;
    stk_status status = has_rule ? fit_calibration(t, err) : STK_OK;
    t->rated_plainly = has_rule && !t->has_fitted;
    *metric = stk_trainer_val_metric(t);
    if (t->has_fitted && t->fitted.pictures > 0) {
        *metric = rated_by_fit(t, *metric);
    }
    return status;
}

stk_status stk_trainer_keep_calibration(stk_trainer *t, stk_error *err) {
    const stk_train_config *c = t->config;
    if (!stk_trainer_is_calibrated(c)) {
        return STK_OK;
    }
    stk_status status = t->has_fitted ? STK_OK : fit_calibration(t, err);
    if (t->has_fitted) {
        stk_calibration_free(c->calibration);
        *c->calibration = t->fitted;
        t->fitted = (stk_calibration){0};
        t->has_fitted = false;
    }
    return status;
}
