/*
 * test_cuda_operations.c - every operation and every form of a chain on the CUDA backend, against
 * the CPU's.
 */
#include "cuda_pair.h"

typedef struct network {
    const char *name;
    builder *build;
    int img_size;
    size_t batch;
} network;

static const network networks[] = {
    {"conv", build_conv, 9, 3},
    {"wide kernel", build_wide_kernel, 11, 2},
    {"norm", build_norm, 7, 4},
    {"relu", build_relu, 9, 3},
    {"max pool", build_max_pool, 9, 2},
    {"residual", build_residual, 6, 3},
    {"bias", build_bias, 7, 3},
    {"depthwise", build_depthwise, 14, 2},
    {"depthwise, odd", build_depthwise, 13, 2},
    {"wide depthwise", build_wide_depthwise, 7, 2},
    {"activations", build_activations, 7, 3},
    {"activations in line", build_activations_in_line, 7, 3},
    {"scale", build_scale, 6, 3},
    {"shortcut", build_shortcut, 7, 2},
    {"shortcut, even", build_shortcut, 8, 2},
    {"drops", build_drops, 5, 6},
    {"features", build_features, 5, 4},
    {"features, odd", build_features, 7, 3},
    {"steps", build_steps, 5, 4},
    {"places", build_places, 5, 4},
};

/* Of the networks, in an ordinary run, those whose number leaves `rest` when divided by `of`. */
typedef struct turn {
    size_t of, rest;
} turn;

/* One plain step or inference of every network, as far as it is its turn. */
static void check_networks(pair_wish wish, turn ordinary) {
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        pair p;
        if (i % ordinary.of != ordinary.rest && !check_is_full()) {
            continue;
        }
        stk_graph *graph = pair_graph(networks[i].build, networks[i].img_size);
        wish.batch = networks[i].batch;
        if (pair_open(&p, graph, &wish)) {
            if (wish.infer) {
                pair_infer(&p, wish.batch, networks[i].name);
                pair_infer(&p, 1, networks[i].name); /* fewer than the batch */
            } else {
                stk_step_input in = pair_input(&p);
                pair_step(&p, &in, networks[i].name);
            }
            pair_close(&p);
        }
        stk_graph_free(graph);
    }
}

static void operations_node_by_node(void) {
    check_networks((pair_wish){.precision = STK_PRECISION_FP32_STRICT, .plain = true},
                   (turn){5, 0});
}

static void operations_fused(void) {
    check_networks((pair_wish){.precision = STK_PRECISION_FP32_STRICT}, (turn){2, 0});
}

static void operations_in_fp16(void) {
    check_networks((pair_wish){.precision = STK_PRECISION_FP16, .share = 2e-2}, (turn){2, 1});
}

static void operations_in_bf16(void) {
    check_networks((pair_wish){.precision = STK_PRECISION_BF16, .share = 0.15}, (turn){8, 5});
}

static void operations_in_inference(void) {
    check_networks((pair_wish){.precision = STK_PRECISION_FP32_STRICT, .infer = true},
                   (turn){5, 2});
    check_networks(
        (pair_wish){.precision = STK_PRECISION_FP32_STRICT, .infer = true, .plain = true},
        (turn){8, 3});
    check_networks((pair_wish){.precision = STK_PRECISION_FP16, .infer = true}, (turn){5, 4});
}

static uint64_t chains_seed;

static int build_chains(stk_graph *g) {
    return random_network(g, chains_seed);
}

/* The first networks of chains: so many of them in an ordinary run, and so many in a full one. */
static void check_chains(pair_wish wish, uint64_t ordinary, uint64_t full) {
    wish.batch = 5;
    for (chains_seed = 0; chains_seed < (check_is_full() ? full : ordinary); chains_seed++) {
        pair p;
        char what[32];
        stk_graph *graph = pair_graph(build_chains, 13);
        snprintf(what, sizeof what, "chains %d", (int)chains_seed);
        if (pair_open(&p, graph, &wish)) {
            if (wish.infer) {
                pair_infer(&p, 5, what);
            } else {
                stk_step_input in = pair_input(&p);
                pair_step(&p, &in, what);
            }
            pair_close(&p);
        }
        stk_graph_free(graph);
    }
}

/* Ten chains amplify rounding: the CPU's two ways are as far apart. */
static void chains(void) {
    pair_wish wish = {.precision = STK_PRECISION_FP32_STRICT, .share = 1e-4};
    check_chains(wish, 3, 8);
    wish.plain = true;
    check_chains(wish, 1, 2);
    wish.plain = false;
    wish.frozen = true;
    check_chains(wish, 1, 3);
    wish.frozen = false;
    wish.infer = true;
    check_chains(wish, 1, 4);
}

static const check_test tests[] = {
    TEST(operations_node_by_node), TEST(operations_fused),        TEST(operations_in_fp16),
    TEST(operations_in_bf16),      TEST(operations_in_inference), TEST(chains),
};

CHECK_MAIN(tests)
