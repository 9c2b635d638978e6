/*
 * test_backend_chain.c - chains on the CPU backend: the fused path against the node-by-node one on
 * graphs that have every form of a chain, and statistics of values far from zero.
 */
#include "cpu_reference.h"

#include "engine/pieces.h"

#define BATCH 5

static uint64_t network_seed;

static int build_random(stk_graph *g) {
    return random_network(g, network_seed);
}

static int chain_count(const stk_graph *graph) {
    stk_pieces pieces;
    stk_error err = {0};
    int count = 0;
    CHECK(stk_pieces_make(&pieces, graph, &(stk_pieces_config){.train = true, .fuse = true},
                          &err) == STK_OK);
    for (int i = 0; i < pieces.count; i++) {
        count += pieces.items[i].node == STK_NO_NODE;
    }
    stk_pieces_free(&pieces);
    return count;
}

/* Everything one step leaves behind: gradients, then parameters with their running statistics. */
static float *step_results(bench *b, stk_exec *exec, double *loss) {
    size_t count = b->graph->param_elements;
    float *results = calloc(2 * count, sizeof *results);
    stk_step_input in = input_of(b);
    stk_step_output out;
    CHECK(cpu->step(exec, &in, &out, &b->err) == STK_OK);
    *loss = out.loss_sum;
    for (int p = 0; p < b->graph->param_count; p++) {
        size_t at = b->graph->params[p].offset;
        CHECK(!cpu->state_read(b->state, STK_TENSOR_GRADIENT, p, results + at, &b->err));
        CHECK(!cpu->state_read(b->state, STK_TENSOR_VALUE, p, results + count + at, &b->err));
    }
    return results;
}

static double largest_of(const float *values, size_t count) {
    float largest = 0;
    for (size_t i = 0; i < count; i++) {
        largest = fabsf(values[i]) > largest ? fabsf(values[i]) : largest;
    }
    return (double)largest;
}

/*
 * Each tensor within `share` of its largest number, and a tenth of that of the largest of all: a
 * bias before a norm has no gradient but what rounding makes.
 */
static void compare(const bench *b, const float *fused, const float *plain, double share) {
    double rounding = 0.1 * share * largest_of(plain, b->graph->param_elements);
    for (int p = 0; p < b->graph->param_count; p++) {
        const stk_param *param = &b->graph->params[p];
        double limit = share * largest_of(plain + param->offset, param->count) + rounding;
        size_t wrong = 0;
        for (size_t i = param->offset; i < param->offset + param->count; i++) {
            wrong += !(fabs((double)fused[i] - (double)plain[i]) <= limit);
        }
        if (wrong > 0) {
            CHECK_FAIL("network %d, %s: %zu of %zu numbers are more than %g apart",
                       (int)network_seed, param->name, wrong, param->count, limit);
        }
    }
}

/* `how`: what the steps differ in from usual ones. */
static void check_network(int img_size, stk_compile_config how) {
    bench b;
    REQUIRE(bench_open(&b, build_random, img_size, BATCH, 2));
    CHECK(chain_count(b.graph) == 10);
    stk_exec *exec[2] = {NULL, NULL};
    float *results[2] = {NULL, NULL};
    double loss[2];
    for (int plain = 0; plain < 2; plain++) {
        stk_compile_config config = how;
        config.batch = BATCH;
        config.train = true;
        config.plain = plain == 1;
        bench_fill(&b, 7);
        REQUIRE(cpu->compile(&exec[plain], b.state, &config, &b.err) == STK_OK);
        results[plain] = step_results(&b, exec[plain], &loss[plain]);
    }
    CHECK_NEAR(loss[0], loss[1], 1e-4 * fabs(loss[1]));
    compare(&b, results[0], results[1], 1e-4);
    compare(&b, results[0] + b.graph->param_elements, results[1] + b.graph->param_elements, 1e-5);
    for (int plain = 0; plain < 2; plain++) {
        cpu->exec_free(exec[plain]);
        free(results[plain]);
    }
    bench_close(&b);
}

