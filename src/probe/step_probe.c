/*
 * step_probe.c - whole training steps, or inferences, on random pictures.
 *
 * The first step warms memory up and is told apart; of the others the median counts, since a
 * neighbour on the machine makes some of them slow and none of them fast.
 */
#include "probe/step_probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backends.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/rng.h"
#include "models/plan_bytes.h"
#include "probe/gauges.h"
#include "probe/probe_options.h"

#define LEAST_STEPS 3
#define MOST_STEPS 1000

typedef struct step_probe {
    const stk_step_probe_options *options;
    const stk_stop *stop;
    const stk_model *model;
    const stk_backend *backend;
    int device_index; /* which of its devices */
    stk_device *device;
    stk_graph *graph;
    stk_state *state;
    stk_exec *exec;
    uint8_t *images; /* (batch, size, size, 3) */
    int *labels;     /* (batch) */
    float *logits;   /* (batch, classes) */
    double times_s[MOST_STEPS];
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
        bool good = end != p && *p != '-' && batch >= 1 && batch <= 65536 &&
                    (*end == ',' || *end == '\0') && !(*end == ',' && end[1] == '\0');
        if (!good || *count == STK_STEP_MOST_BATCHES) {
            return STK_FAIL(err, STK_ERR_USAGE,
                            "--batch %s: give up to %d numbers from 1 to 65536 divided by commas",
                            text, STK_STEP_MOST_BATCHES);
        }
        batches[(*count)++] = batch;
        p = *end == ',' ? end + 1 : end;
    }
    return *count > 0 ? STK_OK : STK_FAIL(err, STK_ERR_USAGE, "--batch is empty; give a number");
}

static stk_status open_probe(step_probe *p, stk_error *err) {
    const stk_step_probe_options *o = p->options;
    stk_backend_choice found;
    if (o->model == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE, "--model is missing: give one, such as resnet50");
    }
    stk_status status = stk_model_find(o->model, &p->model, err);
    if (status == STK_OK) {
        status = stk_backend_find(o->device != NULL ? o->device : "auto", &found, err);
        p->backend = found.backend;
        p->device_index = found.index;
    }
    return status;
}

static int size_of(const step_probe *p) {
    return stk_is_auto_int(p->options->img_size) ? p->model->img_size : (int)p->options->img_size;
}

static int threads_of(const step_probe *p) {
    return stk_is_auto_int(p->options->threads) ? stk_machine_cores() : (int)p->options->threads;
}

