/*
 * graph.h - a network as a static graph, and the builder that model files use.
 *
 * A model file calls the builder functions below from the input to the logits; each returns the
 * number of the value it makes. Nothing is computed. The first mistake (an image too small for a
 * pooling window, no memory) is remembered, and stk_graph_finish() returns it, so that a model
 * reads as a straight line; after a mistake every builder returns STK_NO_VALUE. The batch size is
 * not part of the graph. A finished graph is read-only and may be shared by threads.
 */
#ifndef STK_ENGINE_GRAPH_H
#define STK_ENGINE_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "engine/loss.h"

#define STK_NO_VALUE (-1)

/* The most channels that pictures may have. */
#define STK_MOST_CHANNELS 64

typedef enum stk_op {
    STK_OP_INPUT,      /* uint8 pixels, normalised by mean and std */
    STK_OP_CONV,       /* 2-d convolution, square kernel, zero padding */
    STK_OP_DEPTHWISE,  /* 2-d convolution with one filter per channel */
    STK_OP_BATCH_NORM, /* per channel, over batch and pixels */
    STK_OP_RELU,
    STK_OP_RELU6, /* min(max(x, 0), 6) */
    STK_OP_SILU,  /* x times its sigmoid */
    STK_OP_SIGMOID,
    STK_OP_ADD,
    STK_OP_SCALE,    /* every pixel of the first input times the second, (1, 1, C) */
    STK_OP_SHORTCUT, /* every stride-th pixel, zeros as further channels on both sides */
    STK_OP_MAX_POOL,
    STK_OP_AVG_POOL,  /* over all pixels */
    STK_OP_DROPOUT,   /* numbers become zero at random, the others larger; training only */
    STK_OP_DROP_PATH, /* stochastic depth: whole samples become zero at random, the others larger;
                         training only */
    STK_OP_LINEAR,
    STK_OP_FEATURES, /* floats given beside the picture, mixed in the proportion of targets */
    STK_OP_CONCAT,   /* the channels of two (1, 1, C) values, one after the other */
    STK_OP_STEPS,    /* one number to the logits of classes that are steps of a scale */
    STK_OP_LOSS,     /* stk_loss; its output is what a backend keeps for its backward */
    STK_OP_COUNT
} stk_op;

/* What the backward of an operation reads, and whether the operation may work in place. */
typedef struct stk_op_trait {
    const char *name;
    bool backward_reads_input[2];
    bool backward_reads_output;
    bool in_place; /* output may share the input's memory, and the gradients each other's */
} stk_op_trait;

extern const stk_op_trait stk_op_traits[STK_OP_COUNT];

/* Of one sample; values lie in memory as (N, height, width, channels). */
typedef struct stk_shape {
    int height;
    int width;
    int channels;
} stk_shape;

static inline size_t stk_shape_count(stk_shape shape) {
    return (size_t)shape.height * (size_t)shape.width * (size_t)shape.channels;
}

typedef struct stk_value {
    stk_shape shape;
    int producer;       /* node */
    int uses;           /* nodes that read it */
    bool from_features; /* made from features, perhaps together with the picture */
} stk_value;

/* How a parameter starts; `fan` below is the number that the spread derives from. */
typedef enum stk_init {
    STK_INIT_HE,     /* normal, deviation sqrt(2 / fan) */
    STK_INIT_LINEAR, /* uniform within 1 / sqrt(fan) */
    STK_INIT_ZERO,
    STK_INIT_ONE
} stk_init;

/*
 * A tensor that belongs to the model. `shape` is what timm and PyTorch have: (O, I, kh, kw) for a
 * convolution, (C, 1, kh, kw) for a depthwise one, (O, I) for a linear layer. In memory a
 * convolution's weights lie as (O, kh, kw, I).
 */
typedef struct stk_param {
    char name[96]; /* "layer1.0.conv1.weight" */
    int rank;
    int shape[4];
    size_t count;
    size_t offset;  /* elements before it, in the order of the graph */
    bool trainable; /* running statistics are not */
    bool decay;     /* weight decay applies: weights, not norms and biases */
    /* Of the classifier, which makes the logits, or of a layer whose input comes from features:
     * these are new with every task. All others are the backbone. */
    bool head;
    stk_init init;
    int fan; /* outputs times taps for a convolution, inputs for a linear layer */
} stk_param;

typedef struct stk_node {
    stk_op op;
    int inputs[2];
    int input_count;
    int output;
    /* conv, depthwise: weight and perhaps bias. linear: weight, bias. norm: weight, bias, running
     * mean, running variance */
    int params[4];
    int param_count;
    int kernel;    /* conv, depthwise, max pool */
    int stride;    /* conv, depthwise, max pool, shortcut */
    int pad;       /* above and left; below and right it follows from the output's shape */
    float epsilon; /* norm: added to the variance */
    float rate;    /* dropout, drop path: the share that becomes zero, below 1 */
} stk_node;

