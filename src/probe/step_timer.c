/* step_timer.c - windows of steps between two moments at which the device is idle. */
#include "probe/step_timer.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/rng.h"

#define ABOUT 1.25
#define WINDOWS 10 /* a measurement has about this many windows */

/* Makes random pictures and labels: their contents do not change the time of a step. */
stk_status stk_step_timer_open(stk_step_timer *t, stk_error *err) {
    size_t bytes = stk_shape_count(t->graph->values[t->graph->input].shape) * t->batch;
    stk_rng rng = stk_rng_make(0, STK_RNG_SAMPLE_DATA, 0, 0);
    t->images = t->backend->host_take(t->device, bytes);
    t->labels = stk_mem_raw(t->batch, sizeof *t->labels);
    t->logits = stk_mem_raw(t->batch * (size_t)t->graph->classes, sizeof *t->logits);
    size_t features = stk_graph_feature_count(t->graph);
    bool targets = !stk_loss_has_labels(t->graph->loss.kind);
    if (targets) {
        t->targets = stk_mem_new(t->batch * (size_t)t->graph->classes, sizeof *t->targets);
    }
    if (features > 0) {
        t->features = stk_mem_new(t->batch * features, sizeof *t->features);
    }
    if (t->images == NULL || t->labels == NULL || t->logits == NULL ||
        (targets && t->targets == NULL) || (features > 0 && t->features == NULL)) {
        return STK_FAIL_MEMORY(err, "a batch of pictures");
    }
    for (size_t i = 0; i < bytes; i++) {
        t->images[i] = (uint8_t)stk_rng_u64(&rng);
    }
    for (size_t i = 0; i < t->batch; i++) {
        t->labels[i] = (int)stk_rng_below(&rng, (uint64_t)t->graph->classes);
    }
    return STK_OK;
}

void stk_step_timer_close(stk_step_timer *t) {
    if (t->backend != NULL) {
        t->backend->host_free(t->device, t->images);
    }
    stk_mem_free(t->labels);
    stk_mem_free(t->targets);
    stk_mem_free(t->features);
    stk_mem_free(t->logits);
    t->images = NULL;
    t->labels = NULL;
    t->targets = NULL;
    t->features = NULL;
    t->logits = NULL;
}

static stk_status collect(stk_step_timer *t, bool wait, stk_error *err) {
    stk_step_output outputs[STK_STEPS_AHEAD];
    size_t count;
    return t->update == NULL
               ? STK_OK
               : t->backend->collect(t->exec, wait, outputs, STK_STEPS_AHEAD, &count, err);
}

static stk_status one_step(stk_step_timer *t, stk_error *err) {
    if (t->update == NULL) {
        return t->backend->infer(t->exec, t->images, t->features, t->batch, t->logits, err);
    }
    stk_step_input input = {.images = t->images,
                            .labels = t->labels,
                            .targets = t->targets,
                            .features = t->features,
                            .count = t->batch,
                            .step = t->step++,
                            .update = t->update};
    stk_status status = t->backend->step(t->exec, &input, NULL, err);
    return status == STK_OK ? collect(t, false, err) : status;
}

/* Runs steps and waits until all are done; *seconds is the time per step. */
static stk_status run_window(stk_step_timer *t, int64_t steps, double *seconds, stk_error *err) {
    int64_t begin = stk_clock_ns();
    stk_status status = STK_OK;
    for (int64_t i = 0; i < steps && status == STK_OK; i++) {
        status = one_step(t, err);
    }
    STK_THEN(status, collect(t, true, err));
    *seconds = stk_clock_since_s(begin) / (double)steps;
    return status;
}

static bool is_halted(const stk_step_timer *t) {
    return t->halt.asked != NULL && t->halt.asked(t->halt.user);
}

static stk_status stopped(stk_error *err) {
    return STK_FAIL(err, STK_ERR_STOPPED, "measuring steps was stopped");
}

bool stk_step_is_slow(double seconds, double than_s) {
    return seconds > ABOUT * than_s;
}

static bool is_warm(const stk_step_timer *t) {
    int n = t->warm_count;
    return n == STK_STEP_MOST_WARM ||
           (n >= 2 && !stk_step_is_slow(t->warm_s[n - 2], t->warm_s[n - 1]) &&
            !stk_step_is_slow(t->warm_s[n - 1], t->warm_s[n - 2]));
}

stk_status stk_step_timer_warm_up(stk_step_timer *t, stk_error *err) {
    stk_status status = STK_OK;
    t->warm_count = 0;
    t->step = 0;
    while (status == STK_OK && !is_warm(t)) {
        status = is_halted(t) ? stopped(err) : run_window(t, 1, &t->warm_s[t->warm_count], err);
        t->warm_count++;
    }
    return status;
}

static int by_time(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

stk_status stk_step_timer_run(stk_step_timer *t, double seconds, size_t windows,
                              stk_step_times *times, stk_error *err) {
    double step_s = t->warm_s[t->warm_count - 1];
    double each = step_s > 0 ? seconds / WINDOWS / step_s : 1;
    int64_t steps = each > 1 ? (int64_t)(each + 0.5) : 1;
    int64_t begin_ns = stk_clock_ns();
    stk_status status = STK_OK;
    size_t count = 0;
    while (status == STK_OK && count < STK_STEP_MOST_WINDOWS && !is_halted(t) &&
           (count < windows || stk_clock_since_s(begin_ns) < seconds)) {
        status = run_window(t, steps, &t->times_s[count], err);
        count++;
    }
    if (status != STK_OK || count == 0) {
        return status != STK_OK ? status : stopped(err);
    }
    qsort(t->times_s, count, sizeof *t->times_s, by_time);
    double median = count % 2 == 1 ? t->times_s[count / 2]
                                   : (t->times_s[count / 2 - 1] + t->times_s[count / 2]) / 2;
    *times = (stk_step_times){.median_s = median,
                              .fastest_s = t->times_s[0],
                              .slowest_s = t->times_s[count - 1],
                              .steps = (int64_t)count * steps,
                              .windows = (int64_t)count,
                              .begin_ns = begin_ns};
    return STK_OK;
}

stk_status stk_step_time(const stk_step_ask *ask, stk_step_times *times, stk_error *err) {
    stk_step_timer timer = {.backend = ask->backend,
                            .device = ask->device,
                            .graph = ask->graph,
                            .batch = ask->how.batch,
                            .update = ask->update,
                            .halt = ask->halt};
    stk_status status = ask->backend->compile(&timer.exec, ask->state, &ask->how, err);
    STK_THEN(status, stk_step_timer_open(&timer, err));
    STK_THEN(status, stk_step_timer_warm_up(&timer, err));
    STK_THEN(status, stk_step_timer_run(&timer, ask->seconds, ask->windows, times, err));
    ask->backend->exec_free(timer.exec); /* first: a step may still read the pictures */
    stk_step_timer_close(&timer);
    return status;
}
