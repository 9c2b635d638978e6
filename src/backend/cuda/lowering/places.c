/* places.c - buffers of values, norms and gradients. */
#include "backend/cuda/lowering/lowering.h"

cuda_ref stk_cuda_lower_grad(lowering *l, int value, bool *accumulate) {
    lower_value *v = &l->values[value];
    *accumulate = cuda_is_something(v->grad);
    if (!l->pieces->needs_grad[value]) {
        return cuda_nothing();
    }
    if (!*accumulate) {
        v->grad = lower_buffer(l, value);
    }
    return v->grad;
}

cuda_ref stk_cuda_lower_data(lowering *l, int value) {
    lower_value *v = &l->values[value];
    if (value != l->graph->input) {
        return v->data;
    }
    if (!cuda_is_something(v->unpadded)) {
        stk_shape shape = value_shape(l, value);
        v->unpadded = lower_buffer(l, value);
        stk_cuda_drop_padding(l->p, l->batch, shape.height * shape.width, shape.channels, v->data,
                              v->unpadded);
    }
    return v->unpadded;
}

cuda_norm stk_cuda_lower_norm(const lowering *l, int node) {
    const stk_node *n = graph_node_of(l, node);
    size_t channels = (size_t)value_shape(l, n->output).channels;
    size_t narrow = 2 * channels * cuda_type_bytes(l->p->type);
    return (cuda_norm){.weight = cuda_value(l->layout, n->params[0]),
                       .bias = cuda_value(l->layout, n->params[1]),
                       .running_mean = cuda_value(l->layout, n->params[2]),
                       .running_var = cuda_value(l->layout, n->params[3]),
                       .weight_grad = cuda_fresh(l->layout, n->params[0]),
                       .bias_grad = cuda_fresh(l->layout, n->params[1]),
                       .epsilon = n->epsilon,
                       .coefs = stk_cuda_buffer(l->p, 4 * channels * sizeof(float) + narrow),
                       .back = cuda_nothing()};
}

cuda_ref stk_cuda_lower_norm_back(const lowering *l, int chain) {
    size_t channels = (size_t)value_shape(l, piece_of(l, chain)->output).channels;
    return stk_cuda_buffer(l->p, 3 * channels * sizeof(float));
}

/* Whether a library's convolution could compute the chain's norm and ReLU as it loads. */
static bool can_norm_in_conv(const lowering *l, int chain) {
    const stk_piece *piece = piece_of(l, chain);
    return l->p->type == CUDA_TYPE_F16 && l->items[chain].by == LOWER_BY_ITSELF &&
           piece->training && piece->live && piece->add == STK_NO_NODE &&
           piece->drop == STK_NO_NODE && lower_act(l, chain) == STK_OP_RELU &&
           value_shape(l, piece->output).channels % 8 == 0 && l->values[piece->output].again;
}

void stk_cuda_lower_begin(lowering *l, int chain, size_t stats_bytes) {
    const stk_piece *piece = piece_of(l, chain);
    lowered_piece *item = &l->items[chain];
    bool depthwise =
        piece->conv != STK_NO_NODE && graph_node_of(l, piece->conv)->op == STK_OP_DEPTHWISE;
    if (item->begun) {
        return;
    }
    item->begun = true;
    item->norm = stk_cuda_lower_norm(l, piece->norm);
    item->norm.narrow = can_norm_in_conv(l, chain);
    if (piece->training && !depthwise) {
        size_t bytes = stk_cuda_norm_scratch(l->p, lower_plane(l, piece->output));
        item->stats_scratch = stk_cuda_buffer(l->p, bytes > stats_bytes ? bytes : stats_bytes);
    }
    if (piece->conv == STK_NO_NODE) {
        item->inner = stk_cuda_lower_data(l, piece->inputs[0]);
    } else {
        item->inner = lower_buffer(l, piece->inner);
    }
}
