/*
 * cuda_pair.h - one network on two backends, the CPU's, which is the oracle, and CUDA's on a GPU or
 * the emulated one: the same weights, the same batches, and everything that a step leaves behind is
 * compared.
 */
#ifndef STK_TESTS_UNIT_CUDA_PAIR_H
#define STK_TESTS_UNIT_CUDA_PAIR_H

#include "backend/cpu/device.h"
#include "backend/cuda/device.h"
#include "base/numbers/rng.h"
#include "cuda_play.h"
#include "first_values.h"
#include "op_networks.h"

enum { PAIR_CPU, PAIR_GPU };

typedef struct pair_side {
    const stk_backend *backend;
    stk_device *device;
    stk_state *state;
    stk_exec *exec;
} pair_side;

typedef struct pair {
    const stk_graph *graph;
    pair_side sides[2];
    stk_compile_config config;
    stk_state_config state;
    uint8_t *images; /* config.batch pictures */
    int labels[32];
    float targets[32 * CLASSES]; /* for losses that have them; some are not known */
    float features[32 * 16];     /* of networks that have any */
    double share;                /* how far apart results may be, as a share of their size */
    stk_error err;
} pair;

/* What a test asks for. */
typedef struct pair_wish {
    size_t batch;
    stk_precision precision;
    bool plain, infer, frozen, kept_stats;
    bool average; /* the inference is of the moving average */
    bool deterministic;
    stk_state_config state;
    double share; /* 0: what the precision allows */
} pair_wish;

static inline double pair_share(stk_precision precision) {
    switch (precision) {
    case STK_PRECISION_FP32_STRICT:
        return 1e-5;
    case STK_PRECISION_FP32: /* TF32 keeps ten bits */
        return 5e-3;
    case STK_PRECISION_FP16:
        return 1e-2;
    default:
        return 8e-2;
    }
}

