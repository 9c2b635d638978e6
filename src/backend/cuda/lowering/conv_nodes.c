/* conv_nodes.c - convolutions and linear layers: forward, and both gradients. */
#include "backend/cuda/lowering/lowering.h"
#include "backend/cuda/tuning/conv_stats.h"

static bool reads_pictures(const lowering *l, int node) {
    const stk_node *n = lower_node(l, node);
    return n->op == STK_OP_CONV && n->inputs[0] == l->graph->input;
}

bool stk_cuda_lower_is_pointwise(const lowering *l, int node) {
    const stk_node *n = lower_node(l, node);
    return n->op == STK_OP_CONV && n->kernel == 1 && n->stride == 1 && n->pad == 0 &&
           !reads_pictures(l, node);
}

/* A linear layer is a convolution of one pixel; pictures have a fourth channel, or are blocks. */
cuda_conv_shape stk_cuda_lower_shape(const lowering *l, int node, cuda_conv_kind kind) {
    const stk_node *n = lower_node(l, node);
    stk_shape in = lower_shape(l, n->inputs[0]);
    stk_shape out = lower_shape(l, n->output);
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
        shape.channels = CUDA_INPUT_CHANNELS;
    }
    return shape;
}

/* What the layer reads; only convolutions take pictures as they are stored. */
static cuda_ref input_of(lowering *l, int node) {
    const stk_node *n = lower_node(l, node);
    return n->op == STK_OP_CONV ? l->values[n->inputs[0]].data
                                : stk_cuda_lower_pictures(l, n->inputs[0]);
}

/* Room for the filter of a layer that reads pictures, as it is computed with. */
static cuda_ref picture_filter(const lowering *l, int node) {
    cuda_conv_shape s = stk_cuda_lower_shape(l, node, CUDA_CONV_FORWARD);
    size_t count = (size_t)s.filters * (size_t)(s.kernel * s.kernel) * (size_t)s.channels;
    return stk_cuda_buffer(l->p, count * cuda_type_bytes(l->p->type));
}

static int taps_of(const lowering *l, int node) {
    return lower_node(l, node)->kernel * lower_node(l, node)->kernel;
}

