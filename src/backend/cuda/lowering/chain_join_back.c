/*
 * chain_join_back.c - the last gradient of a value that a norm, an addition and a ReLU have
 * made.
 *
 * Where a convolution of 1 by 1 computes it, it may take the whole gradient through the ReLU and
 * sum it for the norm on the way, as the device has found out. Then nothing is left of the norm's
 * first pass but a sum of sums, and the second one reads a gradient that has no activation in front
 * of it any more and is that of what was added, too. In a residual network these are the values
 * between blocks, the widest that there are.
 *
 * For the sake of the memory plan the first pass is held where it does not run, partial sums live
 * from the convolution to the norm, and the mask until the second pass, in either way.
 */
#include "backend/cuda/tuning/join_conv_back.h"
#include "backend/cuda/lowering/lowering.h"

/*
 * Whether backward of all others that read a value has been lowered when that of this one is. A
 * chain that is added to another may go with that one, before its turn.
 */
static bool is_first_reader(const lowering *l, int node, int value) {
    for (int i = l->values[value].maker + 1; i < l->pieces->count; i++) {
        const stk_piece *piece = &l->pieces->items[i];
        for (int k = 0; k < piece->input_count; k++) {
            if (piece->inputs[k] == value) {
                return (piece->conv == node || piece->node == node) &&
                       l->items[i].by != LOWER_BY_SUM;
            }
        }
    }
    return false;
}

/* A norm, something that is added, and a ReLU of which there is a mask. */
static bool is_made_so(const lowering *l, int value) {
    const lower_piece *item = &l->items[l->values[value].maker];
    const stk_piece *piece = &l->pieces->items[l->values[value].maker];
    return item->kind == LOWER_CHAIN && item->by == LOWER_BY_ITSELF && piece->training &&
           piece->drop == STK_NO_NODE && cuda_is_something(item->mask);
}

/* The chain that is added as it comes from its convolution, with its norm; NULL: a value is. */
static const lower_piece *find_other(const lowering *l, int value) {
    const stk_piece *piece = &l->pieces->items[l->values[value].maker];
    int added = lower_left(l, piece->inputs[1], LOWER_BY_SUM);
    return added >= 0 ? &l->items[added] : NULL;
}

void stk_cuda_lower_join_back_ask(lowering *l, int node, bool accumulate) {
    int value = lower_node(l, node)->inputs[0];
    lower_value *v = &l->values[value];
    if (cuda_is_something(v->join.partial) || !accumulate ||
        !stk_cuda_lower_is_pointwise(l, node) || !is_first_reader(l, node, value) ||
        !is_made_so(l, value)) {
        return;
    }
    const lower_piece *maker = &l->items[v->maker];
    const lower_piece *other = find_other(l, value);
    cuda_join_back join = {.plane = lower_plane(l, value),
                           .filters = lower_shape(l, lower_node(l, node)->output).channels,
                           .weight = cuda_weight(l->layout, lower_node(l, node)->params[0]),
                           .old = v->grad,
                           .mask = maker->mask,
                           .x = maker->inner,
                           .norm = &maker->norm,
                           .other_x = other != NULL ? other->inner : cuda_nothing(),
                           .other_norm = other != NULL ? &other->norm : NULL,
                           .dz = v->grad};
    size_t bytes = stk_cuda_join_back_scratch(l->p, &join);
    if (bytes == 0) {
        return;
    }
    int asked;
    cuda_question question = {.kind = CUDA_ASK_JOIN_BACK,
                              .shape = stk_cuda_lower_shape(l, node, CUDA_CONV_DATA),
                              .variant = other != NULL ? CUDA_JOIN_BACK_OTHER : 0};
    question.shape.accumulate = true;
    join.partial = stk_cuda_buffer(l->p, bytes);
    v->join = join;
    v->joins = stk_cuda_ask(l->p, l->choices, &question, &asked) == CUDA_JOIN_BACK_TOGETHER;
}

void stk_cuda_lower_join_back_settle(lowering *l, int value) {
    const lower_value *v = &l->values[value];
    if (!cuda_is_something(v->join.partial)) {
        return;
    }
    if (v->joins) {
        stk_cuda_hold_last(l->p);
        stk_cuda_join_back_settle(l->p, &v->join);
    } else {
        stk_cuda_arg(stk_cuda_hold(l->p), v->join.partial);
    }
}

lower_pass stk_cuda_lower_join_back_pass(const lower_pass *pass) {
    lower_pass joined = *pass;
    joined.tail = (cuda_tail){.act = STK_OP_COUNT};
    joined.mask = cuda_nothing();
    if (pass->added.norm == NULL) {
        joined.added.x = cuda_nothing();
        joined.added.dx = pass->added.accumulate ? pass->added.dx : cuda_nothing();
    }
    return joined;
}
