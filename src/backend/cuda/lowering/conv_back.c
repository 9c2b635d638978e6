/* conv_back.c - the gradients of a convolution or linear layer. */
#include "backend/cuda/lowering/lowering.h"

void stk_cuda_lower_conv_weight(lowering *l, int node, cuda_ref dy) {
    lower_value *v = &l->values[graph_node_of(l, node)->inputs[0]];
    if (v->again) {
        v->late = (lower_late_weight){.node = node, .dy = dy};
    } else {
        stk_cuda_lower_weight(l, node, stk_cuda_lower_input(l, node), dy);
    }
}

static void data_back(lowering *l, int node, cuda_ref dy, cuda_ref dx, bool accumulate) {
    const lower_value *v = &l->values[graph_node_of(l, node)->inputs[0]];
    if (stk_cuda_lower_join_back(l, node, dy, dx, accumulate)) {
        stk_cuda_emit_variants(l->p, stk_cuda_emit_join_back, &v->join_back, 0,
                               v->join_back_variant);
    } else {
        cuda_conv_op conv = stk_cuda_lower_data_op(l, node, dy, dx, accumulate);
        stk_cuda_conv(l->p, &conv);
    }
}

void stk_cuda_lower_conv_back(lowering *l, int node, cuda_ref dy) {
    const stk_node *n = graph_node_of(l, node);
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
        data_back(l, node, dy, dx, accumulate);
    }
}
