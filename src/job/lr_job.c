/*
 * lr_job.c - the learning-rate test: as a verb of its own, and before a training that is left to
 * find its rate.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text/locale.h"
#include "job/folds.h"
#include "job/job_state.h"
#include "report/plots/lr.h"

/* A training with a budget spends at most this part of what is left on finding its rate. */
#define TEST_SHARE 0.1

/* When the test has had its time. */
typedef struct test_time {
    stk_run_clock *clock;
    int64_t start_ns;
    double seconds; /* INFINITY: any */
} test_time;

static bool is_over(void *user) {
    const test_time *time = user;
    return stk_run_clock_stopping(time->clock) || stk_run_clock_must_write(time->clock) ||
           stk_clock_since_s(time->start_ns) > time->seconds;
}

static stk_status write_points(const stk_job *job, const stk_lr_curve *curve, stk_error *err) {
    stk_str text = {0};
    stk_str_append(&text, "lr,loss,smoothed\n");
    for (int i = 0; i < curve->count; i++) {
        const stk_lr_point *point = &curve->points[i];
        stk_str_appendf(&text, "%.6g,%.6g,%.6g\n", point->lr, point->loss, point->smoothed);
    }
    return stk_run_folder_write(&job->folder, "lr.csv", &text, err);
}

static const char *plot_name(void) {
    return stk_canvas_has_png() ? "lr.png" : "lr.svg";
}

static stk_status write_plot(const stk_job *job, const stk_lr_curve *curve, stk_error *err) {
    char title[160];
    int64_t images = (int64_t)job->choice.batch * job->choice.train.accumulate;
    snprintf(title, sizeof title, "%s, %s, %lld images an update", job->choice.model->name,
             stk_options_get(job->options, "optimizer"), (long long)images);
    stk_lr_plot plot = {.title = title,
                        .points = curve->points,
                        .count = (size_t)curve->count,
                        .suggestion = curve->suggestion};
    char *path = stk_run_folder_file(&job->folder, plot_name());
    stk_status status =
        path != NULL ? stk_lr_plot_write(&plot, path, err) : STK_FAIL_MEMORY(err, "a path");
    stk_mem_free(path);
    return status;
}

stk_status stk_job_test_lr(stk_job *job, const stk_loader_config *data, int steps, double seconds,
                           stk_lr_curve *curve, stk_error *err) {
    test_time time = {.clock = &job->clock, .start_ns = stk_clock_ns(), .seconds = seconds};
    stk_lr_find_config config = {.backend = job->choice.opened.backend,
                                 .state = job->state,
                                 .graph = job->graph,
                                 .options = &job->choice.train,
                                 .precision = job->choice.opened.precision,
                                 .plain = !job->job_options->compile,
                                 .train = *data,
                                 .seed = data->seed,
                                 .steps = steps,
                                 .events = &job->events,
                                 .halt = {is_over, &time}};
    job->clock.halt_on_stop = true; /* half a test is of no use */
    stk_status status = stk_lr_find(&config, curve, err);
    job->clock.halt_on_stop = false;
    if (status == STK_OK) {
        status = write_points(job, curve, err);
    }
    if (status == STK_OK) {
        status = write_plot(job, curve, err);
    }
    if (status != STK_OK) {
        stk_lr_curve_free(curve);
    }
    return status;
}

/* What became of the test, for people. */
static void explain(const stk_lr_curve *curve, char *why, size_t size) {
    if (curve->halted) {
        snprintf(why, size, "the default: there was no time to find one");
    } else if (isnan(curve->suggestion)) {
        snprintf(why, size, "the default: the loss fell at no rate that was tried");
    } else {
        snprintf(why, size,
                 "a third of the lowest rate that brought the loss near its minimum in a test of "
                 "%d steps, %.1f s",
                 curve->count, curve->seconds);
    }
}

stk_status stk_job_find_lr(stk_job *job, const stk_loader_config *data, stk_error *err) {
    stk_lr_curve curve;
    char what[64];
    char why[160];
    double left = stk_run_clock_left(&job->clock);
    stk_status status = stk_job_test_lr(job, data, STK_LR_STEPS, TEST_SHARE * left, &curve, err);
    if (status != STK_OK) {
        return status;
    }
    if (curve.halted && stk_run_clock_stopping(&job->clock)) {
        stk_events_decision(&job->events, "stopping", "the learning rate was not found yet");
        stk_lr_curve_free(&curve);
        return STK_OK;
    }
    job->choice.lr =
        !isnan(curve.suggestion)
            ? curve.suggestion
            : stk_recipe_default_lr(&job->choice.train, stk_recipe_is_pretrained(job->options),
                                    job->choice.batch, data->count);
    snprintf(what, sizeof what, "lr %.6g", job->choice.lr);
    explain(&curve, why, sizeof why);
    stk_events_decision(&job->events, what, why);
    status = stk_options_resolve(job->options, "lr", what + strlen("lr "),
                                 isnan(curve.suggestion) ? "default" : "found", err);
    stk_lr_curve_free(&curve);
    return status == STK_OK ? stk_job_write_args(job, err) : status;
}