/* Random pictures and labels: what is in them changes no step's time. */
static stk_status fill_batch(step_probe *p, size_t batch, stk_error *err) {
    size_t bytes = stk_shape_count(p->graph->values[p->graph->input].shape) * batch;
    stk_rng rng = stk_rng_make(0, STK_RNG_SAMPLE_DATA, 0, 0);
    p->images = stk_mem_raw(bytes, 1);
    p->labels = stk_mem_raw(batch, sizeof *p->labels);
    p->logits = stk_mem_raw(batch * (size_t)p->graph->classes, sizeof *p->logits);
    if (p->images == NULL || p->labels == NULL || p->logits == NULL) {
        return STK_FAIL_MEMORY(err, "a batch of pictures");
    }
    for (size_t i = 0; i < bytes; i++) {
        p->images[i] = (uint8_t)stk_rng_u64(&rng);
    }
    for (size_t i = 0; i < batch; i++) {
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

/* The device, the network and a batch for it. */
static stk_status open_network(step_probe *p, size_t batch, stk_error *err) {
    stk_plan_recipe recipe = recipe_of(p);
    stk_device_config device = {.threads = threads_of(p),
                                .index = p->device_index,
                                .halted = p->stop != NULL ? halted : NULL,
                                .user = (void *)(uintptr_t)p->stop};
    stk_model_config network = {.img_size = size_of(p),
                                .classes = recipe.classes,
                                .dropout = STK_MODEL_OWN_RATE,
                                .drop_path = STK_MODEL_OWN_RATE};
    stk_compile_config config = {.batch = batch, .train = !recipe.infer, .plain = recipe.plain};
    stk_status status = p->backend->device_open(&p->device, &device, err);
    if (status == STK_OK) {
        status = stk_model_build(p->model, &network, &p->graph, err);
    }
    if (status == STK_OK) {
        status = p->backend->state_new(&p->state, p->device, p->graph, &recipe.state, err);
    }
    if (status == STK_OK) {
        status = stk_state_first_weights(p->backend, p->state, p->graph, 0, err);
    }
    if (status == STK_OK) {
        status = p->backend->compile(&p->exec, p->state, &config, err);
    }
    return status == STK_OK ? fill_batch(p, batch, err) : status;
}

static void close_network(step_probe *p) {
    p->backend->exec_free(p->exec);
    p->backend->state_free(p->state);
    stk_graph_free(p->graph);
    p->backend->device_close(p->device);
    stk_mem_free(p->images);
    stk_mem_free(p->labels);
    stk_mem_free(p->logits);
    p->exec = NULL;
    p->state = NULL;
    p->graph = NULL;
    p->device = NULL;
    p->images = NULL;
    p->labels = NULL;
    p->logits = NULL;
}

static stk_status one_step(step_probe *p, size_t batch, uint64_t number, stk_error *err) {
    if (p->options->inference) {
        return p->backend->infer(p->exec, p->images, batch, p->logits, err);
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
                            .count = batch,
                            .step = number,
                            .update = &update};
    stk_step_output output;
    return p->backend->step(p->exec, &input, &output, err);
}

static int by_time(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static stk_status run_steps(step_probe *p, size_t batch, stk_step_figures *f, stk_error *err) {
    stk_status status = STK_OK;
    int64_t start = stk_clock_ns();
    int64_t count = 0;
    while (status == STK_OK && count < MOST_STEPS &&
           (count < LEAST_STEPS || stk_clock_since_s(start) < p->options->seconds)) {
        int64_t begin = stk_clock_ns();
        status = one_step(p, batch, (uint64_t)count + 1, err);
        p->times_s[count++] = stk_clock_since_s(begin);
    }
    if (status != STK_OK) {
        return status;
    }
    qsort(p->times_s, (size_t)count, sizeof *p->times_s, by_time);
    double median = count % 2 == 1 ? p->times_s[count / 2]
                                   : (p->times_s[count / 2 - 1] + p->times_s[count / 2]) / 2;
    f->steps = count;
    f->ms_per_step = median * 1e3;
    f->ms_fastest = p->times_s[0] * 1e3;
    f->ms_slowest = p->times_s[count - 1] * 1e3;
    f->images_per_second = (double)batch / median;
    return STK_OK;
}

/* The plan is asked for beside the allocation: both are told, and they are the same. */
static stk_status note_memory(step_probe *p, size_t batch, stk_step_figures *f, stk_error *err) {
    stk_plan_recipe recipe = recipe_of(p);
    stk_plan_need need;
    int64_t start = stk_clock_ns();
    stk_status status = stk_plan_bytes(p->model, batch, size_of(p), STK_PRECISION_AUTO, &recipe,
                                       p->backend, p->device, &need, err);
    f->plan_ms = stk_clock_since_s(start) * 1e3;
    f->arena_bytes = (int64_t)p->backend->exec_bytes(p->exec);
    f->bytes = f->arena_bytes + (int64_t)p->backend->state_bytes(p->graph, &recipe.state);
    if (status == STK_OK && need.bytes != (uint64_t)f->bytes) {
        status = STK_FAIL(err, STK_ERR_INTERNAL,
                          "the plan of batch %zu says %llu bytes, %lld were allocated", batch,
                          (unsigned long long)need.bytes, (long long)f->bytes);
    }
    return status;
}

static stk_status measure(step_probe *p, size_t batch, stk_step_figures *f, stk_error *err) {
    int64_t start = stk_clock_ns();
    *f = (stk_step_figures){.model = p->model->name,
                            .device = p->backend->name,
                            .precision = "fp32",
                            .batch = (int64_t)batch,
                            .img_size = size_of(p),
                            .classes = p->options->classes,
                            .threads = threads_of(p),
                            .inference = p->options->inference};
    stk_status status = open_network(p, batch, err);
    if (status == STK_OK) {
        status = one_step(p, batch, 0, err);
        f->warmup_s = stk_clock_since_s(start);
    }
    if (status == STK_OK) {
        status = run_steps(p, batch, f, err);
    }
    if (status == STK_OK) {
        status = note_memory(p, batch, f, err);
    }
    f->rss_bytes = stk_gauge_peak_resident();
    close_network(p);
    return status;
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
    stk_status status = open_probe(p, err);
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
