/*
 * test_cuda_fuse_join_back.c - where gradients of a value join, at once with the norm in front or
 * not: what they come to, that memory does not depend on it, and which values it is about.
 */

#define CLASSES 5
#define SIZE 12
#define BATCH 4

#include "cuda_fusions.h"

/* Three convolutions and their norms, without the last activation. */
static int branch(stk_graph *g, int x, const char *const names[6], int filters, int stride) {
    int a = stk_graph_conv(g, x, names[0], filters, 1, 1, 0);
    a = stk_graph_relu(g, stk_graph_batch_norm(g, a, names[1], STK_INIT_ONE));
    a = stk_graph_conv(g, a, names[2], filters, 3, stride, 1);
    a = stk_graph_relu(g, stk_graph_batch_norm(g, a, names[3], STK_INIT_ONE));
    a = stk_graph_conv(g, a, names[4], 128, 1, 1, 0);
    return stk_graph_batch_norm(g, a, names[5], STK_INIT_ONE);
}

/*
 * Four blocks of a residual network. What the first three make is what this is about: the first
 * adds a norm, the others a value; two are read by a block that adds them, the third by one that
 * adds a convolution of it. What the last makes is read by one piece only.
 */
static int build(stk_graph *g) {
    static const char *const names[4][6] = {
        {"conv1", "bn1", "conv2", "bn2", "conv3", "bn3"},
        {"conv4", "bn4", "conv5", "bn5", "conv6", "bn6"},
        {"conv7", "bn7", "conv8", "bn8", "conv9", "bn9"},
        {"conv10", "bn10", "conv11", "bn11", "conv12", "bn12"},
    };
    int x = stk_graph_conv(g, stk_graph_input(g), "stem", 16, 3, 2, 1);
    x = stk_graph_relu(g, stk_graph_batch_norm(g, x, "bn0", STK_INIT_ONE));
    int down = stk_graph_conv(g, x, "down1", 128, 1, 1, 0);
    down = stk_graph_batch_norm(g, down, "bn_down1", STK_INIT_ONE);
    x = stk_graph_relu(g, stk_graph_add(g, branch(g, x, names[0], 16, 1), down));
    x = stk_graph_relu(g, stk_graph_add(g, branch(g, x, names[1], 32, 1), x));
    x = stk_graph_relu(g, stk_graph_add(g, branch(g, x, names[2], 32, 1), x));
    int last = branch(g, x, names[3], 48, 2);
    down = stk_graph_conv(g, x, "down2", 128, 1, 2, 0);
    down = stk_graph_batch_norm(g, down, "bn_down2", STK_INIT_ONE);
    x = stk_graph_relu(g, stk_graph_add(g, last, down));
    return stk_graph_linear(g, stk_graph_avg_pool(g, x), "fc", CLASSES);
}

enum { SITES = 3 };

typedef struct counts {
    int joined, settled, layers;
    int reduced; /* by norm_reduce */
    int decisions;
} counts;

static counts count_all(const stk_exec *exec) {
    counts c = {0};
    for (int i = 0; i < exec->programs[PLAY_MAIN].op_count; i++) {
        const cuda_op *op = &exec->programs[PLAY_MAIN].ops[i];
        if (op->kind == CUDA_OP_LAUNCH) {
            c.joined += strcmp(op->launch.name, "join_back") == 0;
            c.settled += strcmp(op->launch.name, "join_back_finalise") == 0;
            c.layers += strcmp(op->launch.name, "layer_back") == 0;
            c.reduced += strcmp(op->launch.name, "norm_reduce") == 0;
        }
    }
    for (int i = 0; i < exec->programs[PLAY_MAIN].decision_count; i++) {
        c.decisions += exec->programs[PLAY_MAIN].decisions[i].fusion == CUDA_FUSE_JOIN_BACK;
    }
    return c;
}

static stk_exec *compile_with(bench *b, stk_precision precision, int join, int layer) {
    const int variants[CUDA_FUSIONS] = {
        [CUDA_FUSE_JOIN_BACK] = join, [CUDA_FUSE_LAYER_BACK] = layer};
    return compile_decided(b, precision, variants);
}

