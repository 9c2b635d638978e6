/*
 * test_cuda_fuse_stats.c - statistics of norms that the convolution before them takes: what they
 * come to, that memory does not depend on who takes them, and that the choice is kept.
 */
#include "backend/cuda/emit/emit.h"

#define CLASSES 5
#define SIZE 12
#define BATCH 4

#include "cuda_fusions.h"

/* ---- from sums to coefficients ---- */

#define EPSILON 1e-3f
enum { CHANNELS = 200, ROWS = 5000 };

typedef struct settled {
    float sums[2 * CHANNELS];
    float weight[CHANNELS], bias[CHANNELS], mean[CHANNELS], var[CHANNELS];
    float coefs[4 * CHANNELS];
} settled;

static bool settle(settled *s) {
    play_device play;
    if (!play_open(&play)) {
        return false;
    }
    cuda_program p;
    stk_cuda_program_begin(&p, CUDA_TYPE_F16, false, play.multiprocessors);
    cuda_ref sums = stk_cuda_buffer(&p, sizeof s->sums);
    size_t step = CHANNELS * sizeof(float);
    cuda_norm norm = {.weight = stk_cuda_buffer(&p, step),
                      .bias = stk_cuda_buffer(&p, step),
                      .running_mean = stk_cuda_buffer(&p, step),
                      .running_var = stk_cuda_buffer(&p, step),
                      .coefs = stk_cuda_buffer(&p, 4 * step),
                      .epsilon = EPSILON};
    stk_cuda_norm_finalise(&p, (cuda_plane){5, ROWS / 5, CHANNELS}, &norm, sums);
    play_data data[] = {play_in(sums, PLAY_FLOAT, 2 * CHANNELS, s->sums),
                        play_in(norm.weight, PLAY_FLOAT, CHANNELS, s->weight),
                        play_in(norm.bias, PLAY_FLOAT, CHANNELS, s->bias),
                        play_both(norm.running_mean, PLAY_FLOAT, CHANNELS, s->mean),
                        play_both(norm.running_var, PLAY_FLOAT, CHANNELS, s->var),
                        play_out(norm.coefs, PLAY_FLOAT, 4 * CHANNELS, s->coefs)};
    bool good = play_run(&play, &p, data, sizeof data / sizeof *data);
    stk_cuda_program_free(&p);
    play_close(&play);
    return good;
}

/*
 * Channel c has a deviation of 1 and a mean of up to 1000 of these. Rounding of the sums to float32
 * moves the variance by up to (1 + mean^2) * 2^-22: a quarter at a mean of 1000.
 */
static void sums_become_coefficients(void) {
    static settled s;
    double mean[CHANNELS];
    for (int c = 0; c < CHANNELS; c++) {
        mean[c] = (c % 2 == 0 ? 1 : -1) * pow(1000, c / (CHANNELS - 1.0));
        s.sums[c] = (float)(ROWS * mean[c]);
        s.sums[CHANNELS + c] = (float)(ROWS * (1 + mean[c] * mean[c]));
        s.weight[c] = 0.5f + 0.01f * (float)c;
        s.bias[c] = 1 - 0.02f * (float)c;
        s.mean[c] = 0.25f;
        s.var[c] = 3;
    }
    if (!settle(&s)) {
        return;
    }
    for (int c = 0; c < CHANNELS; c++) {
        double room = 1e-6 + 0x1.0p-22 * (1 + mean[c] * mean[c]);
        double invstd = 1 / sqrt(1 + (double)EPSILON);
        double scale = s.coefs[2 * CHANNELS + c];
        CHECK_NEAR(s.coefs[c], mean[c], 2e-7 * fabs(mean[c]));
        CHECK_NEAR(s.coefs[CHANNELS + c], invstd, room);
        CHECK_NEAR(scale, s.weight[c] * (double)s.coefs[CHANNELS + c], 1e-6);
        CHECK_NEAR(s.coefs[3 * CHANNELS + c], s.bias[c] - (double)s.coefs[c] * scale,
                   1e-6 + 1e-6 * fabs(mean[c]) * scale);
        CHECK_NEAR(s.mean[c], 0.25 + 0.1 * (mean[c] - 0.25), 1e-6 + 1e-7 * fabs(mean[c]));
        CHECK_NEAR(s.var[c], 3 + 0.1 * (ROWS / (ROWS - 1.0) - 3), 1e-6 + 0.1 * room);
    }
}

