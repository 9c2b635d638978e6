/*
 * test_mixing.c - mixup and CutMix against their definitions, on a network that answers how bright
 * a picture is: black is class 0, white class 1.
 */
#include "backend/cpu/device.h"
#include "check.h"

#define SIDE 4
#define PIXELS ((size_t)(SIDE * SIDE * 3))
#define CLASSES 3
#define STEEP 10.0 /* logit of class 1: STEEP * (brightness - 0.5); the others': 0 */

static stk_error error;

typedef struct brightness_net {
    stk_graph *graph;
    stk_device *device;
    stk_state *state;
    stk_exec *exec;
    uint8_t images[2 * PIXELS]; /* one black, one white */
} brightness_net;

static const stk_backend *const cpu = &stk_cpu_backend;

static void must_do(stk_status status) {
    if (status != STK_OK) {
        printf("%s\n", error.message);
        exit(1);
    }
}

static void open_brightness_net(brightness_net *e) {
    static const float weight[CLASSES * 3] = {0, 0, 0, STEEP / 3, STEEP / 3, STEEP / 3, 0, 0, 0};
    static const float bias[CLASSES] = {0, -STEEP / 2, 0};
    must_do(stk_graph_new(&e->graph, SIDE, CLASSES, &error));
    for (int c = 0; c < 3; c++) {
        e->graph->mean[c] = 0;
        e->graph->std[c] = 1;
    }
    int x = stk_graph_avg_pool(e->graph, stk_graph_input(e->graph));
    must_do(stk_graph_finish(e->graph, stk_graph_linear(e->graph, x, "fc", CLASSES), &error));
    must_do(cpu->device_open(&e->device, &(stk_device_config){.threads = 1}, &error));
    must_do(
        cpu->state_new(&e->state, e->device, e->graph, &(stk_state_config){.train = true}, &error));
    must_do(cpu->state_write(e->state, STK_TENSOR_VALUE, 0, weight, &error));
    must_do(cpu->state_write(e->state, STK_TENSOR_VALUE, 1, bias, &error));
    must_do(
        cpu->compile(&e->exec, e->state, &(stk_compile_config){.batch = 2, .train = true}, &error));
    memset(e->images, 0, PIXELS);
    memset(e->images + PIXELS, 255, PIXELS);
}

static void close_brightness_net(brightness_net *e) {
    cpu->exec_free(e->exec);
    cpu->state_free(e->state);
    cpu->device_close(e->device);
    stk_graph_free(e->graph);
}

/* Cross-entropy of a picture of this brightness whose label is `label` with the weight `share` and
 * the other one's with the rest, smoothed. */
static double expected_loss(double brightness, int label, double share, double smoothing) {
    double logits[CLASSES] = {0, STEEP * (brightness - 0.5), 0};
    double sum = 0;
    double loss = 0;
    for (int c = 0; c < CLASSES; c++) {
        sum += exp(logits[c]);
    }
    for (int c = 0; c < CLASSES; c++) {
        double hard = c == label ? share : c == 1 - label ? 1 - share : 0;
        loss -= (smoothing / CLASSES + (1 - smoothing) * hard) * (logits[c] - log(sum));
    }
    return loss;
}

static stk_step_output see(brightness_net *e, stk_mix mix, float smoothing) {
    static const int labels[2] = {0, 1};
    stk_step_input input = {.images = e->images,
                            .labels = labels,
                            .count = 2,
                            .mix = mix,
                            .label_smoothing = smoothing};
    stk_step_output output;
    must_do(cpu->step(e->exec, &input, &output, &error));
    return output;
}

static void mixup(void) {
    static const float keeps[] = {1, 0.9f, 0.5f, 0.2f, 0};
    static const float smoothings[] = {0, 0.1f};
    brightness_net e;
    open_brightness_net(&e);
    for (size_t k = 0; k < 5; k++) {
        for (size_t s = 0; s < 2; s++) {
            double keep = keeps[k];
            stk_mix mix = {.kind = STK_MIX_MIXUP, .keep = keeps[k]};
            double loss = expected_loss(1 - keep, 0, keep, smoothings[s]) +
                          expected_loss(keep, 1, keep, smoothings[s]);
            CHECK_NEAR(see(&e, mix, smoothings[s]).loss_sum, loss, 1e-5);
        }
    }
    close_brightness_net(&e);
}

static void cutmix(void) {
    brightness_net e;
    open_brightness_net(&e);
    /* 6 of 16 pixels come from the other picture. */
    stk_mix mix = {.kind = STK_MIX_CUTMIX, .keep = 0.625f, .left = 1, .right = 4, .bottom = 2};
    double loss = expected_loss(0.375, 0, 0.625, 0.2) + expected_loss(0.625, 1, 0.625, 0.2);
    CHECK_NEAR(see(&e, mix, 0.2f).loss_sum, loss, 1e-5);
    close_brightness_net(&e);
}

/* A network that sees the larger part of every mixed picture is right every time, also where that
 * part is the other picture's: otherwise half of all mixed batches would count as wrong. */
static void the_larger_part_counts(void) {
    static const float keeps[] = {1, 0.8f, 0.3f, 0};
    brightness_net e;
    open_brightness_net(&e);
    for (size_t k = 0; k < 4; k++) {
        CHECK_INT(see(&e, (stk_mix){.kind = STK_MIX_MIXUP, .keep = keeps[k]}, 0).correct, 2);
    }
    CHECK_INT(see(&e, (stk_mix){0}, 0).correct, 2);
    memset(e.images, 255, PIXELS); /* a white one that is said to be black */
    CHECK_INT(see(&e, (stk_mix){0}, 0).correct, 1);
    CHECK_INT(see(&e, (stk_mix){.kind = STK_MIX_MIXUP, .keep = 0.3f}, 0).correct, 1);
    close_brightness_net(&e);
}

static const check_test tests[] = {TEST(mixup), TEST(cutmix), TEST(the_larger_part_counts)};

CHECK_MAIN(tests)
