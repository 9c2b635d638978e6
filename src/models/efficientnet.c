/*
 * efficientnet.c - EfficientNet, Tan and Le 2019, as timm has it: one network scaled in width,
 * depth and image size. efficientnet_* pad evenly, tf_efficientnet_* as TensorFlow does (the
 * weights were ported from it), tf_efficientnet_lite* moreover have neither squeeze-and-excite nor
 * SiLU.
 *
 * timm's default weights of tf_efficientnet_* are those of noisy student, which it used to call
 * *_ns: a row of that name is the same network.
 */
#include "models/mbconv.h"

static const stk_mbconv_stage stages[STK_MBCONV_STAGES] = {
    {1, 3, 1, 1, 16},  {2, 3, 2, 6, 24},  {2, 5, 2, 6, 40},  {3, 3, 2, 6, 80},
    {3, 5, 1, 6, 112}, {4, 5, 2, 6, 192}, {1, 3, 1, 6, 320},
};

typedef struct scaling {
    double width;
    double depth;
} scaling;

/* B0 to B7; the lite networks are the first five. */
static const scaling scalings[] = {{1.0, 1.0}, {1.0, 1.1}, {1.1, 1.2}, {1.2, 1.4},
                                   {1.4, 1.8}, {1.6, 2.2}, {1.8, 2.6}, {2.0, 3.1}};

static stk_mbconv_net scaled(const stk_model *model) {
    const scaling *by = &scalings[model->variant];
    return (stk_mbconv_net){.stages = stages, .width = by->width, .depth = by->depth};
}

static int build_plain(const stk_model *model, const stk_model_config *config, stk_graph *graph) {
    stk_mbconv_net net = scaled(model);
    net.squeeze = true;
    return stk_mbconv_build(&net, config, graph);
}

static int build_tf(const stk_model *model, const stk_model_config *config, stk_graph *graph) {
    stk_mbconv_net net = scaled(model);
    net.squeeze = true;
    net.same = true;
    return stk_mbconv_build(&net, config, graph);
}

static int build_lite(const stk_model *model, const stk_model_config *config, stk_graph *graph) {
    stk_mbconv_net net = scaled(model);
    net.fixed_ends = true;
    net.same = true;
    net.relu6 = true;
    return stk_mbconv_build(&net, config, graph);
}

/* Stochastic depth is 0.2 in all of them; dropout grows with the network. */
#define ROW(NAME, ABOUT, N, PX, CROP, DROPOUT, TOP1, NORM, FILTER, BUILD)                        \
    {                                                                                            \
        .name = (NAME), .about = (ABOUT), .img_size = (PX), .crop_fraction = (CROP),             \
        .interpolation = (FILTER), .mean = STK_##NORM##_MEAN, .std = STK_##NORM##_STD,           \
        .dropout = (DROPOUT), .drop_path = 0.2, .top1 = (TOP1), .variant = (N), .build = (BUILD) \
    }
#define PLAIN(TAG, N, PX, CROP, DROPOUT, TOP1, NORM, MILLIONS)                                   \
    ROW("efficientnet_b" #N TAG, "EfficientNet-B" #N ", " MILLIONS " million parameters", N, PX, \
        CROP, DROPOUT, TOP1, NORM, STK_BICUBIC, build_plain)
/* The weights that were trained against adversarial pictures (ap) took other means. */
#define TF(N, PX, CROP, DROPOUT, TOP1, AP_TOP1, MILLIONS)              \
    TF_ROW("", N, PX, CROP, DROPOUT, TOP1, IMAGENET, MILLIONS),        \
        TF_ROW("_ns", N, PX, CROP, DROPOUT, TOP1, IMAGENET, MILLIONS), \
        TF_ROW(".ap_in1k", N, PX, CROP, DROPOUT, AP_TOP1, HALVES, MILLIONS)
#define TF_ROW(TAG, N, PX, CROP, DROPOUT, TOP1, NORM, MILLIONS)                             \
    ROW("tf_efficientnet_b" #N TAG,                                                         \
        "EfficientNet-B" #N " of TensorFlow, " MILLIONS " million parameters", N, PX, CROP, \
        DROPOUT, TOP1, NORM, STK_BICUBIC, build_tf)
#define LITE(N, PX, CROP, DROPOUT, TOP1, FILTER, MILLIONS)                                        \
    ROW("tf_efficientnet_lite" #N, "EfficientNet-Lite" #N ", " MILLIONS " million parameters", N, \
        PX, CROP, DROPOUT, TOP1, HALVES, FILTER, build_lite)

static const stk_model models[] = {
    PLAIN("", 0, 224, 0.875, 0.2, 77.7, IMAGENET, "5.3"),
    PLAIN(".ra4_e3600_r224_in1k", 0, 224, 0.9, 0.2, 78.6, HALVES, "5.3"),
    PLAIN("", 1, 240, 0.9, 0.2, 80.4, HALVES, "7.8"),
    PLAIN(".ft_in1k", 1, 224, 0.875, 0.2, 78.8, IMAGENET, "7.8"),
    PLAIN("", 2, 256, 0.875, 0.3, 80.4, IMAGENET, "9.1"),
    PLAIN("", 3, 288, 0.875, 0.3, 82.0, IMAGENET, "12.2"),
    PLAIN("", 4, 320, 0.875, 0.4, 83.0, IMAGENET, "19.3"),
    PLAIN("", 5, 448, 1.0, 0.4, 85.9, IMAGENET, "30.4"),
    PLAIN("", 6, 528, 0.942, 0.5, 0, IMAGENET, "43.0"),
    PLAIN("", 7, 600, 0.949, 0.5, 0, IMAGENET, "66.3"),
    TF(0, 224, 0.875, 0.2, 78.7, 77.1, "5.3"),
    TF(1, 240, 0.882, 0.2, 81.4, 79.3, "7.8"),
    TF(2, 260, 0.89, 0.3, 82.4, 80.3, "9.1"),
    TF(3, 300, 0.904, 0.3, 84.0, 81.8, "12.2"),
    TF(4, 380, 0.922, 0.4, 85.2, 83.2, "19.3"),
    TF(5, 456, 0.934, 0.4, 86.1, 84.3, "30.4"),
    TF(6, 528, 0.942, 0.5, 86.5, 84.8, "43.0"),
    TF(7, 600, 0.949, 0.5, 86.8, 85.1, "66.3"),
    LITE(0, 224, 0.875, 0.2, 74.8, STK_BICUBIC, "4.7"),
    LITE(1, 240, 0.882, 0.2, 76.6, STK_BICUBIC, "5.4"),
    LITE(2, 260, 0.89, 0.3, 77.5, STK_BICUBIC, "6.1"),
    LITE(3, 300, 0.904, 0.3, 79.8, STK_BILINEAR, "8.2"),
    LITE(4, 380, 0.92, 0.3, 81.5, STK_BILINEAR, "13.0"),
};

const stk_model_family stk_efficientnet_family = {models, sizeof models / sizeof *models};