/* Nothing but zeros, and squares that rounding has made less than the mean's. */
static void no_variance_is_negative(void) {
    static settled s;
    for (int c = 0; c < CHANNELS; c++) {
        s.sums[c] = c % 2 == 0 ? 0 : (float)ROWS * 3;
        s.sums[CHANNELS + c] = c % 2 == 0 ? 0 : (float)ROWS * 9 * (1 - 1e-6f * (float)(c % 5));
        s.weight[c] = 1;
        s.var[c] = 1;
    }
    if (!settle(&s)) {
        return;
    }
    for (int c = 0; c < CHANNELS; c++) {
        double var = c % 2 == 0 ? 0 : 9 * 0x1.0p-23;
        CHECK_NEAR(s.coefs[CHANNELS + c], 1 / sqrt(var + (double)EPSILON), 1e-3);
        CHECK_NEAR(s.var[c], 0.9 + 0.1 * var, 1e-6);
    }
}

/* ---- the table ---- */

static void results_are_stored(void) {
    cuda_tuning_results *results = NULL;
    cuda_store *store = NULL;
    stk_error err = {0};
    const char *folder = check_folder();
    for (int life = 0; life < 3; life++) {
        REQUIRE_OK(stk_cuda_store_open(&store, folder, "a machine", &err), &err);
        REQUIRE_OK(stk_cuda_tuning_results_open(&results, life < 2 ? store : NULL, &err), &err);
        CHECK_INT(stk_cuda_tuning_result(results, "one"), life == 1 ? 7 : CUDA_UNDECIDED);
        CHECK_INT(stk_cuda_tuning_result(results, "two"), life == 1 ? 0 : CUDA_UNDECIDED);
        CHECK_INT(stk_cuda_tuning_result(results, "damaged"), CUDA_UNDECIDED);
        CHECK_INT(stk_cuda_tuning_results_made(results), 0);
        stk_cuda_tuning_result_set(results, "one", 3);
        stk_cuda_tuning_result_set(results, "two", 0);
        stk_cuda_tuning_result_set(results, "one", 7);
        CHECK_INT(stk_cuda_tuning_result(results, "one"), 7);
        CHECK_INT(stk_cuda_tuning_result(results, "two"), 0);
        CHECK_INT(stk_cuda_tuning_results_made(results), 3);
        stk_cuda_store_put(store, "choice 1 damaged", "12", 2);
        stk_cuda_tuning_results_close(results);
        stk_cuda_store_close(store);
    }
    stk_cuda_tuning_results_close(NULL);
}

/* ---- networks ---- */

/*
 * Chains of all kinds behind convolutions: plain, with an addition, of a norm that is added, and of
 * one that a depthwise convolution computes. No ReLU: gradients on both sides of its kink are as
 * far apart as may be, whatever the rounding.
 */
static int build(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "stem", 16, 3, 1, 1);
    x = stk_graph_silu(g, stk_graph_batch_norm(g, x, "bn0", STK_INIT_ONE));
    int a = stk_graph_conv(g, x, "conv1", 24, 3, 2, 1);
    a = stk_graph_silu(g, stk_graph_batch_norm(g, a, "bn1", STK_INIT_ONE));
    a = stk_graph_conv(g, a, "conv2", 32, 1, 1, 0);
    a = stk_graph_batch_norm(g, a, "bn2", STK_INIT_ONE);
    int b = stk_graph_conv(g, x, "down", 32, 1, 2, 0);
    b = stk_graph_batch_norm(g, b, "bn3", STK_INIT_ONE);
    x = stk_graph_silu(g, stk_graph_add(g, a, b));
    a = stk_graph_conv(g, x, "conv4", 32, 3, 1, 1);
    a = stk_graph_batch_norm(g, a, "bn4", STK_INIT_ONE);
    x = stk_graph_silu(g, stk_graph_add(g, a, x));
    a = stk_graph_conv(g, x, "wide", 48, 1, 1, 0);
    a = stk_graph_silu(g, stk_graph_batch_norm(g, a, "bn6", STK_INIT_ONE));
    a = stk_graph_depthwise(g, a, "deep", 3, 1, 1);
    x = stk_graph_silu(g, stk_graph_batch_norm(g, a, "bn7", STK_INIT_ONE));
    a = stk_graph_conv(g, x, "odd", 12, 1, 1, 0); /* which cuDNN takes no sums of */
    a = stk_graph_silu(g, stk_graph_batch_norm(g, a, "bn5", STK_INIT_ONE));
    return stk_graph_linear(g, stk_graph_avg_pool(g, a), "fc", CLASSES);
}

