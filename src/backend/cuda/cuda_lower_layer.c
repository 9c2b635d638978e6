/*
 * cuda_lower_layer.c - the second pass backward of a norm and the convolution of 1 by 1 before it.
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
#include "backend/cuda/cuda_layer.h"
#include "backend/cuda/cuda_lowering.h"

/* Whether a chain's convolution is one that this is about. */
static bool is_pointwise(const lowering *l, const stk_piece *piece) {
    if (piece->conv == STK_NO_NODE || lower_node(l, piece->conv)->op != STK_OP_CONV) {
        return false;
    }
    const stk_node *n = lower_node(l, piece->conv);
    return n->kernel == 1 && n->stride == 1 && n->pad == 0 && n->param_count == 1 &&
           n->inputs[0] != l->graph->input && stk_cuda_lower_learns(l, piece->conv) &&
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

static void hold(cuda_program *p, const cuda_layer_back *layer, cuda_ref dy) {
    cuda_launch *held = stk_cuda_hold(p);
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
    stk_cuda_arg(held, dy);
}

/* A layer about which there is something to choose; false: there is not. */
static bool find_layer(const lowering *l, int index, const lower_pass *pass, const cuda_tail *tail,
                       cuda_layer_back *layer) {
    const stk_piece *piece = &l->pieces->items[index];
    if (!is_pointwise(l, piece)) {
        return false;
    }
    const stk_node *n = lower_node(l, piece->conv);
    *layer = (cuda_layer_back){.plane = lower_plane(l, n->output),
                               .channels = lower_shape(l, n->inputs[0]).channels,
                               .g = pass->g,
                               .x = l->items[index].inner,
                               .norm = &l->items[index].norm,
                               .tail = tail,
                               .mask = pass->mask,
                               .added_dx = cuda_nothing(),
                               .weight = cuda_weight(l->layout, n->params[0]),
                               .weight_grad = cuda_fresh(l->layout, n->params[0]),
                               .dx = cuda_nothing(),
                               .accumulate = cuda_is_something(l->values[n->inputs[0]].grad),
                               .partial = cuda_nothing()};
    return find_input(l, n->inputs[0], layer) && stk_cuda_layer_back_scratch(l->p, layer) > 0;
}

/* Buffers that it alone has. */
static void begin_layer(lowering *l, int index, cuda_layer_back *layer) {
    layer->partial = stk_cuda_buffer(l->p, stk_cuda_layer_back_scratch(l->p, layer));
    layer->dx = stk_cuda_lower_grad(l, l->pieces->items[index].inputs[0], &layer->accumulate);
}

/* In one kernel. */
static void emit_together(lowering *l, int index, const cuda_layer_back *layer, cuda_ref dy) {
    lower_value *v = &l->values[l->pieces->items[index].inputs[0]];
    stk_cuda_layer_back(l->p, layer);
    v->spared = v->again;
    v->waiting_dy = dy;
}

/* The convolution alone. */
static void emit_conv(lowering *l, int index, const cuda_layer_back *layer, cuda_ref dy) {
    int node = l->pieces->items[index].conv;
    stk_cuda_lower_conv_weight(l, node, dy);
    stk_cuda_lower_conv_data(l, node, dy, layer->dx, layer->accumulate);
}

static void emit_norm(lowering *l, int index, const lower_pass *pass) {
    const lower_piece *item = &l->items[index];
    stk_cuda_norm_backward(l->p, lower_plane(l, l->pieces->items[index].output), pass->g,
                           item->inner, &item->norm, &pass->tail, &pass->added, pass->mask,
                           pass->dx);
}

/* A chain, and the one that is added to it as it comes from its convolution. */
static bool sum_back(lowering *l, int index, const lower_pass *pass) {
    const stk_piece *piece = &l->pieces->items[index];
    int other = l->values[piece->inputs[1]].maker;
    cuda_tail tail = {.act = pass->tail.act};
    cuda_layer_back layers[2];
    int asked;
    if (!find_layer(l, index, pass, &pass->tail, &layers[0]) ||
        !find_layer(l, other, pass, &tail, &layers[1]) ||
        layers[0].channels != layers[1].channels || layers[1].in_norm != NULL ||
        l->pieces->items[other].inputs[0] == piece->inputs[0]) {
        return false;
    }
    begin_layer(l, index, &layers[0]);
    begin_layer(l, other, &layers[1]);
    cuda_question question = stk_cuda_layer_question(
        &layers[0], &layers[1], stk_cuda_lower_shape(l, piece->conv, CUDA_CONV_DATA));
    int way = stk_cuda_ask(l->p, l->choices, &question, &asked);
    hold(l->p, &layers[0], pass->dx);
    hold(l->p, &layers[1], pass->added.dx);
    if (way == CUDA_LAYER_TOGETHER) {
        emit_together(l, index, &layers[0], pass->dx);
        emit_together(l, other, &layers[1], pass->added.dx);
    } else {
        emit_norm(l, index, pass);
        emit_conv(l, index, &layers[0], pass->dx);
        emit_conv(l, other, &layers[1], pass->added.dx);
    }
    hold(l->p, &layers[0], pass->dx);
    hold(l->p, &layers[1], pass->added.dx);
    l->items[other].done = true;
    return true;
}

bool stk_cuda_lower_layer_back(lowering *l, int index, const lower_pass *pass) {
    cuda_layer_back layer;
    int asked;
    bool act_reads_sum = cuda_is_something(pass->added.x) && pass->tail.act != STK_OP_COUNT &&
                         !cuda_is_something(pass->mask);
    if (act_reads_sum || pass->added.accumulate) {
        return false;
    }
    if (pass->added.norm != NULL) {
        return sum_back(l, index, pass);
    }
    if (!find_layer(l, index, pass, &pass->tail, &layer)) {
        return false;
    }
    layer.added_dx = pass->added.dx;
    begin_layer(l, index, &layer);
    cuda_question question = stk_cuda_layer_question(
        &layer, NULL, stk_cuda_lower_shape(l, l->pieces->items[index].conv, CUDA_CONV_DATA));
    int way = stk_cuda_ask(l->p, l->choices, &question, &asked);
    hold(l->p, &layer, pass->dx);
    if (way == CUDA_LAYER_TOGETHER) {
        emit_together(l, index, &layer, pass->dx);
    } else {
        emit_norm(l, index, pass);
        emit_conv(l, index, &layer, pass->dx);
    }
    hold(l->p, &layer, pass->dx);
    return true;
}