/* So many networks of `count` as there is time for. */
static uint64_t some_of(uint64_t count) {
    return check_is_quick() ? (count + 3) / 4 : count;
}

static void fused_steps_equal_plain_ones(void) {
    for (network_seed = 0; network_seed < some_of(40); network_seed++) {
        check_network(13, (stk_compile_config){0});
    }
}

/* So many pixels that sums and statistics are divided into several strips. */
static void large_pictures_are_summed_in_strips(void) {
    for (network_seed = 40; network_seed < 40 + some_of(4); network_seed++) {
        check_network(61, (stk_compile_config){0});
    }
}

static void frozen_backbones_are_alike(void) {
    for (network_seed = 0; network_seed < some_of(6); network_seed++) {
        check_network(13, (stk_compile_config){.frozen = true});
    }
}

static void kept_statistics_are_alike(void) {
    for (network_seed = 0; network_seed < some_of(6); network_seed++) {
        check_network(13, (stk_compile_config){.kept_stats = true});
    }
}

static void kept_statistics_stay(void) {
    bench b;
    stk_exec *train = NULL;
    double loss;
    stk_compile_config config = {.batch = BATCH, .train = true, .kept_stats = true};
    network_seed = 0;
    REQUIRE(bench_open(&b, build_random, 13, BATCH, 2));
    REQUIRE(cpu->compile(&train, b.state, &config, &b.err) == STK_OK);
    for (int steps = 0; steps < 2; steps++) {
        free(step_results(&b, train, &loss));
    }
    for (int n = 0; n < b.graph->node_count; n++) {
        const stk_node *norm = &b.graph->nodes[n];
        for (int k = 2; norm->op == STK_OP_BATCH_NORM && k < 4; k++) {
            const stk_param *param = &b.graph->params[norm->params[k]];
            float *now = malloc(param->count * sizeof *now);
            CHECK(!cpu->state_read(b.state, STK_TENSOR_VALUE, norm->params[k], now, &b.err));
            for (size_t i = 0; i < param->count; i++) {
                CHECK((double)now[i] == b.ref.params[param->offset + i]);
            }
            free(now);
        }
    }
    cpu->exec_free(train);
    bench_close(&b);
}

static void fused_inference_equals_plain(void) {
    for (network_seed = 0; network_seed < some_of(20); network_seed++) {
        bench b;
        REQUIRE(bench_open(&b, build_random, 13, BATCH, 2));
        stk_exec *plain = NULL;
        stk_compile_config config = {.batch = BATCH, .plain = true};
        float fused_logits[BATCH * CLASSES];
        float plain_logits[BATCH * CLASSES];
        REQUIRE(cpu->compile(&plain, b.state, &config, &b.err) == STK_OK);
        CHECK(cpu->infer(b.infer, b.images, NULL, BATCH, fused_logits, &b.err) == STK_OK);
        CHECK(cpu->infer(plain, b.images, NULL, BATCH, plain_logits, &b.err) == STK_OK);
        double largest = largest_of(plain_logits, BATCH * CLASSES);
        for (int i = 0; i < BATCH * CLASSES; i++) {
            CHECK_NEAR(fused_logits[i], plain_logits[i], 1e-4 * largest);
        }
        cpu->exec_free(plain);
        bench_close(&b);
    }
}

/* Every form once more against finite differences, on a graph small enough for them. */
static int build_small(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "stem", 3, 3, 2, 1);
    int a = chain(g, x, x, 3, 2 | 1 << 4, 1);
    int b = chain(g, a, x, 3, 1 << 2 | 1 << 4 | 1 << 5, 2);
    int c = chain(g, b, a, 3, 1 | 3 << 2 | 1 << 5 | 1 << 6, 3);
    return stk_graph_linear(g, stk_graph_add(g, c, b), "fc", CLASSES);
}

