/*
 * step_probe.c - whole training steps, or inferences, on random pictures.
 *
 * Steps run ahead as in training. The first ones warm everything up and are told apart; the others
 * come in windows, each timed from an idle device to an idle device, and the median window counts,
 * since a neighbour on the machine makes some of them slow and none of them fast.
 */
#include "probe/step_probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/opened_device.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/rng.h"
#include "engine/traffic.h"
#include "models/memory_check.h"
#include "models/plan_bytes.h"
#include "probe/gauges.h"
#include "probe/probe_options.h"

/* Steps are timed one by one until two in a row are about as fast as each other. */
#define MOST_WARM_STEPS 6
#define ABOUT 1.25

#define LEAST_WINDOWS 5
#define MOST_WINDOWS 1000
#define WINDOWS 10 /* that the seconds of a measurement are divided into */
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
    uint8_t *images; /* (batch, size, size, 3), of the device's host memory */
    int *labels;     /* (batch) */
    float *logits;   /* (batch, classes) */
    size_t batch;
    uint64_t step; /* number of the next one */
    double warm_s[MOST_WARM_STEPS];
    int warm_count;
    int64_t begin_ns;             /* before the device was opened */
    double times_s[MOST_WINDOWS]; /* of one step, by windows */
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

/* Random pictures and labels: what is in them changes no step's time. */
static stk_status fill_batch(step_probe *p, stk_error *err) {
    const stk_opened_device *o = &p->opened;
    size_t bytes = stk_shape_count(p->graph->values[p->graph->input].shape) * p->batch;
    stk_rng rng = stk_rng_make(0, STK_RNG_SAMPLE_DATA, 0, 0);
    p->images = o->backend->host_take(o->device, bytes);
    p->labels = stk_mem_raw(p->batch, sizeof *p->labels);
    p->logits = stk_mem_raw(p->batch * (size_t)p->graph->classes, sizeof *p->logits);
    if (p->images == NULL || p->labels == NULL || p->logits == NULL) {
        return STK_FAIL_MEMORY(err, "a batch of pictures");
    }
    for (size_t i = 0; i < bytes; i++) {
        p->images[i] = (uint8_t)stk_rng_u64(&rng);
    }
    for (size_t i = 0; i < p->batch; i++) {
        p->labels[i] = (int)stk_rng_below(&rng, (uint64_t)p->graph->classes);
    }
    return STK_OK;
}

static stk_plan_recipe recipe_of(const step_probe *p) {
    bool train = !p->options->inference;
    return (stk_plan_recipe){.classes = (int)p->options->classes,
                             .state = {.train = train, .optimizer = STK_SGD},
                             .infer = !train,
                             .plain = !p->options->compile};
}

static stk_status open_device(step_probe *p, stk_error *err) {
    stk_device_config device = {.threads = threads_of(p),
                                .deterministic = p->options->deterministic,
                                .halted = p->stop != NULL ? halted : NULL,
                                .user = (void *)(uintptr_t)p->stop};
    return stk_opened_device_open(&p->opened, p->options->device,
                                  (stk_precision)p->options->precision, &device, err);
}

/* The network, where there is memory for it, and a batch. */
static stk_status open_network(step_probe *p, stk_error *err) {
    const stk_opened_device *o = &p->opened;
    stk_plan_recipe recipe = recipe_of(p);
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
                          .batch = &config};
    stk_status status = stk_model_build(p->model, &network, &p->graph, err);
    ask.graph = p->graph;
    if (status == STK_OK) {
        status = stk_memory_check(&ask, err);
    }
    if (status == STK_OK) {
        status = o->backend->state_new(&p->state, o->device, p->graph, &recipe.state, err);
    }
    if (status == STK_OK) {
        status = stk_state_first_weights(o->backend, p->state, p->graph, 0, err);
    }
    if (status == STK_OK) {
        status = o->backend->compile(&p->exec, p->state, &config, err);
    }
    return status == STK_OK ? fill_batch(p, err) : status;
}

static void close_all(step_probe *p) {
    const stk_opened_device *o = &p->opened;
    if (o->backend != NULL) {
        o->backend->exec_free(p->exec);
        o->backend->state_free(p->state);
        o->backend->host_free(o->device, p->images);
    }
    stk_graph_free(p->graph);
    stk_opened_device_close(&p->opened);
    stk_mem_free(p->labels);
    stk_mem_free(p->logits);
    p->exec = NULL;
    p->state = NULL;
    p->graph = NULL;
    p->images = NULL;
    p->labels = NULL;
    p->logits = NULL;
}

static stk_status collect(step_probe *p, bool wait, stk_error *err) {
    stk_step_output outputs[STK_STEPS_AHEAD];
    size_t count;
    return p->options->inference
               ? STK_OK
               : p->opened.backend->collect(p->exec, wait, outputs, STK_STEPS_AHEAD, &count, err);
}

static stk_status one_step(step_probe *p, stk_error *err) {
    const stk_backend *backend = p->opened.backend;
    if (p->options->inference) {
        return backend->infer(p->exec, p->images, p->batch, p->logits, err);
    }
    /* A rate at which random labels are not learnt to nonsense: slow numbers such as NaN or
     * denormals would be measured otherwise. */
    stk_update update = {.kind = STK_SGD,
                         .lr = 1e-3f,
                         .head_lr = 1e-3f,
                         .momentum = 0.9f,
                         .nesterov = true,
                         .weight_decay = 5e-4f,
                         .grad_scale = 1};
    stk_step_input input = {.images = p->images,
                            .labels = p->labels,
                            .count = p->batch,
                            .step = p->step++,
                            .update = &update};
    stk_status status = backend->step(p->exec, &input, NULL, err);
    return status == STK_OK ? collect(p, false, err) : status;
}

