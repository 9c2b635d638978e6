/*
 * chain_back.c - the second pass backward of a norm and the convolution of 1 by 1 before it.
 *
 * In one kernel or in three operations, as the device has found out. The one needs the
 * convolution's input at once; where that is computed again in backward, it is so by the norm
 * before it, in a pass that comes later: so the kernel computes it itself, and nothing waits for
 * that pass. For the sake of the memory plan all buffers of both ways live from the first operation
 * to the last in either, and what would have waited is held until then.
 *
 * Where two chains are added, each as it comes from its convolution, both go at once or neither: in
 * the plain way one pass over all rows does both norms.
 */
#include "backend/cuda/tuning/norm_conv_back.h"
#include "backend/cuda/lowering/lowering.h"

/* Whether a chain's convolution is one that this is about. */
static bool is_one_of_these(const lowering *l, const stk_piece *piece) {
    if (piece->conv == STK_NO_NODE || !stk_cuda_lower_is_pointwise(l, piece->conv)) {
        return false;
    }
    const stk_node *n = lower_node(l, piece->conv);
    return n->param_count == 1 && stk_cuda_lower_learns(l, piece->conv) &&
           l->pieces->needs_grad[n->inputs[0]];
}

/* The convolution's input: a value, or what the norm before it reads. False: neither. */
static bool find_input(const lowering *l, int value, cuda_layer_back *layer) {
    const lower_value *v = &l->values[value];
    layer->input = v->data;
    if (v->again) {
        const stk_piece *maker = &l->pieces->items[v->maker];
        if (l->items[v->maker].kind != LOWER_CHAIN || maker->drop != STK_NO_NODE) {
            return false;
        }
        layer->input = l->items[v->maker].inner;
        layer->in_norm = &l->items[v->maker].norm;
        layer->in_act = lower_node(l, maker->act)->op;
    }
    return cuda_is_something(layer->input);
}

/* A layer, and what it would be had a question been answered otherwise. */
typedef struct layer_site {
    int index; /* of the chain */
    cuda_layer_back layer;
    const lower_pass *other; /* NULL: there was no such question */
    cuda_ref dy;             /* where the gradient of the convolution's output goes if apart */
} layer_site;

static void hold(const lowering *l, const layer_site *site) {
    const cuda_layer_back *layer = &site->layer;
    cuda_launch *held = stk_cuda_hold(l->p);
    stk_cuda_arg(held, layer->g);
    stk_cuda_arg(held, layer->x);
    stk_cuda_arg(held, layer->norm->coefs);
    stk_cuda_arg(held, layer->norm->back);
    stk_cuda_arg(held, layer->mask);
    stk_cuda_arg(held, layer->added_dx);
    stk_cuda_arg(held, layer->input);
    stk_cuda_arg(held, layer->in_norm != NULL ? layer->in_norm->coefs : cuda_nothing());
    stk_cuda_arg(held, layer->dx);
    stk_cuda_arg(held, layer->partial);
    stk_cuda_arg(held, site->dy);
    stk_cuda_arg(held, l->values[l->pieces->items[site->index].inputs[0]].join.partial);
    if (site->other != NULL) {
        stk_cuda_arg(held, site->other->mask);
        stk_cuda_arg(held, site->other->added.dx);
    }
}

/* Bytes for partial sums, in whichever way; 0: one of them needs three operations. */
static size_t scratch_of(const cuda_program *p, const layer_site *site) {
    size_t bytes = stk_cuda_layer_back_scratch(p, &site->layer);
    if (bytes == 0 || site->other == NULL) {
        return bytes;
    }
    cuda_layer_back next = site->layer;
    next.tail = &site->other->tail;
    next.mask = site->other->mask;
    next.added_dx = site->other->added.dx;
    size_t others = stk_cuda_layer_back_scratch(p, &next);
    return others == 0 || others > bytes ? others : bytes;
}

/* A layer about which there is something to choose; false: there is not. */
static bool find_layer(const lowering *l, int index, const lower_pass *pass, const cuda_tail *tail,
                       cuda_ref added_dx, layer_site *site) {
    const stk_piece *piece = &l->pieces->items[index];
    if (!is_one_of_these(l, piece)) {
        return false;
    }
    const stk_node *n = lower_node(l, piece->conv);
    site->index = index;
    site->layer = (cuda_layer_back){.plane = lower_plane(l, n->output),
                                    .channels = lower_shape(l, n->inputs[0]).channels,
                                    .g = pass->g,
                                    .x = l->items[index].inner,
                                    .norm = &l->items[index].norm,
                                    .tail = tail,
                                    .mask = pass->mask,
                                    .added_dx = added_dx,
                                    .weight = cuda_weight(l->layout, n->params[0]),
                                    .weight_grad = cuda_fresh(l->layout, n->params[0]),
                                    .dx = cuda_nothing(),
                                    .accumulate = cuda_is_something(l->values[n->inputs[0]].grad),
                                    .partial = cuda_nothing()};
    return find_input(l, n->inputs[0], &site->layer) && scratch_of(l->p, site) > 0;
}

