/*
 * lr_test.c - the learning-rate test of a run and its files.
 */
#include "job/training/lr_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "job/recipe/recipe_rates.h"
#include "report/plots/plots.h"

/* Most of the remaining time, as a share, that a training with a budget spends on the test. */
#define TEST_SHARE 0.1

/* Limits the time of the test. */
typedef struct test_time {
    stk_run_clock *clock;
    int64_t start_ns;
    double seconds; /* INFINITY: no limit */
} test_time;

static bool is_over(void *user) {
    const test_time *time = user;
    return stk_run_clock_stopping(time->clock) || stk_run_clock_must_write(time->clock) ||
           stk_clock_since_s(time->start_ns) > time->seconds;
}

static stk_status write_points(const stk_lr_test *test, const stk_lr_curve *curve, stk_error *err) {
    stk_str text = {0};
    stk_str_append(&text, "lr,loss,smoothed\n");
    for (int i = 0; i < curve->count; i++) {
        const stk_lr_point *point = &curve->points[i];
        stk_str_appendf(&text, "%.6g,%.6g,%.6g\n", point->lr, point->loss, point->smoothed);
    }
    return stk_run_folder_write(test->folder, "lr.csv", &text, err);
}

const char *stk_lr_test_plot_name(void) {
    return stk_canvas_has_png() ? "lr.png" : "lr.svg";
}

static stk_status write_plot(const stk_lr_test *test, const stk_lr_curve *curve, stk_error *err) {
    char title[160];
    int64_t images = (int64_t)test->recipe->batch * test->recipe->train.accumulate;
    snprintf(title, sizeof title, "%s, %s, %lld images an update", test->recipe->model->name,
             stk_options_get(test->options, "optimizer"), (long long)images);
    stk_lr_plot plot = {.title = title,
                        .points = curve->points,
                        .count = (size_t)curve->count,
                        .suggestion = curve->suggestion};
    char *path = stk_run_folder_file(test->folder, stk_lr_test_plot_name());
    stk_status status =
        path != NULL ? stk_lr_plot_write(&plot, path, err) : STK_FAIL_MEMORY(err, "a path");
    stk_mem_free(path);
    return status;
}

stk_status stk_lr_test_run(const stk_lr_test *test, const stk_loader_config *data, int steps,
                           double seconds, stk_lr_curve *curve, stk_error *err) {
    test_time time = {.clock = test->clock, .start_ns = stk_clock_ns(), .seconds = seconds};
    stk_lr_find_config config = {.backend = test->network->opened.backend,
                                 .state = test->network->state,
                                 .graph = test->network->graph,
                                 .options = &test->recipe->train,
                                 .compile =
                                     stk_network_compile_config(test->network, test->recipe, true),
                                 .train_data = *data,
                                 .seed = data->seed,
                                 .steps = steps,
                                 .events = test->events,
                                 .halt = {is_over, &time}};
    test->clock->halt_on_stop = true; /* half a test is useless */
    stk_status status = stk_lr_find(&config, curve, err);
    test->clock->halt_on_stop = false;
    STK_THEN(status, write_points(test, curve, err));
    STK_THEN(status, write_plot(test, curve, err));
    if (status != STK_OK) {
        stk_lr_curve_free(curve);
    }
    return status;
}

/* Why this rate is used. */
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

stk_status stk_lr_test_find(const stk_lr_test *test, const stk_loader_config *data, double *lr,
                            stk_error *err) {
    const stk_recipe *recipe = test->recipe;
    stk_lr_curve curve;
    char what[64];
    char why[160];
    double left = stk_run_clock_left(test->clock);
    *lr = STK_AUTO_DOUBLE;
    stk_status status = stk_lr_test_run(test, data, STK_LR_STEPS, TEST_SHARE * left, &curve, err);
    if (status != STK_OK) {
        return status;
    }
    bool found = !isnan(curve.suggestion);
    if (curve.halted && stk_run_clock_stopping(test->clock)) {
        stk_events_decision(test->events, "stopping", "the learning rate was not found yet");
    } else {
        *lr = found ? curve.suggestion : stk_recipe_default_lr(recipe, data->count);
        snprintf(what, sizeof what, "lr %.6g", *lr);
        explain(&curve, why, sizeof why);
        stk_events_decision(test->events, what, why);
        status = stk_options_resolve(test->options, "lr", what + strlen("lr "),
                                     found ? "found" : "default", err);
    }
    stk_lr_curve_free(&curve);
    return status;
}
