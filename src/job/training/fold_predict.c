/*
 * fold_predict.c - predictions with the weights of one fold, in as many views as there is time for.
 */
#include "job/training/job.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "budget/prediction_choice.h"
#include "job/training/folds.h"
#include "predict/predict.h"
#include "weights/checkpoint.h"

/* Share of the time for oof.csv that writing the file takes once its text is made. */
#define OOF_SAVE_PART 0.5

/* Whether there is time for one more view. */
static bool wants_view(void *user, const stk_predicted *so_far) {
    stk_job *job = user;
    stk_prediction_facts facts = {.left_s = stk_run_clock_before_writing(&job->clock),
                                  .rows = 1, /* pass_s is the time of all rows */
                                  .picture_s = so_far->pass_s,
                                  .model_s = NAN,
                                  .views = job->time.views,
                                  .views_done = so_far->views};
    return stk_prediction_choose(&facts).views > so_far->views;
}

/* A prediction of samples with the weights in the state (indices NULL: the first `count` samples).
 * `split` is "test" or "val". */
static stk_prediction prediction_of(stk_job *job, const stk_calibration *calibration,
                                    const char *split, const stk_sample *samples,
                                    const size_t *indices, size_t count) {
    stk_prediction prediction = {.backend = job->network.opened.backend,
                                 .state = job->network.state,
                                 .execs = &job->network.execs,
                                 .graph = job->network.graph,
                                 .compile =
                                     stk_network_compile_config(&job->network, &job->recipe, false),
                                 .data = stk_job_loader_config(job, false, samples, indices, count),
                                 .split = split,
                                 .events = &job->events,
                                 .outputs = &job->outputs,
                                 .temperature = stk_calibration_temperature(calibration),
                                 .views = job->time.views,
                                 .wants_view = wants_view,
                                 .user = job};
    return prediction;
}

static stk_prediction prediction_of_test(stk_job *job, const stk_calibration *calibration) {
    return prediction_of(job, calibration, "test", job->dataset->test.items, NULL,
                         job->out.ensemble.rows);
}

/* Keeps so many values of a row (0: all). *probs and *have are freed by the caller, also after an
 * error. */
static stk_status predict_samples(stk_job *job, const stk_prediction *prediction, size_t kept,
                                  stk_predictions *probs, bool **have, stk_predicted *predicted,
                                  stk_error *err) {
    size_t count = prediction->data.count;
    *have = stk_mem_new(count, sizeof **have);
    if (*have == NULL) {
        return STK_FAIL_MEMORY(err, "predictions");
    }
    stk_status status =
        stk_predictions_open(probs, count, (size_t)job->network.graph->classes, kept, err);
    STK_THEN(status, stk_predict_samples(prediction, probs, *have, predicted, err));
    job->recipe = stk_recipe_with_infer_batch(&job->recipe, predicted->batch);
    return status;
}

/* Whether all rows were predicted in all views that were asked for. */
static bool is_done(const stk_job *job, const stk_predicted *predicted) {
    return predicted->views >= job->recipe.least_views;
}

/*
 * Where Stoker has chosen more views than there was time for, the rest of the run does with these,
 * and args.yaml has them for `stoker predict`. If there is no time for that file either, it has
 * more views. Rows that a view had come to before it was given up keep it.
 */
static stk_status give_up_views(stk_job *job, const stk_predicted *predicted, stk_error *err) {
    char text[16];
    bool fewer =
        predicted->views >= job->recipe.least_views && predicted->views < job->recipe.views;
    if (!fewer || stk_run_clock_stopping(&job->clock)) { /* a resumed run has time again */
        return STK_OK;
    }
    job->time.predict_s *= (double)predicted->views / job->time.views;
    job->time.views = predicted->views;
    job->recipe = stk_recipe_with_views(&job->recipe, predicted->views);
    snprintf(text, sizeof text, "%d", predicted->views);
    stk_status status = stk_options_resolve(job->options, "tta", text, "cut to the time", err);
    return status == STK_OK && !stk_run_clock_must_write(&job->clock)
               ? stk_job_write_args(&job->out.folder, job->options, err)
               : status;
}