/*
 * Buffers that it alone has. Where the gradient of the input could be summed for the norm in front,
 * that is asked first: true when it is.
 */
static bool begin_layer(lowering *l, layer_site *site) {
    const stk_piece *piece = &l->pieces->items[site->index];
    cuda_layer_back *layer = &site->layer;
    layer->partial = stk_cuda_buffer(l->p, scratch_of(l->p, site));
    layer->dx = stk_cuda_lower_grad(l, piece->inputs[0], &layer->accumulate);
    stk_cuda_lower_join_back_ask(l, piece->conv, layer->accumulate);
    return l->values[piece->inputs[0]].joins;
}

/* In one kernel. */
static void emit_together(lowering *l, const layer_site *site) {
    lower_value *v = &l->values[l->pieces->items[site->index].inputs[0]];
    stk_cuda_layer_back(l->p, &site->layer);
    v->spared = v->again;
    v->waiting_dy = site->dy;
}

/* The convolution alone. */
static void emit_conv(lowering *l, const layer_site *site) {
    int node = l->pieces->items[site->index].conv;
    stk_cuda_lower_conv_weight(l, node, site->dy);
    stk_cuda_lower_conv_data(l, node, site->dy, site->layer.dx, site->layer.accumulate);
}

static void emit_norm(lowering *l, int index, const lower_pass *pass) {
    const lower_piece *item = &l->items[index];
    stk_cuda_norm_backward(l->p, lower_plane(l, l->pieces->items[index].output), pass->g,
                           item->inner, &item->norm, &pass->tail, &pass->added, pass->mask,
                           pass->dx);
}

/* One layer, or two. */
static void emit(lowering *l, const lower_pass *pass, layer_site *sites, int count) {
    bool joins = false;
    int asked;
    for (int i = 0; i < count; i++) {
        joins = begin_layer(l, &sites[i]) || joins;
    }
    cuda_question question = stk_cuda_layer_question(
        &sites[0].layer, count > 1 ? &sites[1].layer : NULL,
        stk_cuda_lower_shape(l, l->pieces->items[sites[0].index].conv, CUDA_CONV_DATA));
    int way = joins ? CUDA_LAYER_APART : stk_cuda_ask(l->p, l->choices, &question, &asked);
    for (int i = 0; i < count; i++) {
        hold(l, &sites[i]);
    }
    if (way == CUDA_LAYER_APART) {
        emit_norm(l, sites[0].index, pass);
    }
    for (int i = 0; i < count; i++) {
        way == CUDA_LAYER_APART ? emit_conv(l, &sites[i]) : emit_together(l, &sites[i]);
    }
    for (int i = 0; i < count; i++) {
        hold(l, &sites[i]);
    }
}

/* A chain, and the one that is added to it as it comes from its convolution. */
static bool sum_back(lowering *l, int index, const lower_pass *pass, const lower_pass *other) {
    const stk_piece *piece = &l->pieces->items[index];
    int added = l->values[piece->inputs[1]].maker;
    cuda_tail tail = {.act = pass->tail.act};
    layer_site sites[2] = {{.other = other, .dy = pass->dx},
                           {.other = other, .dy = pass->added.dx}};
    if (!find_layer(l, index, pass, &pass->tail, cuda_nothing(), &sites[0]) ||
        !find_layer(l, added, pass, &tail, cuda_nothing(), &sites[1]) ||
        sites[0].layer.channels != sites[1].layer.channels || sites[1].layer.in_norm != NULL ||
        l->pieces->items[added].inputs[0] == piece->inputs[0]) {
        return false;
    }
    emit(l, pass, sites, 2);
    l->items[added].done = true;
    return true;
}

bool stk_cuda_lower_layer_back(lowering *l, int index, const lower_pass *pass,
                               const lower_pass *other) {
    layer_site site = {.other = other, .dy = pass->dx};
    bool act_reads_sum = cuda_is_something(pass->added.x) && pass->tail.act != STK_OP_COUNT &&
                         !cuda_is_something(pass->mask);
    if (act_reads_sum || pass->added.accumulate) {
        return false;
    }
    if (pass->added.norm != NULL) {
        return sum_back(l, index, pass, other);
    }
    if (!find_layer(l, index, pass, &pass->tail, pass->added.dx, &site)) {
        return false;
    }
    emit(l, pass, &site, 1);
    return true;
}
