/*
 * test_backend_cpu.c - the CPU backend against a naive float64 evaluation of the same graph, and
 * every gradient against finite differences of that evaluation.
 */
#include "cpu_reference.h"

#include "base/mem.h"
#include "engine/memory_layout.h"

static void conv_gradients(void) {
    check_gradients(build_conv, 9, 3, no_mix, 0);
}

static void wide_kernel_gradients(void) {
    check_gradients(build_wide_kernel, 11, 2, no_mix, 0);
}

static void batch_norm_gradients(void) {
    check_gradients(build_norm, 7, 4, no_mix, 0);
    check_kept_gradients(build_norm, 7, 4);
}

static void relu_gradients(void) {
    check_gradients(build_relu, 9, 3, no_mix, 0);
}

static void max_pool_gradients(void) {
    check_gradients(build_max_pool, 9, 2, no_mix, 0);
}

static void residual_gradients(void) {
    check_gradients(build_residual, 6, 3, no_mix, 0);
}

static void loss_with_smoothing_and_mixing(void) {
    check_gradients(build_relu, 8, 5, (stk_mix){.kind = STK_MIX_MIXUP, .keep = 0.3f}, 0.1f);
    check_gradients(
        build_relu, 8, 4,
        (stk_mix){
            .kind = STK_MIX_CUTMIX, .keep = 0.75f, .left = 2, .top = 1, .right = 6, .bottom = 5},
        0);
}

static void inference_uses_running_statistics(void) {
    bench b;
    if (bench_open(&b, build_residual, 6, 4, 2)) {
        stk_step_input in = input_of(&b);
        float logits[4 * CLASSES];
        b.ref.train = false;
        reference_run(&b.ref, &in);
        CHECK(cpu->infer(b.infer, b.images, NULL, 4, logits, &b.err) == STK_OK);
        for (size_t i = 0; i < 4 * CLASSES; i++) {
            CHECK_NEAR(logits[i], b.ref.values[b.graph->logits][i], 1e-3);
        }
        /* Fewer samples than the batch it was compiled for give the same rows. */
        float fewer[2 * CLASSES];
        CHECK(cpu->infer(b.infer, b.images, NULL, 2, fewer, &b.err) == STK_OK);
        for (size_t i = 0; i < 2 * CLASSES; i++) {
            CHECK_NEAR(fewer[i], logits[i], 1e-3);
        }
    }
    bench_close(&b);
}

static void running_statistics_follow_the_batch(void) {
    bench b;
    if (bench_open(&b, build_norm, 7, 4, 2)) {
        stk_step_input in = input_of(&b);
        stk_step_output out;
        float before[2][5];
        float after[2][5];
        const stk_node *norm = &b.graph->nodes[2];
        REQUIRE(norm->op == STK_OP_BATCH_NORM);
        for (int k = 0; k < 2; k++) {
            CHECK(
                !cpu->state_read(b.state, STK_TENSOR_VALUE, norm->params[2 + k], before[k], NULL));
        }
        CHECK(cpu->step(b.train, &in, &out, &b.err) == STK_OK);
        for (int k = 0; k < 2; k++) {
            CHECK(!cpu->state_read(b.state, STK_TENSOR_VALUE, norm->params[2 + k], after[k], NULL));
        }
        reference_run(&b.ref, &in);
        const double *x = b.ref.values[norm->inputs[0]];
        size_t rows = 4 * 7 * 7;
        for (size_t c = 0; c < 5; c++) {
            double mean = 0;
            double var = 0;
            for (size_t i = 0; i < rows; i++) {
                mean += x[i * 5 + c] / (double)rows;
            }
            for (size_t i = 0; i < rows; i++) {
                var += (x[i * 5 + c] - mean) * (x[i * 5 + c] - mean) / (double)(rows - 1);
            }
            CHECK_NEAR(after[0][c], 0.9 * before[0][c] + 0.1 * mean, 1e-4);
            CHECK_NEAR(after[1][c], 0.9 * before[1][c] + 0.1 * var, 1e-4);
        }
    }
    bench_close(&b);
}

/* The updated parameters and the gradients of a whole step, for comparing bit for bit. */
static void step_twice(bench *b, float *values) {
    stk_step_input in = input_of(b);
    stk_step_output out;
    stk_update update = {
        .lr = 0.1f, .head_lr = 0.1f, .momentum = 0.9f, .weight_decay = 0.01f, .grad_scale = 1};
    in.update = &update;
    CHECK(cpu->step(b->train, &in, &out, &b->err) == STK_OK);
    CHECK(cpu->step(b->train, &in, &out, &b->err) == STK_OK);
    for (int p = 0; p < b->graph->param_count; p++) {
        CHECK(cpu->state_read(b->state, STK_TENSOR_VALUE, p, values + b->graph->params[p].offset,
                              &b->err) == STK_OK);
    }
}