/* Warns of views or rows that there was no time for; these rows keep their earlier predictions. */
static void warn_unpredicted(const stk_job *job, size_t rows, int views) {
    const stk_run_outputs *out = &job->out;
    char others[64] = "the others have class priors";
    if (views > 0) {
        stk_events_warning(&job->events,
                           "there was time for %d of the %d views of each test image that --tta "
                           "asks for",
                           views, job->recipe.least_views);
        return;
    }
    if (out->ensemble.models > (rows > 0)) {
        snprintf(others, sizeof others, "the others have what the other models say");
    } else if (out->early_epoch > 0) {
        snprintf(others, sizeof others, "the others have what the weights of epoch %d said",
                 out->early_epoch);
    } else if (rows == 0 && job->resume.on) {
        snprintf(others, sizeof others, "the submission stays as it is");
    }
    stk_events_warning(&job->events, "there was time to predict %zu of %zu test images only; %s",
                       rows, out->ensemble.rows, others);
}

/* Warns, once, that no test picture at all could be read. Each one was emitted as a bad image. */
static void warn_unread(stk_job *job) {
    bool stays = job->out.ensemble.models > 0 || job->out.early_epoch > 0 || job->resume.on;
    if (!job->out.unread) {
        stk_events_warning(
            &job->events, "none of the %zu test images could be read: %s", job->out.ensemble.rows,
            stays ? "the submission stays as it is" : "the submission has the class priors");
    }
    job->out.unread = true;
}

/* How many rows were predicted. */
static size_t count_rows(const bool *have, size_t count) {
    size_t rows = 0;
    for (size_t i = 0; i < count; i++) {
        rows += have[i];
    }
    return rows;
}

/* Adds predictions of the test set to the ensemble; returns how many rows were predicted. */
static size_t add_to_ensemble(stk_job *job, const stk_calibration *calibration,
                              const stk_predicted *predicted, const stk_predictions *probs,
                              const bool *have) {
    size_t rows = count_rows(have, job->out.ensemble.rows);
    stk_ensemble_add(&job->out.ensemble, probs, have, calibration, 1);
    if (rows == 0 && predicted->views > 0) {
        warn_unread(job);
    }
    return rows;
}

stk_status stk_job_predict_test(stk_job *job, const stk_calibration *calibration, bool *whole,
                                stk_error *err) {
    stk_predictions probs = {0};
    bool *have = NULL;
    stk_predicted predicted = {0};
    stk_prediction prediction = prediction_of_test(job, calibration);
    stk_status status = predict_samples(job, &prediction, job->out.ensemble.sum.kept, &probs, &have,
                                        &predicted, err);
    size_t rows =
        status == STK_OK ? add_to_ensemble(job, calibration, &predicted, &probs, have) : 0;
    bool done = is_done(job, &predicted);
    job->out.unpredicted = job->out.unpredicted || (status == STK_OK && !done);
    if (status == STK_OK && !done) {
        warn_unpredicted(job, rows, predicted.views);
    }
    if (rows > 0) { /* otherwise the file has everything already */
        bool last = !job->tally.cut && job->tally.folds_done >= job->recipe.models_asked &&
                    job->tally.fold + 1 >= job->time.folds;
        status = stk_job_submit(job, done && last ? "complete" : "partial", err);
    }
    STK_THEN(status, give_up_views(job, &predicted, err));
    *whole = done && rows > 0 && !job->out.unpredicted; /* the file may come too late as well */
    stk_predictions_free(&probs);
    stk_mem_free(have);
    return status;
}

void stk_job_miss_test(stk_job *job) {
    job->out.unpredicted = true;
    warn_unpredicted(job, 0, 0);
}

/* ---- early predictions ---- */

/* Until when an early prediction may last. */
typedef struct early_end {
    stk_run_clock *clock;
    double at_s; /* on the clock */
} early_end;

/* For stk_halt. */
static bool must_end_early(void *user) {
    const early_end *end = user;
    return stk_run_clock_stopping(end->clock) || stk_run_clock_must_write(end->clock) ||
           stk_run_clock_elapsed(end->clock) > end->at_s;
}

