/*
 * chain.c - chains: a convolution, a norm and what follows it; and the squeeze-and-excite block
 * that may come next.
 *
 * A gradient that ends in a chain is not needed afterwards: the gradient of the convolution's
 * output, or that of what was added, takes its memory.
 */
#include "backend/cuda/lowering/lowering.h"

static cuda_tail tail_of(const lowering *l, int chain) {
    const stk_piece *piece = piece_of(l, chain);
    cuda_tail tail = {.act = lower_act(l, chain)};
    if (piece->drop != STK_NO_NODE && piece->training) {
        tail.drop_node = piece->drop;
        tail.drop_rate = graph_node_of(l, piece->drop)->rate;
    }
    return tail;
}

static bool is_depthwise(const lowering *l, const stk_piece *piece) {
    return piece->conv != STK_NO_NODE && graph_node_of(l, piece->conv)->op == STK_OP_DEPTHWISE;
}

/* The depthwise convolution of a chain. It may do the norm and activation of the chain before. */
static cuda_depthwise depthwise_of(lowering *l, const stk_piece *piece) {
    int maker = lower_left(l, piece->inputs[0], LOWER_BY_DEPTHWISE);
    if (maker < 0) {
        return stk_cuda_lower_depthwise(l, piece->conv, stk_cuda_lower_data(l, piece->inputs[0]));
    }
    cuda_depthwise conv = stk_cuda_lower_depthwise(l, piece->conv, l->items[maker].inner);
    conv.in_norm = &l->items[maker].norm;
    conv.in_act = lower_act(l, maker);
    return conv;
}

/* What a chain adds: a stored value, or a value whose norm is applied during the addition. */
static cuda_added added_of(lowering *l, const stk_piece *piece) {
    cuda_added added = {.x = cuda_nothing(), .dx = cuda_nothing()};
    if (piece->add != STK_NO_NODE) {
        int maker = lower_left(l, piece->inputs[1], LOWER_BY_SUM);
        added.x = maker >= 0 ? l->items[maker].inner : stk_cuda_lower_data(l, piece->inputs[1]);
        added.norm = maker >= 0 ? &l->items[maker].norm : NULL;
    }
    return added;
}

/* ---- forward ---- */

/*
 * Inference: stk_cuda_lower_weights() has folded the norm into the weights. The convolution adds
 * the bias and what follows.
 */
static void folded_chain(lowering *l, int chain) {
    const stk_piece *piece = piece_of(l, chain);
    const stk_node *norm = graph_node_of(l, piece->norm);
    cuda_added added = added_of(l, piece);
    cuda_conv_op conv = stk_cuda_lower_forward_op(l, piece->conv, lower_buffer(l, piece->output));
    conv.bias = cuda_fresh(l->layout, norm->params[1]);
    conv.added = added.x;
    conv.shape.bias = true;
    conv.shape.added = cuda_is_something(added.x);
    conv.shape.act = lower_act(l, chain);
    l->values[piece->output].data = conv.y;
    stk_cuda_conv(l->p, &conv);
}

/*
 * The convolution of a chain in training, and the statistics of the chain's norm: the second part
 * of CUDA_FUSE_JOIN or CUDA_FUSE_NORM_CONV where the first was lowered with the input, and
 * otherwise CUDA_FUSE_STATS.
 */
static void conv_and_stats(lowering *l, int chain) {
    const stk_piece *piece = piece_of(l, chain);
    lowered_piece *item = &l->items[chain];
    const lower_value *v = &l->values[piece->inputs[0]];
    cuda_site site = {.forward = {.conv = stk_cuda_lower_forward_op(l, piece->conv, item->inner),
                                  .out = lower_plane(l, piece->output),
                                  .next = &item->norm,
                                  .norm_decision = v->norm_decision}};
    cuda_forward_site *s = &site.forward;
    bool normalises = cuda_is_something(v->raw);
    s->conv.stats = item->stats_scratch;
    s->conv.raw = v->raw;
    s->conv.in_norm = v->in_norm;
    bool fused = item->may_join ? item->join_variant == CUDA_FUSED
                 : normalises   ? v->norm_variant == CUDA_FUSED
                                : false;
    if (!fused) {
        cuda_decision decision = {.fusion = CUDA_FUSE_STATS, .shape = s->conv.shape};
        s->stats_variant = stk_cuda_decide(l->p, l->results, &decision, &s->stats_decision);
    }
    if (item->may_join) {
        stk_cuda_emit_variants(l->p, stk_cuda_emit_join, &site, 1, item->join_variant);
    } else if (normalises) {
        stk_cuda_emit_variants(l->p, stk_cuda_emit_norm_conv, &site, 1, v->norm_variant);
    } else {
        stk_cuda_emit_variants(l->p, stk_cuda_emit_stats, &site, 0, s->stats_variant);
    }
}