/* A small network, for pictures of so many pixels. */
static inline stk_graph *pair_graph(builder *build, int img_size) {
    stk_graph *graph = NULL;
    stk_error err = {0};
    if (stk_graph_new(&graph, img_size, CLASSES, &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
        return NULL;
    }
    for (int c = 0; c < 3; c++) {
        graph->mean[c] = 0.4f + 0.05f * (float)c;
        graph->std[c] = 0.2f + 0.01f * (float)c;
    }
    if (stk_graph_finish(graph, build(graph), &err) != STK_OK) {
        CHECK_FAIL("%s", err.message);
    }
    return graph;
}

/* Which GPU there is; the same answer for the whole program. */
typedef enum pair_gpu {
    PAIR_GPU_UNKNOWN,
    PAIR_GPU_NONE,
    PAIR_GPU_EMULATED,
    PAIR_GPU_REAL
} pair_gpu;

static inline pair_gpu pair_find_gpu(void) {
    static pair_gpu found;
    static const char *reason;
    play_device play;
    if (found == PAIR_GPU_UNKNOWN) {
        found = PAIR_GPU_NONE;
        if (play_open(&play)) {
            found = play.emulated ? PAIR_GPU_EMULATED : PAIR_GPU_REAL;
            play_close(&play);
        }
        reason = check_skip_reason;
    }
    check_skip_reason = reason;
    return found;
}

/* Lets the library find the emulated GPU, or the real one; false: the test is skipped. */
static inline bool pair_choose_gpu(void) {
    static char folder[256];
    pair_gpu gpu = pair_find_gpu();
    if (gpu == PAIR_GPU_NONE) {
        return false;
    }
    if (folder[0] == '\0') { /* one for all tests of the program: kernels are compiled once */
        snprintf(folder, sizeof folder, "%s", check_folder());
    }
    setenv("XDG_CACHE_HOME", folder, 1);
    if (gpu == PAIR_GPU_EMULATED) {
        setenv("STOKER_CUDA_LIBS", play_emulated_folder(), 1);
    } else {
        unsetenv("STOKER_CUDA_LIBS");
    }
    return true;
}

static inline void pair_close(pair *p) {
    for (int i = 0; i < 2; i++) {
        pair_side *side = &p->sides[i];
        if (side->backend != NULL) {
            side->backend->exec_free(side->exec);
            side->backend->state_free(side->state);
            side->backend->device_close(side->device);
        }
    }
    stk_mem_free(p->images);
}

/* Random parameters that no norm makes vanish, the same on both sides. */
static inline void pair_fill(pair *p, uint64_t seed) {
    stk_rng rng = stk_rng_make(seed, STK_RNG_TEST, 0, 0);
    for (int i = 0; i < p->graph->param_count; i++) {
        const stk_param *param = &p->graph->params[i];
        float *values = stk_mem_new(param->count, sizeof *values);
        first_values(p->graph, i, seed, values);
        bool variance = strstr(param->name, "running_var") != NULL;
        bool ones = param->rank == 1 && param->trainable && strstr(param->name, "weight") != NULL;
        for (size_t k = 0; k < param->count && param->rank == 1; k++) {
            values[k] = (float)(variance ? stk_rng_range(&rng, 0.5, 2)
                                : ones   ? stk_rng_range(&rng, 0.5, 1.5)
                                         : 0.2 * stk_rng_normal(&rng));
        }
        for (int s = 0; s < 2; s++) {
            CHECK(p->sides[s].backend->state_write(p->sides[s].state, STK_TENSOR_VALUE, i, values,
                                                   &p->err) == STK_OK);
            if (p->sides[s].backend->state_has(p->sides[s].state, STK_TENSOR_EMA)) {
                CHECK(p->sides[s].backend->state_write(p->sides[s].state, STK_TENSOR_EMA, i, values,
                                                       &p->err) == STK_OK);
            }
        }
        stk_mem_free(values);
    }
    size_t pixels = p->config.batch * stk_shape_count(p->graph->values[p->graph->input].shape);
    for (size_t i = 0; i < pixels; i++) {
        p->images[i] = (uint8_t)stk_rng_below(&rng, 256);
    }
    for (size_t i = 0; i < p->config.batch; i++) {
        p->labels[i] = (int)stk_rng_below(&rng, (uint64_t)p->graph->classes);
    }
    for (size_t i = 0; i < sizeof p->features / sizeof *p->features; i++) {
        p->features[i] = (float)stk_rng_normal(&rng);
    }
    for (size_t i = 0; i < sizeof p->targets / sizeof *p->targets; i++) {
        p->targets[i] = i % 7 == 3 ? NAN : (float)stk_rng_range(&rng, 0, 1);
    }
}

/*
 * fp16 begins with a loss scale that these small networks' gradients do not bear: updates that move
 * nothing are made until one is not left out, and what they leave behind is cleared.
 */
static inline void pair_settle(pair *p) {
    pair_side *gpu = &p->sides[PAIR_GPU];
    float *zeros = stk_mem_new(p->graph->param_elements, sizeof *zeros);
    stk_update still = {.kind = p->state.optimizer, .updates = 1, .head_updates = 1, .epsilon = 1};
    stk_step_input in = {.images = p->images,
                         .labels = p->labels,
                         .targets = p->targets,
                         .features = p->features,
                         .count = p->config.batch,
                         .seed = 3,
                         .step = 5,
                         .update = &still};
    stk_step_output out = {.skipped = true};
    for (int i = 0; i < 20 && out.skipped; i++) {
        if (gpu->backend->step(gpu->exec, &in, &out, &p->err) != STK_OK) {
            CHECK_FAIL("%s", p->err.message);
            break;
        }
    }
    CHECK(!out.skipped);
    for (int kind = STK_TENSOR_GRADIENT; kind <= STK_TENSOR_SECOND; kind++) {
        for (int i = 0; i < p->graph->param_count; i++) {
            if (gpu->backend->state_has(gpu->state, (stk_tensor_kind)kind)) {
                CHECK(gpu->backend->state_write(gpu->state, (stk_tensor_kind)kind, i, zeros,
                                                &p->err) == STK_OK);
            }
        }
    }
    stk_mem_free(zeros);
    /* Of the updates that were left out nothing is left either: see stk_cuda_state_extras_read().
     */
    float extras[STK_STATE_EXTRAS] = {0};
    CHECK(gpu->backend->extras_read(gpu->state, extras, &p->err) == STK_OK);
    extras[3] = extras[4] = 0;
    CHECK(gpu->backend->extras_write(gpu->state, extras, &p->err) == STK_OK);
}

/* False: the test was skipped or has failed; there is nothing to close. */
static inline bool pair_open(pair *p, const stk_graph *graph, const pair_wish *wish) {
    memset(p, 0, sizeof *p);
    if (!pair_choose_gpu()) {
        return false;
    }
    size_t picture = stk_shape_count(graph->values[graph->input].shape);
    p->graph = graph;
    p->share = wish->share > 0 ? wish->share : pair_share(wish->precision);
    p->config = (stk_compile_config){.batch = wish->batch,
                                     .precision = wish->precision,
                                     .train = !wish->infer,
                                     .frozen = wish->frozen,
                                     .kept_stats = wish->kept_stats,
                                     .ema = wish->average,
                                     .plain = wish->plain};
    p->state = wish->state;
    p->state.train = !wish->infer;
    p->images = stk_mem_new(wish->batch, picture);
    p->sides[PAIR_CPU].backend = &stk_cpu_backend;
    p->sides[PAIR_GPU].backend = &stk_cuda_backend;
    bool good = p->images != NULL && wish->batch <= sizeof p->labels / sizeof *p->labels;
    for (int i = 0; i < 2 && good; i++) {
        pair_side *side = &p->sides[i];
        stk_device_config device = {.threads = 2, .deterministic = wish->deterministic};
        good = side->backend->device_open(&side->device, &device, &p->err) == STK_OK &&
               side->backend->state_new(&side->state, side->device, graph, &p->state, &p->err) ==
                   STK_OK &&
               side->backend->compile(&side->exec, side->state, &p->config, &p->err) == STK_OK;
    }
    if (!good) {
        CHECK_FAIL("%s", p->err.message);
        pair_close(p);
        return false;
    }
    pair_fill(p, 7);
    if (p->config.train && wish->precision == STK_PRECISION_FP16) {
        pair_settle(p);
        pair_fill(p, 7);
    }
    return true;
}

static inline stk_step_input pair_input(const pair *p) {
    return (stk_step_input){.images = p->images,
                            .labels = p->labels,
                            .targets = p->targets,
                            .features = p->features,
                            .count = p->config.batch,
                            .seed = 3,
                            .step = 5};
}

static inline double pair_norm(const float *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += (double)values[i] * (double)values[i];
    }
    return sqrt(sum);
}

