/*
 * test_cuda_fuse_norm_conv.c - norms and ReLUs that the convolution behind them computes as it
 * loads: what they come to, forward and in gradients of filters, and that memory does not depend on
 * it.
 */

#include "backend/cuda/emit/emit.h"

#define CLASSES 5
#define SIZE 12
#define BATCH 4

#include "cuda_fusions.h"

/* ---- scale and shift once more ---- */

#define EPSILON 1e-3f
enum { CHANNELS = 64, ROWS = 300 };

/* Means of up to 1000 deviations: what the rounded ones make of the mean is the bias still. */
static void narrow_coefficients_keep_the_mean(void) {
    static float sums[2 * CHANNELS], weight[CHANNELS], bias[CHANNELS], mean[CHANNELS];
    static float var[CHANNELS], coefs[4 * CHANNELS], narrow[2 * CHANNELS];
    play_device play;
    if (!play_open(&play)) {
        return;
    }
    cuda_program p;
    stk_cuda_program_begin(&p, CUDA_TYPE_F16, false, play.multiprocessors);
    size_t step = CHANNELS * sizeof(float);
    cuda_ref in = stk_cuda_buffer(&p, sizeof sums);
    cuda_norm norm = {.weight = stk_cuda_buffer(&p, step),
                      .bias = stk_cuda_buffer(&p, step),
                      .running_mean = stk_cuda_buffer(&p, step),
                      .running_var = stk_cuda_buffer(&p, step),
                      .coefs = stk_cuda_buffer(&p, 5 * step),
                      .narrow = true,
                      .epsilon = EPSILON};
    stk_cuda_norm_finalise(&p, (cuda_plane){ROWS, 1, CHANNELS}, &norm, in);
    for (int c = 0; c < CHANNELS; c++) {
        float of = powf(1000, (float)c / CHANNELS) - 1;
        sums[c] = of * ROWS;
        sums[CHANNELS + c] = (of * of + 1) * ROWS;
        weight[c] = 0.7f + 0.01f * (float)c;
        bias[c] = c % 2 == 0 ? 0.25f : -0.5f;
    }
    play_data data[] = {play_in(in, PLAY_FLOAT, 2 * CHANNELS, sums),
                        play_in(norm.weight, PLAY_FLOAT, CHANNELS, weight),
                        play_in(norm.bias, PLAY_FLOAT, CHANNELS, bias),
                        play_both(norm.running_mean, PLAY_FLOAT, CHANNELS, mean),
                        play_both(norm.running_var, PLAY_FLOAT, CHANNELS, var),
                        play_out(norm.coefs, PLAY_FLOAT, 4 * CHANNELS, coefs),
                        play_out(cuda_norm_narrow(&norm, CHANNELS), PLAY_T, 2 * CHANNELS, narrow)};
    CHECK(play_run(&play, &p, data, sizeof data / sizeof *data));
    for (int c = 0; c < CHANNELS; c++) {
        float shift = narrow[CHANNELS + c];
        CHECK_NEAR(narrow[c], coefs[2 * CHANNELS + c], 0x1.0p-11 * fabsf(narrow[c]));
        CHECK_NEAR(narrow[c] * coefs[c] + shift, bias[c], 0x1.0p-11 * fabsf(shift) + 1e-4);
    }
    stk_cuda_program_free(&p);
    play_close(&play);
}

/* ---- networks ---- */

/*
 * What bn1, bn2, bn5 and bn7 make is read by a convolution that could compute it, but cuDNN does
 * not do so for the 12 filters behind bn7; nor for the 12 channels of bn8, which is not asked
 * about. What is behind bn9 has no statistics, and forward is not decided about. Where branches
 * join, one of them with a norm of its own and one without, a convolution of 1 by 1 follows.
 */
static int build(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "stem", 16, 3, 1, 1);
    x = stk_graph_silu(g, stk_graph_batch_norm(g, x, "bn0", STK_INIT_ONE));
    int a = stk_graph_conv(g, x, "conv1", 16, 3, 2, 1);
    a = stk_graph_relu(g, stk_graph_batch_norm(g, a, "bn1", STK_INIT_ONE));
    a = stk_graph_conv(g, a, "conv2", 24, 3, 1, 1);
    a = stk_graph_relu(g, stk_graph_batch_norm(g, a, "bn2", STK_INIT_ONE));
    a = stk_graph_conv(g, a, "conv3", 64, 1, 1, 0);
    a = stk_graph_batch_norm(g, a, "bn3", STK_INIT_ONE);
    int b = stk_graph_conv(g, x, "conv4", 64, 1, 2, 0);
    b = stk_graph_batch_norm(g, b, "bn4", STK_INIT_ONE);
    x = stk_graph_relu(g, stk_graph_add(g, a, b));
    a = stk_graph_conv(g, x, "conv5", 64, 1, 1, 0);
    a = stk_graph_relu(g, stk_graph_batch_norm(g, a, "bn5", STK_INIT_ONE));
    a = stk_graph_conv(g, a, "conv6", 64, 3, 1, 1);
    a = stk_graph_batch_norm(g, a, "bn6", STK_INIT_ONE);
    x = stk_graph_relu(g, stk_graph_add(g, a, x));
    a = stk_graph_conv(g, x, "conv7", 64, 1, 1, 0);
    a = stk_graph_relu(g, stk_graph_batch_norm(g, a, "bn7", STK_INIT_ONE));
    a = stk_graph_conv(g, a, "conv8", 12, 3, 2, 1);
    a = stk_graph_relu(g, stk_graph_batch_norm(g, a, "bn8", STK_INIT_ONE));
    a = stk_graph_conv(g, a, "conv9", 16, 1, 1, 0);
    a = stk_graph_relu(g, stk_graph_batch_norm(g, a, "bn9", STK_INIT_ONE));
    a = stk_graph_silu(g, stk_graph_conv(g, a, "conv10", 16, 1, 1, 0));
    return stk_graph_linear(g, stk_graph_avg_pool(g, a), "fc", CLASSES);
}

