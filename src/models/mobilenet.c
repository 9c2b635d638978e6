/* mobilenet.c - MobileNetV2, Sandler et al. 2018, as timm has it. */
#include "models/mbconv.h"

static const stk_mbconv_stage stages[STK_MBCONV_STAGES] = {
    {1, 3, 1, 1, 16}, {2, 3, 2, 6, 24},  {3, 3, 2, 6, 32},  {4, 3, 2, 6, 64},
    {3, 3, 1, 6, 96}, {3, 3, 2, 6, 160}, {1, 3, 1, 6, 320},
};

static int build(const stk_model *model, const stk_model_config *config, stk_graph *graph) {
    (void)model;
    const stk_mbconv_net net = {.stages = stages, .width = 1.0, .depth = 1.0, .relu6 = true};
    return stk_mbconv_build(&net, config, graph);
}

static const stk_model models[] = {
    {.name = "mobilenetv2_100",
     .about = "MobileNetV2, 3.5 million parameters",
     .img_size = 224,
     .crop_fraction = 0.875,
     .interpolation = STK_BICUBIC,
     .mean = STK_IMAGENET_MEAN,
     .std = STK_IMAGENET_STD,
     .dropout = 0.2,
     .top1 = 73.0,
     .build = build},
};

const stk_model_family stk_mobilenet_family = {models, sizeof models / sizeof *models};