static void same_bits_on_any_number_of_threads(void) {
    float *first = NULL;
    for (int threads = 1; threads <= 4; threads++) {
        bench b;
        REQUIRE(bench_open(&b, build_residual, 23, 9, threads));
        float *values = calloc(b.graph->param_elements, sizeof *values);
        step_twice(&b, values);
        if (first == NULL) {
            first = values;
        } else {
            CHECK(memcmp(first, values, b.graph->param_elements * sizeof *values) == 0);
            free(values);
        }
        bench_close(&b);
    }
    free(first);
}

static void sgd_follows_its_formula(void) {
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        bench b;
        REQUIRE(bench_open(&b, build_relu, 8, 4, 1));
        stk_step_input in = input_of(&b);
        stk_step_output out;
        stk_update update = {.lr = 0.05f,
                             .head_lr = 0.05f,
                             .momentum = 0.8f,
                             .weight_decay = 0.1f,
                             .nesterov = nesterov == 1,
                             .grad_scale = 0.5f};
        in.update = &update;
        for (int p = 0; p < b.graph->param_count; p++) {
            const stk_param *param = &b.graph->params[p];
            if (!param->trainable) {
                continue;
            }
            float w[512], g[512], v[512], moved[512];
            REQUIRE(param->count <= 512);
            CHECK(!cpu->state_read(b.state, STK_TENSOR_VALUE, p, w, NULL));
            CHECK(!cpu->state_read(b.state, STK_TENSOR_MOMENTUM, p, v, NULL));
            CHECK(cpu->step(b.train, &in, &out, &b.err) == STK_OK);
            CHECK(!cpu->state_read(b.state, STK_TENSOR_GRADIENT, p, g, NULL));
            CHECK(!cpu->state_read(b.state, STK_TENSOR_VALUE, p, moved, NULL));
            for (size_t i = 0; i < param->count; i++) {
                double decay = param->decay ? 0.1 * w[i] : 0;
                double step = 0.5 * g[i] + decay;
                double velocity = 0.8 * v[i] + step;
                double change = nesterov ? step + 0.8 * velocity : velocity;
                CHECK_NEAR(moved[i], w[i] - 0.05 * change, 1e-5);
            }
        }
        CHECK(b.graph->params[0].decay);
        bench_close(&b);
    }
}

static void kept_gradients_add_up(void) {
    bench b;
    REQUIRE(bench_open(&b, build_conv, 9, 4, 2));
    stk_step_input in = input_of(&b);
    stk_step_output out;
    float once[256], twice[256];
    CHECK(cpu->step(b.train, &in, &out, &b.err) == STK_OK);
    CHECK(!cpu->state_read(b.state, STK_TENSOR_GRADIENT, 0, once, NULL));
    in.keep_gradients = true;
    CHECK(cpu->step(b.train, &in, &out, &b.err) == STK_OK);
    CHECK(!cpu->state_read(b.state, STK_TENSOR_GRADIENT, 0, twice, NULL));
    for (size_t i = 0; i < b.graph->params[0].count; i++) {
        CHECK_NEAR(twice[i], 2 * once[i], 1e-5);
    }
    bench_close(&b);
}

/* The weights of one size compute what a network that was made for the other size would. */
static void another_size_of_pictures(void) {
    bench small;
    bench large;
    stk_exec *exec = NULL;
    float logits[2][4 * CLASSES];
    float values[4096];
    uint64_t bytes = 0;
    REQUIRE(bench_open(&small, build_relu, 6, 4, 2));
    REQUIRE(bench_open(&large, build_relu, 11, 4, 2));
    for (int i = 0; i < small.graph->param_count; i++) {
        REQUIRE(small.graph->params[i].count <= sizeof values / sizeof *values);
        CHECK(!cpu->state_read(large.state, STK_TENSOR_VALUE, i, values, NULL));
        CHECK(!cpu->state_write(small.state, STK_TENSOR_VALUE, i, values, NULL));
    }
    stk_compile_config config = {.graph = large.graph, .batch = 4};
    REQUIRE_OK(cpu->compile(&exec, small.state, &config, &small.err), &small.err);
    REQUIRE_OK(cpu->exec_need(small.device, small.graph, &config, &bytes, NULL, &small.err),
               &small.err);
    CHECK_INT(bytes, cpu->exec_bytes(large.infer));
    CHECK(cpu->infer(exec, large.images, NULL, 4, logits[0], NULL) == STK_OK);
    CHECK(cpu->infer(large.infer, large.images, NULL, 4, logits[1], NULL) == STK_OK);
    CHECK(memcmp(logits[0], logits[1], sizeof logits[0]) == 0);
    cpu->exec_free(exec);
    bench_close(&large);
    bench_close(&small);
}

