/*
 * test_backend_ops.c - the operations of EfficientNet, MobileNet and the small ResNets on the CPU
 * backend, against a naive float64 evaluation and its finite differences.
 */
#include "cpu_reference.h"

#include "backend/cpu/cpu_vector.h"

static int classify(stk_graph *g, int x) {
    return stk_graph_linear(g, stk_graph_avg_pool(g, x), "fc", CLASSES);
}

static int build_bias(stk_graph *g) {
    int x = stk_graph_conv_bias(g, stk_graph_input(g), "conv1", 4, 3, 2, 1);
    x = stk_graph_conv_bias(g, x, "conv2", 5, 1, 1, 0);
    return classify(g, x);
}

/* Kernels of 3 and 5, strides of 1, 2 and 3, padding on both sides, on one, on none. */
static int build_depthwise(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 9, 1, 1, 0);
    x = stk_graph_depthwise(g, x, "dw1", 3, 1, 1);
    x = stk_graph_depthwise(g, x, "dw2", 5, 2, STK_PAD_SAME);
    x = stk_graph_depthwise(g, x, "dw3", 3, 2, STK_PAD_SAME);
    x = stk_graph_depthwise(g, x, "dw4", 5, 1, 2);
    x = stk_graph_depthwise(g, x, "dw5", 2, 3, 2);
    return stk_graph_linear(g, x, "fc", CLASSES);
}

/* Several groups of channels, of which the last is not full. */
static int build_wide_depthwise(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 34, 1, 1, 0);
    x = stk_graph_depthwise(g, x, "dw1", 3, 2, 1);
    x = stk_graph_depthwise(g, x, "dw2", 3, 1, 1);
    return classify(g, x);
}

/* Each reads one value, so that gradients are accumulated. */
static int build_activations(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 6, 3, 1, 1);
    x = stk_graph_batch_norm(g, x, "bn1", STK_INIT_ONE);
    int a = stk_graph_add(g, stk_graph_silu(g, x), stk_graph_sigmoid(g, x));
    int b = stk_graph_add(g, stk_graph_relu6(g, x), stk_graph_relu(g, x));
    return classify(g, stk_graph_add(g, a, b));
}

/* And each alone, so that it may work in place. */
static int build_activations_in_line(stk_graph *g) {
    int x = stk_graph_silu(g, stk_graph_conv(g, stk_graph_input(g), "conv1", 6, 3, 1, 1));
    x = stk_graph_relu6(g, stk_graph_conv(g, x, "conv2", 6, 3, 1, 1));
    x = stk_graph_sigmoid(g, stk_graph_conv(g, x, "conv3", 6, 3, 1, 1));
    return classify(g, x);
}

static int squeeze_excite(stk_graph *g, int x, int middle, int channels, const char *reduce,
                          const char *expand) {
    int gate = stk_graph_avg_pool(g, x);
    gate = stk_graph_silu(g, stk_graph_conv_bias(g, gate, reduce, middle, 1, 1, 0));
    gate = stk_graph_sigmoid(g, stk_graph_conv_bias(g, gate, expand, channels, 1, 1, 0));
    return stk_graph_scale(g, x, gate);
}

static int build_scale(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 6, 3, 1, 1);
    x = squeeze_excite(g, x, 3, 6, "reduce1", "expand1");
    int gate = stk_graph_avg_pool(g, x);
    int y = stk_graph_conv(g, x, "conv2", 6, 1, 1, 0);
    /* One gate for two, and what is scaled is read by others later: both gradients add up. */
    int a = stk_graph_scale(g, x, gate);
    int b = stk_graph_scale(g, y, gate);
    return classify(g, stk_graph_add(g, stk_graph_add(g, a, b), x));
}

static int build_shortcut(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 4, 3, 1, 1);
    int y = stk_graph_conv(g, x, "conv2", 8, 3, 2, 1);
    y = stk_graph_add(g, y, stk_graph_shortcut(g, x, 8, 2));
    int z = stk_graph_conv(g, y, "conv3", 8, 3, 1, 1);
    z = stk_graph_add(g, stk_graph_shortcut(g, y, 8, 1), z);
    return classify(g, stk_graph_add(g, z, stk_graph_shortcut(g, x, 8, 2)));
}

static int build_drops(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 4, 3, 1, 1);
    int y = stk_graph_drop_path(g, stk_graph_conv(g, x, "conv2", 4, 3, 1, 1), 0.4);
    x = stk_graph_add(g, y, x);
    x = stk_graph_add(g, stk_graph_drop_path(g, x, 0.3), stk_graph_dropout(g, x, 0.5));
    x = stk_graph_dropout(g, stk_graph_avg_pool(g, x), 0.25);
    return stk_graph_linear(g, x, "fc", CLASSES);
}

static void bias_gradients(void) {
    check_gradients(build_bias, 7, 3, no_mix, 0);
}

static void depthwise_gradients(void) {
    check_gradients(build_depthwise, 14, 2, no_mix, 0);
    check_gradients(build_depthwise, 13, 2, no_mix, 0);
    check_gradients(build_wide_depthwise, 7, 2, no_mix, 0);
}

