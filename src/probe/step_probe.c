/* step_probe.c - from options to a network whose steps are timed, and to figures about them. */
#include "probe/step_probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/opened_device.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "budget/batch_choice.h"
#include "engine/traffic.h"
#include "engine/memory_check.h"
#include "models/memory_need.h"
#include "probe/own_use.h"
#include "probe/probe_options.h"
#include "probe/step_timer.h"

#define LEAST_WINDOWS 5
#define MOST_BATCH 16777216

/* Lines of a profile; networks have fewer different operations. */
#define MOST_LINES 1024

typedef struct step_probe {
    const stk_step_probe_options *options;
    const stk_stop *stop;
    const stk_model *model;
    stk_opened_device opened;
    stk_graph *graph;
    stk_state *state;
    stk_exec *exec;
    stk_step_timer timer;
    size_t batch;
    int64_t begin_ns; /* before the device was opened */
    stk_profile_line profile[MOST_LINES];
} step_probe;

static bool halted(void *user, double next_s) {
    (void)next_s;
    return stk_stop_asked(user) != STK_STOP_NONE;
}

/* "32,64,128" to numbers. */
static stk_status read_batches(const char *text, size_t *batches, size_t *count, stk_error *err) {
    *count = 0;
    for (const char *p = text; *p != '\0';) {
        char *end = NULL;
        unsigned long batch = strtoul(p, &end, 10);
        bool good = end != p && *p != '-' && batch >= 1 && batch <= MOST_BATCH &&
                    (*end == ',' || *end == '\0') && !(*end == ',' && end[1] == '\0');
        if (!good || *count == STK_STEP_MOST_BATCHES) {
            return STK_FAIL(err, STK_ERR_USAGE,
                            "--batch %s: give up to %d numbers from 1 to %d divided by commas",
                            text, STK_STEP_MOST_BATCHES, MOST_BATCH);
        }
        batches[(*count)++] = batch;
        p = *end == ',' ? end + 1 : end;
    }
    return *count > 0 ? STK_OK : STK_FAIL(err, STK_ERR_USAGE, "--batch is empty; give a number");
}

static stk_status find_model(step_probe *p, stk_error *err) {
    return p->options->model != NULL
               ? stk_model_find(p->options->model, &p->model, err)
               : STK_FAIL(err, STK_ERR_USAGE, "--model is missing: give one, such as resnet50");
}

static int size_of(const step_probe *p) {
    return stk_is_auto_int(p->options->img_size) ? p->model->img_size : (int)p->options->img_size;
}

static int threads_of(const step_probe *p) {
    return stk_is_auto_int(p->options->threads) ? stk_machine_cores() : (int)p->options->threads;
}

static stk_memory_need_config recipe_of(const step_probe *p) {
    bool train = !p->options->inference;
    return (stk_memory_need_config){.classes = (int)p->options->classes,
                                    .state = {.train = train, .optimizer = STK_SGD},
                                    .infer = !train,
                                    .plain = !p->options->compile};
}

static stk_status open_device(step_probe *p, stk_error *err) {
    stk_device_config device = {.threads = threads_of(p),
                                .deterministic = p->options->deterministic,
                                .memory_bytes = p->options->assume_memory,
                                .halted = p->stop != NULL ? halted : NULL,
                                .user = (void *)(uintptr_t)p->stop};
    return stk_opened_device_open(&p->opened, p->options->device,
                                  (stk_precision)p->options->precision, &device, err);
}

/* The update of every measured step. */
static const stk_update gentle = {.kind = STK_SGD,
                                  .lr = (float)STK_TIMED_RATE,
                                  .head_lr = (float)STK_TIMED_RATE,
                                  .momentum = 0.9f,
                                  .nesterov = true,
                                  .weight_decay = 5e-4f,
                                  .grad_scale = 1};