enum { CHAINS = 10, DECISIONS = 4, FUSIBLE = 3, DECISIONS_BACK = 5, FUSIBLE_BACK = 4, JOINS = 2 };

typedef struct counts {
    int forward, back; /* convolutions that compute a norm */
    int applied;       /* launches that do */
    int joined;        /* launches that do, and a convolution too */
    int decisions[CUDA_FUSIONS];
} counts;

static counts count_fused(const stk_exec *exec) {
    counts c = {0};
    for (int i = 0; i < exec->programs[PLAY_MAIN].op_count; i++) {
        const cuda_op *op = &exec->programs[PLAY_MAIN].ops[i];
        if (op->kind == CUDA_OP_CONV && op->conv.shape.in_norm) {
            bool forward = op->conv.shape.kind == CUDA_CONV_FORWARD;
            CHECK(forward == op->conv.shape.stats);
            c.forward += forward;
            c.back += !forward;
        } else if (op->kind == CUDA_OP_LAUNCH) {
            c.applied += strcmp(op->launch.name, "norm_apply") == 0;
            c.joined += strcmp(op->launch.name, "join") == 0;
        }
    }
    for (int i = 0; i < exec->programs[PLAY_MAIN].decision_count; i++) {
        c.decisions[exec->programs[PLAY_MAIN].decisions[i].fusion]++;
    }
    return c;
}

/* Ways for statistics, norms forward and backward, and joins. */
typedef struct setting {
    int stats, forward, back, join;
} setting;

/* With these fusions decided so, and others plain. */
static stk_exec *compile_with(bench *b, setting s) {
    const int variants[CUDA_FUSIONS] = {[CUDA_FUSE_STATS] = s.stats,
                                        [CUDA_FUSE_NORM_CONV] = s.forward,
                                        [CUDA_FUSE_NORM_WEIGHT] = s.back,
                                        [CUDA_FUSE_JOIN] = s.join};
    return compile_decided(b, STK_PRECISION_FP16, variants);
}

static void check_counts(const counts *c, setting s) {
    CHECK_INT(c->decisions[CUDA_FUSE_STATS], CHAINS - c->forward - c->joined);
    CHECK_INT(c->decisions[CUDA_FUSE_NORM_CONV], DECISIONS);
    CHECK_INT(c->decisions[CUDA_FUSE_NORM_WEIGHT], DECISIONS_BACK);
    CHECK_INT(c->decisions[CUDA_FUSE_JOIN], JOINS);
    CHECK_INT(c->forward, s.forward * FUSIBLE);
    CHECK_INT(c->back, s.back * FUSIBLE_BACK);
    CHECK_INT(c->joined, s.join * JOINS);
}

/* The first is the plain one. */
static const setting settings[] = {{0, 0, 0, 0}, {1, 0, 0, 0}, {1, 1, 0, 0}, {0, 1, 0, 1},
                                   {1, 0, 1, 0}, {1, 0, 0, 1}, {1, 1, 1, 1}};
enum { SETTINGS = sizeof settings / sizeof settings[0] };

static void all_variants_give_the_same_in_the_same_memory(void) {
    bench b;
    float *results[2] = {NULL, NULL};
    uint64_t bytes = 0;
    size_t arena = 0;
    int counters = 0, applied = 0;
    if (!bench_open(&b, build, check_folder(), false)) {
        return;
    }
    b.set = keep_clear;
    float *reference = reference_results(&b);
    for (int i = 0; i < SETTINGS; i++) {
        stk_exec *exec = compile_with(&b, settings[i]);
        REQUIRE(exec != NULL && reference != NULL);
        counts c = count_fused(exec);
        check_counts(&c, settings[i]);
        results[i > 0] = step_results(&b, cuda, b.state, exec);
        if (i == 0) {
            bytes = cuda->exec_bytes(exec);
            arena = exec->programs[PLAY_MAIN].arena_bytes;
            counters = exec->programs[PLAY_MAIN].counters;
            applied = c.applied;
        } else {
            CHECK_INT(cuda->exec_bytes(exec), bytes);
            CHECK_INT(exec->programs[PLAY_MAIN].arena_bytes, arena);
            CHECK_INT(exec->programs[PLAY_MAIN].counters, counters);
            CHECK_INT(c.applied, applied - c.forward - c.joined);
            compare(&b, results, reference);
            stk_mem_free(results[1]);
        }
        cuda->exec_free(exec);
    }
    stk_mem_free(reference);
    stk_mem_free(results[0]);
    bench_close(&b);
}

