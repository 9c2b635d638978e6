/*
 * cuda_fusions.h - for tests of fusions: compiles a network with its fusions decided, plain or
 * fused, and compares what a step leaves behind with the reference.
 *
 * Whoever includes it has defined CLASSES, SIZE and BATCH.
 */
#ifndef STK_TESTS_CUDA_FUSIONS_H
#define STK_TESTS_CUDA_FUSIONS_H

#include "backend/cpu/device.h"
#include "backend/cuda/exec.h"
#include "backend/cuda/tuning/tuning.h"
#include "cuda_play.h"
#include "first_values.h"

static const stk_backend *const cuda = &stk_cuda_backend;

typedef struct bench {
    stk_graph *graph;
    stk_device *device;
    stk_state *state;
    stk_error err;
    bool kept_stats; /* of every executable of a training */
    /* Changes values that a parameter begins with; NULL: they stay. */
    void (*set)(const stk_param *param, float *values);
} bench;

/* Norms that stay clear of the kink, some on this side and some on that: rounding does not move a
 * gradient across. */
static inline void keep_clear(const stk_param *param, float *values) {
    size_t length = strlen(param->name);
    if (strncmp(param->name, "bn", 2) != 0 || strcmp(param->name + length - 5, ".bias") != 0) {
        return;
    }
    for (size_t i = 0; i < param->count; i++) {
        values[i] = i % 3 == 1 ? -4 : 4;
    }
}

/* Lets the library find the emulated GPU, or the real one; false: the test is skipped. */
static inline bool choose_gpu(const char *folder) {
    static int known; /* 1: a real one, 2: an emulated one; asked once, since libraries stay */
    play_device play;
    if (known == 0) {
        if (!play_open(&play)) {
            return false;
        }
        known = play.emulated ? 2 : 1;
        play_close(&play);
    }
    if (known == 2) {
        setenv("STOKER_CUDA_LIBS", play_emulated_folder(), 1);
    }
    setenv("XDG_CACHE_HOME", folder, 1);
    return true;
}

static inline void bench_close(bench *b) {
    cuda->state_free(b->state);
    cuda->device_close(b->device);
    stk_graph_free(b->graph);
}

/* `build` adds a network's nodes and returns its logits. What is kept on disk is kept in the
 * folder. */
static inline bool bench_open_as(bench *b, int (*build)(stk_graph *), const char *folder,
                                 const stk_device_config *device) {
    memset(b, 0, sizeof *b);
    if (!choose_gpu(folder)) {
        return false;
    }
    stk_state_config state = {.train = true};
    bool good = stk_graph_new(&b->graph, SIZE, CLASSES, &b->err) == STK_OK;
    for (int c = 0; c < 3 && good; c++) {
        b->graph->mean[c] = 0.4f;
        b->graph->std[c] = 0.2f;
    }
    good = good && stk_graph_finish(b->graph, build(b->graph), &b->err) == STK_OK &&
           cuda->device_open(&b->device, device, &b->err) == STK_OK &&
           cuda->state_new(&b->state, b->device, b->graph, &state, &b->err) == STK_OK;
    if (!good) {
        CHECK_FAIL("%s", b->err.message);
        bench_close(b);
    }
    return good;
}

static inline bool bench_open(bench *b, int (*build)(stk_graph *), const char *folder,
                              bool deterministic) {
    stk_device_config device = {.threads = 2, .deterministic = deterministic};
    return bench_open_as(b, build, folder, &device);
}

static inline stk_exec *compile(bench *b, stk_precision precision, bool plain) {
    stk_exec *exec = NULL;
    stk_compile_config config = {.batch = BATCH,
                                 .precision = precision,
                                 .train = true,
                                 .kept_stats = b->kept_stats,
                                 .plain = plain};
    uint64_t planned = 0;
    if (cuda->exec_need(b->device, b->graph, &config, &planned, NULL, &b->err) != STK_OK ||
        cuda->compile(&exec, b->state, &config, &b->err) != STK_OK) {
        CHECK_FAIL("%s", b->err.message);
        return NULL;
    }
    CHECK_INT(cuda->exec_bytes(exec), planned);
    return exec;
}

/* Decides a fusion wherever the program has it; true: some results changed. */
static inline bool decide(const bench *b, const stk_exec *exec, cuda_fusion kind, int variant) {
    bool changed = false;
    for (int i = 0; i < exec->programs[PLAY_MAIN].decision_count; i++) {
        if (exec->programs[PLAY_MAIN].decisions[i].fusion == kind) {
            char name[CUDA_RESULT_NAME];
            stk_cuda_decision_name(&exec->programs[PLAY_MAIN].decisions[i], name);
            changed = changed || stk_cuda_tuning_result(b->device->tuning_results, name) != variant;
            stk_cuda_tuning_result_set(b->device->tuning_results, name, variant);
        }
    }
    return changed;
}

/*
 * Compiles with each fusion decided so. A result may lead to further decisions;
 * one that a library cannot follow is taken back.
 */
static inline stk_exec *compile_decided(bench *b, stk_precision precision,
                                        const int variants[CUDA_FUSIONS]) {
    stk_exec *exec = compile(b, precision, false);
    bool changed = true;
    for (int i = 0; i < 3 && exec != NULL && changed; i++) {
        changed = false;
        for (int kind = 0; kind < CUDA_FUSIONS; kind++) {
            changed = decide(b, exec, (cuda_fusion)kind, variants[kind]) || changed;
        }
        if (changed) {
            cuda->exec_free(exec);
            exec = compile(b, precision, false);
        }
    }
    return exec;
}

