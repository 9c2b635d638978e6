/*
 * test_cuda_networks.c - whole networks on the CUDA backend against the CPU's: two steps of
 * training and an inference.
 */
#include "cuda_pair.h"
#include "models/models.h"

enum { BATCH = 4 };

/* Two steps of training, or an inference. */
static void compare(const stk_graph *graph, const char *name, pair_wish wish) {
    pair p;
    wish.batch = BATCH;
    if (!pair_open(&p, graph, &wish)) {
        return;
    }
    stk_update update = {
        .lr = 0.01f, .head_lr = 0.02f, .momentum = 0.9f, .weight_decay = 1e-4f, .grad_scale = 1};
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

static void check_model(const char *name, int img_size, pair_wish wish) {
    const stk_model *model = NULL;
    stk_graph *graph = NULL;
    stk_error err = {0};
    stk_model_config config = {
        .img_size = img_size, .classes = 10, .dropout = 0.2, .drop_path = 0.2};
    REQUIRE_OK(stk_model_find(name, &model, &err), &err);
    REQUIRE_OK(stk_model_build(model, &config, &graph, &err), &err);
    compare(graph, name, wish);
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

/* Each network has shapes of its own, and so hundreds of kernels to be compiled. */
static bool leave_out(void) {
    bool out = pair_find_gpu() == PAIR_GPU_EMULATED && !check_is_full();
    if (out) {
        check_skip_reason = "STK_TEST_FULL is not set";
    }
    return out;
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
    if (leave_out()) {
        return;
    }
    check_training("resnet18", 64, 1e-3, false);
    check_model(
        "resnet18", 64,
        (pair_wish){.precision = STK_PRECISION_FP32_STRICT, .share = 1e-3, .kept_stats = true});
    check_inference("resnet18", 64, STK_PRECISION_FP32_STRICT);
    check_inference("resnet18", 64, STK_PRECISION_FP16);
}

static void mobilenet(void) {
    if (leave_out()) {
        return;
    }
    /* A number that rounding carries over ReLU6's edge counts whole: the CPU's own two ways, fused
     * and node by node, are nearly a hundredth apart. */
    check_training("mobilenetv2_100", 48, 3e-2, false);
    check_inference("mobilenetv2_100", 48, STK_PRECISION_FP32_STRICT);
}

/* As EfficientNet's blocks, all of the same channels: 16, and 64 in between. */
static int small_block(stk_graph *g, int from, int number, int kernel, int stride) {
    char name[6][16];
    static const char *const parts[] = {"expand", "bn1", "dw", "bn2", "project", "bn3"};
    char reduce[16], gate[16];
    for (int i = 0; i < 6; i++) {
        snprintf(name[i], sizeof name[i], "%d.%s", number, parts[i]);
    }
    snprintf(reduce, sizeof reduce, "%d.reduce", number);
    snprintf(gate, sizeof gate, "%d.gate", number);
    int x = stk_graph_conv(g, from, name[0], 64, 1, 1, 0);
    x = stk_graph_silu(g, stk_graph_batch_norm(g, x, name[1], STK_INIT_ONE));
    x = stk_graph_depthwise(g, x, name[2], kernel, stride, kernel / 2);
    x = stk_graph_silu(g, stk_graph_batch_norm(g, x, name[3], STK_INIT_ONE));
    x = squeeze_excite(g, x, 4, 64, reduce, gate);
    x = stk_graph_conv(g, x, name[4], 16, 1, 1, 0);
    x = stk_graph_batch_norm(g, x, name[5], STK_INIT_ONE);
    return stride == 1 ? stk_graph_add(g, stk_graph_drop_path(g, x, 0.2), from) : x;
}

static int build_small(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "stem", 16, 3, 2, 1);
    x = stk_graph_silu(g, stk_graph_batch_norm(g, x, "bn", STK_INIT_ONE));
    x = small_block(g, x, 0, 3, 1);
    x = small_block(g, x, 1, 5, 2);
    x = small_block(g, x, 2, 3, 1);
    x = stk_graph_conv(g, x, "head", 64, 1, 1, 0);
    x = stk_graph_silu(g, stk_graph_batch_norm(g, x, "head_bn", STK_INIT_ONE));
    return stk_graph_linear(g, stk_graph_dropout(g, stk_graph_avg_pool(g, x), 0.2), "fc", CLASSES);
}

/* Of few kernels, so that more than one precision can be compared in every run. */
static void small_efficientnet(void) {
    static const pair_wish wishes[] = {
        {.precision = STK_PRECISION_FP32_STRICT, .share = 1e-4},
        {.precision = STK_PRECISION_FP16, .share = 3e-2},
        {.precision = STK_PRECISION_FP32_STRICT, .share = 1e-4, .kept_stats = true},
        {.precision = STK_PRECISION_FP16, .share = 3e-2, .kept_stats = true},
        {.precision = STK_PRECISION_FP32_STRICT, .infer = true},
        {.precision = STK_PRECISION_FP16, .infer = true},
    };
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        stk_graph *graph = pair_graph(build_small, 32);
        compare(graph, "small", wishes[i]);
        stk_graph_free(graph);
    }
}

static int build_embedding(stk_graph *g) {
    return stk_graph_embed(g, build_small(g));
}

/* The inputs of the head come after the outputs, where these are fewer and in any precision. */
static void embedding_network(void) {
    static const stk_precision precisions[] = {STK_PRECISION_FP32_STRICT, STK_PRECISION_FP16};
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
        stk_graph *graph = pair_graph(build_embedding, 32);
        CHECK_INT(stk_graph_answers(graph), CLASSES + 64);
        compare(graph, "embedding", (pair_wish){.precision = precisions[i], .infer = true});
        stk_graph_free(graph);
    }
}

static void efficientnet_in_fp16(void) {
    if (leave_out()) {
        return;
    }
    check_model("efficientnet_b0", 48, (pair_wish){.precision = STK_PRECISION_FP16, .share = 0.2});
}

static void efficientnet(void) {
    if (leave_out()) {
        return;
    }
    check_training("efficientnet_b0", 48, 5e-3, false);
    check_inference("efficientnet_b0", 48, STK_PRECISION_FP16);
}

static void efficientnet_padded_on_one_side(void) {
    if (leave_out()) {
        return;
    }
    check_training("tf_efficientnet_b0", 33, 5e-3, false);
    check_inference("tf_efficientnet_b0", 33, STK_PRECISION_FP32_STRICT);
}

static const check_test tests[] = {
    TEST(convnet),
    TEST(small_resnet),
    TEST(resnet),
    TEST(mobilenet),
    TEST(small_efficientnet),
    TEST(embedding_network),
    TEST(efficientnet_in_fp16),
    TEST(efficientnet),
    TEST(efficientnet_padded_on_one_side),
};

CHECK_MAIN(tests)