static void the_next_start_asks_nothing(void) {
    counts c[2];
    const char *folder = check_folder();
    for (int life = 0; life < 2; life++) {
        bench b;
        int timed = 0, loaded = 0;
        if (!bench_open(&b, build, folder, false)) {
            return;
        }
        stk_exec *exec = compile(&b, STK_PRECISION_FP16, false);
        REQUIRE(exec != NULL);
        c[life] = count_fused(exec);
        int made = stk_cuda_tuning_results_made(b.device->tuning_results);
        CHECK(life == 0 ? made >= CHAINS + JOINS : made == 0);
        stk_cuda_convs_counts(b.device->convs, &timed, &loaded);
        CHECK(life == 0 ? timed > 0 : timed == 0 && loaded > 0);
        cuda->exec_free(exec);
        bench_close(&b);
    }
    CHECK(memcmp(&c[0], &c[1], sizeof c[0]) == 0);
}

/*
 * Statistics are to be the convolution's, as a library once found, but no plan is there for it any
 * more: what is decided next has no plain variant to be timed, and all is computed plainly.
 */
static void a_missing_plan_spoils_no_timing(void) {
    bench b;
    if (!bench_open(&b, build, check_folder(), false)) {
        return;
    }
    stk_exec *exec = compile(&b, STK_PRECISION_BF16, false);
    REQUIRE(exec != NULL);
    decide(&b, exec, CUDA_FUSE_STATS, CUDA_FUSED);
    cuda->exec_free(exec);
    exec = compile(&b, STK_PRECISION_BF16, false);
    REQUIRE(exec != NULL);
    for (int i = 0; i < exec->programs[PLAY_MAIN].op_count; i++) {
        const cuda_op *op = &exec->programs[PLAY_MAIN].ops[i];
        CHECK(op->kind != CUDA_OP_CONV || !op->conv.shape.stats);
    }
    stk_mem_free(step_results(&b, cuda, b.state, exec));
    cuda->exec_free(exec);
    bench_close(&b);
}

static void stores_them(const stk_exec *exec) {
    counts c = count_fused(exec);
    CHECK_INT(c.forward + c.back + c.joined, 0);
    CHECK_INT(c.decisions[CUDA_FUSE_NORM_CONV] + c.decisions[CUDA_FUSE_NORM_WEIGHT], 0);
    CHECK_INT(c.decisions[CUDA_FUSE_JOIN], 0);
}

static void others_store_them(void) {
    compile_others(build, stores_them);
}

/* What is cuDNN's is there for fp16 alone; joins are our own. */
static void bfloat16_has_joins_alone(void) {
    bench b;
    if (!bench_open(&b, build, check_folder(), false)) {
        return;
    }
    stk_exec *exec = compile(&b, STK_PRECISION_BF16, false);
    REQUIRE(exec != NULL);
    counts c = count_fused(exec);
    CHECK_INT(c.forward + c.back, 0);
    CHECK_INT(c.decisions[CUDA_FUSE_NORM_CONV] + c.decisions[CUDA_FUSE_NORM_WEIGHT], 0);
    CHECK_INT(c.decisions[CUDA_FUSE_JOIN], JOINS);
    cuda->exec_free(exec);
    bench_close(&b);
}

static bool is_of_a_norm(const char *what) {
    return (strncmp(what, "conv weight ", 12) == 0 && strstr(what, " of a norm") != NULL) ||
           (strncmp(what, "conv ", 5) == 0 && strstr(what, " of a norm + statistics") != NULL);
}

static void a_profile_names_them(void) {
    bench b;
    if (!bench_open(&b, build, check_folder(), false)) {
        return;
    }
    stk_exec *exec = compile_with(&b, (setting){1, 1, 1, 1});
    REQUIRE(exec != NULL);
    CHECK_INT(profiled_calls(&b, exec, is_of_a_norm), FUSIBLE + FUSIBLE_BACK);
    cuda->exec_free(exec);
    bench_close(&b);
}

static const check_test tests[] = {
    TEST(narrow_coefficients_keep_the_mean),
    TEST(all_variants_give_the_same_in_the_same_memory),
    TEST(the_next_start_asks_nothing),
    TEST(a_missing_plan_spoils_no_timing),
    TEST(others_store_them),
    TEST(bfloat16_has_joins_alone),
    TEST(a_profile_names_them),
};

CHECK_MAIN(tests)