/* Predicts, and submits the rows that were predicted. `*rows` is 0 where it was given up. */
static stk_status predict_early(stk_job *job, stk_exec *exec, const stk_calibration *calibration,
                                const early_end *end, int epoch, size_t *rows, stk_error *err) {
    stk_predictions probs = {0};
    bool *have = NULL;
    stk_predicted predicted = {0};
    stk_prediction prediction = prediction_of_test(job, calibration);
    prediction.exec = exec;
    prediction.views = 1;
    prediction.data.halt = (stk_halt){must_end_early, (void *)(uintptr_t)end};
    stk_status status = predict_samples(job, &prediction, job->out.ensemble.sum.kept, &probs, &have,
                                        &predicted, err);
    *rows = status == STK_OK ? count_rows(have, job->out.ensemble.rows) : 0;
    if (*rows > 0) {
        status = stk_ensemble_set_early(&job->out.ensemble, &probs, have, calibration, err);
        have = status == STK_OK ? NULL : have; /* taken */
    }
    stk_predictions_free(&probs);
    stk_mem_free(have);
    if (status != STK_OK || *rows == 0) {
        return status;
    }
    job->out.early_epoch = epoch;
    status = stk_job_submit(job, "partial", err);
    job->out.early_epoch = status == STK_OK ? epoch : 0;
    return status;
}

void stk_job_predict_early(stk_job *job, stk_exec *exec, const stk_calibration *calibration,
                           int epoch, double most_s) {
    double start_s = stk_run_clock_elapsed(&job->clock);
    early_end end = {&job->clock, start_s + most_s};
    stk_error why = {0};
    size_t rows = 0;
    job->out.early_tried = true;
    stk_status status = predict_early(job, exec, calibration, &end, epoch, &rows, &why);
    double seconds = stk_run_clock_elapsed(&job->clock) - start_s;
    if (status != STK_OK) {
        stk_events_warning(&job->events, "the test images are not predicted early: %s",
                           why.message);
        return;
    }
    char what[96];
    char text[160];
    if (rows > 0) {
        snprintf(what, sizeof what, "%zu of %zu test images predicted early", rows,
                 job->out.ensemble.rows);
        snprintf(text, sizeof text,
                 "with the weights of epoch %d, in %s; they stay if there is no time in the end",
                 epoch, stk_format_span(seconds).text);
    } else {
        snprintf(what, sizeof what, "no test image predicted early");
        snprintf(text, sizeof text, "there was none that could be, in %s",
                 stk_format_span(seconds).text);
    }
    stk_events_decision(&job->events, what, text);
}

/* ---- out of fold ---- */

/* If there is no time, oof.csv is not begun, or given up: the previous file stays. */
static stk_status write_oof(stk_job *job, stk_error *err) {
    char *path = stk_run_folder_file(&job->out.folder, "oof.csv");
    stk_halt late = {stk_run_clock_must_write, &job->clock};
    stk_error why = {0};
    stk_status status = path != NULL ? stk_oof_write(&job->out.oof, path, late, &why)
                                     : STK_FAIL_MEMORY(&why, "a path");
    stk_mem_free(path);
    if (status == STK_ERR_STOPPED) {
        stk_events_warning(&job->events, "there was no time to write oof.csv with fold %d of %d",
                           job->tally.fold + 1, job->recipe.folds);
        return STK_OK;
    }
    return status == STK_OK ? STK_OK : STK_FAIL(err, status, "%s", why.message);
}

static stk_metric metric_of(const stk_job *job) {
    return (stk_metric)job->recipe.train.metric;
}

static void emit_oof(const stk_job *job, size_t rows) {
    const stk_oof *oof = &job->out.oof;
    char what[160];
    char accuracy[48] = "";
    char other[64] = "";
    char why[160];
    char a[32];
    char b[32];
    if (!isnan(oof->acc1)) {
        snprintf(accuracy, sizeof accuracy, "accuracy %.1f %%", oof->acc1);
    }
    if (metric_of(job) != STK_METRIC_ACC1) {
        snprintf(other, sizeof other, "%s%s %.4g", accuracy[0] != '\0' ? ", " : "",
                 stk_options_get(job->options, "metric"), oof->metric);
    }
    snprintf(what, sizeof what, "out-of-fold %s%s", accuracy, other);
    snprintf(why, sizeof why, "%s%s of %s training images, %d of %d folds",
             stk_format_count(a, sizeof a, rows), job->dataset->train_has_rows ? " rows" : "",
             stk_format_count(b, sizeof b, job->dataset->train.count), job->tally.folds_done,
             job->recipe.folds);
    stk_events_decision(&job->events, what, why);
}

/* Scores the out-of-fold predictions as their labels will be chosen. */
static stk_status score_oof(stk_job *job, size_t *rows, stk_error *err) {
    return stk_oof_score(&job->out.oof, metric_of(job),
                         stk_calibration_mean_rule(&job->out.validated), stk_job_pool(job), rows,
                         err);
}

