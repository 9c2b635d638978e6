/*
 * test_backend_ops.c - the operations of EfficientNet, MobileNet and the small ResNets on the CPU
 * backend, against a naive float64 evaluation and its finite differences.
 */
#include "cpu_reference.h"

#include "backend/cpu/kernels/vector.h"

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

/* The losses that have targets: plain, smoothed, and mixed. */
static void loss_gradients(void) {
    const stk_mix mixup = {.kind = STK_MIX_MIXUP, .keep = 0.7f};
    const stk_mix cutmix = {.kind = STK_MIX_CUTMIX, .keep = 0.4f, .right = 3, .bottom = 2};
    for (loss_number = 0; loss_number < SOME_LOSSES; loss_number++) {
        check_gradients(build_loss, 5, 4, no_mix, 0);
        check_gradients(build_loss, 5, 3, mixup, 0.1f);
        check_gradients(build_loss, 5, 4, cutmix, 0.2f);
    }
}

static void feature_gradients(void) {
    const stk_mix mixup = {.kind = STK_MIX_MIXUP, .keep = 0.7f};
    const stk_mix cutmix = {.kind = STK_MIX_CUTMIX, .keep = 0.4f, .right = 3, .bottom = 2};
    check_gradients(build_features, 5, 3, no_mix, 0);
    check_gradients(build_features, 5, 3, mixup, 0.1f);
    check_gradients(build_features, 5, 4, cutmix, 0);
}

static void step_gradients(void) {
    const stk_mix mixup = {.kind = STK_MIX_MIXUP, .keep = 0.7f};
    check_gradients(build_steps, 5, 4, no_mix, 0);
    check_gradients(build_steps, 5, 3, mixup, 0.1f);
}

/* Plain, and mixed; there is no smoothing. */
static void place_gradients(void) {
    const stk_mix mixup = {.kind = STK_MIX_MIXUP, .keep = 0.7f};
    const stk_mix cutmix = {.kind = STK_MIX_CUTMIX, .keep = 0.4f, .right = 3, .bottom = 2};
    check_gradients(build_places, 5, 4, no_mix, 0);
    check_gradients(build_places, 5, 4, no_mix, 0.3f);
    check_gradients(build_places, 5, 3, mixup, 0.1f);
    check_gradients(build_places, 5, 4, cutmix, 0.2f);
}

/* Pictures that are not RGB, plain and mixed. */
static void channel_gradients(void) {
    const int counts[] = {1, 2, 4, 5, 6, 33, 64};
    const stk_mix mixup = {.kind = STK_MIX_MIXUP, .keep = 0.7f};
    const stk_mix cutmix = {
        .kind = STK_MIX_CUTMIX, .keep = 0.4f, .left = 1, .right = 3, .bottom = 2};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        picture_channels = counts[i];
        picture_reader = (int)i % 3;
        bool many = counts[i] > 8; /* finite differences take long */
        check_gradients(build_channels, many ? 3 : 7, 2, i % 2 == 0 ? mixup : cutmix, 0);
    }
}

static void check_inference(builder *build, int img_size) {
    bench b;
    if (bench_open(&b, build, img_size, 3, 2)) {
        stk_step_input in = input_of(&b);
        float logits[3 * CLASSES];
        b.ref.train = false;
        reference_run(&b.ref, &in);
        CHECK(cpu->infer(b.infer, b.images, b.features, 3, logits, &b.err) == STK_OK);
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
    check_inference(build_features, 5);
    check_inference(build_steps, 5);
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
    TEST(loss_gradients),
    TEST(feature_gradients),
    TEST(step_gradients),
    TEST(place_gradients),
    TEST(channel_gradients),
    TEST(inference_drops_nothing),
    TEST(drops_follow_seed_and_step),
    TEST(exponential_is_exact_enough),
    TEST(sigmoid_is_exact_enough),
};

CHECK_MAIN(tests)