/* The weights that a layer is computed with. */
cuda_ref stk_cuda_lower_filter(lowering *l, int node) {
    cuda_ref w = cuda_weight(l->layout, lower_node(l, node)->params[0]);
    int filters = lower_shape(l, lower_node(l, node)->output).channels;
    if (!reads_pictures(l, node)) {
        return w;
    }
    cuda_ref made = picture_filter(l, node);
    if (l->stem.side > 0) {
        stk_cuda_block_filter(l->p, filters, &l->stem, w, made);
    } else {
        stk_cuda_pad_filter(l->p, filters, taps_of(l, node), w, made);
    }
    return made;
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

bool stk_cuda_lower_conv(lowering *l, int node, cuda_ref y, cuda_ref stats) {
    const stk_node *n = lower_node(l, node);
    const lower_value *v = &l->values[n->inputs[0]];
    cuda_conv_shape shape = stk_cuda_lower_shape(l, node, CUDA_CONV_FORWARD);
    cuda_conv_op conv = cuda_conv_of(&shape, input_of(l, node), stk_cuda_lower_filter(l, node), y);
    conv.stats = stats;
    if (v->normed_by > 0) {
        conv.shape.stats = conv.shape.in_norm = true;
        conv.raw = v->raw;
        conv.in_norm = v->in_norm;
        conv.asked = v->normed_by;
    } else if (cuda_is_something(stats)) {
        cuda_question question = {.kind = CUDA_ASK_STATS, .shape = conv.shape};
        conv.shape.stats =
            stk_cuda_ask(l->p, l->choices, &question, &conv.asked) == CUDA_STATS_FUSED;
    }
    stk_cuda_conv(l->p, &conv);
    if (n->param_count > 1) {
        stk_cuda_bias(l->p, lower_plane(l, n->output), y, cuda_value(l->layout, n->params[1]), y);
    }
    return conv.shape.stats;
}

/* The gradient of the weights, from the layer's input; for normed_by see lower_value. */
static void weight_back(const lowering *l, int node, cuda_ref x, cuda_ref dy, int normed_by) {
    cuda_ref fresh = cuda_fresh(l->layout, lower_node(l, node)->params[0]);
    bool pictures = reads_pictures(l, node);
    cuda_conv_shape shape = stk_cuda_lower_shape(l, node, CUDA_CONV_WEIGHT);
    cuda_conv_op conv = cuda_conv_of(&shape, x, pictures ? picture_filter(l, node) : fresh, dy);
    if (normed_by > 0) {
        const lower_value *v = &l->values[lower_node(l, node)->inputs[0]];
        conv.shape.in_norm = true;
        conv.raw = v->raw;
        conv.in_norm = v->in_norm;
        conv.asked = normed_by;
    }
    stk_cuda_conv(l->p, &conv);
    if (pictures && l->stem.side > 0) {
        stk_cuda_unblock_filter(l->p, conv.shape.filters, &l->stem, conv.w, fresh);
    } else if (pictures) {
        stk_cuda_unpad_filter(l->p, conv.shape.filters, taps_of(l, node), conv.w, fresh);
    }
}

void stk_cuda_lower_waiting(lowering *l, int value, cuda_ref data, int normed_by) {
    lower_value *v = &l->values[value];
    if (v->waits) {
        weight_back(l, v->waiting, data, v->waiting_dy, normed_by);
        v->waits = false;
    } else if (v->spared) {
        cuda_launch *hold = stk_cuda_hold(l->p);
        stk_cuda_arg(hold, data);
        stk_cuda_arg(hold, v->waiting_dy);
    }
}

bool stk_cuda_lower_learns(const lowering *l, int node) {
    return l->graph->params[lower_node(l, node)->params[0]].head || !l->pieces->config.frozen;
}

void stk_cuda_lower_conv_weight(lowering *l, int node, cuda_ref dy) {
    lower_value *v = &l->values[lower_node(l, node)->inputs[0]];
    if (!v->again) {
        weight_back(l, node, input_of(l, node), dy, 0);
    } else {
        v->waits = true;
        v->waiting = node;
        v->waiting_dy = dy;
    }
}

void stk_cuda_lower_conv_data(lowering *l, int node, cuda_ref dy, cuda_ref dx, bool accumulate) {
    cuda_conv_shape shape = stk_cuda_lower_shape(l, node, CUDA_CONV_DATA);
    shape.accumulate = accumulate;
    lower_value *v = &l->values[lower_node(l, node)->inputs[0]];
    cuda_conv_op conv =
        cuda_conv_of(&shape, dx, cuda_weight(l->layout, lower_node(l, node)->params[0]), dy);
    stk_cuda_lower_join_back_ask(l, node, accumulate);
    if (v->joins) {
        v->join.dy = dy;
        stk_cuda_join_back(l->p, &v->join);
    } else {
        conv.stats = v->join.partial;
        stk_cuda_conv(l->p, &conv);
    }
}

void stk_cuda_lower_conv_back(lowering *l, int node, cuda_ref dy) {
    const stk_node *n = lower_node(l, node);
    bool learns = stk_cuda_lower_learns(l, node);
    if (n->param_count > 1 && learns) {
        stk_cuda_bias_back(l->p, lower_plane(l, n->output), dy,
                           cuda_fresh(l->layout, n->params[1]));
    }
    if (learns) {
        stk_cuda_lower_conv_weight(l, node, dy);
    }
    if (l->pieces->needs_grad[n->inputs[0]]) {
        bool accumulate;
        cuda_ref dx = stk_cuda_lower_grad(l, n->inputs[0], &accumulate);
        stk_cuda_lower_conv_data(l, node, dy, dx, accumulate);
    }
}
