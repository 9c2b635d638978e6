/*
 * resnet.c - ResNet, He et al. 2015, as timm has it: the names of its modules are the names of the
 * parameters. The last batch norm of each block starts at zero, so that a block starts as identity.
 */
#include "models/models.h"

#include <stdio.h>

typedef struct resnet_shape {
    int blocks[4]; /* per stage */
} resnet_shape;

static const resnet_shape shapes[] = {{{2, 2, 2, 2}}};

/* Two 3x3 convolutions beside a shortcut that is a 1x1 convolution where the shape changes. */
static int basic_block(stk_graph *graph, int x, const char *name, int channels, int stride,
                       bool project) {
    char module[64];
    snprintf(module, sizeof module, "%s.conv1", name);
    int y = stk_graph_conv(graph, x, module, channels, 3, stride, 1);
    snprintf(module, sizeof module, "%s.bn1", name);
    y = stk_graph_relu(graph, stk_graph_batch_norm(graph, y, module, STK_INIT_ONE));
    snprintf(module, sizeof module, "%s.conv2", name);
    y = stk_graph_conv(graph, y, module, channels, 3, 1, 1);
    snprintf(module, sizeof module, "%s.bn2", name);
    y = stk_graph_batch_norm(graph, y, module, STK_INIT_ZERO);
    int shortcut = x;
    if (project) {
        snprintf(module, sizeof module, "%s.downsample.0", name);
        shortcut = stk_graph_conv(graph, x, module, channels, 1, stride, 0);
        snprintf(module, sizeof module, "%s.downsample.1", name);
        shortcut = stk_graph_batch_norm(graph, shortcut, module, STK_INIT_ONE);
    }
    return stk_graph_relu(graph, stk_graph_add(graph, y, shortcut));
}

static int build(const stk_model *model, const stk_model_config *config, stk_graph *graph) {
    (void)config;
    const resnet_shape *shape = &shapes[model->variant];
    int x = stk_graph_conv(graph, stk_graph_input(graph), "conv1", 64, 7, 2, 3);
    x = stk_graph_relu(graph, stk_graph_batch_norm(graph, x, "bn1", STK_INIT_ONE));
    x = stk_graph_max_pool(graph, x, 3, 2, 1);
    for (int stage = 0; stage < 4; stage++) {
        for (int block = 0; block < shape->blocks[stage]; block++) {
            char name[32];
            bool first = stage > 0 && block == 0;
            snprintf(name, sizeof name, "layer%d.%d", stage + 1, block);
            x = basic_block(graph, x, name, 64 << stage, first ? 2 : 1, first);
        }
    }
    return stk_graph_linear(graph, stk_graph_avg_pool(graph, x), "fc", graph->classes);
}

static const stk_model models[] = {
    {.name = "resnet18",
     .about = "ResNet-18, 11.7 million parameters",
     .img_size = 224,
     .crop_fraction = 0.95,
     .mean = STK_IMAGENET_MEAN,
     .std = STK_IMAGENET_STD,
     .variant = 0,
     .build = build},
};

const stk_model_family stk_resnet_family = {models, sizeof models / sizeof *models};