/* The network, where there is memory for it, and a batch. */
static stk_status open_network(step_probe *p, stk_error *err) {
    const stk_opened_device *o = &p->opened;
    stk_memory_need_config recipe = recipe_of(p);
    stk_model_config network = {.img_size = size_of(p),
                                .classes = recipe.classes,
                                .dropout = STK_MODEL_OWN_RATE,
                                .drop_path = STK_MODEL_OWN_RATE};
    stk_compile_config config = {.batch = p->batch,
                                 .precision = o->precision,
                                 .train = !recipe.infer,
                                 .plain = recipe.plain};
    stk_memory_ask ask = {.backend = o->backend,
                          .device = o->device,
                          .model = p->model->name,
                          .state = &recipe.state,
                          .compile = &config};
    stk_status status = stk_model_build(p->model, &network, &p->graph, err);
    ask.graph = p->graph;
    STK_THEN(status, stk_memory_check(&ask, err));
    STK_THEN(status, o->backend->state_new(&p->state, o->device, p->graph, &recipe.state, err));
    STK_THEN(status, stk_state_first_weights(o->backend, p->state, p->graph, 0, err));
    STK_THEN(status, o->backend->compile(&p->exec, p->state, &config, err));
    if (status == STK_OK) {
        p->timer = (stk_step_timer){.backend = o->backend,
                                    .device = o->device,
                                    .graph = p->graph,
                                    .exec = p->exec,
                                    .batch = p->batch,
                                    .update = recipe.infer ? NULL : &gentle};
        status = stk_step_timer_open(&p->timer, err);
    }
    return status;
}

static void close_all(step_probe *p) {
    const stk_opened_device *o = &p->opened;
    if (o->backend != NULL) {
        o->backend->exec_free(p->exec);
        o->backend->state_free(p->state);
    }
    stk_step_timer_close(&p->timer);
    stk_graph_free(p->graph);
    stk_opened_device_close(&p->opened);
    p->exec = NULL;
    p->state = NULL;
    p->graph = NULL;
    p->timer.backend = NULL;
}

/* Seconds until a step was as fast as the measured steps. */
static double warm_up_seconds(const step_probe *p, int64_t end_ns, double step_s) {
    double seconds = (double)(end_ns - p->begin_ns) * 1e-9;
    const stk_step_timer *timer = &p->timer;
    int first = 0;
    while (first < timer->warm_count - 1 && stk_step_is_slow(timer->warm_s[first], step_s)) {
        first++;
    }
    for (int i = first + 1; i < timer->warm_count; i++) {
        seconds -= timer->warm_s[i];
    }
    return seconds;
}

static stk_status run_windows(step_probe *p, stk_step_figures *f, stk_error *err) {
    stk_step_times times;
    stk_status status =
        stk_step_timer_run(&p->timer, p->options->seconds, LEAST_WINDOWS, &times, err);
    if (status != STK_OK) {
        return status;
    }
    f->steps = times.steps;
    f->windows = times.windows;
    f->ms_per_step = times.median_s * 1e3;
    f->ms_fastest = times.fastest_s * 1e3;
    f->ms_slowest = times.slowest_s * 1e3;
    f->images_per_second = (double)p->batch / times.median_s;
    f->warmup_s = warm_up_seconds(p, times.begin_ns, times.median_s);
    return STK_OK;
}

/* Asks for the memory need and compares it with what was allocated; both are reported. */
static stk_status note_memory(step_probe *p, stk_step_figures *f, stk_error *err) {
    const stk_opened_device *o = &p->opened;
    stk_memory_need_config recipe = recipe_of(p);
    stk_memory_need need;
    int64_t start = stk_clock_ns();
    stk_status status = stk_model_memory_need(p->model, p->batch, size_of(p), o->precision, &recipe,
                                              o->backend, o->device, &need, err);
    f->plan_ms = stk_clock_since_s(start) * 1e3;
    f->arena_bytes = (int64_t)o->backend->exec_bytes(p->exec);
    f->bytes = f->arena_bytes + (int64_t)o->backend->state_bytes(p->graph, &recipe.state);
    if (status == STK_OK && need.bytes != (uint64_t)f->bytes) {
        status = STK_FAIL(err, STK_ERR_INTERNAL,
                          "the memory need of batch %zu is %llu bytes, but %lld were allocated",
                          p->batch, (unsigned long long)need.bytes, (long long)f->bytes);
    }
    return status;
}

