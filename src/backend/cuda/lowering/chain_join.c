/*
 * chain_join.c - CUDA_FUSE_JOIN: a norm, an addition and a ReLU, and the 1x1 convolution that is
 * the first to read the result.
 *
 * The fused kernel computes the output of a convolution whose turn comes later. The buffers of the
 * chain to which that convolution belongs are therefore made here.
 */
#include "backend/cuda/lowering/lowering.h"

/* The first chain after `chain` whose 1x1 convolution reads its output; -1: none. */
static int find_next(const lowering *l, int chain) {
    int value = piece_of(l, chain)->output;
    for (int i = chain + 1; i < l->pieces->count; i++) {
        const stk_piece *next = piece_of(l, i);
        if (next->node != STK_NO_NODE || next->conv == STK_NO_NODE || next->inputs[0] != value) {
            continue;
        }
        const stk_node *n = graph_node_of(l, next->conv);
        if (n->op == STK_OP_CONV && n->kernel == 1 && n->stride == 1 && n->pad == 0 &&
            n->param_count == 1 && next->training) {
            return i;
        }
    }
    return -1;
}

/* Stays plain until CUDA_FUSE_STATS has a result: the plain variant of this fusion contains it. */
static int decide(const lowering *l, int conv, bool added_norm) {
    cuda_decision decision = {.fusion = CUDA_FUSE_STATS,
                              .shape = stk_cuda_lower_conv_shape(l, conv, CUDA_CONV_FORWARD)};
    int number;
    int stats = stk_cuda_decision_result(l->results, &decision);
    if (stats == CUDA_UNDECIDED) {
        return CUDA_PLAIN;
    }
    decision.fusion = CUDA_FUSE_JOIN;
    decision.detail = cuda_join_detail(stats, added_norm);
    return stk_cuda_decide(l->p, l->results, &decision, &number);
}

bool stk_cuda_lower_join(lowering *l, int chain, cuda_site *site) {
    cuda_forward_site *s = &site->forward;
    int next = find_next(l, chain);
    if (next < 0 || !piece_of(l, chain)->training || !cuda_is_something(s->mask) ||
        !cuda_is_something(s->added.x) || s->tail.act != STK_OP_RELU || s->tail.drop_rate > 0) {
        return false;
    }
    lowered_piece *reader = &l->items[next];
    int conv = piece_of(l, next)->conv;
    s->out = lower_plane(l, graph_node_of(l, conv)->output);
    s->next = &reader->norm;
    s->conv.w = cuda_weight(l->layout, graph_node_of(l, conv)->params[0]);
    size_t bytes = stk_cuda_fusions[CUDA_FUSE_JOIN].scratch(l->p, site);
    if (bytes == 0) {
        return false;
    }
    stk_cuda_lower_begin(l, next, bytes);
    s->conv.y = reader->inner;
    s->conv.stats = reader->stats_scratch;
    reader->may_join = true;
    reader->join_variant = decide(l, conv, s->added.norm != NULL);
    stk_cuda_emit_variants(l->p, stk_cuda_emit_join, site, 0, reader->join_variant);
    return true;
}
