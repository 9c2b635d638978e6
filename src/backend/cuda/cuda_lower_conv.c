/* cuda_lower_conv.c - convolutions and linear layers: forward, and both gradients. */
#include "backend/cuda/cuda_lowering.h"

/* A linear layer is a convolution of one pixel; pictures have a fourth channel. */
cuda_conv_shape stk_cuda_lower_shape(const lowering *l, int node, cuda_conv_kind kind) {
    const stk_node *n = lower_node(l, node);
    stk_shape in = lower_shape(l, n->inputs[0]);
    stk_shape out = lower_shape(l, n->output);
    bool linear = n->op == STK_OP_LINEAR;
    if (linear) {
        in = (stk_shape){1, 1, (int)stk_shape_count(in)};
    }
    bool pictures = n->inputs[0] == l->graph->input && !linear;
    return (cuda_conv_shape){.kind = kind,
                             .type = l->p->type,
                             .strict = l->p->strict,
                             .batch = l->batch,
                             .height = in.height,
                             .width = in.width,
                             .channels = pictures ? CUDA_INPUT_CHANNELS : in.channels,
                             .out_height = out.height,
                             .out_width = out.width,
                             .filters = out.channels,
                             .kernel = linear ? 1 : n->kernel,
                             .stride = linear ? 1 : n->stride,
                             .pad = linear ? 0 : n->pad,
                             .act = STK_OP_COUNT};
}

static bool reads_pictures(const lowering *l, int node) {
    const stk_node *n = lower_node(l, node);
    return n->op == STK_OP_CONV && n->inputs[0] == l->graph->input;
}

/* What the layer reads; only convolutions take pictures in four channels. */
static cuda_ref input_of(lowering *l, int node) {
    const stk_node *n = lower_node(l, node);
    return n->op == STK_OP_CONV ? l->values[n->inputs[0]].data
                                : stk_cuda_lower_pictures(l, n->inputs[0]);
}

/* The filter of a layer that reads pictures, in four channels. */
static cuda_ref padded_filter(const lowering *l, int node) {
    cuda_conv_shape s = stk_cuda_lower_shape(l, node, CUDA_CONV_FORWARD);
    size_t count = (size_t)s.filters * (size_t)(s.kernel * s.kernel) * (size_t)s.channels;
    return stk_cuda_buffer(l->p, count * cuda_type_bytes(l->p->type));
}

static int taps_of(const lowering *l, int node) {
    return lower_node(l, node)->kernel * lower_node(l, node)->kernel;
}

cuda_ref stk_cuda_lower_pictures(lowering *l, int value) {
    lower_value *v = &l->values[value];
    if (value != l->graph->input) {
        return v->data;
    }
    if (!cuda_is_something(v->plain)) {
        stk_shape shape = lower_shape(l, value);
        v->plain = lower_buffer(l, value);
        stk_cuda_unpad_filter(l->p, l->batch, shape.height * shape.width, v->data, v->plain);
    }
    return v->plain;
}

void stk_cuda_lower_conv(lowering *l, int node, cuda_ref y) {
    const stk_node *n = lower_node(l, node);
    cuda_conv_op conv = {.shape = stk_cuda_lower_shape(l, node, CUDA_CONV_FORWARD),
                         .x = input_of(l, node),
                         .w = cuda_weight(l->layout, n->params[0]),
                         .y = y,
                         .bias = cuda_nothing(),
                         .added = cuda_nothing()};
    if (reads_pictures(l, node)) {
        cuda_ref padded = padded_filter(l, node);
        stk_cuda_pad_filter(l->p, conv.shape.filters, taps_of(l, node), conv.w, padded);
        conv.w = padded;
    }
    stk_cuda_conv(l->p, &conv);
    if (n->param_count > 1) {
        stk_cuda_bias(l->p, lower_plane(l, n->output), y, cuda_value(l->layout, n->params[1]), y);
    }
}

/* The gradient of the weights, from the layer's input. */
static void weight_back(const lowering *l, int node, cuda_ref x, cuda_ref dy) {
    const stk_node *n = lower_node(l, node);
    cuda_conv_op conv = {.shape = stk_cuda_lower_shape(l, node, CUDA_CONV_WEIGHT),
                         .x = x,
                         .w = cuda_fresh(l->layout, n->params[0]),
                         .y = dy,
                         .bias = cuda_nothing(),
                         .added = cuda_nothing()};
    if (reads_pictures(l, node)) {
        cuda_ref fresh = conv.w;
        conv.w = padded_filter(l, node);
        stk_cuda_conv(l->p, &conv);
        stk_cuda_unpad_filter(l->p, conv.shape.filters, taps_of(l, node), conv.w, fresh);
        return;
    }
    stk_cuda_conv(l->p, &conv);
}

void stk_cuda_lower_waiting(lowering *l, int value, cuda_ref data) {
    lower_value *v = &l->values[value];
    if (v->waits) {
        weight_back(l, v->waiting, data, v->waiting_dy);
        v->waits = false;
    }
}

void stk_cuda_lower_conv_back(lowering *l, int node, cuda_ref dy) {
    const stk_node *n = lower_node(l, node);
    lower_value *v = &l->values[n->inputs[0]];
    bool learns = l->graph->params[n->params[0]].head || !l->pieces->config.frozen;
    if (n->param_count > 1 && learns) {
        stk_cuda_bias_back(l->p, lower_plane(l, n->output), dy,
                           cuda_fresh(l->layout, n->params[1]));
    }
    if (learns && !v->again) {
        weight_back(l, node, input_of(l, node), dy);
    } else if (learns) {
        v->waits = true;
        v->waiting = node;
        v->waiting_dy = dy;
    }
    if (l->pieces->needs_grad[n->inputs[0]]) {
        cuda_conv_op conv = {.shape = stk_cuda_lower_shape(l, node, CUDA_CONV_DATA),
                             .w = cuda_weight(l->layout, n->params[0]),
                             .y = dy,
                             .bias = cuda_nothing(),
                             .added = cuda_nothing()};
        conv.x = stk_cuda_lower_grad(l, n->inputs[0], &conv.shape.accumulate);
        stk_cuda_conv(l->p, &conv);
    }
}