/* All tensors of a kind, one behind another; freed with stk_mem_free(). */
static inline float *pair_read(pair *p, int side, stk_tensor_kind kind) {
    float *all = stk_mem_new(p->graph->param_elements, sizeof *all);
    for (int i = 0; i < p->graph->param_count; i++) {
        CHECK(p->sides[side].backend->state_read(p->sides[side].state, kind, i,
                                                 all + p->graph->params[i].offset,
                                                 &p->err) == STK_OK);
    }
    return all;
}

/*
 * Each tensor within p->share of its norm; the same share of the mean size of all numbers is
 * allowed besides, since a bias in front of a norm has no gradient but what rounding makes.
 */
static inline void pair_compare_kind(pair *p, stk_tensor_kind kind, const char *what) {
    static const char *const names[] = {"values", "gradients", "momentum", "second", "average"};
    float *all[2] = {pair_read(p, PAIR_CPU, kind), pair_read(p, PAIR_GPU, kind)};
    double size =
        pair_norm(all[PAIR_CPU], p->graph->param_elements) / sqrt((double)p->graph->param_elements);
    int wrong = 0;
    for (int i = 0; i < p->graph->param_count; i++) {
        const stk_param *param = &p->graph->params[i];
        const float *expected = all[PAIR_CPU] + param->offset;
        float *actual = all[PAIR_GPU] + param->offset;
        double norm = pair_norm(expected, param->count);
        double limit = p->share * (norm + size * sqrt((double)param->count)) + 1e-12;
        for (size_t k = 0; k < param->count; k++) {
            actual[k] -= expected[k];
        }
        double apart = pair_norm(actual, param->count);
        if (!(apart <= limit) && wrong++ < 6) {
            CHECK_FAIL("%s: %s of %s are %.3g apart, which is %.3g of their size", what,
                       names[kind], param->name, apart, apart / (norm > 0 ? norm : 1));
        }
    }
    if (wrong > 6) {
        CHECK_FAIL("%s: %s of %d tensors are wrong", what, names[kind], wrong);
    }
    stk_mem_free(all[PAIR_CPU]);
    stk_mem_free(all[PAIR_GPU]);
}