/* Compiles in float32, node by node, and with nothing left to a clock; `look` is shown each. */
static inline void compile_others(int (*build)(stk_graph *), void (*look)(const stk_exec *)) {
    static const stk_precision precisions[] = {STK_PRECISION_FP32, STK_PRECISION_FP16,
                                               STK_PRECISION_FP16};
    for (int i = 0; i < 3; i++) {
        bench b;
        if (!bench_open(&b, build, check_folder(), i == 2)) {
            return;
        }
        stk_exec *exec = compile(&b, precisions[i], i == 1);
        REQUIRE(exec != NULL);
        look(exec);
        cuda->exec_free(exec);
        bench_close(&b);
    }
}

/* Everything one step leaves behind: gradients, then parameters with their running statistics. */
static inline float *step_results(bench *b, const stk_backend *backend, stk_state *state,
                                  stk_exec *exec) {
    static uint8_t images[BATCH * SIZE * SIZE * 3];
    static const int labels[BATCH] = {1, 0, 4, 2};
    size_t count = b->graph->param_elements;
    float *results = stk_mem_new(2 * count, sizeof *results);
    stk_step_input in = {.images = images, .labels = labels, .count = BATCH};
    stk_step_output out;
    stk_rng rng = stk_rng_make(5, STK_RNG_TEST, 0, 0);
    for (size_t i = 0; i < sizeof images; i++) {
        images[i] = (uint8_t)stk_rng_below(&rng, 256);
    }
    for (int p = 0; p < b->graph->param_count; p++) {
        float *values = stk_mem_new(b->graph->params[p].count, sizeof *values);
        first_values(b->graph, p, 3, values);
        if (b->set != NULL) {
            b->set(&b->graph->params[p], values);
        }
        CHECK(backend->state_write(state, STK_TENSOR_VALUE, p, values, &b->err) == STK_OK);
        stk_mem_free(values);
    }
    CHECK(backend->step(exec, &in, &out, &b->err) == STK_OK);
    CHECK(isfinite(out.loss_sum) && out.loss_sum > 0);
    for (int p = 0; p < b->graph->param_count; p++) {
        size_t at = b->graph->params[p].offset;
        CHECK(!backend->state_read(state, STK_TENSOR_GRADIENT, p, results + at, &b->err));
        CHECK(!backend->state_read(state, STK_TENSOR_VALUE, p, results + count + at, &b->err));
    }
    return results;
}

/* The same step in float32 by the reference. */
static inline float *reference_results(bench *b) {
    const stk_backend *cpu = &stk_cpu_backend;
    stk_device *device = NULL;
    stk_state *state = NULL;
    stk_exec *exec = NULL;
    float *results = NULL;
    stk_compile_config config = {.batch = BATCH, .train = true, .kept_stats = b->kept_stats};
    if (cpu->device_open(&device, &(stk_device_config){.threads = 1}, &b->err) == STK_OK &&
        cpu->state_new(&state, device, b->graph, &(stk_state_config){.train = true}, &b->err) ==
            STK_OK &&
        cpu->compile(&exec, state, &config, &b->err) == STK_OK) {
        results = step_results(b, cpu, state, exec);
    }
    CHECK(results != NULL);
    cpu->exec_free(exec);
    cpu->state_free(state);
    cpu->device_close(device);
    return results;
}

/* How many calls the lines with such a name have in the profile of a step. */
static inline int profiled_calls(bench *b, stk_exec *exec, bool (*is_such)(const char *what)) {
    static stk_profile_line lines[256];
    size_t count = 0;
    int calls = 0;
    stk_mem_free(step_results(b, cuda, b->state, exec));
    CHECK(cuda->profile(exec, lines, 256, &count, &b->err) == STK_OK);
    for (size_t i = 0; i < count; i++) {
        CHECK(lines[i].what[0] != '(');
        calls += is_such(lines[i].what) ? (int)lines[i].calls : 0;
    }
    return calls;
}

/* ||a - b|| / ||b|| */
static inline double apart_by(const float *a, const float *b, size_t count) {
    double off = 0;
    double size = 0;
    for (size_t i = 0; i < count; i++) {
        off += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += (double)b[i] * b[i];
    }
    return sqrt(off / size);
}

/*
 * Convolutions of two plans differ in their last bits, which a small network in fp16 makes larger:
 * both variants are compared with the reference, and the fused one may be no farther from it than
 * the other one is, but for a little. Running statistics are direct.
 */
static inline void compare(const bench *b, float *const results[2], const float *reference) {
    size_t all = b->graph->param_elements;
    for (int p = 0; p < b->graph->param_count; p++) {
        const stk_param *param = &b->graph->params[p];
        size_t at = param->offset + (param->trainable ? 0 : all);
        if (b->kept_stats && !param->trainable) {
            for (int i = 0; i < 2; i++) {
                CHECK(!memcmp(results[i] + at, reference + at, param->count * sizeof *reference));
            }
            continue;
        }
        double plain = apart_by(results[0] + at, reference + at, param->count);
        double fused = apart_by(results[1] + at, reference + at, param->count);
        double allowed = param->trainable ? 1.5 * plain + 1e-2 : plain + 1e-3;
        bool nothing = plain > 10; /* a gradient that is zero but for rounding */
        if (!(fused <= allowed) && !nothing) {
            CHECK_FAIL("%s: fused %g from the reference, apart %g", param->name, fused, plain);
        }
    }
}

/* The same with the reference of a network that has two variants; frees the results. */
static inline void compare_both(bench *b, float *const results[2]) {
    float *reference = reference_results(b);
    REQUIRE(results[0] != NULL && results[1] != NULL && reference != NULL);
    compare(b, results, reference);
    stk_mem_free(reference);
    stk_mem_free(results[0]);
    stk_mem_free(results[1]);
}

#endif