/* Appends a chain up to the coefficients of its norm. */
static void filter_forward(lowering *l, int chain) {
    const stk_piece *piece = piece_of(l, chain);
    lowered_piece *item = &l->items[chain];
    cuda_plane plane = lower_plane(l, piece->output);
    stk_cuda_lower_begin(l, chain, 0);
    if (is_depthwise(l, piece)) {
        cuda_depthwise conv = depthwise_of(l, piece);
        stk_cuda_depthwise(l->p, &conv, item->inner, piece->training ? &item->norm : NULL);
    } else if (piece->conv != STK_NO_NODE && piece->training) {
        conv_and_stats(l, chain);
    } else if (piece->conv != STK_NO_NODE) {
        cuda_conv_op conv = stk_cuda_lower_forward_op(l, piece->conv, item->inner);
        stk_cuda_conv(l->p, &conv);
    } else if (piece->training) {
        stk_cuda_norm_stats(l->p, plane, item->inner, &item->norm, item->stats_scratch);
    }
    if (!piece->training) {
        stk_cuda_norm_running(l->p, plane.channels, &item->norm);
    }
}

/*
 * Whether the chain that reads a value computes the value's norm and ReLU. The plain variant
 * contains CUDA_FUSE_STATS, and timing needs the winner of that first.
 */
static void decide_norm_conv(const lowering *l, lower_value *v) {
    const stk_piece *next = piece_of(l, v->reader);
    v->norm_variant = CUDA_PLAIN;
    if (next->node != STK_NO_NODE || !next->training) {
        return;
    }
    cuda_decision decision = {.fusion = CUDA_FUSE_STATS,
                              .shape = stk_cuda_lower_conv_shape(l, next->conv, CUDA_CONV_FORWARD)};
    decision.detail = stk_cuda_decision_result(l->results, &decision);
    decision.fusion = CUDA_FUSE_NORM_CONV;
    if (decision.detail != CUDA_UNDECIDED) {
        v->norm_variant = stk_cuda_decide(l->p, l->results, &decision, &v->norm_decision);
    }
}

void stk_cuda_lower_chain(lowering *l, int chain) {
    const stk_piece *piece = piece_of(l, chain);
    lowered_piece *item = &l->items[chain];
    if (!l->train && piece->conv != STK_NO_NODE && !is_depthwise(l, piece)) {
        folded_chain(l, chain);
        return;
    }
    lower_value *v = &l->values[piece->output];
    filter_forward(l, chain);
    if (item->by != LOWER_BY_ITSELF) {
        return;
    }
    cuda_plane plane = lower_plane(l, piece->output);
    cuda_site site = {.forward = {.plane = plane,
                                  .x = item->inner,
                                  .norm = &item->norm,
                                  .tail = tail_of(l, chain),
                                  .added = added_of(l, piece)}};
    cuda_forward_site *s = &site.forward;
    item->mask = cuda_nothing();
    if (piece->live && piece->add != STK_NO_NODE && piece->act != STK_NO_NODE) {
        size_t bytes = (size_t)(plane.channels + 7) / 8;
        item->mask = stk_cuda_buffer(l->p, (size_t)plane.batch * (size_t)plane.pixels * bytes);
    }
    bool over = !piece->live && piece->conv != STK_NO_NODE;
    v->data = over ? item->inner : lower_buffer(l, piece->output);
    s->mask = item->mask;
    s->y = v->data;
    if (item->norm.narrow) {
        v->raw = item->inner;
        v->in_norm = cuda_norm_narrow(&item->norm, plane.channels);
        decide_norm_conv(l, v);
        stk_cuda_emit_variants(l->p, stk_cuda_emit_norm_conv, &site, 0, v->norm_variant);
    } else if (!stk_cuda_lower_join(l, chain, &site)) {
        stk_cuda_norm_apply(l->p, plane, s->x, s->norm, &s->tail, &s->added, s->y, s->mask);
    }
}

/* ---- backward ---- */

