/*
 * cuda_lower_layer.c - the second pass backward of a norm and the convolution of 1 by 1 before it.
 *
 * In one kernel or in three operations, as the device has found out. The one needs the
 * convolution's input at once; where that is computed again in backward, it is so by the norm
 * before it, in a pass that comes later: so the kernel computes it itself, and nothing waits for
 * that pass. For the sake of the memory plan all buffers of both ways live from the first operation
 * to the last in either, and what would have waited is held until then.
 */
#include "backend/cuda/cuda_layer.h"
#include "backend/cuda/cuda_lowering.h"

/* Whether a chain's convolution is one that this is about. */
static bool is_one_of_these(const lowering *l, const stk_piece *piece) {
    if (piece->conv == STK_NO_NODE || !stk_cuda_lower_is_pointwise(l, piece->conv)) {
        return false;
    }
    const stk_node *n = lower_node(l, piece->conv);
    return n->param_count == 1 && stk_cuda_lower_learns(l, piece->conv) &&
           l->pieces->needs_grad[n->inputs[0]];
}

/* What stands behind the norm: not what only three operations can do. */
static bool is_simple(const lower_pass *pass) {
    bool reads_added = cuda_is_something(pass->added.x) && pass->tail.act != STK_OP_COUNT &&
                       !cuda_is_something(pass->mask);
    return pass->added.norm == NULL && !pass->added.accumulate && !reads_added;
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

/* `sums`: of the norm in front, where the convolution could have summed for it. */
static void hold(cuda_program *p, const cuda_layer_back *layer, const lower_pass *pass,
                 const lower_pass *other, cuda_ref sums) {
    cuda_launch *held = stk_cuda_hold(p);
    stk_cuda_arg(held, layer->g);
    stk_cuda_arg(held, layer->x);
    stk_cuda_arg(held, layer->norm->coefs);
    stk_cuda_arg(held, layer->norm->back);
    stk_cuda_arg(held, pass->mask);
    stk_cuda_arg(held, pass->added.dx);
    stk_cuda_arg(held, layer->input);
    stk_cuda_arg(held, layer->in_norm != NULL ? layer->in_norm->coefs : cuda_nothing());
    stk_cuda_arg(held, layer->dx);
    stk_cuda_arg(held, layer->partial);
    stk_cuda_arg(held, pass->dx);
    stk_cuda_arg(held, sums);
    if (other != NULL) {
        stk_cuda_arg(held, other->mask);
        stk_cuda_arg(held, other->added.dx);
    }
}

/* Bytes for partial sums, for whichever pass it may be; 0: one of them needs three operations. */
static size_t scratch_of(const cuda_program *p, const cuda_layer_back *layer,
                         const lower_pass *other) {
    size_t bytes = stk_cuda_layer_back_scratch(p, layer);
    if (bytes == 0 || other == NULL) {
        return bytes;
    }
    cuda_layer_back next = *layer;
    next.tail = &other->tail;
    next.mask = other->mask;
    next.added_dx = other->added.dx;
    size_t others = stk_cuda_layer_back_scratch(p, &next);
    return others == 0 || others > bytes ? others : bytes;
}

static void emit(lowering *l, int node, const cuda_layer_back *layer, const lower_pass *pass,
                 int way) {
    lower_value *v = &l->values[lower_node(l, node)->inputs[0]];
    if (way == CUDA_LAYER_TOGETHER) {
        stk_cuda_layer_back(l->p, layer);
        v->spared = v->again;
        v->waiting_dy = pass->dx;
        return;
    }
    stk_cuda_norm_backward(l->p, layer->plane, pass->g, layer->x, layer->norm, &pass->tail,
                           &pass->added, pass->mask, pass->dx);
    stk_cuda_lower_conv_weight(l, node, pass->dx);
    stk_cuda_lower_conv_data(l, node, pass->dx, layer->dx, layer->accumulate);
}

/* Where the gradient of the input can be summed for the norm in front, that is asked first. */
static int ask(lowering *l, int node, const cuda_layer_back *layer) {
    const lower_value *v = &l->values[lower_node(l, node)->inputs[0]];
    int asked;
    stk_cuda_lower_join_back_ask(l, node, layer->accumulate);
    cuda_question question =
        stk_cuda_layer_question(layer, stk_cuda_lower_shape(l, node, CUDA_CONV_DATA));
    return v->joins ? CUDA_LAYER_APART : stk_cuda_ask(l->p, l->choices, &question, &asked);
}

bool stk_cuda_lower_layer_back(lowering *l, int index, const lower_pass *pass,
                               const lower_pass *other) {
    const stk_piece *piece = &l->pieces->items[index];
    if (!is_one_of_these(l, piece) || !is_simple(pass)) {
        return false;
    }
    const stk_node *n = lower_node(l, piece->conv);
    cuda_layer_back layer = {.plane = lower_plane(l, n->output),
                             .channels = lower_shape(l, n->inputs[0]).channels,
                             .g = pass->g,
                             .x = l->items[index].inner,
                             .norm = &l->items[index].norm,
                             .tail = &pass->tail,
                             .mask = pass->mask,
                             .added_dx = pass->added.dx,
                             .weight = cuda_weight(l->layout, n->params[0]),
                             .weight_grad = cuda_fresh(l->layout, n->params[0]),
                             .dx = cuda_nothing(),
                             .accumulate = cuda_is_something(l->values[n->inputs[0]].grad),
                             .partial = cuda_nothing()};
    size_t bytes = find_input(l, n->inputs[0], &layer) ? scratch_of(l->p, &layer, other) : 0;
    if (bytes == 0) {
        return false;
    }
    layer.partial = stk_cuda_buffer(l->p, bytes);
    layer.dx = stk_cuda_lower_grad(l, n->inputs[0], &layer.accumulate);
    int way = ask(l, piece->conv, &layer);
    cuda_ref sums = l->values[n->inputs[0]].join.partial;
    hold(l->p, &layer, pass, other, sums);
    emit(l, piece->conv, &layer, pass, way);
    hold(l->p, &layer, pass, other, sums);
    return true;
}
