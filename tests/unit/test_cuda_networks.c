/*
 * test_cuda_networks.c - whole networks on the CUDA backend against the CPU's: two steps of
 * training and an inference.
 */
#include "cuda_pair.h"
#include "models/models.h"

enum { BATCH = 4 };

static void check_model(const char *name, int img_size, pair_wish wish) {
    const stk_model *model = NULL;
    stk_graph *graph = NULL;
    stk_error err = {0};
    stk_model_config config = {
        .img_size = img_size, .classes = 10, .dropout = 0.2, .drop_path = 0.2};
    pair p;
    REQUIRE_OK(stk_model_find(name, &model, &err), &err);
    REQUIRE_OK(stk_model_build(model, &config, &graph, &err), &err);
    wish.batch = BATCH;
    if (pair_open(&p, graph, &wish)) {
        stk_update update = {.lr = 0.01f,
                             .head_lr = 0.02f,
                             .momentum = 0.9f,
                             .weight_decay = 1e-4f,
                             .grad_scale = 1};
        for (int i = 0; i < 2 && !wish.infer; i++) {
            stk_step_input in = pair_input(&p);
            in.step += (uint64_t)i;
            in.label_smoothing = 0.1f;
            in.update = i == 0 ? NULL : &update;
            pair_step(&p, &in, name);
        }
        if (wish.infer) {
            pair_infer(&p, BATCH, name);
            pair_infer(&p, 3, name);
        }
        pair_close(&p);
    }
    stk_graph_free(graph);
}

/* Norms over few numbers amplify rounding, and the deeper the more: `share` is for training. */
static void check_training(const char *name, int img_size, double share, bool plain) {
    check_model(
        name, img_size,
        (pair_wish){.precision = STK_PRECISION_FP32_STRICT, .share = share, .plain = plain});
}

static void check_inference(const char *name, int img_size, stk_precision precision) {
    check_model(name, img_size, (pair_wish){.precision = precision, .infer = true});
}

static void convnet(void) {
    check_training("convnet_s", 32, 1e-4, false);
    check_training("convnet_s", 32, 1e-4, true);
    check_inference("convnet_s", 32, STK_PRECISION_FP32_STRICT);
}

static void small_resnet(void) {
    check_training("cifar_resnet20", 32, 1e-3, false);
    check_inference("cifar_resnet20", 32, STK_PRECISION_FP32_STRICT);
}

static void resnet(void) {
    check_training("resnet18", 64, 1e-3, false);
    check_inference("resnet18", 64, STK_PRECISION_FP32_STRICT);
    check_inference("resnet18", 64, STK_PRECISION_FP16);
}

static void mobilenet(void) {
    /* A number that rounding carries over ReLU6's edge counts whole: the CPU's own two ways, fused
     * and node by node, are nearly a hundredth apart. */
    check_training("mobilenetv2_100", 48, 3e-2, false);
    check_inference("mobilenetv2_100", 48, STK_PRECISION_FP32_STRICT);
}

static void efficientnet(void) {
    check_training("efficientnet_b0", 48, 5e-3, false);
    check_inference("efficientnet_b0", 48, STK_PRECISION_FP16);
}

static void efficientnet_padded_on_one_side(void) {
    check_training("tf_efficientnet_b0", 33, 5e-3, false);
    check_inference("tf_efficientnet_b0", 33, STK_PRECISION_FP32_STRICT);
}

static const check_test tests[] = {
    TEST(convnet),   TEST(small_resnet), TEST(resnet),
    TEST(mobilenet), TEST(efficientnet), TEST(efficientnet_padded_on_one_side),
};

CHECK_MAIN(tests)