static int steps_of(const stk_job *job) {
    const stk_lr_options *options = stk_options_values(job->options, &stk_lr_option_table);
    return (int)options->steps;
}

/* The pictures that a first fold would train on. */
static stk_status test_first_fold(stk_job *job, stk_lr_curve *curve, stk_error *err) {
    stk_split split;
    stk_status status = stk_job_split(job, 0, &split, NULL, err);
    if (status != STK_OK) {
        return status;
    }
    stk_loader_config data = stk_job_loader(job, true);
    data.samples = job->dataset->train.items;
    data.indices = split.train;
    data.count = split.train_count;
    data.stop_after_bad = stk_loader_bad_limit(job->loader_options, data.count);
    status = stk_job_first_weights(job, err);
    if (status == STK_OK) {
        status = stk_job_test_lr(job, &data, steps_of(job), INFINITY, curve, err);
    }
    stk_split_free(&split);
    return status;
}

static void hand_over(const stk_job *job, const stk_lr_curve *curve, stk_found_lr *found) {
    snprintf(found->run_dir, sizeof found->run_dir, "%s", job->folder.path);
    char *plot = stk_run_folder_file(&job->folder, plot_name());
    snprintf(found->plot, sizeof found->plot, "%s", plot != NULL ? plot : "");
    stk_mem_free(plot);
    found->lr = curve->suggestion;
    found->batch = (int64_t)job->choice.batch;
    found->accumulate = job->choice.train.accumulate;
    found->exploded = curve->exploded;
    found->seconds = curve->seconds;
    found->count = curve->count;
    memcpy(found->points, curve->points, (size_t)curve->count * sizeof *curve->points);
}

static stk_status run_test(stk_job *job, const stk_observer *observer, stk_found_lr *found,
                           stk_error *err) {
    stk_lr_curve curve = {.suggestion = NAN};
    size_t train = 0;
    size_t val = 0;
    stk_status status = stk_job_prepare(job, observer, &train, &val, err);
    if (status == STK_OK) {
        status = stk_job_claim_folder(job, err);
    }
    if (status == STK_OK) {
        status = stk_job_write_args(job, err);
    }
    if (status == STK_OK) {
        stk_job_tell_start(job, train, val);
        stk_recipe_emit(&job->choice, job->options, &job->events, train);
        status = stk_job_measure_batch(job, err);
    }
    if (status == STK_OK) {
        status = test_first_fold(job, &curve, err);
    }
    if (status == STK_OK) {
        hand_over(job, &curve, found);
        if (curve.halted && !stk_run_clock_stopping(&job->clock)) {
            status = STK_FAIL(err, STK_ERR_USAGE,
                              "the --deadline came after %d of %d steps of the test; give a later "
                              "one, or fewer --steps",
                              curve.count, steps_of(job));
        } else if (curve.halted) {
            status = STK_FAIL(err, STK_ERR_STOPPED, "stopped before a learning rate was found");
        } else if (isnan(curve.suggestion)) {
            status = STK_FAIL(err, STK_ERR_DATA,
                              "the loss fell at no rate from %g to %g, so that none can be "
                              "suggested; the curve is in %s; try a larger --batch or more --steps",
                              STK_LR_FROM, STK_LR_TO, found->plot);
        }
    }
    stk_lr_curve_free(&curve);
    return status;
}

stk_status stk_find_lr(stk_options *options, const stk_run *run, stk_found_lr *found,
                       stk_error *err) {
    stk_job job = {.verb = "lr", .folder = {.lock_fd = -1}};
    stk_locale locale = stk_locale_enter();
    memset(found, 0, sizeof *found);
    found->lr = NAN;
    stk_job_open(&job, options, run);
    job.clock.budget_s = NAN; /* it is the training's; a deadline is everybody's */
    const stk_observer *observer = run != NULL ? run->observer : NULL;
    stk_status status = stk_job_take_deadline(&job, observer, err);
    if (status == STK_OK && job.job_options->resume != NULL) {
        status = STK_FAIL(err, STK_ERR_USAGE,
                          "--resume is for train; a learning rate is found for a training that "
                          "begins");
    }
    if (status == STK_OK) {
        status = run_test(&job, observer, found, err);
    }
    stk_job_close(&job);
    stk_locale_leave(locale);
    return status;
}