typedef struct stk_graph {
    stk_node *nodes; /* owned; in an order in which each can be computed */
    int node_count;
    stk_value *values; /* owned */
    int value_count;
    stk_param *params; /* owned */
    int param_count;
    size_t param_elements; /* sum of counts */
    int input;             /* value: the pictures, (size, size, channels) */
    int features;          /* value: (1, 1, count); STK_NO_VALUE: there are none */
    int logits;            /* value: (1, 1, classes + embedded) */
    int embedded;          /* numbers after the outputs: see stk_graph_embed(); usually 0 */
    int classes;           /* outputs: classes, labels or numbers, as the loss has them */
    stk_loss loss;         /* softmax unless set; its positive_weights are owned */
    int img_size;
    int channels;                  /* of pictures */
    float mean[STK_MOST_CHANNELS]; /* of pixel values 0 to 1; `channels` of them are used */
    float std[STK_MOST_CHANNELS];
    float norm_epsilon; /* for norms added from now on; 1e-5 unless a model sets it */
    size_t node_capacity;
    size_t value_capacity;
    size_t param_capacity;
    stk_error error; /* first mistake of the builder */
} stk_graph;

/* Numbers of a sample that an inference gives. */
static inline size_t stk_graph_answers(const stk_graph *graph) {
    return (size_t)graph->classes + (size_t)graph->embedded;
}

/* How many features a sample has; 0: none. */
static inline size_t stk_graph_feature_count(const stk_graph *graph) {
    return graph->features != STK_NO_VALUE ? (size_t)graph->values[graph->features].shape.channels
                                           : 0;
}

STK_CHECKED stk_status stk_graph_new(stk_graph **graph, int img_size, int classes, stk_error *err);
void stk_graph_free(stk_graph *graph);

/* Checks that two finished graphs of one network, for different sizes of pictures, have parameters
 * of the same sizes: then weights of one are weights of the other. */
STK_CHECKED stk_status stk_graph_check_params(const stk_graph *graph, const stk_graph *other,
                                              stk_error *err);

/* Pictures of so many channels instead of 3, each with a mean and a deviation of 0.5 until the
 * caller sets others. Before any layer. */
void stk_graph_set_channels(stk_graph *graph, int channels);

/* The value of the pictures, to start from. */
int stk_graph_input(stk_graph *graph);

/* The value of the features, so many floats for each sample; once in a graph. */
int stk_graph_features(stk_graph *graph, int count);

/* A `pad` with which the output has ceil(side / stride) pixels; an odd pixel of padding goes below
 * and right, as in TensorFlow. Any other `pad` is the number of zeros on every side. */
#define STK_PAD_SAME (-1)

/* `name` is the module's name in timm: its parameters are name.weight and so on. */
int stk_graph_conv(stk_graph *graph, int x, const char *name, int channels, int kernel, int stride,
                   int pad);
int stk_graph_conv_bias(stk_graph *graph, int x, const char *name, int channels, int kernel,
                        int stride, int pad);
int stk_graph_depthwise(stk_graph *graph, int x, const char *name, int kernel, int stride, int pad);
int stk_graph_batch_norm(stk_graph *graph, int x, const char *name, stk_init init);
int stk_graph_relu(stk_graph *graph, int x);
int stk_graph_relu6(stk_graph *graph, int x);
int stk_graph_silu(stk_graph *graph, int x);
int stk_graph_sigmoid(stk_graph *graph, int x);
int stk_graph_add(stk_graph *graph, int a, int b);
int stk_graph_scale(stk_graph *graph, int x, int gate);
/* The paper's option A: half of the new channels come before the old ones, half after. */
int stk_graph_shortcut(stk_graph *graph, int x, int channels, int stride);
int stk_graph_max_pool(stk_graph *graph, int x, int kernel, int stride, int pad);
int stk_graph_avg_pool(stk_graph *graph, int x);
/* A rate of 0 adds nothing and returns x. */
int stk_graph_dropout(stk_graph *graph, int x, double rate);
int stk_graph_drop_path(stk_graph *graph, int x, double rate);
/* Both are (1, 1, C). */
int stk_graph_concat(stk_graph *graph, int a, int b);
/* From one number per sample to the logits of classes that are steps of a scale: engine/steps.h. */
int stk_graph_steps(stk_graph *graph, int x);
/* The outputs and after them the inputs of the layer that makes them: an inference gives both. For
 * the value that stk_graph_finish() takes; such a network has the same parameters, and is not
 * trained. */
int stk_graph_embed(stk_graph *graph, int outputs);
int stk_graph_linear(stk_graph *graph, int x, const char *name, int channels);

/* Other first weights for the layer that made x; its bias, if it has one, starts at zero. */
void stk_graph_start_as(stk_graph *graph, int x, stk_init init, int fan);

/* Sets the loss, which is copied. Before stk_graph_finish(). */
void stk_graph_set_loss(stk_graph *graph, const stk_loss *loss);

/* Declares the logits, adds the loss, and returns the first mistake of the builder calls. */
STK_CHECKED stk_status stk_graph_finish(stk_graph *graph, int logits, stk_error *err);

/* The last layer with parameters, of a finished graph. */
const stk_node *stk_graph_classifier(const stk_graph *graph);

/* First values of a parameter, in memory order, from the seed and the parameter's position in the
 * graph: `count` values from value `from` on. */
void stk_graph_init_part(const stk_graph *graph, int param, uint64_t seed, size_t from,
                         size_t count, float *values);

#endif