/* The stem counts among these in a library that can do it. LAYERS: about which CUDA_FUSE_LAYER_BACK
 * is decided too, in 2-byte types. */
enum { CHAINS = 7, FUSIBLE = 6, LAYERS = 1 };

/* How many convolutions of a program take statistics, and how many could. */
static int count_fused(const stk_exec *exec, int *places) {
    int fused = 0;
    int settled_launches = 0;
    *places = 0;
    for (int i = 0; i < exec->programs[PLAY_MAIN].op_count; i++) {
        const cuda_op *op = &exec->programs[PLAY_MAIN].ops[i];
        if (op->kind == CUDA_OP_CONV) {
            *places += cuda_is_something(op->conv.stats);
            fused += op->conv.shape.stats;
        } else if (op->kind == CUDA_OP_LAUNCH) {
            settled_launches += strcmp(op->launch.name, "norm_finalise") == 0;
        }
    }
    CHECK_INT(settled_launches, fused);
    return fused;
}

static void both_ways_give_the_same_in_the_same_memory(void) {
    bench b;
    float *results[2] = {NULL, NULL};
    uint64_t bytes[2] = {0, 0};
    size_t arena[2] = {0, 0};
    int ops[2] = {0, 0}, counters[2] = {0, 0}, places = 0;
    if (!bench_open(&b, build, check_folder(), false)) {
        return;
    }
    stk_exec *exec = compile(&b, STK_PRECISION_FP16, false);
    for (int variant = 0; variant < 2 && exec != NULL; variant++) {
        decide(&b, exec, CUDA_FUSE_STATS, variant);
        cuda->exec_free(exec);
        exec = compile(&b, STK_PRECISION_FP16, false);
        REQUIRE(exec != NULL);
        int fused = count_fused(exec, &places);
        CHECK_INT(places, CHAINS);
        CHECK(variant == CUDA_FUSED ? fused >= FUSIBLE - 1 && fused <= FUSIBLE : fused == 0);
        bytes[variant] = cuda->exec_bytes(exec);
        arena[variant] = exec->programs[PLAY_MAIN].arena_bytes;
        ops[variant] = exec->programs[PLAY_MAIN].op_count;
        counters[variant] = exec->programs[PLAY_MAIN].counters;
        results[variant] = step_results(&b, cuda, b.state, exec);
    }
    CHECK_INT(bytes[0], bytes[1]);
    CHECK_INT(arena[0], arena[1]);
    CHECK_INT(ops[0], ops[1]);
    CHECK_INT(counters[0], counters[1]);
    compare_both(&b, results);
    cuda->exec_free(exec);
    bench_close(&b);
}

static void the_next_start_measures_nothing(void) {
    int fused[2] = {0, 0};
    const char *folder = check_folder();
    for (int life = 0; life < 2; life++) {
        bench b;
        int timed = 0, loaded = 0, places = 0;
        if (!bench_open(&b, build, folder, false)) {
            return;
        }
        stk_exec *exec = compile(&b, STK_PRECISION_FP16, false);
        REQUIRE(exec != NULL);
        fused[life] = count_fused(exec, &places);
        CHECK_INT(places, CHAINS);
        CHECK_INT(stk_cuda_tuning_results_made(b.device->tuning_results),
                  life == 0 ? CHAINS + LAYERS : 0);
        stk_cuda_convs_counts(b.device->convs, &timed, &loaded);
        CHECK(life == 0 ? timed > 0 : timed == 0 && loaded > 0);
        stk_exec *again = compile(&b, STK_PRECISION_FP16, false);
        CHECK_INT(stk_cuda_tuning_results_made(b.device->tuning_results),
                  life == 0 ? CHAINS + LAYERS : 0);
        cuda->exec_free(again);
        cuda->exec_free(exec);
        bench_close(&b);
    }
    CHECK_INT(fused[0], fused[1]);
}