static void weights_of_one_size_only_are_refused(void) {
    bench small;
    bench large;
    stk_exec *exec = NULL;
    REQUIRE(bench_open(&small, build_max_pool, 9, 2, 1));
    REQUIRE(bench_open(&large, build_max_pool, 15, 2, 1));
    stk_compile_config config = {.graph = large.graph, .batch = 2};
    CHECK(cpu->compile(&exec, small.state, &config, &small.err) == STK_ERR_USAGE);
    CHECK_CONTAINS(small.err.message, "other weights for pictures of 15 px than for 9 px");
    CHECK(exec == NULL);
    bench_close(&large);
    bench_close(&small);
}

static void plan_is_what_is_allocated(void) {
    bench b;
    REQUIRE(bench_open(&b, build_residual, 16, 6, 2));
    for (int train = 0; train < 2; train++) {
        stk_compile_config config = {.batch = 6, .train = train == 1};
        uint64_t bytes = 0;
        CHECK(cpu->exec_need(b.device, b.graph, &config, &bytes, NULL, &b.err) == STK_OK);
        CHECK_INT(bytes, cpu->exec_bytes(train ? b.train : b.infer));
    }
    CHECK(cpu->exec_bytes(b.infer) < cpu->exec_bytes(b.train));
    bench_close(&b);
}

static void wrong_calls_are_refused(void) {
    bench b;
    REQUIRE(bench_open(&b, build_conv, 9, 3, 1));
    stk_step_input in = input_of(&b);
    stk_step_output out;
    float logits[4 * CLASSES];
    in.count = 4;
    CHECK(cpu->step(b.train, &in, &out, &b.err) == STK_ERR_INTERNAL);
    CHECK(cpu->infer(b.train, b.images, NULL, 3, logits, NULL) == STK_ERR_INTERNAL);
    CHECK(cpu->infer(b.infer, b.images, NULL, 0, logits, NULL) == STK_ERR_INTERNAL);
    bench_close(&b);
}

static void memory_failures_leak_nothing(void) {
    for (int n = 0; n < 40; n++) {
        bench b;
        stk_graph *graph = NULL;
        stk_error err = {0};
        REQUIRE(stk_graph_new(&graph, 9, CLASSES, &err) == STK_OK);
        REQUIRE(stk_graph_finish(graph, build_conv(graph), &err) == STK_OK);
        memset(&b, 0, sizeof b);
        stk_device_config device = {.threads = 2};
        stk_compile_config config = {.batch = 2, .train = true};
        stk_mem_fail_after(n);
        stk_status status = cpu->device_open(&b.device, &device, &err);
        status = status == STK_OK ? cpu->state_new(&b.state, b.device, graph,
                                                   &(stk_state_config){.train = true}, &err)
                                  : status;
        status = status == STK_OK ? cpu->compile(&b.train, b.state, &config, &err) : status;
        stk_mem_fail_after(-1);
        CHECK(status == STK_OK || status == STK_ERR_MEMORY);
        cpu->exec_free(b.train);
        cpu->state_free(b.state);
        cpu->device_close(b.device);
        stk_graph_free(graph);
    }
}

/* Less memory can be assumed, more cannot. */
static void memory_that_is_assumed(void) {
    stk_device_memory own = {0};
    for (int i = 0; i < 3; i++) {
        const uint64_t assumed[] = {0, (uint64_t)1 << 20, (uint64_t)1 << 60};
        stk_device_config config = {.threads = 1, .memory_bytes = assumed[i]};
        stk_device *device = NULL;
        stk_device_memory memory = {0};
        stk_error err = {0};
        REQUIRE_OK(cpu->device_open(&device, &config, &err), &err);
        REQUIRE_OK(cpu->memory(device, &memory, &err), &err);
        own = i == 0 ? memory : own;
        CHECK_INT(memory.total_bytes, i == 1 ? assumed[1] : own.total_bytes);
        CHECK(memory.free_bytes > 0 && memory.free_bytes < memory.total_bytes);
        cpu->device_close(device);
    }
}

static const check_test tests[] = {
    TEST(memory_that_is_assumed),
    TEST(conv_gradients),
    TEST(wide_kernel_gradients),
    TEST(batch_norm_gradients),
    TEST(relu_gradients),
    TEST(max_pool_gradients),
    TEST(residual_gradients),
    TEST(loss_with_smoothing_and_mixing),
    TEST(inference_uses_running_statistics),
    TEST(running_statistics_follow_the_batch),
    TEST(same_bits_on_any_number_of_threads),
    TEST(sgd_follows_its_formula),
    TEST(kept_gradients_add_up),
    TEST(another_size_of_pictures),
    TEST(weights_of_one_size_only_are_refused),
    TEST(plan_is_what_is_allocated),
    TEST(wrong_calls_are_refused),
    TEST(memory_failures_leak_nothing),
};

CHECK_MAIN(tests)
