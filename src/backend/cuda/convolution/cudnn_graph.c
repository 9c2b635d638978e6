/* cudnn_graph.c - a convolution and what follows it, as cuDNN's operations. */
#include "backend/cuda/convolution/cudnn_graph.h"

#include <string.h>

/* Four sizes in cuDNN's order (N, C, H, W), for channels that lie innermost. */
typedef struct box {
    int64_t sizes[4];
    int64_t strides[4];
} box;

static box box_of(int64_t n, int64_t height, int64_t width, int64_t channels) {
    return (box){{n, channels, height, width},
                 {height * width * channels, 1, width * channels, channels}};
}

static int data_type(cuda_type type) {
    return type == CUDA_TYPE_F32 ? DNN_FLOAT : type == CUDA_TYPE_F16 ? DNN_HALF : DNN_BFLOAT16;
}

cuda_dnn_descriptor stk_cuda_dnn_new(cuda_dnn_graph *graph, int type) {
    cuda_dnn_descriptor made = NULL;
    if (graph->status == 0) {
        graph->status = graph->dnn->api.describe(type, &made);
    }
    if (graph->status != 0) {
        return NULL;
    }
    graph->owned[graph->owned_count++] = made;
    return made;
}

void stk_cuda_dnn_set(cuda_dnn_graph *graph, cuda_dnn_descriptor descriptor, int name, int type,
                      int64_t count, const void *values) {
    if (graph->status == 0) {
        graph->status = graph->dnn->api.set(descriptor, name, type, count, values);
    }
}

void stk_cuda_dnn_set_one(cuda_dnn_graph *graph, cuda_dnn_descriptor descriptor, int name,
                          cuda_dnn_descriptor value) {
    stk_cuda_dnn_set(graph, descriptor, name, DNN_TYPE_DESCRIPTOR, 1, &value);
}

void stk_cuda_dnn_set_long(cuda_dnn_graph *graph, cuda_dnn_descriptor descriptor, int name,
                           int64_t value) {
    stk_cuda_dnn_set(graph, descriptor, name, DNN_TYPE_INT64, 1, &value);
}

void stk_cuda_dnn_finish(cuda_dnn_graph *graph, cuda_dnn_descriptor descriptor) {
    if (graph->status == 0) {
        graph->status = graph->dnn->api.finish(descriptor);
    }
}

static cuda_dnn_descriptor tensor(cuda_dnn_graph *graph, int id, int type, const box *shape) {
    cuda_dnn_descriptor made = stk_cuda_dnn_new(graph, DNN_TENSOR);
    bool is_virtual = id >= DNN_ID_VIRTUAL;
    stk_cuda_dnn_set(graph, made, DNN_TENSOR_DATA_TYPE, DNN_TYPE_DATA_TYPE, 1, &type);
    stk_cuda_dnn_set(graph, made, DNN_TENSOR_DIMENSIONS, DNN_TYPE_INT64, 4, shape->sizes);
    stk_cuda_dnn_set(graph, made, DNN_TENSOR_STRIDES, DNN_TYPE_INT64, 4, shape->strides);
    stk_cuda_dnn_set_long(graph, made, DNN_TENSOR_ID, id);
    stk_cuda_dnn_set_long(graph, made, DNN_TENSOR_ALIGNMENT, 16);
    if (is_virtual) {
        stk_cuda_dnn_set(graph, made, DNN_TENSOR_VIRTUAL, DNN_TYPE_BOOLEAN, 1, &is_virtual);
    }
    stk_cuda_dnn_finish(graph, made);
    return made;
}

/*
 * Padding below or to the right: the same as above where that gives the size that is wanted, since
 * engines like it best, otherwise what the last window reaches over.
 */
static int64_t post_padding(int size, int out, const cuda_conv_shape *shape) {
    if ((size + 2 * shape->pad - shape->kernel) / shape->stride + 1 == out) {
        return shape->pad;
    }
    int64_t over = (int64_t)(out - 1) * shape->stride + shape->kernel - (int64_t)size - shape->pad;
    return over > 0 ? over : 0;
}

