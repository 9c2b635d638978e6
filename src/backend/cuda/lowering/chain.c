/*
 * chain.c - chains of a convolution, a norm and what stands behind it, and the
 * squeeze-and-excite block that may follow.
 *
 * A gradient that ends in a chain is used up there: the gradient of the convolution's output, or
 * that of what was added, takes its memory.
 */
#include "backend/cuda/lowering/lowering.h"
#include "backend/cuda/tuning/norm_conv.h"
#include "backend/cuda/tuning/conv_stats.h"

cuda_norm stk_cuda_lower_norm(const lowering *l, int node) {
    const stk_node *n = lower_node(l, node);
    size_t channels = (size_t)lower_shape(l, n->output).channels;
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

static const stk_piece *piece_of(const lowering *l, int piece) {
    return &l->pieces->items[piece];
}

static stk_op act_of(const lowering *l, const stk_piece *piece) {
    return piece->act != STK_NO_NODE ? lower_node(l, piece->act)->op : STK_OP_COUNT;
}

static cuda_tail tail_of(const lowering *l, const stk_piece *piece) {
    cuda_tail tail = {.act = act_of(l, piece)};
    if (piece->drop != STK_NO_NODE && piece->training) {
        tail.drop_node = piece->drop;
        tail.drop_rate = lower_node(l, piece->drop)->rate;
    }
    return tail;
}

static bool is_depthwise(const lowering *l, const stk_piece *piece) {
    return piece->conv != STK_NO_NODE && lower_node(l, piece->conv)->op == STK_OP_DEPTHWISE;
}

/* The depthwise convolution of a chain, which may do the norm and activation of the one before. */
static cuda_depthwise depthwise_of(lowering *l, const stk_piece *piece) {
    int maker = lower_left(l, piece->inputs[0], LOWER_BY_DEPTHWISE);
    if (maker < 0) {
        return stk_cuda_lower_depthwise(l, piece->conv,
                                        stk_cuda_lower_pictures(l, piece->inputs[0]));
    }
    cuda_depthwise conv = stk_cuda_lower_depthwise(l, piece->conv, l->items[maker].inner);
    conv.in_norm = &l->items[maker].norm;
    conv.in_act = act_of(l, piece_of(l, maker));
    return conv;
}

/* What is added: a value, or one that its chain has left unfinished. */
static cuda_added added_of(lowering *l, const stk_piece *piece) {
    cuda_added added = {.x = cuda_nothing(), .dx = cuda_nothing()};
    if (piece->add != STK_NO_NODE) {
        int maker = lower_left(l, piece->inputs[1], LOWER_BY_SUM);
        added.x = maker >= 0 ? l->items[maker].inner : stk_cuda_lower_pictures(l, piece->inputs[1]);
        added.norm = maker >= 0 ? &l->items[maker].norm : NULL;
    }
    return added;
}

/*
 * Inference: the norm is in the weights already, and the library adds the bias and what comes
 * behind.
 */
static void folded_chain(lowering *l, const stk_piece *piece) {
    const stk_node *norm = lower_node(l, piece->norm);
    cuda_added added = added_of(l, piece);
    cuda_conv_shape shape = stk_cuda_lower_shape(l, piece->conv, CUDA_CONV_FORWARD);
    cuda_conv_op conv =
        cuda_conv_of(&shape, l->values[piece->inputs[0]].data,
                     stk_cuda_lower_filter(l, piece->conv), lower_buffer(l, piece->output));
    conv.bias = cuda_fresh(l->layout, norm->params[1]);
    conv.added = added.x;
    conv.shape.bias = true;
    conv.shape.added = cuda_is_something(added.x);
    conv.shape.act = act_of(l, piece);
    l->values[piece->output].data = conv.y;
    stk_cuda_conv(l->p, &conv);
}

/* Whether a library's convolution could compute the chain's norm and activation as it loads. */
static bool can_be_normed(const lowering *l, int index) {
    const stk_piece *piece = piece_of(l, index);
    return l->p->type == CUDA_TYPE_F16 && l->items[index].by == LOWER_BY_ITSELF &&
           piece->training && piece->live && piece->add == STK_NO_NODE &&
           piece->drop == STK_NO_NODE && act_of(l, piece) == STK_OP_RELU &&
           lower_shape(l, piece->output).channels % 8 == 0 && l->values[piece->output].again;
}

void stk_cuda_lower_begin(lowering *l, int index, size_t stats_bytes) {
    const stk_piece *piece = piece_of(l, index);
    lower_piece *item = &l->items[index];
    if (item->begun) {
        return;
    }
    item->begun = true;
    item->norm = stk_cuda_lower_norm(l, piece->norm);
    item->norm.narrow = can_be_normed(l, index);
    if (piece->training && !is_depthwise(l, piece)) {
        size_t bytes = stk_cuda_norm_scratch(l->p, lower_plane(l, piece->output));
        item->stats = stk_cuda_buffer(l->p, bytes > stats_bytes ? bytes : stats_bytes);
    }
    if (piece->conv == STK_NO_NODE) {
        item->inner = stk_cuda_lower_pictures(l, piece->inputs[0]);
    } else {
        item->inner = lower_buffer(l, piece->inner);
    }
}

static void filter_forward(lowering *l, int index) {
    const stk_piece *piece = piece_of(l, index);
    lower_piece *item = &l->items[index];
    cuda_plane plane = lower_plane(l, piece->output);
    bool summed = false;
    stk_cuda_lower_begin(l, index, 0);
    if (item->joined) {
        stk_cuda_lower_joined(l, index);
        return;
    }
    if (is_depthwise(l, piece)) {
        cuda_depthwise conv = depthwise_of(l, piece);
        stk_cuda_depthwise(l->p, &conv, item->inner, piece->training ? &item->norm : NULL);
    } else if (piece->conv != STK_NO_NODE) {
        summed = stk_cuda_lower_conv(l, piece->conv, item->inner, item->stats);
    }
    if (!piece->training) {
        stk_cuda_norm_running(l->p, plane.channels, &item->norm);
    } else if (summed) {
        stk_cuda_norm_settle(l->p, plane, &item->norm, item->stats);
    } else if (!is_depthwise(l, piece)) {
        stk_cuda_norm_stats(l->p, plane, item->inner, &item->norm, item->stats);
    }
}

/*
 * Asks whether the chain that reads a value is to compute it; for what it returns see
 * lower_value.normed_by. Only a convolution that takes statistics can, so that it is known first
 * whether it otherwise does.
 */
static int ask_normed(const lowering *l, int value) {
    const stk_piece *next = piece_of(l, l->values[value].reader);
    if (next->node != STK_NO_NODE || !next->training) {
        return 0;
    }
    cuda_question question = {.kind = CUDA_ASK_STATS,
                              .shape = stk_cuda_lower_shape(l, next->conv, CUDA_CONV_FORWARD)};
    int asked = 0;
    question.variant = stk_cuda_answer(l->choices, &question);
    question.kind = CUDA_ASK_NORMED;
    return question.variant != CUDA_UNDECIDED &&
                   stk_cuda_ask(l->p, l->choices, &question, &asked) == CUDA_NORMED_FUSED
               ? asked
               : 0;
}

/* The same of the gradient of the filters. */
static int ask_normed_back(const lowering *l, int value) {
    const lower_value *v = &l->values[value];
    int asked = 0;
    if (!v->waits || !cuda_is_something(v->raw)) {
        return 0;
    }
    cuda_question question = {.kind = CUDA_ASK_NORMED_BACK,
                              .shape = stk_cuda_lower_shape(l, v->waiting, CUDA_CONV_WEIGHT)};
    return stk_cuda_ask(l->p, l->choices, &question, &asked) == CUDA_NORMED_FUSED ? asked : 0;
}

void stk_cuda_lower_chain(lowering *l, int index) {
    const stk_piece *piece = piece_of(l, index);
    lower_piece *item = &l->items[index];
    if (!l->train && piece->conv != STK_NO_NODE && !is_depthwise(l, piece)) {
        folded_chain(l, piece);
        return;
    }
    lower_value *v = &l->values[piece->output];
    filter_forward(l, index);
    if (item->by != LOWER_BY_ITSELF) {
        return;
    }
    cuda_tail tail = tail_of(l, piece);
    cuda_added added = added_of(l, piece);
    cuda_plane plane = lower_plane(l, piece->output);
    item->mask = cuda_nothing();
    if (piece->live && piece->add != STK_NO_NODE && piece->act != STK_NO_NODE) {
        size_t bytes = (size_t)(plane.channels + 7) / 8;
        item->mask = stk_cuda_buffer(l->p, (size_t)plane.batch * (size_t)plane.pixels * bytes);
    }
    bool over = !piece->live && piece->conv != STK_NO_NODE;
    cuda_ref y = over ? item->inner : lower_buffer(l, piece->output);
    v->data = y;
    if (item->norm.narrow) {
        v->raw = item->inner;
        v->in_norm = cuda_norm_narrow(&item->norm, plane.channels);
        v->normed_by = ask_normed(l, piece->output);
    }
    if (v->normed_by > 0) {
        stk_cuda_arg(stk_cuda_hold(l->p), y);
    } else if (!stk_cuda_lower_join(l, index, &tail, &added)) {
        stk_cuda_norm_apply(l->p, plane, item->inner, &item->norm, &tail, &added, y, item->mask);
    }
}

static cuda_ref back_of(const lowering *l, const stk_piece *piece) {
    size_t channels = (size_t)lower_shape(l, piece->output).channels;
    return stk_cuda_buffer(l->p, 3 * channels * sizeof(float));
}

/* From the convolution's output to its input and weights. */
static void filter_backward(lowering *l, const stk_piece *piece, cuda_ref dinner) {
    if (!is_depthwise(l, piece)) {
        stk_cuda_lower_conv_back(l, piece->conv, dinner);
        return;
    }
    cuda_depthwise conv = depthwise_of(l, piece);
    int maker = lower_left(l, piece->inputs[0], LOWER_BY_DEPTHWISE);
    if (maker >= 0) {
        l->items[maker].norm.back = back_of(l, piece_of(l, maker));
    }
    stk_cuda_lower_depthwise_back(l, &conv, piece->inputs[0], dinner);
}

/*
 * Where the gradient of what was added goes: into the memory of g when it is the first, else it is
 * added. Without an activation g is that gradient itself. Returns true when g must stay.
 */
static bool aim_added(lowering *l, const stk_piece *piece, cuda_ref g, cuda_added *added) {
    if (piece->add == STK_NO_NODE) {
        return false;
    }
    int value = piece->inputs[1];
    if (added->norm != NULL) {
        lower_piece *maker = &l->items[l->values[value].maker];
        maker->dinner = lower_buffer(l, value);
        maker->norm.back = back_of(l, piece);
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
 * The first pass backward of the norm, where nobody has done it already; returns what the second
 * one needs.
 */
static lower_pass reduce_norm(lowering *l, int index) {
    const stk_piece *piece = piece_of(l, index);
    lower_piece *item = &l->items[index];
    lower_value *output = &l->values[piece->output];
    lower_pass pass = {.g = output->grad,
                       .tail = tail_of(l, piece),
                       .added = added_of(l, piece),
                       .mask = item->mask,
                       .dx = output->grad};
    if (item->by == LOWER_BY_DEPTHWISE) {
        pass.tail = (cuda_tail){.act = STK_OP_COUNT};
        pass.mask = cuda_nothing();
        return pass;
    }
    bool stays = aim_added(l, piece, pass.g, &pass.added);
    cuda_ref again = cuda_nothing();
    if (output->waits || output->spared) {
        again = lower_buffer(l, piece->output);
    }
    item->norm.back = back_of(l, piece);
    int normed_by = ask_normed_back(l, piece->output);
    stk_cuda_norm_reduce(l->p, lower_plane(l, piece->output), pass.g, item->inner, &item->norm,
                         &pass.tail, &pass.added, pass.mask, again,
                         normed_by > 0 || output->spared);
    stk_cuda_lower_join_back_settle(l, piece->output);
    stk_cuda_lower_waiting(l, piece->output, again, normed_by);
    pass.dx = stays ? lower_buffer(l, piece->output) : pass.g;
    return pass;
}

void stk_cuda_lower_chain_back(lowering *l, int index) {
    const stk_piece *piece = piece_of(l, index);
    lower_piece *item = &l->items[index];
    cuda_ref dinner = item->dinner;
    if (item->done) {
        return;
    }
    if (item->by == LOWER_BY_POOL) {
        item->norm.back = back_of(l, piece);
        dinner = stk_cuda_lower_pool_back(l, index);
    } else if (item->by != LOWER_BY_SUM && item->by != LOWER_BY_SQUEEZE) {
        const lower_value *output = &l->values[piece->output];
        bool may_join = cuda_is_something(output->join.partial);
        lower_pass plain = reduce_norm(l, index);
        lower_pass joined = may_join ? stk_cuda_lower_join_back_pass(&plain) : plain;
        const lower_pass *pass = output->joins ? &joined : &plain;
        const lower_pass *other = output->joins ? &plain : may_join ? &joined : NULL;
        if (stk_cuda_lower_layer_back(l, index, pass, other)) {
            return;
        }
        stk_cuda_norm_backward(l->p, lower_plane(l, piece->output), pass->g, item->inner,
                               &item->norm, &pass->tail, &pass->added, pass->mask, pass->dx);
        if (may_join) {
            stk_cuda_arg(stk_cuda_hold(l->p), plain.mask);
        }
        dinner = pass->dx;
    }
    if (piece->conv != STK_NO_NODE) {
        filter_backward(l, piece, dinner);
    } else if (l->pieces->needs_grad[piece->inputs[0]]) {
        bool accumulate;
        cuda_ref dx = stk_cuda_lower_grad(l, piece->inputs[0], &accumulate);
        stk_cuda_pass(l->p, lower_count(l, piece->output), dinner, dx, accumulate);
    }
}

void stk_cuda_lower_squeeze(lowering *l, int index) {
    const stk_piece *piece = piece_of(l, index);
    lower_piece *item = &l->items[index];
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
    lower_piece *item = &l->items[index];
    cuda_squeeze *s = &item->squeeze;
    cuda_ref dp = l->values[piece->output].grad;
    cuda_ref again = cuda_nothing();
    if (l->values[piece->output].waits) {
        again = lower_buffer(l, piece->output);
    }
    cuda_ref dsqueezed =
        stk_cuda_buffer(l->p, (size_t)l->batch * (size_t)s->plane.channels * sizeof(float));
    lower_piece *source = &l->items[item->source];
    source->norm.back = back_of(l, piece_of(l, item->source));
    stk_cuda_squeeze_reduce(l->p, s, dp, again, dsqueezed);
    stk_cuda_lower_waiting(l, piece->output, again, 0);
    stk_cuda_squeeze_backward(l->p, s, dp, dsqueezed, dp);
    source->dinner = dp;
}
