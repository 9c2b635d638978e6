/*
 * convnet.c - a small network of our own for small pictures on a CPU: six 3x3 convolutions with
 * batch norm and ReLU, halving the picture four times, then the average and a linear classifier.
 */
#include "models/models.h"

#include <stdio.h>

typedef struct layer {
    int channels;
    int stride;
} layer;

static const layer layers[] = {{32, 2}, {64, 2}, {64, 1}, {128, 2}, {128, 1}, {256, 2}};

static int build(const stk_model *model, const stk_model_config *config, stk_graph *graph) {
    (void)model;
    int x = stk_graph_input(graph);
    for (int i = 0; i < (int)(sizeof layers / sizeof *layers); i++) {
        char name[32];
        snprintf(name, sizeof name, "conv%d", i + 1);
        x = stk_graph_conv(graph, x, name, layers[i].channels, 3, layers[i].stride, 1);
        snprintf(name, sizeof name, "bn%d", i + 1);
        x = stk_graph_relu(graph, stk_graph_batch_norm(graph, x, name, STK_INIT_ONE));
    }
    x = stk_graph_dropout(graph, stk_graph_avg_pool(graph, x), config->dropout);
    return stk_model_head(config, graph, x, "fc");
}

static const stk_model models[] = {
    {.name = "convnet_s",
     .about = "six convolutions, 0.6 million parameters",
     .img_size = 64,
     .crop_fraction = 1.0,
     .mean = STK_IMAGENET_MEAN,
     .std = STK_IMAGENET_STD,
     .build = build},
};

const stk_model_family stk_convnet_family = {models, sizeof models / sizeof *models};