static cuda_dnn_descriptor convolution(cuda_dnn_graph *graph, const cuda_conv_shape *shape) {
    cuda_dnn_descriptor made = stk_cuda_dnn_new(graph, DNN_CONVOLUTION);
    int precision = DNN_FLOAT;
    int mode = DNN_CROSS_CORRELATION;
    int64_t ones[2] = {1, 1};
    int64_t strides[2] = {shape->stride, shape->stride};
    int64_t before[2] = {shape->pad, shape->pad};
    int64_t after[2] = {post_padding(shape->height, shape->out_height, shape),
                        post_padding(shape->width, shape->out_width, shape)};
    stk_cuda_dnn_set(graph, made, DNN_CONVOLUTION_PRECISION, DNN_TYPE_DATA_TYPE, 1, &precision);
    stk_cuda_dnn_set(graph, made, DNN_CONVOLUTION_MODE, DNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    stk_cuda_dnn_set_long(graph, made, DNN_CONVOLUTION_DIMENSIONS, 2);
    stk_cuda_dnn_set(graph, made, DNN_CONVOLUTION_DILATIONS, DNN_TYPE_INT64, 2, ones);
    stk_cuda_dnn_set(graph, made, DNN_CONVOLUTION_STRIDES, DNN_TYPE_INT64, 2, strides);
    stk_cuda_dnn_set(graph, made, DNN_CONVOLUTION_PRE_PADDINGS, DNN_TYPE_INT64, 2, before);
    stk_cuda_dnn_set(graph, made, DNN_CONVOLUTION_POST_PADDINGS, DNN_TYPE_INT64, 2, after);
    stk_cuda_dnn_finish(graph, made);
    return made;
}

/* The attributes of one of the three operations. */
typedef struct op_names {
    int type;
    int alpha, beta, convolution;
    int x, w, y;
} op_names;

static const op_names names_of[] = {
    [CUDA_CONV_FORWARD] = {DNN_OP_FORWARD, DNN_FORWARD_ALPHA, DNN_FORWARD_BETA,
                           DNN_FORWARD_CONVOLUTION, DNN_FORWARD_X, DNN_FORWARD_W, DNN_FORWARD_Y},
    [CUDA_CONV_DATA] = {DNN_OP_DATA, DNN_DATA_ALPHA, DNN_DATA_BETA, DNN_DATA_CONVOLUTION,
                        DNN_DATA_DX, DNN_DATA_W, DNN_DATA_DY},
    [CUDA_CONV_WEIGHT] = {DNN_OP_FILTER, DNN_FILTER_ALPHA, DNN_FILTER_BETA, DNN_FILTER_CONVOLUTION,
                          DNN_FILTER_X, DNN_FILTER_DW, DNN_FILTER_DY},
};

static void add_convolution(cuda_dnn_graph *graph, const cuda_conv_shape *shape,
                            cuda_dnn_descriptor x, cuda_dnn_descriptor y) {
    const op_names *names = &names_of[shape->kind];
    int type = data_type(shape->type);
    box w_box = box_of(shape->filters, shape->kernel, shape->kernel, shape->channels);
    float alpha = 1;
    float beta = shape->kind == CUDA_CONV_DATA && shape->accumulate ? 1 : 0;
    cuda_dnn_descriptor w = tensor(graph, DNN_ID_W, type, &w_box);
    cuda_dnn_descriptor what = convolution(graph, shape);
    cuda_dnn_descriptor op = stk_cuda_dnn_new(graph, names->type);
    stk_cuda_dnn_set_one(graph, op, names->convolution, what);
    stk_cuda_dnn_set_one(graph, op, names->x, x);
    stk_cuda_dnn_set_one(graph, op, names->w, w);
    stk_cuda_dnn_set_one(graph, op, names->y, y);
    stk_cuda_dnn_set(graph, op, names->alpha, DNN_TYPE_FLOAT, 1, &alpha);
    stk_cuda_dnn_set(graph, op, names->beta, DNN_TYPE_FLOAT, 1, &beta);
    stk_cuda_dnn_finish(graph, op);
    graph->ops[graph->op_count++] = op;
}

static int mode_of(stk_op act) {
    return act == STK_OP_SILU ? DNN_SWISH : act == STK_OP_SIGMOID ? DNN_SIGMOID : DNN_RELU;
}

/* y = x + b or x * b, by `mode`; without b (NULL) y is the activation of x. */
static void add_pointwise(cuda_dnn_graph *graph, int mode, stk_op act, cuda_dnn_descriptor x,
                          cuda_dnn_descriptor b, cuda_dnn_descriptor y) {
    int precision = DNN_FLOAT;
    double one = 1, six = 6;
    cuda_dnn_descriptor what = stk_cuda_dnn_new(graph, DNN_POINTWISE);
    stk_cuda_dnn_set(graph, what, DNN_POINTWISE_MODE, DNN_TYPE_POINTWISE_MODE, 1, &mode);
    stk_cuda_dnn_set(graph, what, DNN_POINTWISE_PRECISION, DNN_TYPE_DATA_TYPE, 1, &precision);
    if (b == NULL && act == STK_OP_RELU6) {
        stk_cuda_dnn_set(graph, what, DNN_POINTWISE_UPPER_CLIP, DNN_TYPE_DOUBLE, 1, &six);
    }
    if (b == NULL && act == STK_OP_SILU) {
        stk_cuda_dnn_set(graph, what, DNN_POINTWISE_SWISH_BETA, DNN_TYPE_DOUBLE, 1, &one);
    }
    stk_cuda_dnn_finish(graph, what);
    cuda_dnn_descriptor op = stk_cuda_dnn_new(graph, DNN_OP_POINTWISE);
    stk_cuda_dnn_set_one(graph, op, DNN_OP_POINTWISE_WHAT, what);
    stk_cuda_dnn_set_one(graph, op, DNN_OP_POINTWISE_X, x);
    if (b != NULL) {
        stk_cuda_dnn_set_one(graph, op, DNN_OP_POINTWISE_B, b);
    }
    stk_cuda_dnn_set_one(graph, op, DNN_OP_POINTWISE_Y, y);
    stk_cuda_dnn_finish(graph, op);
    graph->ops[graph->op_count++] = op;
}

/* The sums of y and of its squares, per channel and in float32; y itself is stored as well. */
static void add_stats(cuda_dnn_graph *graph, const cuda_conv_shape *shape, cuda_dnn_descriptor y) {
    box sums = box_of(1, 1, 1, shape->filters);
    int mode = DNN_SUM_AND_SQUARES;
    int precision = DNN_FLOAT;
    cuda_dnn_descriptor sum = tensor(graph, DNN_ID_SUM, DNN_FLOAT, &sums);
    cuda_dnn_descriptor squares = tensor(graph, DNN_ID_SQUARES, DNN_FLOAT, &sums);
    cuda_dnn_descriptor op = stk_cuda_dnn_new(graph, DNN_OP_STATS);
    stk_cuda_dnn_set(graph, op, DNN_STATS_MODE, DNN_TYPE_STATS_MODE, 1, &mode);
    stk_cuda_dnn_set(graph, op, DNN_STATS_PRECISION, DNN_TYPE_DATA_TYPE, 1, &precision);
    stk_cuda_dnn_set_one(graph, op, DNN_STATS_X, y);
    stk_cuda_dnn_set_one(graph, op, DNN_STATS_SUM, sum);
    stk_cuda_dnn_set_one(graph, op, DNN_STATS_SQUARES, squares);
    stk_cuda_dnn_finish(graph, op);
    graph->ops[graph->op_count++] = op;
}

/* What the convolution reads: x, or what a norm and a ReLU make of it as it is loaded. */
static cuda_dnn_descriptor add_input(cuda_dnn_graph *graph, const cuda_conv_shape *shape) {
    static const int modes[] = {DNN_MULTIPLY, DNN_ADD, DNN_RELU};
    int type = data_type(shape->type);
    box x_box = box_of(shape->batch, shape->height, shape->width, shape->channels);
    box channels = box_of(1, 1, 1, shape->channels);
    cuda_dnn_descriptor x = tensor(graph, DNN_ID_X, type, &x_box);
    for (int step = 0; step < 3 && shape->in_norm; step++) {
        cuda_dnn_descriptor b = step == 0   ? tensor(graph, DNN_ID_SCALE, type, &channels)
                                : step == 1 ? tensor(graph, DNN_ID_SHIFT, type, &channels)
                                            : NULL;
        cuda_dnn_descriptor next =
            tensor(graph, DNN_ID_NORMALISED + step, step < 2 ? DNN_FLOAT : type, &x_box);
        add_pointwise(graph, modes[step], STK_OP_RELU, x, b, next);
        x = next;
    }
    return x;
}

/* conv (+ added) (+ bias) (act) (statistics): tensors between these operations are float32 and
 * never stored; only the last one, y, is. */
static void add_chain(cuda_dnn_graph *graph, const cuda_conv_shape *shape, bool plain) {
    int type = data_type(shape->type);
    box y_box = box_of(shape->batch, shape->out_height, shape->out_width, shape->filters);
    box bias_box = box_of(1, 1, 1, shape->filters);
    bool added = !plain && shape->added;
    bool bias = !plain && shape->bias;
    bool act = !plain && shape->act != STK_OP_COUNT;
    int left = added + bias + act;
    int id = DNN_ID_VIRTUAL;
    cuda_dnn_descriptor x = add_input(graph, shape);
    cuda_dnn_descriptor y =
        tensor(graph, left > 0 ? id++ : DNN_ID_Y, left > 0 ? DNN_FLOAT : type, &y_box);
    add_convolution(graph, shape, x, y);
    for (int step = 0; step < 3; step++) {
        bool wanted[3] = {added, bias, act};
        if (!wanted[step]) {
            continue;
        }
        left--;
        cuda_dnn_descriptor b = step == 0   ? tensor(graph, DNN_ID_ADDED, type, &y_box)
                                : step == 1 ? tensor(graph, DNN_ID_BIAS, type, &bias_box)
                                            : NULL;
        cuda_dnn_descriptor next =
            tensor(graph, left > 0 ? id++ : DNN_ID_Y, left > 0 ? DNN_FLOAT : type, &y_box);
        add_pointwise(graph, b != NULL ? DNN_ADD : mode_of(shape->act), shape->act, y, b, next);
        y = next;
    }
    if (!plain && shape->stats) {
        add_stats(graph, shape, y);
    }
}

void stk_cuda_dnn_graph_begin(cuda_dnn_graph *graph, const cuda_dnn *dnn,
                              const cuda_conv_shape *shape, bool plain) {
    memset(graph, 0, sizeof *graph);
    graph->dnn = dnn;
    add_chain(graph, shape, plain);
    graph->whole = stk_cuda_dnn_new(graph, DNN_GRAPH);
    if (dnn->device == NULL) {
        stk_cuda_dnn_set(graph, graph->whole, DNN_GRAPH_HANDLE, DNN_TYPE_HANDLE, 1, &dnn->handle);
    }
    stk_cuda_dnn_set(graph, graph->whole, DNN_GRAPH_OPS, DNN_TYPE_DESCRIPTOR, graph->op_count,
                     graph->ops);
    stk_cuda_dnn_finish(graph, graph->whole);
}

void stk_cuda_dnn_graph_end(cuda_dnn_graph *graph) {
    while (graph->owned_count > 0) {
        (void)graph->dnn->api.drop(graph->owned[--graph->owned_count]);
    }
}