/* Appends the gradients of the chain's convolution, from that of its output. */
static void filter_backward(lowering *l, const stk_piece *piece, cuda_ref dinner) {
    if (!is_depthwise(l, piece)) {
        stk_cuda_lower_conv_back(l, piece->conv, dinner);
        return;
    }
    cuda_depthwise conv = depthwise_of(l, piece);
    int maker = lower_left(l, piece->inputs[0], LOWER_BY_DEPTHWISE);
    if (maker >= 0) {
        l->items[maker].norm.back = stk_cuda_lower_norm_back(l, maker);
    }
    stk_cuda_lower_depthwise_back(l, &conv, piece->inputs[0], dinner);
}

/*
 * Where the gradient of what was added goes: into the memory of g when it is the first gradient of
 * that value, else it is added to the others. Without an activation g is that gradient itself.
 * Returns true when g must stay.
 */
static bool aim_added(lowering *l, int chain, cuda_ref g, cuda_added *added) {
    const stk_piece *piece = piece_of(l, chain);
    if (piece->add == STK_NO_NODE) {
        return false;
    }
    int value = piece->inputs[1];
    if (added->norm != NULL) {
        lowered_piece *maker = &l->items[l->values[value].maker];
        maker->dinner = lower_buffer(l, value);
        maker->norm.back = stk_cuda_lower_norm_back(l, chain);
        added->dx = maker->dinner;
        return false;
    }
    if (!l->pieces->needs_grad[value]) {
        return false;
    }
    lower_value *v = &l->values[value];
    added->accumulate = cuda_is_something(v->grad);
    if (!added->accumulate) {
        v->grad = g;
        added->dx = piece->act != STK_NO_NODE ? g : cuda_nothing();
        return true;
    }
    added->dx = v->grad;
    return false;
}

/*
 * The norm's first pass, and the weight gradient that waits for what the pass computes again:
 * CUDA_FUSE_NORM_WEIGHT. Where a fused layer has computed that gradient already, the pass runs
 * alone.
 */
static void reduce_and_weight(lowering *l, const lower_value *v, const cuda_norm_back *back,
                              int value) {
    const lower_late_weight *late = &v->late;
    bool normalises = cuda_is_something(v->raw);
    size_t with = stk_cuda_norm_reduce_scratch(l->p, back, true);
    size_t without = stk_cuda_norm_reduce_scratch(l->p, back, false);
    cuda_site site = {.norm_weight = {.back = *back, .again = lower_buffer(l, value)}};
    cuda_norm_weight_site *s = &site.norm_weight;
    s->scratch = stk_cuda_buffer(l->p, with > without ? with : without);
    s->conv = stk_cuda_lower_weight_op(l, late->node, s->again, late->dy);
    s->conv.raw = v->raw;
    s->conv.in_norm = v->in_norm;
    int variant = CUDA_PLAIN;
    if (normalises && !late->done) {
        cuda_decision decision = {.fusion = CUDA_FUSE_NORM_WEIGHT, .shape = s->conv.shape};
        variant = stk_cuda_decide(l->p, l->results, &decision, &s->decision);
    }
    cuda_variant_span span = stk_cuda_variants_begin(l->p);
    if (normalises) {
        stk_cuda_emit_variants(l->p, stk_cuda_emit_norm_weight, &site, 0, variant);
    } else {
        stk_cuda_fusions[CUDA_FUSE_NORM_WEIGHT].emit(l->p, &site, 0, CUDA_PLAIN);
    }
    stk_cuda_variants_add(l->p, &span, !late->done);
    stk_cuda_norm_reduce(l->p, back, cuda_nothing(), s->scratch);
    stk_cuda_variants_add(l->p, &span, late->done);
    stk_cuda_variants_end(l->p, &span);
}

/* The norm's first pass, where no other piece has done it. Returns what the second pass needs. */
static cuda_norm_back reduce_norm(lowering *l, int chain) {
    const stk_piece *piece = piece_of(l, chain);
    lowered_piece *item = &l->items[chain];
    lower_value *output = &l->values[piece->output];
    cuda_norm_back back = {.plane = lower_plane(l, piece->output),
                           .g = output->grad,
                           .x = item->inner,
                           .norm = &item->norm,
                           .tail = tail_of(l, chain),
                           .added = added_of(l, piece),
                           .mask = item->mask,
                           .dx = output->grad};
    if (item->by == LOWER_BY_DEPTHWISE) {
        back.tail = (cuda_tail){.act = STK_OP_COUNT};
        back.mask = cuda_nothing();
        return back;
    }
    bool stays = aim_added(l, chain, back.g, &back.added);
    item->norm.back = stk_cuda_lower_norm_back(l, chain);
    if (output->may_join_back) {
        output->join_back.join_back.back = back;
        stk_cuda_emit_variants(l->p, stk_cuda_emit_join_back, &output->join_back, 1,
                               output->join_back_variant);
    } else if (output->late.node >= 0) {
        reduce_and_weight(l, output, &back, piece->output);
    } else {
        stk_cuda_norm_reduce(l->p, &back, cuda_nothing(), cuda_nothing());
    }
    back.dx = stays ? lower_buffer(l, piece->output) : back.g;
    return back;
}

