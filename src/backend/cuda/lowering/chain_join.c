/*
 * chain_join.c - a norm, an addition and a ReLU, and the convolution of 1 by 1 that is the
 * first to read what they make.
 *
 * In one kernel or in four operations, as the device has found out. The one makes the output of a
 * convolution whose turn comes later: its buffers are there from the first operation on in either
 * way, and where they would have been written they are held.
 */
#include "backend/cuda/lowering/lowering.h"
#include "backend/cuda/tuning/norm_conv.h"

/* The chain whose convolution can be computed at once with what the chain `index` makes; -1: none.
 */
static int find_next(const lowering *l, int index) {
    int value = l->pieces->items[index].output;
    for (int i = index + 1; i < l->pieces->count; i++) {
        const stk_piece *next = &l->pieces->items[i];
        if (next->node != STK_NO_NODE || next->conv == STK_NO_NODE || next->inputs[0] != value) {
            continue;
        }
        const stk_node *n = lower_node(l, next->conv);
        if (n->op == STK_OP_CONV && n->kernel == 1 && n->stride == 1 && n->pad == 0 &&
            n->param_count == 1 && next->training) {
            return i;
        }
    }
    return -1;
}

/* Asks, once it is known who takes the statistics of the convolution alone. */
static bool ask(const lowering *l, int conv, const cuda_join *join) {
    cuda_question question = {.kind = CUDA_ASK_STATS,
                              .shape = stk_cuda_lower_shape(l, conv, CUDA_CONV_FORWARD)};
    int asked = 0;
    int stats = stk_cuda_answer(l->choices, &question);
    question.kind = CUDA_ASK_JOIN;
    question.variant = stk_cuda_join_variant(stats, join->added->norm != NULL);
    return stats != CUDA_UNDECIDED &&
           stk_cuda_ask(l->p, l->choices, &question, &asked) == CUDA_NORMED_FUSED;
}

static void hold(cuda_program *p, const cuda_join *join) {
    cuda_launch *held = stk_cuda_hold(p);
    stk_cuda_arg(held, join->y);
    stk_cuda_arg(held, join->z);
    stk_cuda_arg(held, join->next->coefs);
    stk_cuda_arg(held, join->partial);
}

bool stk_cuda_lower_join(lowering *l, int index, const cuda_tail *tail, const cuda_added *added) {
    const stk_piece *piece = &l->pieces->items[index];
    const lower_piece *item = &l->items[index];
    int next = find_next(l, index);
    if (next < 0 || !piece->training || !cuda_is_something(item->mask) ||
        !cuda_is_something(added->x) || tail->act != STK_OP_RELU || tail->drop_rate > 0) {
        return false;
    }
    lower_piece *reader = &l->items[next];
    int conv = l->pieces->items[next].conv;
    cuda_join join = {.plane = lower_plane(l, piece->output),
                      .x = item->inner,
                      .norm = &item->norm,
                      .added = added,
                      .y = l->values[piece->output].data,
                      .mask = item->mask,
                      .filters = lower_shape(l, lower_node(l, conv)->output).channels,
                      .weight = cuda_weight(l->layout, lower_node(l, conv)->params[0]),
                      .next = &reader->norm};
    size_t bytes = stk_cuda_join_scratch(l->p, &join);
    if (bytes == 0) {
        return false;
    }
    stk_cuda_lower_begin(l, next, bytes);
    join.z = reader->inner;
    join.partial = reader->stats;
    reader->joined = ask(l, conv, &join);
    hold(l->p, &join);
    if (reader->joined) {
        stk_cuda_join(l->p, &join);
        stk_cuda_join_settle(l->p, &join);
    } else {
        stk_cuda_norm_apply(l->p, join.plane, join.x, join.norm, tail, added, join.y, join.mask);
    }
    return true;
}

void stk_cuda_lower_joined(lowering *l, int index) {
    const stk_piece *piece = &l->pieces->items[index];
    const lower_piece *item = &l->items[index];
    cuda_join join = {.y = l->values[piece->inputs[0]].data,
                      .z = item->inner,
                      .next = &item->norm,
                      .partial = item->stats};
    hold(l->p, &join);
    stk_cuda_norm_skip(l->p, lower_plane(l, piece->output));
}