/* How gradients join, and whether a norm and a convolution go back together; first the plain one.
 */
static const int settings[][2] = {
    {CUDA_PLAIN, CUDA_PLAIN},
    {CUDA_FUSED, CUDA_PLAIN},
    {CUDA_PLAIN, CUDA_FUSED},
    {CUDA_FUSED, CUDA_FUSED},
};
enum { SETTINGS = sizeof settings / sizeof settings[0] };

static void all_variants(stk_precision precision, int count, bool kept_stats) {
    bench b;
    float *results[2] = {NULL, NULL};
    uint64_t bytes = 0;
    size_t arena = 0;
    int ops = 0, counters = 0, reduced = 0;
    if (!bench_open(&b, build, check_folder(), false)) {
        return;
    }
    b.set = keep_clear;
    b.kept_stats = kept_stats;
    float *reference = reference_results(&b);
    for (int i = 0; i < count; i++) {
        stk_exec *exec = compile_with(&b, precision, settings[i][0], settings[i][1]);
        REQUIRE(exec != NULL && reference != NULL);
        counts c = count_all(exec);
        CHECK_INT(c.decisions, SITES);
        CHECK_INT(c.joined, settings[i][0] * SITES);
        CHECK_INT(c.settled, c.joined);
        CHECK(settings[i][1] == CUDA_FUSED ? c.layers > 0 : c.layers == 0);
        results[i > 0] = step_results(&b, cuda, b.state, exec);
        if (i == 0) {
            bytes = cuda->exec_bytes(exec);
            arena = exec->programs[PLAY_MAIN].arena_bytes;
            ops = exec->programs[PLAY_MAIN].op_count;
            counters = exec->programs[PLAY_MAIN].counters;
            reduced = c.reduced;
        } else {
            CHECK_INT(cuda->exec_bytes(exec), bytes);
            CHECK_INT(exec->programs[PLAY_MAIN].arena_bytes, arena);
            CHECK_INT(exec->programs[PLAY_MAIN].counters, counters);
            CHECK_INT(c.reduced, reduced - c.joined);
            compare(&b, results, reference);
            stk_mem_free(results[1]);
        }
        if (settings[i][1] == CUDA_PLAIN) {
            CHECK_INT(exec->programs[PLAY_MAIN].op_count, ops);
        }
        cuda->exec_free(exec);
    }
    stk_mem_free(reference);
    stk_mem_free(results[0]);
    bench_close(&b);
}

static void all_variants_give_the_same_in_the_same_memory(void) {
    all_variants(STK_PRECISION_FP16, SETTINGS, false);
}

static void so_they_do_in_bfloat16(void) {
    if (!check_is_full()) {
        CHECK_SKIP("STK_TEST_FULL is not set");
    }
    all_variants(STK_PRECISION_BF16, 2, false);
}

static void so_they_do_with_kept_statistics(void) {
    all_variants(STK_PRECISION_FP16, 2, true);
}

static void has_them_apart(const stk_exec *exec) {
    counts c = count_all(exec);
    CHECK_INT(c.joined + c.settled + c.decisions, 0);
}

static void others_have_them_apart(void) {
    compile_others(build, has_them_apart);
}

static bool is_join_back(const char *what) {
    return strncmp(what, "join_back ", 10) == 0;
}

static void a_profile_names_them(void) {
    bench b;
    if (!bench_open(&b, build, check_folder(), false)) {
        return;
    }
    stk_exec *exec = compile_with(&b, STK_PRECISION_FP16, CUDA_FUSED, CUDA_PLAIN);
    REQUIRE(exec != NULL);
    CHECK_INT(profiled_calls(&b, exec, is_join_back), SITES);
    cuda->exec_free(exec);
    bench_close(&b);
}

static const check_test tests[] = {
    TEST(all_variants_give_the_same_in_the_same_memory),
    TEST(so_they_do_in_bfloat16),
    TEST(so_they_do_with_kept_statistics),
    TEST(others_have_them_apart),
    TEST(a_profile_names_them),
};

CHECK_MAIN(tests)
