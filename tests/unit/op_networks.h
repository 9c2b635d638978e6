/*
 * op_networks.h - small networks that have each operation and each form of a chain, at odd sizes:
 * what every backend is tested with.
 */
#ifndef STK_TESTS_OP_NETWORKS_H
#define STK_TESTS_OP_NETWORKS_H

#include <stdio.h>

#include "base/numbers/rng.h"
#include "engine/graph.h"

#define CLASSES 5

typedef int builder(stk_graph *graph);

static inline int classify(stk_graph *g, int x) {
    return stk_graph_linear(g, stk_graph_avg_pool(g, x), "fc", CLASSES);
}

static inline int build_conv(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 4, 3, 1, 1);
    x = stk_graph_conv(g, x, "conv2", 3, 3, 2, 1);
    x = stk_graph_conv(g, x, "conv3", 6, 1, 1, 0);
    x = stk_graph_conv(g, x, "conv4", 2, 2, 1, 0);
    return stk_graph_linear(g, stk_graph_avg_pool(g, x), "fc", CLASSES);
}

static inline int build_wide_kernel(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 3, 7, 2, 3);
    x = stk_graph_conv(g, x, "conv2", 3, 5, 3, 4);
    return stk_graph_linear(g, x, "fc", CLASSES);
}

static inline int build_norm(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 5, 3, 1, 1);
    x = stk_graph_batch_norm(g, x, "bn1", STK_INIT_ONE);
    x = stk_graph_conv(g, x, "conv2", 3, 1, 1, 0);
    x = stk_graph_batch_norm(g, x, "bn2", STK_INIT_ONE);
    return stk_graph_linear(g, stk_graph_avg_pool(g, x), "fc", CLASSES);
}

static inline int build_relu(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 6, 3, 2, 1);
    x = stk_graph_relu(g, stk_graph_batch_norm(g, x, "bn1", STK_INIT_ONE));
    x = stk_graph_relu(g, stk_graph_conv(g, x, "conv2", 5, 3, 1, 1));
    return stk_graph_linear(g, stk_graph_avg_pool(g, x), "fc", CLASSES);
}

static inline int build_max_pool(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 4, 3, 1, 1);
    x = stk_graph_max_pool(g, x, 3, 2, 1);
    x = stk_graph_max_pool(g, x, 2, 2, 0);
    return stk_graph_linear(g, x, "fc", CLASSES);
}

/* A value with three readers, so that its gradient is accumulated by every kind of operation. */
static inline int build_residual(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 4, 3, 1, 1);
    x = stk_graph_relu(g, stk_graph_batch_norm(g, x, "bn1", STK_INIT_ONE));
    int a = stk_graph_batch_norm(g, stk_graph_conv(g, x, "conv2", 4, 3, 1, 1), "bn2", STK_INIT_ONE);
    int b = stk_graph_conv(g, x, "conv3", 4, 1, 1, 0);
    int y = stk_graph_relu(g, stk_graph_add(g, a, b));
    y = stk_graph_add(g, y, x);
    int pooled = stk_graph_max_pool(g, y, 3, 1, 1);
    int normalised = stk_graph_batch_norm(g, y, "bn3", STK_INIT_ONE);
    int rectified = stk_graph_relu(g, y);
    y = stk_graph_add(g, stk_graph_add(g, pooled, normalised), rectified);
    int mean = stk_graph_avg_pool(g, y);
    int other = stk_graph_linear(g, y, "fc2", CLASSES);
    return stk_graph_add(g, stk_graph_linear(g, mean, "fc", CLASSES), other);
}

static inline int build_bias(stk_graph *g) {
    int x = stk_graph_conv_bias(g, stk_graph_input(g), "conv1", 4, 3, 2, 1);
    x = stk_graph_conv_bias(g, x, "conv2", 5, 1, 1, 0);
    return classify(g, x);
}

/* Kernels of 3 and 5, strides of 1, 2 and 3, padding on both sides, on one, on none. */
static inline int build_depthwise(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 9, 1, 1, 0);
    x = stk_graph_depthwise(g, x, "dw1", 3, 1, 1);
    x = stk_graph_depthwise(g, x, "dw2", 5, 2, STK_PAD_SAME);
    x = stk_graph_depthwise(g, x, "dw3", 3, 2, STK_PAD_SAME);
    x = stk_graph_depthwise(g, x, "dw4", 5, 1, 2);
    x = stk_graph_depthwise(g, x, "dw5", 2, 3, 2);
    return stk_graph_linear(g, x, "fc", CLASSES);
}

/* Several groups of channels, of which the last is not full. */
static inline int build_wide_depthwise(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 34, 1, 1, 0);
    x = stk_graph_depthwise(g, x, "dw1", 3, 2, 1);
    x = stk_graph_depthwise(g, x, "dw2", 3, 1, 1);
    return classify(g, x);
}