/* In a hurry nothing is timed in the first start, everything in the next, nothing in the third. */
static void a_hurried_start_leaves_timing_to_the_next(void) {
    static const int made[] = {0, CHAINS + LAYERS, 0};
    const char *folder = check_folder();
    const stk_device_config hurried = {.threads = 2, .hurried = true};
    for (int life = 0; life < 3; life++) {
        bench b;
        int places = 0;
        if (!bench_open_as(&b, build, folder, &hurried)) {
            return;
        }
        stk_exec *exec = compile(&b, STK_PRECISION_FP16, false);
        REQUIRE(exec != NULL);
        CHECK_INT(stk_cuda_tuning_results_made(b.device->tuning_results), made[life]);
        CHECK(life > 0 || count_fused(exec, &places) == 0);
        cuda->exec_free(exec);
        bench_close(&b);
    }
}

/* A library that cannot is asked once; node by node, and strictly, it is not asked at all. */
static void others_take_them_apart(void) {
    static const stk_precision precisions[] = {STK_PRECISION_BF16, STK_PRECISION_FP32,
                                               STK_PRECISION_FP32_STRICT, STK_PRECISION_FP16};
    static const int decided[] = {CHAINS + LAYERS, 2 * CHAINS + LAYERS, 2 * CHAINS + LAYERS,
                                  2 * CHAINS + LAYERS};
    bench b;
    if (!bench_open(&b, build, check_folder(), false)) {
        return;
    }
    for (int i = 0; i < 4; i++) {
        int places = 0;
        stk_exec *exec = compile(&b, precisions[i], i == 3);
        REQUIRE(exec != NULL);
        CHECK_INT(count_fused(exec, &places), 0);
        CHECK_INT(places, i == 3 ? 0 : CHAINS);
        CHECK_INT(stk_cuda_tuning_results_made(b.device->tuning_results), decided[i]);
        cuda->exec_free(exec);
    }
    bench_close(&b);
}

/* What was decided on another day, where the plan is no more. */
static void without_a_plan_it_is_decided_anew(void) {
    bench b;
    int places = 0;
    if (!bench_open(&b, build, check_folder(), false)) {
        return;
    }
    stk_exec *exec = compile(&b, STK_PRECISION_BF16, false);
    REQUIRE(exec != NULL);
    float *before = step_results(&b, cuda, b.state, exec);
    decide(&b, exec, CUDA_FUSE_STATS, CUDA_FUSED);
    cuda->exec_free(exec);
    exec = compile(&b, STK_PRECISION_BF16, false);
    REQUIRE(exec != NULL);
    CHECK_INT(count_fused(exec, &places), 0);
    float *after = step_results(&b, cuda, b.state, exec);
    for (int p = 0; p < b.graph->param_count; p++) { /* what is apart is apart: the same plans */
        const stk_param *param = &b.graph->params[p];
        size_t at = param->offset + (param->trainable ? 0 : b.graph->param_elements);
        play_check_norm(param->name, after + at, before + at, param->count, 1e-2);
    }
    stk_mem_free(before);
    stk_mem_free(after);
    cuda->exec_free(exec);
    bench_close(&b);
}

static void deterministic_leaves_nothing_to_a_clock(void) {
    bench b;
    int places = 0;
    if (!bench_open(&b, build, check_folder(), true)) {
        return;
    }
    CHECK(b.device->tuning_results == NULL);
    stk_exec *exec = compile(&b, STK_PRECISION_FP16, false);
    REQUIRE(exec != NULL);
    CHECK_INT(count_fused(exec, &places), 0);
    CHECK_INT(places, CHAINS);
    cuda->exec_free(exec);
    bench_close(&b);
}

static const check_test tests[] = {
    TEST(sums_become_coefficients),
    TEST(no_variance_is_negative),
    TEST(results_are_stored),
    TEST(both_ways_give_the_same_in_the_same_memory),
    TEST(the_next_start_measures_nothing),
    TEST(a_hurried_start_leaves_timing_to_the_next),
    TEST(others_take_them_apart),
    TEST(without_a_plan_it_is_decided_anew),
    TEST(deterministic_leaves_nothing_to_a_clock),
};

CHECK_MAIN(tests)
