/*
 * resnet.c - ResNet, He et al. 2015, as timm has it: the names of its modules are the names of the
 * parameters. The last batch norm of each block starts at zero, so that a block starts as identity.
 */
#include "models/models.h"

#include <stdio.h>

#define STAGES 4
#define EXPANSION 4 /* of a bottleneck: channels after it per channel within */

typedef struct resnet_shape {
    int blocks[STAGES];
    bool bottleneck; /* blocks of three convolutions instead of two */
} resnet_shape;

typedef enum resnet_depth { R18, R34, R50, R101, R152 } resnet_depth;

static const resnet_shape shapes[] = {[R18] = {{2, 2, 2, 2}, false},
                                      [R34] = {{3, 4, 6, 3}, false},
                                      [R50] = {{3, 4, 6, 3}, true},
                                      [R101] = {{3, 4, 23, 3}, true},
                                      [R152] = {{3, 8, 36, 3}, true}};

/* The arguments of the builder of a block. */
typedef struct resnet_block_spec {
    const char *name;
    int channels; /* within */
    int stride;
    bool bottleneck;
    bool project; /* the shortcut is a 1x1 convolution, since the shape changes */
    double drop_path;
} resnet_block_spec;

/* One convolution with its batch norm, numbered within the block as timm does. */
static int conv_norm(stk_graph *graph, int x, const char *block, int number, int channels,
                     int kernel, int stride, stk_init init) {
    char module[64];
    snprintf(module, sizeof module, "%s.conv%d", block, number);
    x = stk_graph_conv(graph, x, module, channels, kernel, stride, kernel / 2);
    snprintf(module, sizeof module, "%s.bn%d", block, number);
    return stk_graph_batch_norm(graph, x, module, init);
}

/* Two 3x3 convolutions. */
static int basic_path(stk_graph *graph, int x, const resnet_block_spec *spec) {
    x = conv_norm(graph, x, spec->name, 1, spec->channels, 3, spec->stride, STK_INIT_ONE);
    x = stk_graph_relu(graph, x);
    return conv_norm(graph, x, spec->name, 2, spec->channels, 3, 1, STK_INIT_ZERO);
}

/* 1x1 to fewer channels, 3x3 with the stride, 1x1 to more. */
static int bottleneck_path(stk_graph *graph, int x, const resnet_block_spec *spec) {
    x = conv_norm(graph, x, spec->name, 1, spec->channels, 1, 1, STK_INIT_ONE);
    x = stk_graph_relu(graph, x);
    x = conv_norm(graph, x, spec->name, 2, spec->channels, 3, spec->stride, STK_INIT_ONE);
    x = stk_graph_relu(graph, x);
    return conv_norm(graph, x, spec->name, 3, EXPANSION * spec->channels, 1, 1, STK_INIT_ZERO);
}

static int add_block(stk_graph *graph, int x, const resnet_block_spec *spec) {
    int y = spec->bottleneck ? bottleneck_path(graph, x, spec) : basic_path(graph, x, spec);
    int shortcut = x;
    if (spec->project) {
        char module[64];
        int channels = spec->bottleneck ? EXPANSION * spec->channels : spec->channels;
        snprintf(module, sizeof module, "%s.downsample.0", spec->name);
        shortcut = stk_graph_conv(graph, x, module, channels, 1, spec->stride, 0);
        snprintf(module, sizeof module, "%s.downsample.1", spec->name);
        shortcut = stk_graph_batch_norm(graph, shortcut, module, STK_INIT_ONE);
    }
    y = stk_graph_drop_path(graph, y, spec->drop_path);
    return stk_graph_relu(graph, stk_graph_add(graph, y, shortcut));
}

static int build(const stk_model *model, const stk_model_config *config, stk_graph *graph) {
    const resnet_shape *shape = &shapes[model->variant];
    const int *blocks = shape->blocks;
    int total = blocks[0] + blocks[1] + blocks[2] + blocks[3];
    int index = 0;
    int x = stk_graph_conv(graph, stk_graph_input(graph), "conv1", 64, 7, 2, 3);
    x = stk_graph_relu(graph, stk_graph_batch_norm(graph, x, "bn1", STK_INIT_ONE));
    x = stk_graph_max_pool(graph, x, 3, 2, 1);
    for (int stage = 0; stage < STAGES; stage++) {
        for (int i = 0; i < blocks[stage]; i++, index++) {
            char name[32];
            snprintf(name, sizeof name, "layer%d.%d", stage + 1, i);
            resnet_block_spec spec = {.name = name,
                                      .channels = 64 << stage,
                                      .stride = stage > 0 && i == 0 ? 2 : 1,
                                      .bottleneck = shape->bottleneck,
                                      .project = i == 0 && (stage > 0 || shape->bottleneck),
                                      .drop_path = config->drop_path * index / (total - 1)};
            x = add_block(graph, x, &spec);
        }
    }
    x = stk_graph_dropout(graph, stk_graph_avg_pool(graph, x), config->dropout);
    return stk_model_head(config, graph, x, "fc");
}

/* Image size, crop and scaling with which timm evaluates its default weights of all five. */
#define ROW(NAME, DEPTH, TOP1, MILLIONS)                                                        \
    {                                                                                           \
        .name = "resnet" NAME, .about = "ResNet-" NAME ", " MILLIONS " million parameters",     \
        .img_size = 224, .crop_fraction = 0.95, .interpolation = STK_BICUBIC,                   \
        .mean = STK_IMAGENET_MEAN, .std = STK_IMAGENET_STD, .top1 = (TOP1), .variant = (DEPTH), \
        .build = build                                                                          \
    }

static const stk_model models[] = {
    ROW("18", R18, 71.5, "11.7"),
    ROW("34", R34, 76.4, "21.8"),
    ROW("50", R50, 80.2, "25.6"),
    ROW("101", R101, 82.0, "44.5"),
    ROW("152", R152, 82.8, "60.2"),
    {.name = "resnet34.ra4_e3600_r224_in1k",
     .about = "ResNet-34, 21.8 million parameters",
     .img_size = 224,
     .crop_fraction = 0.9,
     .interpolation = STK_BICUBIC,
     .mean = STK_HALVES_MEAN,
     .std = STK_HALVES_STD,
     .top1 = 77.5,
     .variant = R34,
     .build = build},
};

const stk_model_family stk_resnet_family = {models, sizeof models / sizeof *models};