static void activation_gradients(void) {
    check_gradients(build_activations, 7, 3, no_mix, 0);
    check_gradients(build_activations_in_line, 7, 3, no_mix, 0);
}

static void scale_gradients(void) {
    check_gradients(build_scale, 6, 3, no_mix, 0);
}

static void shortcut_gradients(void) {
    check_gradients(build_shortcut, 7, 2, no_mix, 0);
    check_gradients(build_shortcut, 8, 2, no_mix, 0);
}

static void drop_gradients(void) {
    check_gradients(build_drops, 5, 6, no_mix, 0);
}

static void check_inference(builder *build, int img_size) {
    bench b;
    if (bench_open(&b, build, img_size, 3, 2)) {
        stk_step_input in = input_of(&b);
        float logits[3 * CLASSES];
        b.ref.train = false;
        reference_run(&b.ref, &in);
        CHECK(cpu->infer(b.infer, b.images, 3, logits, &b.err) == STK_OK);
        for (size_t i = 0; i < 3 * CLASSES; i++) {
            CHECK_NEAR(logits[i], b.ref.values[b.graph->logits][i], 1e-3);
        }
    }
    bench_close(&b);
}

static void inference_drops_nothing(void) {
    check_inference(build_drops, 5);
    check_inference(build_scale, 6);
    check_inference(build_depthwise, 14);
    check_inference(build_shortcut, 7);
    check_inference(build_activations, 7);
}

/* A step with other numbers drops others, the same step the same. */
static void drops_follow_seed_and_step(void) {
    bench b;
    REQUIRE(bench_open(&b, build_drops, 5, 6, 2));
    stk_step_input in = input_of(&b);
    stk_step_output first, out;
    CHECK(cpu->step(b.train, &in, &first, &b.err) == STK_OK);
    CHECK(cpu->step(b.train, &in, &out, &b.err) == STK_OK);
    CHECK(out.loss_sum == first.loss_sum);
    in.step++;
    CHECK(cpu->step(b.train, &in, &out, &b.err) == STK_OK);
    CHECK(out.loss_sum != first.loss_sum);
    in.step--;
    in.seed++;
    CHECK(cpu->step(b.train, &in, &out, &b.err) == STK_OK);
    CHECK(out.loss_sum != first.loss_sum);
    bench_close(&b);
}

CPU_BODY void exp_all_body(const float *x, float *y, size_t count) {
    CPU_EACH for (size_t i = 0; i < count; i++) {
        y[i] = cpu_exp(x[i]);
    }
}

CPU_VECTOR(exp_all, (const float *x, float *y, size_t count), (x, y, count))

CPU_BODY void sigmoid_all_body(const float *x, float *y, size_t count) {
    CPU_EACH for (size_t i = 0; i < count; i++) {
        y[i] = cpu_sigmoid(x[i]);
    }
}

CPU_VECTOR(sigmoid_all, (const float *x, float *y, size_t count), (x, y, count))

static void exponential_is_exact_enough(void) {
    enum { COUNT = 1024 };
    double worst = 0;
    for (int k = 0; k < 200; k++) {
        float x[COUNT], fast[COUNT], plain[COUNT];
        for (int i = 0; i < COUNT; i++) {
            x[i] = (float)(-87 + 174.0 * (k * COUNT + i) / (200 * COUNT));
        }
        exp_all(x, fast, COUNT);
        exp_all_body(x, plain, COUNT);
        for (int i = 0; i < COUNT; i++) {
            double exact = exp((double)x[i]);
            worst = fmax(worst, fabs(fast[i] - exact) / exact);
            worst = fmax(worst, fabs(plain[i] - exact) / exact);
        }
    }
    CHECK(worst < 2e-7);
    CHECK(cpu_exp(0) == 1);
    CHECK(cpu_exp(-INFINITY) == cpu_exp(-87) && cpu_exp(-87) > 0);
    CHECK(cpu_exp(INFINITY) == cpu_exp(87) && cpu_exp(87) > 6e37f);
}

static void sigmoid_is_exact_enough(void) {
    enum { COUNT = 4096 };
    static float x[COUNT], fast[COUNT], plain[COUNT];
    double worst = 0;
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(-86 + 126.0 * i / COUNT);
    }
    sigmoid_all(x, fast, COUNT);
    sigmoid_all_body(x, plain, COUNT);
    for (int i = 0; i < COUNT; i++) {
        double exact = 1 / (1 + exp(-(double)x[i]));
        worst = fmax(worst, fabs(fast[i] - exact) / exact);
        worst = fmax(worst, fabs(plain[i] - exact) / exact);
    }
    CHECK(worst < 3e-7);
    CHECK(cpu_sigmoid(0) == 0.5f);
    CHECK(cpu_sigmoid(-200) < 2e-38f && cpu_sigmoid(200) == 1);
}

static const check_test tests[] = {
    TEST(bias_gradients),
    TEST(depthwise_gradients),
    TEST(activation_gradients),
    TEST(scale_gradients),
    TEST(shortcut_gradients),
    TEST(drop_gradients),
    TEST(inference_drops_nothing),
    TEST(drops_follow_seed_and_step),
    TEST(exponential_is_exact_enough),
    TEST(sigmoid_is_exact_enough),
};

CHECK_MAIN(tests)