stk_status stk_job_predict_oof(stk_job *job, const stk_calibration *calibration,
                               const stk_split *split, const stk_sample *val_samples,
                               stk_error *err) {
    stk_predictions probs = {0};
    bool *have = NULL;
    stk_predicted predicted = {0};
    size_t rows = 0;
    double write_s = stk_oof_write_seconds(&job->out.oof, split->val_count);
    job->clock.extra_file_s = STK_MARGIN_SAFETY * write_s;
    stk_status status = STK_OK;
    bool in_time = !stk_run_clock_must_write(&job->clock);
    if (in_time) {
        stk_prediction prediction =
            prediction_of(job, calibration, "val", val_samples, split->val, split->val_count);
        status = predict_samples(job, &prediction, job->out.oof.probs.kept, &probs, &have,
                                 &predicted, err);
    } else {
        stk_events_warning(&job->events,
                           "there was no time for the out-of-fold predictions of fold %d of %d: "
                           "writing oof.csv takes about %s",
                           job->tally.fold + 1, job->recipe.folds, stk_format_span(write_s).text);
    }
    if (status == STK_OK && in_time) {
        stk_oof_add(&job->out.oof, job->tally.fold, split->val, split->val_count, &probs, have);
        job->clock.extra_file_s = OOF_SAVE_PART * write_s;
        status = write_oof(job, err);
        STK_THEN(status, score_oof(job, &rows, err));
    }
    if (status == STK_OK && rows > 0) {
        emit_oof(job, rows);
    }
    job->clock.extra_file_s = 0;
    stk_predictions_free(&probs);
    stk_mem_free(have);
    return status;
}

stk_status stk_job_repeat_predictions(stk_job *job, bool *whole, stk_error *err) {
    size_t rows = 0;
    stk_split split = {0};
    const stk_sample *val_samples = NULL;
    char *best_path = NULL;
    stk_predictions probs[2] = {{0}};
    bool *have[2] = {NULL};
    stk_calibration calibration = {0};
    int least = job->recipe.least_views;
    stk_predicted predicted[2] = {{.views = least}, {.views = least}};
    stk_recipe usual = job->recipe;
    stk_status status =
        stk_fold_split(job->dataset, &job->recipe, job->tally.fold, &split, &val_samples, err);
    if (status == STK_OK) {
        best_path =
            stk_fold_file(&job->out.folder, &job->recipe, job->tally.fold, "best.safetensors");
        status = best_path != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a path");
    }
    bool there = status == STK_OK && stk_path_is_file(best_path);
    if (there) {
        status = stk_checkpoint_load(best_path, job->network.opened.backend, job->network.state,
                                     job->network.graph, err);
        int img_size = usual.eval_size;
        STK_THEN(status, stk_job_read_calibration(best_path, &calibration, &img_size, err));
        if (img_size == usual.early_eval_size) { /* training ended with small pictures */
            job->recipe = stk_recipe_with_early_sizes(&usual);
        }
    }
    if (there && status == STK_OK && split.val_count > 0) {
        stk_job_add_validated(job, &calibration);
    }
    if (there && status == STK_OK && job->out.ensemble.rows > 0) {
        stk_prediction prediction = prediction_of_test(job, &calibration);
        status = predict_samples(job, &prediction, job->out.ensemble.sum.kept, &probs[0], &have[0],
                                 &predicted[0], err);
        if (status == STK_OK) {
            (void)add_to_ensemble(job, &calibration, &predicted[0], &probs[0], have[0]);
        }
    }
    if (there && status == STK_OK && split.val_count > 0 && job->recipe.folds > 1) {
        stk_prediction prediction =
            prediction_of(job, &calibration, "val", val_samples, split.val, split.val_count);
        status = predict_samples(job, &prediction, job->out.oof.probs.kept, &probs[1], &have[1],
                                 &predicted[1], err);
        if (status == STK_OK) {
            stk_oof_add(&job->out.oof, job->tally.fold, split.val, split.val_count, &probs[1],
                        have[1]);
            status = score_oof(job, &rows, err);
        }
    }
    *whole = is_done(job, &predicted[0]) && is_done(job, &predicted[1]);
    job->recipe = stk_recipe_with_sizes_of(&job->recipe, &usual);
    for (int i = 0; i < 2; i++) {
        stk_predictions_free(&probs[i]);
        stk_mem_free(have[i]);
    }
    stk_calibration_free(&calibration);
    stk_split_free(&split);
    stk_mem_free(best_path);
    return status;
}