/* So many steps, until all of them are done; *seconds is what one of them took. */
static stk_status run_window(step_probe *p, int64_t steps, double *seconds, stk_error *err) {
    int64_t begin = stk_clock_ns();
    stk_status status = STK_OK;
    for (int64_t i = 0; i < steps && status == STK_OK; i++) {
        status = one_step(p, err);
    }
    if (status == STK_OK) {
        status = collect(p, true, err);
    }
    *seconds = stk_clock_since_s(begin) / (double)steps;
    return status;
}

static bool is_warm(const step_probe *p) {
    int n = p->warm_count;
    return n == MOST_WARM_STEPS || (n >= 2 && p->warm_s[n - 2] <= ABOUT * p->warm_s[n - 1] &&
                                    p->warm_s[n - 1] <= ABOUT * p->warm_s[n - 2]);
}

static stk_status warm_up(step_probe *p, stk_error *err) {
    stk_status status = STK_OK;
    p->warm_count = 0;
    p->step = 0;
    while (status == STK_OK && !is_warm(p)) {
        status = run_window(p, 1, &p->warm_s[p->warm_count], err);
        p->warm_count++;
    }
    return status;
}

/* How long it took until a step was as fast as those that were measured afterwards. */
static double warm_up_seconds(const step_probe *p, int64_t end_ns, double step_s) {
    double seconds = (double)(end_ns - p->begin_ns) * 1e-9;
    int first = 0;
    while (first < p->warm_count - 1 && p->warm_s[first] > ABOUT * step_s) {
        first++;
    }
    for (int i = first + 1; i < p->warm_count; i++) {
        seconds -= p->warm_s[i];
    }
    return seconds;
}

static int by_time(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static stk_status run_windows(step_probe *p, stk_step_figures *f, stk_error *err) {
    double step_s = p->warm_s[p->warm_count - 1];
    int64_t warm_ns = stk_clock_ns();
    double each = step_s > 0 ? p->options->seconds / WINDOWS / step_s : 1;
    int64_t steps = each > 1 ? (int64_t)(each + 0.5) : 1;
    stk_status status = STK_OK;
    size_t count = 0;
    while (status == STK_OK && count < MOST_WINDOWS &&
           (count < LEAST_WINDOWS || stk_clock_since_s(warm_ns) < p->options->seconds)) {
        status = run_window(p, steps, &p->times_s[count], err);
        count++;
    }
    if (status != STK_OK) {
        return status;
    }
    qsort(p->times_s, count, sizeof *p->times_s, by_time);
    double median = count % 2 == 1 ? p->times_s[count / 2]
                                   : (p->times_s[count / 2 - 1] + p->times_s[count / 2]) / 2;
    f->steps = (int64_t)count * steps;
    f->windows = (int64_t)count;
    f->ms_per_step = median * 1e3;
    f->ms_fastest = p->times_s[0] * 1e3;
    f->ms_slowest = p->times_s[count - 1] * 1e3;
    f->images_per_second = (double)p->batch / median;
    f->warmup_s = warm_up_seconds(p, warm_ns, median);
    return STK_OK;
}

/* The plan is asked for beside the allocation: both are told, and they are the same. */
static stk_status note_memory(step_probe *p, stk_step_figures *f, stk_error *err) {
    const stk_opened_device *o = &p->opened;
    stk_plan_recipe recipe = recipe_of(p);
    stk_plan_need need;
    int64_t start = stk_clock_ns();
    stk_status status = stk_plan_bytes(p->model, p->batch, size_of(p), o->precision, &recipe,
                                       o->backend, o->device, &need, err);
    f->plan_ms = stk_clock_since_s(start) * 1e3;
    f->arena_bytes = (int64_t)o->backend->exec_bytes(p->exec);
    f->bytes = f->arena_bytes + (int64_t)o->backend->state_bytes(p->graph, &recipe.state);
    if (status == STK_OK && need.bytes != (uint64_t)f->bytes) {
        status = STK_FAIL(err, STK_ERR_INTERNAL,
                          "the plan of batch %zu says %llu bytes, %lld were allocated", p->batch,
                          (unsigned long long)need.bytes, (long long)f->bytes);
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
    if (status == STK_OK) {
        status = warm_up(p, err);
    }
    if (status == STK_OK) {
        status = run_windows(p, f, err);
    }
    if (status == STK_OK) {
        status = note_memory(p, f, err);
    }
    if (status == STK_OK) {
        status = note_traffic(p, f, err);
    }
    if (status == STK_OK) {
        note_counts(p, f);
        status = note_profile(p, f, err);
    }
    f->rss_bytes = stk_gauge_peak_resident();
    close_all(p);
    return status;
}

int64_t stk_step_knee(const stk_step_figures *figures, size_t count) {
    double best = 0;
    int64_t knee = 0;
    for (size_t i = 0; i < count; i++) {
        best = figures[i].images_per_second > best ? figures[i].images_per_second : best;
    }
    for (size_t i = 0; i < count; i++) {
        bool near = figures[i].images_per_second >= (1 - STK_STEP_KNEE) * best;
        if (near && (knee == 0 || figures[i].batch < knee)) {
            knee = figures[i].batch;
        }
    }
    return knee;
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
    if (status == STK_OK) {
        status = read_batches(p->options->batch, batches, &count, err);
    }
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