static void chain_gradients(void) {
    check_gradients(build_small, 7, 4, no_mix, 0);
    check_kept_gradients(build_small, 7, 4);
}

/* Channels whose mean is thousands of deviations away: squares about zero would lose them. */
static int build_offset(stk_graph *g) {
    int x = stk_graph_conv_bias(g, stk_graph_input(g), "offset", 6, 1, 1, 0);
    x = stk_graph_depthwise(g, x, "dw", 1, 1, 0);
    x = stk_graph_relu(g, stk_graph_batch_norm(g, x, "bn", STK_INIT_ONE));
    return stk_graph_linear(g, stk_graph_avg_pool(g, x), "fc", CLASSES);
}

static void statistics_keep_their_digits(void) {
    bench b;
    REQUIRE(bench_open(&b, build_offset, 24, BATCH, 2));
    float bias[6] = {1000, -1000, 500, 0, 2000, 1};
    float one[6] = {1, 1, 1, 1, 1, 1};
    stk_step_input in = input_of(&b);
    stk_step_output out;
    const stk_node *norm = &b.graph->nodes[3];
    REQUIRE(norm->op == STK_OP_BATCH_NORM);
    CHECK(!cpu->state_write(b.state, STK_TENSOR_VALUE, 1, bias, &b.err));
    CHECK(!cpu->state_write(b.state, STK_TENSOR_VALUE, 2, one, &b.err));
    float before[6], after[6];
    CHECK(!cpu->state_read(b.state, STK_TENSOR_VALUE, norm->params[3], before, &b.err));
    CHECK(cpu->step(b.train, &in, &out, &b.err) == STK_OK);
    CHECK(!cpu->state_read(b.state, STK_TENSOR_VALUE, norm->params[3], after, &b.err));
    for (int c = 0; c < 6; c++) {
        b.ref.params[b.graph->params[1].offset + (size_t)c] = bias[c];
        b.ref.params[b.graph->params[2].offset + (size_t)c] = 1;
    }
    reference_run(&b.ref, &in);
    const double *x = b.ref.values[norm->inputs[0]];
    size_t rows = (size_t)BATCH * 24 * 24;
    for (size_t c = 0; c < 6; c++) {
        double mean = 0;
        double var = 0;
        for (size_t i = 0; i < rows; i++) {
            mean += x[i * 6 + c] / (double)rows;
        }
        for (size_t i = 0; i < rows; i++) {
            var += (x[i * 6 + c] - mean) * (x[i * 6 + c] - mean) / (double)(rows - 1);
        }
        CHECK_NEAR(after[c], 0.9 * before[c] + 0.1 * var, 1e-4 * var);
    }
    bench_close(&b);
}

static void same_bits_on_any_number_of_threads(void) {
    for (network_seed = 0; network_seed < some_of(3); network_seed++) {
        float *first = NULL;
        for (int threads = 1; threads <= 3; threads++) {
            bench b;
            double loss;
            REQUIRE(bench_open(&b, build_random, 61, BATCH, threads));
            float *results = step_results(&b, b.train, &loss);
            if (first == NULL) {
                first = results;
            } else {
                CHECK(memcmp(first, results, 2 * b.graph->param_elements * sizeof *first) == 0);
                free(results);
            }
            bench_close(&b);
        }
        free(first);
    }
}

static const check_test tests[] = {
    TEST(fused_steps_equal_plain_ones),
    TEST(large_pictures_are_summed_in_strips),
    TEST(frozen_backbones_are_alike),
    TEST(kept_statistics_are_alike),
    TEST(kept_statistics_stay),
    TEST(fused_inference_equals_plain),
    TEST(chain_gradients),
    TEST(statistics_keep_their_digits),
    TEST(same_bits_on_any_number_of_threads),
};

CHECK_MAIN(tests)