/* Each reads one value, so that gradients are accumulated. */
static inline int build_activations(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 6, 3, 1, 1);
    x = stk_graph_batch_norm(g, x, "bn1", STK_INIT_ONE);
    int a = stk_graph_add(g, stk_graph_silu(g, x), stk_graph_sigmoid(g, x));
    int b = stk_graph_add(g, stk_graph_relu6(g, x), stk_graph_relu(g, x));
    return classify(g, stk_graph_add(g, a, b));
}

/* And each alone, so that it may work in place. */
static inline int build_activations_in_line(stk_graph *g) {
    int x = stk_graph_silu(g, stk_graph_conv(g, stk_graph_input(g), "conv1", 6, 3, 1, 1));
    x = stk_graph_relu6(g, stk_graph_conv(g, x, "conv2", 6, 3, 1, 1));
    x = stk_graph_sigmoid(g, stk_graph_conv(g, x, "conv3", 6, 3, 1, 1));
    return classify(g, x);
}

static inline int squeeze_excite(stk_graph *g, int x, int middle, int channels, const char *reduce,
                                 const char *expand) {
    int gate = stk_graph_avg_pool(g, x);
    gate = stk_graph_silu(g, stk_graph_conv_bias(g, gate, reduce, middle, 1, 1, 0));
    gate = stk_graph_sigmoid(g, stk_graph_conv_bias(g, gate, expand, channels, 1, 1, 0));
    return stk_graph_scale(g, x, gate);
}

static inline int build_scale(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 6, 3, 1, 1);
    x = squeeze_excite(g, x, 3, 6, "reduce1", "expand1");
    int gate = stk_graph_avg_pool(g, x);
    int y = stk_graph_conv(g, x, "conv2", 6, 1, 1, 0);
    /* One gate for two, and what is scaled is read by others later: both gradients add up. */
    int a = stk_graph_scale(g, x, gate);
    int b = stk_graph_scale(g, y, gate);
    return classify(g, stk_graph_add(g, stk_graph_add(g, a, b), x));
}

static inline int build_shortcut(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 4, 3, 1, 1);
    int y = stk_graph_conv(g, x, "conv2", 8, 3, 2, 1);
    y = stk_graph_add(g, y, stk_graph_shortcut(g, x, 8, 2));
    int z = stk_graph_conv(g, y, "conv3", 8, 3, 1, 1);
    z = stk_graph_add(g, stk_graph_shortcut(g, y, 8, 1), z);
    return classify(g, stk_graph_add(g, z, stk_graph_shortcut(g, x, 8, 2)));
}

static inline int build_drops(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 4, 3, 1, 1);
    int y = stk_graph_drop_path(g, stk_graph_conv(g, x, "conv2", 4, 3, 1, 1), 0.4);
    x = stk_graph_add(g, y, x);
    x = stk_graph_add(g, stk_graph_drop_path(g, x, 0.3), stk_graph_dropout(g, x, 0.5));
    x = stk_graph_dropout(g, stk_graph_avg_pool(g, x), 0.25);
    return stk_graph_linear(g, x, "fc", CLASSES);
}

/* Losses that have targets, by number. */
static const float some_weights[CLASSES] = {0.5f, 1, 3, 0, 2};
static const stk_loss some_losses[] = {
    {.kind = STK_LOSS_SIGMOID},
    {.kind = STK_LOSS_SIGMOID, .positive_weights = some_weights},
    {.kind = STK_LOSS_SIGMOID, .gamma_pos = 2, .gamma_neg = 2},
    {.kind = STK_LOSS_SIGMOID, .gamma_pos = 1, .gamma_neg = 4, .margin = 0.05f},
    {.kind = STK_LOSS_SIGMOID, .margin = 0.3f, .gamma_neg = 0.5f, .positive_weights = some_weights},
    {.kind = STK_LOSS_SIGMOID, .margin = 0.2f},
    {.kind = STK_LOSS_SQUARED},
    {.kind = STK_LOSS_ABSOLUTE},
    {.kind = STK_LOSS_HUBER, .huber_delta = 0.4f},
};
enum { SOME_LOSSES = sizeof some_losses / sizeof *some_losses };
static int loss_number;

/* A network with the loss of that number. */
static inline int build_loss(stk_graph *g) {
    stk_graph_set_loss(g, &some_losses[loss_number]);
    return classify(g, stk_graph_conv(g, stk_graph_input(g), "conv1", 4, 3, 1, 1));
}

/* Classes that are steps of a scale. */
static inline int build_steps(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 4, 3, 1, 1);
    x = stk_graph_avg_pool(g, stk_graph_relu(g, x));
    return stk_graph_steps(g, stk_graph_linear(g, x, "fc", 1));
}

/* The same, whose place is learned as a number. */
static const stk_loss place_loss = {.kind = STK_LOSS_STEPS};
static inline int build_places(stk_graph *g) {
    stk_graph_set_loss(g, &place_loss);
    return build_steps(g);
}