static inline void pair_compare_output(const pair *p, const stk_step_output *cpu,
                                       const stk_step_output *gpu, const char *what) {
    if (!(fabs(cpu->loss_sum - gpu->loss_sum) <= p->share * (fabs(cpu->loss_sum) + 1))) {
        CHECK_FAIL("%s: the loss is %.9g, expected %.9g", what, gpu->loss_sum, cpu->loss_sum);
    }
    /* With few bits two classes may be equally likely. */
    size_t apart =
        cpu->correct > gpu->correct ? cpu->correct - gpu->correct : gpu->correct - cpu->correct;
    if (apart > (p->share > 1e-3 ? 1u : 0u)) {
        CHECK_FAIL("%s: %zu are correct, expected %zu", what, gpu->correct, cpu->correct);
    }
    if (isnan(cpu->grad_norm) != isnan(gpu->grad_norm) ||
        (!isnan(cpu->grad_norm) &&
         !(fabs(cpu->grad_norm - gpu->grad_norm) <= p->share * cpu->grad_norm))) {
        CHECK_FAIL("%s: the gradients' norm is %.9g, expected %.9g", what, gpu->grad_norm,
                   cpu->grad_norm);
    }
}

/* One step on both, and everything that it leaves behind. */
static inline void pair_step(pair *p, const stk_step_input *in, const char *what) {
    stk_step_output out[2];
    for (int i = 0; i < 2; i++) {
        if (p->sides[i].backend->step(p->sides[i].exec, in, &out[i], &p->err) != STK_OK) {
            CHECK_FAIL("%s: %s", what, p->err.message);
            return;
        }
    }
    if (out[PAIR_GPU].skipped) {
        CHECK_FAIL("%s: the update was left out, loss scale %g", what, out[PAIR_GPU].loss_scale);
    }
    pair_compare_output(p, &out[PAIR_CPU], &out[PAIR_GPU], what);
    for (int kind = 0; kind < STK_TENSOR_KINDS; kind++) {
        bool has =
            p->sides[PAIR_CPU].backend->state_has(p->sides[PAIR_CPU].state, (stk_tensor_kind)kind);
        CHECK(has == p->sides[PAIR_GPU].backend->state_has(p->sides[PAIR_GPU].state,
                                                           (stk_tensor_kind)kind));
        if (has) {
            pair_compare_kind(p, (stk_tensor_kind)kind, what);
        }
    }
}

/* Logits, and inputs of the head where the network gives them, of `count` pictures on both. */
static inline void pair_infer(pair *p, size_t count, const char *what) {
    size_t numbers = count * stk_graph_answers(p->graph);
    float *logits[2];
    for (int i = 0; i < 2; i++) {
        logits[i] = stk_mem_new(numbers, sizeof *logits[i]);
        memset(logits[i], 0xff, numbers * sizeof *logits[i]);
        if (p->sides[i].backend->infer(p->sides[i].exec, p->images, p->features, count, logits[i],
                                       &p->err) != STK_OK) {
            CHECK_FAIL("%s: %s", what, p->err.message);
        }
    }
    play_check_norm(what, logits[PAIR_GPU], logits[PAIR_CPU], numbers, p->share);
    stk_mem_free(logits[PAIR_CPU]);
    stk_mem_free(logits[PAIR_GPU]);
}

#endif