static stk_status note_traffic(step_probe *p, stk_step_figures *f, stk_error *err) {
    const stk_opened_device *o = &p->opened;
    bool halves = o->precision == STK_PRECISION_FP16 || o->precision == STK_PRECISION_BF16;
    stk_traffic traffic;
    stk_status status = stk_graph_traffic(p->graph, !p->options->inference,
                                          halves ? 2 : (int)sizeof(float), &traffic, err);
    f->traffic_bytes = traffic.image_bytes * (double)p->batch + traffic.step_bytes;
    f->bandwidth = o->backend->bandwidth != NULL ? o->backend->bandwidth(o->device) : NAN;
    f->traffic_fraction = f->traffic_bytes / (f->ms_per_step * 1e-3) / f->bandwidth;
    return status;
}

static void note_counts(const step_probe *p, stk_step_figures *f) {
    stk_device_counts counts = {0};
    if (p->opened.backend->counts != NULL) {
        p->opened.backend->counts(p->opened.device, &counts);
    }
    f->kernels_compiled = counts.kernels_compiled;
    f->kernels_loaded = counts.kernels_loaded;
    f->plans_timed = counts.plans_timed;
    f->plans_loaded = counts.plans_loaded;
    snprintf(f->unkept, sizeof f->unkept, "%s", counts.unkept != NULL ? counts.unkept : "");
}

static stk_status note_profile(step_probe *p, stk_step_figures *f, stk_error *err) {
    const stk_opened_device *o = &p->opened;
    if (!p->options->profile || o->backend->profile == NULL) {
        return STK_OK;
    }
    f->profile = p->profile;
    return o->backend->profile(p->exec, p->profile, MOST_LINES, &f->profile_count, err);
}

static stk_status measure(step_probe *p, size_t batch, stk_step_figures *f, stk_error *err) {
    p->begin_ns = stk_clock_ns();
    p->batch = batch;
    *f = (stk_step_figures){.model = p->model->name,
                            .batch = (int64_t)batch,
                            .img_size = size_of(p),
                            .classes = p->options->classes,
                            .threads = threads_of(p),
                            .inference = p->options->inference};
    stk_status status = open_device(p, err);
    if (status == STK_OK) {
        snprintf(f->device, sizeof f->device, "%s", p->opened.name);
        (void)stk_opened_device_describe(&p->opened, f->about, sizeof f->about);
        f->precision = stk_precision_name(p->opened.precision);
        status = open_network(p, err);
    }
    STK_THEN(status, stk_step_timer_warm_up(&p->timer, err));
    STK_THEN(status, run_windows(p, f, err));
    STK_THEN(status, note_memory(p, f, err));
    STK_THEN(status, note_traffic(p, f, err));
    if (status == STK_OK) {
        note_counts(p, f);
        status = note_profile(p, f, err);
    }
    f->rss_bytes = stk_own_peak_resident();
    close_all(p);
    return status;
}

int64_t stk_step_knee(const stk_step_figures *figures, size_t count) {
    stk_batch_point points[STK_STEP_MOST_BATCHES];
    for (size_t i = 0; i < count; i++) {
        points[i] = (stk_batch_point){(size_t)figures[i].batch, figures[i].images_per_second};
    }
    return (int64_t)stk_batch_knee(points, count);
}

stk_status stk_probe_step(stk_options *options, const stk_stop *stop,
                          void (*tell)(void *user, const stk_step_figures *figures), void *user,
                          stk_error *err) {
    size_t batches[STK_STEP_MOST_BATCHES];
    size_t count = 0;
    step_probe *p = stk_mem_new(1, sizeof *p);
    if (p == NULL) {
        return STK_FAIL_MEMORY(err, "the measurement");
    }
    p->options = stk_options_values(options, &stk_step_probe_option_table);
    p->stop = stop;
    stk_status status = find_model(p, err);
    STK_THEN(status, read_batches(p->options->batch, batches, &count, err));
    for (size_t i = 0; i < count && status == STK_OK; i++) {
        stk_step_figures figures;
        status = measure(p, batches[i], &figures, err);
        if (status == STK_OK) {
            tell(user, &figures);
        }
    }
    stk_mem_free(p);
    return status;
}