/* Numbers beside the picture: as they are, through a layer, and concatenated twice. */
static inline int build_features(stk_graph *g) {
    int x = stk_graph_conv(g, stk_graph_input(g), "conv1", 6, 3, 2, 1);
    x = stk_graph_relu(g, stk_graph_batch_norm(g, x, "bn1", STK_INIT_ONE));
    x = stk_graph_avg_pool(g, x);
    int given = stk_graph_features(g, 7);
    int made = stk_graph_silu(g, stk_graph_linear(g, given, "numbers", 5));
    x = stk_graph_concat(g, x, made);
    x = stk_graph_add(g, x, stk_graph_linear(g, x, "mixed", 11));
    x = stk_graph_concat(g, given, x);
    return stk_graph_linear(g, x, "fc", CLASSES);
}

/* Pictures of so many channels, each with its own mean, read by a convolution that is like the
 * first one of a large network, by one of stride 1, or by nodes that are no convolutions. */
static int picture_channels, picture_reader;

static inline int build_channels(stk_graph *g) {
    stk_graph_set_channels(g, picture_channels);
    for (int c = 0; c < picture_channels; c++) {
        g->mean[c] = 0.3f + 0.01f * (float)c;
        g->std[c] = 0.2f + 0.005f * (float)c;
    }
    int x = stk_graph_input(g);
    if (picture_reader == 0) {
        x = stk_graph_conv(g, x, "conv1", 6, 7, 2, 3);
        x = stk_graph_relu(g, stk_graph_batch_norm(g, x, "bn1", STK_INIT_ONE));
    } else if (picture_reader == 1) {
        x = stk_graph_relu(g, stk_graph_conv(g, x, "conv1", 6, 3, 1, 1));
    } else {
        int pooled = stk_graph_max_pool(g, x, 3, 2, 1);
        int filtered = stk_graph_depthwise(g, x, "dw1", 3, 2, 1);
        x = stk_graph_add(g, pooled, filtered);
    }
    return classify(g, x);
}

static inline int activation(stk_graph *g, int x, int kind) {
    switch (kind % 4) {
    case 0:
        return stk_graph_relu(g, x);
    case 1:
        return stk_graph_relu6(g, x);
    case 2:
        return stk_graph_silu(g, x);
    default:
        return x;
    }
}

/* A chain of a form that `form` picks, from x to a value of the same shape; `other` is added. */
static inline int chain(stk_graph *g, int x, int other, int channels, unsigned form, int number) {
    char name[32];
    int kind = (int)(form & 3);
    switch (form >> 2 & 3) {
    case 0:
        snprintf(name, sizeof name, "conv%d", number);
        x = stk_graph_conv(g, x, name, channels, number % 2 ? 3 : 1, 1, number % 2);
        break;
    case 1:
        snprintf(name, sizeof name, "dw%d", number);
        x = stk_graph_depthwise(g, x, name, 3, 1, 1);
        break;
    case 2: /* a bias keeps the convolution out of the chain */
        snprintf(name, sizeof name, "biased%d", number);
        x = stk_graph_conv_bias(g, x, name, channels, 1, 1, 0);
        break;
    default: /* the norm reads what others read, too */
        break;
    }
    snprintf(name, sizeof name, "bn%d", number);
    x = stk_graph_batch_norm(g, x, name, STK_INIT_ONE);
    x = stk_graph_drop_path(g, x, form >> 4 & 1 ? 0.4 : 0);
    if (form >> 5 & 1) {
        x = form >> 6 & 1 ? stk_graph_add(g, other, x) : stk_graph_add(g, x, other);
    }
    return activation(g, x, kind);
}

/* Ten chains of random forms over values that are read again later. */
static inline int random_network(stk_graph *g, uint64_t seed) {
    stk_rng rng = stk_rng_make(seed, STK_RNG_TEST, 1, 0);
    int channels = seed % 3 == 0 ? 4 : seed % 3 == 1 ? 19 : 130;
    int kept[12];
    kept[0] = stk_graph_conv(g, stk_graph_input(g), "stem", channels, 3, 2, 1);
    kept[1] = stk_graph_silu(g, kept[0]);
    for (int i = 2; i < 12; i++) {
        int x = kept[stk_rng_below(&rng, 3) == 0 ? (int)stk_rng_below(&rng, (uint64_t)i) : i - 1];
        int other = kept[stk_rng_below(&rng, (uint64_t)i)];
        unsigned form = (unsigned)stk_rng_below(&rng, 128);
        kept[i] = chain(g, x, other, channels, form, i);
    }
    int x = stk_graph_add(g, kept[11], kept[stk_rng_below(&rng, 11)]);
    for (int i = 0; i < 11; i++) { /* nothing is computed in vain */
        x = g->values[kept[i]].uses == 0 ? stk_graph_add(g, x, kept[i]) : x;
    }
    return stk_graph_linear(g, stk_graph_avg_pool(g, x), "fc", CLASSES);
}

#endif
