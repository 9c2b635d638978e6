/*
 * test_cuda_fuse_layer_back.c - norms that go backward together with the convolution of 1 by 1
 * before them: in whole networks, that it gives the same in the same memory, and that the choice is
 * kept.
 */
#include "base/mem.h"
#include "cuda_play.h"

#define CLASSES 5
#define SIZE 8
#define BATCH 4

#include "cuda_fusions.h"

/*
 * All kinds of such chains: of a value that is stored and read by others too (conv2), of one that
 * is computed again, with an addition behind (conv4, conv6), in front of a depthwise convolution
 * (conv7), and two that are added (top and right). No such are: conv8, whose input a block computes
 * again that only it can compute; conv1, conv3, conv5, of 3 by 3; head, for its 12 filters.
 */
static int build(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 24, 3, 1, 1);
    x = stk_graph_silu(g, stk_graph_batch_norm(g, x, "bn1", STK_INIT_ONE));
    int a = stk_graph_conv(g, x, "conv2", 16, 1, 1, 0);
    a = stk_graph_silu(g, stk_graph_batch_norm(g, a, "bn2", STK_INIT_ONE));
    a = stk_graph_conv(g, a, "conv3", 40, 3, 1, 1);
    a = stk_graph_silu(g, stk_graph_batch_norm(g, a, "bn3", STK_INIT_ONE));
    a = stk_graph_conv(g, a, "conv4", 24, 1, 1, 0);
    a = stk_graph_batch_norm(g, a, "bn4", STK_INIT_ONE);
    x = stk_graph_relu(g, stk_graph_add(g, a, x));
    a = stk_graph_conv(g, x, "left", 24, 3, 1, 1);
    a = stk_graph_relu(g, stk_graph_batch_norm(g, a, "bn10", STK_INIT_ONE));
    a = stk_graph_conv(g, a, "top", 32, 1, 1, 0);
    a = stk_graph_batch_norm(g, a, "bn11", STK_INIT_ONE);
    int b = stk_graph_conv(g, x, "right", 32, 1, 1, 0);
    b = stk_graph_batch_norm(g, b, "bn12", STK_INIT_ONE);
    x = stk_graph_relu(g, stk_graph_add(g, a, b));
    a = stk_graph_conv(g, x, "narrow", 24, 1, 2, 0);
    x = stk_graph_relu(g, stk_graph_batch_norm(g, a, "bn13", STK_INIT_ONE));
    a = stk_graph_conv(g, x, "conv5", 16, 3, 1, 1);
    a = stk_graph_relu(g, stk_graph_batch_norm(g, a, "bn5", STK_INIT_ONE));
    a = stk_graph_conv(g, a, "conv6", 24, 1, 1, 0);
    a = stk_graph_batch_norm(g, a, "bn6", STK_INIT_ONE);
    x = stk_graph_add(g, a, x);
    a = stk_graph_conv(g, x, "conv7", 48, 1, 1, 0);
    a = stk_graph_silu(g, stk_graph_batch_norm(g, a, "bn7", STK_INIT_ONE));
    a = stk_graph_depthwise(g, a, "deep", 3, 1, 1);
    x = stk_graph_silu(g, stk_graph_batch_norm(g, a, "bn8", STK_INIT_ONE));
    a = stk_graph_conv(g, x, "head", 12, 1, 1, 0);
    a = stk_graph_silu(g, stk_graph_batch_norm(g, a, "bn9", STK_INIT_ONE));
    return stk_graph_linear(g, stk_graph_avg_pool(g, a), "fc", CLASSES);
}

enum { DECISIONS = 5, LAYERS = 6 };

typedef struct counts {
    int together, decisions;
} counts;

static counts count_layers(const stk_exec *exec) {
    counts c = {0};
    for (int i = 0; i < exec->programs[PLAY_MAIN].op_count; i++) {
        const cuda_op *op = &exec->programs[PLAY_MAIN].ops[i];
        c.together += op->kind == CUDA_OP_LAUNCH && strcmp(op->launch.name, "layer_back") == 0;
    }
    for (int i = 0; i < exec->programs[PLAY_MAIN].decision_count; i++) {
        c.decisions += exec->programs[PLAY_MAIN].decisions[i].fusion == CUDA_FUSE_LAYER_BACK;
    }
    return c;
}

static void both_ways_give_the_same_in_the_same_memory(void) {
    static const stk_precision precisions[] = {STK_PRECISION_FP16, STK_PRECISION_BF16};
    for (int i = 0; i < (check_is_full() ? 2 : 1); i++) {
        bench b;
        float *results[2] = {NULL, NULL};
        size_t arena[2] = {0, 0};
        if (!bench_open(&b, build, check_folder(), false)) {
            return;
        }
        b.set = keep_clear;
        stk_exec *exec = compile(&b, precisions[i], false);
        for (int variant = 0; variant < 2 && exec != NULL; variant++) {
            decide(&b, exec, CUDA_FUSE_LAYER_BACK, variant);
            cuda->exec_free(exec);
            exec = compile(&b, precisions[i], false);
            REQUIRE(exec != NULL);
            CHECK_INT(count_layers(exec).decisions, DECISIONS);
            CHECK_INT(count_layers(exec).together, variant == CUDA_FUSED ? LAYERS : 0);
            arena[variant] = exec->programs[PLAY_MAIN].arena_bytes;
            results[variant] = step_results(&b, cuda, b.state, exec);
        }
        CHECK_INT(arena[0], arena[1]);
        compare_both(&b, results);
        cuda->exec_free(exec);
        bench_close(&b);
    }
}

static void the_next_start_asks_nothing(void) {
    counts c[2];
    const char *folder = check_folder();
    for (int life = 0; life < 2; life++) {
        bench b;
        if (!bench_open(&b, build, folder, false)) {
            return;
        }
        stk_exec *exec = compile(&b, STK_PRECISION_FP16, false);
        REQUIRE(exec != NULL);
        c[life] = count_layers(exec);
        CHECK(life == 0 || stk_cuda_tuning_results_made(b.device->tuning_results) == 0);
        cuda->exec_free(exec);
        bench_close(&b);
    }
    CHECK_INT(c[0].together, c[1].together);
}

static void does_one_after_the_other(const stk_exec *exec) {
    CHECK_INT(count_layers(exec).decisions, 0);
    CHECK_INT(count_layers(exec).together, 0);
}

static void others_do_one_after_the_other(void) {
    compile_others(build, does_one_after_the_other);
}

static const check_test tests[] = {
    TEST(both_ways_give_the_same_in_the_same_memory),
    TEST(the_next_start_asks_nothing),
    TEST(others_do_one_after_the_other),
};

CHECK_MAIN(tests)
