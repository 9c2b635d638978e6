/*
 * chain_join_back.c - CUDA_FUSE_JOIN_BACK: the last gradient of a value that a norm, an addition
 * and a ReLU have made.
 *
 * In a residual network such values lie between the blocks and are the widest of all. Where a 1x1
 * convolution computes the last gradient, the fused kernel also applies ReLU's mask and accumulates
 * the sums of the norm's first pass. The second pass then reads a gradient without an activation in
 * front of it, which is also the gradient of what was added.
 */
#include "backend/cuda/lowering/lowering.h"

/*
 * Whether the backward of all other readers of a value is lowered before that of `node`. No, if a
 * chain with LOWER_BY_SUM has the node: the chain that adds its output may lower it before its
 * turn.
 */
static bool is_first_reader(const lowering *l, int node, int value) {
    for (int i = l->values[value].maker + 1; i < l->pieces->count; i++) {
        const stk_piece *piece = piece_of(l, i);
        for (int k = 0; k < piece->input_count; k++) {
            if (piece->inputs[k] == value) {
                return (piece->conv == node || piece->node == node) &&
                       l->items[i].by != LOWER_BY_SUM;
            }
        }
    }
    return false;
}

/* Whether a norm, an addition and a ReLU with a mask make the value. */
static bool is_join(const lowering *l, int value) {
    const lowered_piece *item = &l->items[l->values[value].maker];
    const stk_piece *piece = piece_of(l, l->values[value].maker);
    return item->kind == LOWER_CHAIN && item->by == LOWER_BY_ITSELF && piece->training &&
           piece->drop == STK_NO_NODE && cuda_is_something(item->mask);
}

/* The chain whose norm is applied during the addition; NULL: a stored value is added. */
static const lowered_piece *find_added(const lowering *l, int value) {
    const stk_piece *piece = piece_of(l, l->values[value].maker);
    int added = lower_left(l, piece->inputs[1], LOWER_BY_SUM);
    return added >= 0 ? &l->items[added] : NULL;
}

bool stk_cuda_lower_join_back(lowering *l, int node, cuda_ref dy, cuda_ref dx, bool accumulate) {
    int value = graph_node_of(l, node)->inputs[0];
    lower_value *v = &l->values[value];
    if (!accumulate || !stk_cuda_lower_is_pointwise(l, node) || !is_first_reader(l, node, value) ||
        !is_join(l, value)) {
        return false;
    }
    const lowered_piece *maker = &l->items[v->maker];
    const lowered_piece *added = find_added(l, value);
    cuda_join_back_site *site = &v->join_back.join_back;
    *site = (cuda_join_back_site){
        .join = {.plane = lower_plane(l, value),
                 .filters = value_shape(l, graph_node_of(l, node)->output).channels,
                 .dy = dy,
                 .weight = cuda_weight(l->layout, graph_node_of(l, node)->params[0]),
                 .old = dx,
                 .mask = maker->mask,
                 .x = maker->inner,
                 .norm = &maker->norm,
                 .other_x = added != NULL ? added->inner : cuda_nothing(),
                 .other_norm = added != NULL ? &added->norm : NULL,
                 .dz = dx},
        .data = stk_cuda_lower_data_op(l, node, dy, dx, true)};
    size_t bytes = stk_cuda_fusions[CUDA_FUSE_JOIN_BACK].scratch(l->p, &v->join_back);
    if (bytes == 0) {
        return false;
    }
    int number;
    cuda_decision decision = {.fusion = CUDA_FUSE_JOIN_BACK,
                              .shape = site->data.shape,
                              .detail = cuda_join_back_detail(added != NULL)};
    site->join.partial = stk_cuda_buffer(l->p, bytes);
    v->may_join_back = true;
    v->join_back_variant = stk_cuda_decide(l->p, l->results, &decision, &number);
    return true;
}
