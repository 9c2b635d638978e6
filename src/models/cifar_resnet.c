/*
 * cifar_resnet.c - the small ResNets for CIFAR, He et al. 2015, section 4.2: three stages of 16, 32
 * and 64 channels, 6n+2 layers. Shortcuts have no parameters (the paper's option A): where the
 * picture halves they take every second pixel and add channels of zeros. timm does not have them;
 * the names of the modules are the usual ones.
 */
#include "models/models.h"

#include <stdio.h>

#define STAGES 3
#define FIRST_CHANNELS 16

/* Two 3x3 convolutions beside the shortcut. */
static int add_block(stk_graph *graph, int x, const char *name, int channels, int stride,
                     double drop_path) {
    char module[64];
    snprintf(module, sizeof module, "%s.conv1", name);
    int y = stk_graph_conv(graph, x, module, channels, 3, stride, 1);
    snprintf(module, sizeof module, "%s.bn1", name);
    y = stk_graph_relu(graph, stk_graph_batch_norm(graph, y, module, STK_INIT_ONE));
    snprintf(module, sizeof module, "%s.conv2", name);
    y = stk_graph_conv(graph, y, module, channels, 3, 1, 1);
    snprintf(module, sizeof module, "%s.bn2", name);
    y = stk_graph_batch_norm(graph, y, module, STK_INIT_ONE);
    int shortcut = stride > 1 ? stk_graph_shortcut(graph, x, channels, stride) : x;
    y = stk_graph_drop_path(graph, y, drop_path);
    return stk_graph_relu(graph, stk_graph_add(graph, y, shortcut));
}

/* A model's variant is the paper's n, the blocks of a stage. */
static int build(const stk_model *model, const stk_model_config *config, stk_graph *graph) {
    int last = STAGES * model->variant - 1;
    int index = 0;
    int x = stk_graph_conv(graph, stk_graph_input(graph), "conv1", FIRST_CHANNELS, 3, 1, 1);
    x = stk_graph_relu(graph, stk_graph_batch_norm(graph, x, "bn1", STK_INIT_ONE));
    for (int stage = 0; stage < STAGES; stage++) {
        for (int i = 0; i < model->variant; i++, index++) {
            char name[32];
            snprintf(name, sizeof name, "layer%d.%d", stage + 1, i);
            x = add_block(graph, x, name, FIRST_CHANNELS << stage, stage > 0 && i == 0 ? 2 : 1,
                          config->drop_path * index / last);
        }
    }
    x = stk_graph_dropout(graph, stk_graph_avg_pool(graph, x), config->dropout);
    return stk_model_head(config, graph, x, "linear");
}

/* Mean and deviation are those of CIFAR-10's training pictures. */
#define ROW(NAME, ABOUT, BLOCKS)                                                 \
    {                                                                            \
        .name = (NAME), .about = (ABOUT), .img_size = 32, .crop_fraction = 1.0,  \
        .mean = {0.4914f, 0.4822f, 0.4465f}, .std = {0.2470f, 0.2435f, 0.2616f}, \
        .variant = (BLOCKS), .build = build                                      \
    }

static const stk_model models[] = {
    ROW("cifar_resnet20", "ResNet-20 for 32 px, 0.27 million parameters", 3),
    ROW("cifar_resnet32", "ResNet-32 for 32 px, 0.46 million parameters", 5),
    ROW("cifar_resnet44", "ResNet-44 for 32 px, 0.66 million parameters", 7),
    ROW("cifar_resnet56", "ResNet-56 for 32 px, 0.85 million parameters", 9),
};

const stk_model_family stk_cifar_resnet_family = {models, sizeof models / sizeof *models};
