/*
 * conv_ops.c - convolutions and linear layers as operations: shapes, filters and gradients.
 *
 * A linear layer is a convolution of one pixel. The layer that reads the pictures has a filter of
 * its own shape: pictures have padded channels, or are blocks of pixels (cuda_stem).
 */
#include "backend/cuda/lowering/lowering.h"

static bool reads_pictures(const lowering *l, int node) {
    const stk_node *n = graph_node_of(l, node);
    return n->op == STK_OP_CONV && n->inputs[0] == l->graph->input;
}

bool stk_cuda_lower_is_pointwise(const lowering *l, int node) {
    const stk_node *n = graph_node_of(l, node);
    return n->op == STK_OP_CONV && n->kernel == 1 && n->stride == 1 && n->pad == 0 &&
           !reads_pictures(l, node);
}

bool stk_cuda_lower_learns(const lowering *l, int node) {
    return l->graph->params[graph_node_of(l, node)->params[0]].head || !l->pieces->config.frozen;
}

cuda_conv_shape stk_cuda_lower_conv_shape(const lowering *l, int node, cuda_conv_kind kind) {
    const stk_node *n = graph_node_of(l, node);
    stk_shape in = value_shape(l, n->inputs[0]);
    stk_shape out = value_shape(l, n->output);
    cuda_conv_shape shape = {.kind = kind,
                             .type = l->p->type,
                             .strict = l->p->strict,
                             .batch = l->batch,
                             .height = in.height,
                             .width = in.width,
                             .channels = in.channels,
                             .out_height = out.height,
                             .out_width = out.width,
                             .filters = out.channels,
                             .kernel = n->kernel,
                             .stride = n->stride,
                             .pad = n->pad,
                             .act = STK_OP_COUNT};
    if (n->op == STK_OP_LINEAR) {
        shape.height = shape.width = shape.kernel = shape.stride = 1;
        shape.pad = 0;
        shape.channels = (int)stk_shape_count(in);
    } else if (reads_pictures(l, node) && l->stem.side > 0) {
        shape.height = shape.width = l->stem.side;
        shape.channels = CUDA_BLOCK_CHANNELS;
        shape.kernel = l->stem.taps;
        shape.stride = 1;
        shape.pad = 0;
    } else if (reads_pictures(l, node)) {
        shape.channels = cuda_input_channels(l->graph->channels);
    }
    return shape;
}

/* Only convolutions read pictures as they are stored. */
cuda_ref stk_cuda_lower_input(lowering *l, int node) {
    const stk_node *n = graph_node_of(l, node);
    return n->op == STK_OP_CONV ? l->values[n->inputs[0]].data
                                : stk_cuda_lower_data(l, n->inputs[0]);
}

/* A buffer for the filter of a layer that reads pictures, in the shape that is computed with. */
static cuda_ref picture_filter(const lowering *l, int node) {
    cuda_conv_shape s = stk_cuda_lower_conv_shape(l, node, CUDA_CONV_FORWARD);
    size_t count = (size_t)s.filters * (size_t)(s.kernel * s.kernel) * (size_t)s.channels;
    return stk_cuda_buffer(l->p, count * cuda_type_bytes(l->p->type));
}

static int taps_of(const lowering *l, int node) {
    return graph_node_of(l, node)->kernel * graph_node_of(l, node)->kernel;
}

cuda_ref stk_cuda_lower_filter(lowering *l, int node) {
    cuda_ref w = cuda_weight(l->layout, graph_node_of(l, node)->params[0]);
    int filters = value_shape(l, graph_node_of(l, node)->output).channels;
    if (!reads_pictures(l, node)) {
        return w;
    }
    cuda_ref made = picture_filter(l, node);
    if (l->stem.side > 0) {
        stk_cuda_block_filter(l->p, filters, &l->stem, w, made);
    } else {
        stk_cuda_pad_filter(l->p, filters, taps_of(l, node), l->graph->channels, w, made);
    }
    return made;
}

cuda_conv_op stk_cuda_lower_forward_op(lowering *l, int node, cuda_ref y) {
    cuda_conv_shape shape = stk_cuda_lower_conv_shape(l, node, CUDA_CONV_FORWARD);
    cuda_ref x = stk_cuda_lower_input(l, node);
    return cuda_conv_of(&shape, x, stk_cuda_lower_filter(l, node), y);
}

cuda_conv_op stk_cuda_lower_data_op(const lowering *l, int node, cuda_ref dy, cuda_ref dx,
                                    bool accumulate) {
    cuda_conv_shape shape = stk_cuda_lower_conv_shape(l, node, CUDA_CONV_DATA);
    shape.accumulate = accumulate;
    return cuda_conv_of(&shape, dx, cuda_weight(l->layout, graph_node_of(l, node)->params[0]), dy);
}

cuda_conv_op stk_cuda_lower_weight_op(const lowering *l, int node, cuda_ref x, cuda_ref dy) {
    cuda_conv_shape shape = stk_cuda_lower_conv_shape(l, node, CUDA_CONV_WEIGHT);
    return cuda_conv_of(&shape, x, cuda_fresh(l->layout, graph_node_of(l, node)->params[0]), dy);
}

void stk_cuda_lower_weight(lowering *l, int node, cuda_ref x, cuda_ref dy) {
    cuda_conv_op conv = stk_cuda_lower_weight_op(l, node, x, dy);
    cuda_ref fresh = conv.w;
    bool pictures = reads_pictures(l, node);
    if (pictures) {
        conv.w = picture_filter(l, node);
    }
    stk_cuda_conv(l->p, &conv);
    if (pictures && l->stem.side > 0) {
        stk_cuda_unblock_filter(l->p, conv.shape.filters, &l->stem, conv.w, fresh);
    } else if (pictures) {
        stk_cuda_drop_padding(l->p, conv.shape.filters, taps_of(l, node), l->graph->channels,
                              conv.w, fresh);
    }
}

cuda_depthwise stk_cuda_lower_depthwise(const lowering *l, int node, cuda_ref x) {
    const stk_node *n = graph_node_of(l, node);
    stk_shape in = value_shape(l, n->inputs[0]);
    stk_shape out = value_shape(l, n->output);
    return (cuda_depthwise){.batch = l->batch,
                            .height = in.height,
                            .width = in.width,
                            .channels = in.channels,
                            .out_height = out.height,
                            .out_width = out.width,
                            .kernel = n->kernel,
                            .stride = n->stride,
                            .pad = n->pad,
                            .weight = cuda_value(l->layout, n->params[0]),
                            .weight_grad = cuda_fresh(l->layout, n->params[0]),
                            .x = x,
                            .in_act = STK_OP_COUNT};
}

void stk_cuda_lower_depthwise_back(lowering *l, const cuda_depthwise *conv, int input,
                                   cuda_ref dy) {
    bool accumulate;
    if (l->pieces->needs_grad[input]) {
        cuda_ref dx = stk_cuda_lower_grad(l, input, &accumulate);
        stk_cuda_depthwise_back(l->p, conv, dy, dx, accumulate);
    } else {
        stk_cuda_depthwise_weight(l->p, conv, dy);
    }
}