/* The norm's second pass. */
static void norm_backward(lowering *l, lower_value *output, const cuda_norm_back *back) {
    if (output->may_join_back) {
        output->join_back.join_back.back = *back;
        stk_cuda_emit_variants(l->p, stk_cuda_emit_join_back, &output->join_back, 2,
                               output->join_back_variant);
    } else {
        stk_cuda_norm_backward(l->p, back);
    }
}

/* LOWER_BY_POOL: backward of the maximum and of the chain's norm together. Returns the gradient of
 * what the norm read. */
static cuda_ref pool_back(lowering *l, int chain) {
    lowered_piece *item = &l->items[chain];
    const stk_node *n = graph_node_of(l, piece_of(l, item->pool)->node);
    cuda_pool pool = lower_pool(l, n);
    item->norm.back = stk_cuda_lower_norm_back(l, chain);
    cuda_ref dx = lower_buffer(l, n->inputs[0]);
    stk_cuda_pool_norm_back(l->p, &pool, l->items[item->pool].where, l->values[n->output].grad,
                            item->inner, &item->norm, lower_act(l, chain), dx);
    return dx;
}

void stk_cuda_lower_chain_back(lowering *l, int chain) {
    const stk_piece *piece = piece_of(l, chain);
    const lowered_piece *item = &l->items[chain];
    cuda_ref dinner = item->dinner;
    if (item->done) {
        return;
    }
    if (item->by == LOWER_BY_POOL) {
        dinner = pool_back(l, chain);
    } else if (item->by != LOWER_BY_SUM && item->by != LOWER_BY_SQUEEZE) {
        cuda_norm_back back = reduce_norm(l, chain);
        if (stk_cuda_lower_layer_back(l, chain, &back)) {
            return;
        }
        norm_backward(l, &l->values[piece->output], &back);
        dinner = back.dx;
    }
    if (piece->conv != STK_NO_NODE) {
        filter_backward(l, piece, dinner);
    } else if (l->pieces->needs_grad[piece->inputs[0]]) {
        bool accumulate;
        cuda_ref dx = stk_cuda_lower_grad(l, piece->inputs[0], &accumulate);
        stk_cuda_pass(l->p, lower_count(l, piece->output), dinner, dx, accumulate);
    }
}

/* ---- squeeze and excite ---- */

void stk_cuda_lower_squeeze(lowering *l, int index) {
    const stk_piece *piece = piece_of(l, index);
    lowered_piece *item = &l->items[index];
    cuda_squeeze *s = &item->squeeze;
    size_t batch = (size_t)l->batch;
    s->x = l->items[item->source].inner;
    s->norm = &l->items[item->source].norm;
    s->squeezed = stk_cuda_buffer(l->p, batch * (size_t)s->plane.channels * sizeof(float));
    s->hidden = stk_cuda_buffer(l->p, batch * (size_t)s->reduced * sizeof(float));
    s->gate = stk_cuda_buffer(l->p, batch * (size_t)s->plane.channels * sizeof(float));
    l->values[piece->output].data = lower_buffer(l, piece->output);
    stk_cuda_squeeze(l->p, s, l->values[piece->output].data);
}

void stk_cuda_lower_squeeze_back(lowering *l, int index) {
    const stk_piece *piece = piece_of(l, index);
    lowered_piece *item = &l->items[index];
    cuda_squeeze *s = &item->squeeze;
    cuda_ref dp = l->values[piece->output].grad;
    cuda_ref again = cuda_nothing();
    const lower_late_weight *late = &l->values[piece->output].late;
    if (late->node >= 0) {
        again = lower_buffer(l, piece->output);
    }
    cuda_ref dsqueezed =
        stk_cuda_buffer(l->p, (size_t)l->batch * (size_t)s->plane.channels * sizeof(float));
    lowered_piece *source = &l->items[item->source];
    source->norm.back = stk_cuda_lower_norm_back(l, item->source);
    stk_cuda_squeeze_reduce(l->p, s, dp, again, dsqueezed);
    if (late->node >= 0) {
        stk_cuda_lower_weight(l, late->node, again, late->dy);
    }
    stk_cuda_squeeze_backward(l->p, s, dp, dsqueezed, dp);
    source->dinner = dp;
}
