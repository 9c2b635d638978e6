/* nodes.c - single nodes: those in no chain, and all nodes where chains are not made. */
#include "backend/cuda/lowering/lowering.h"

static void max_pool(lowering *l, int index, const stk_node *n, cuda_ref y) {
    const stk_piece *piece = &l->pieces->items[index];
    cuda_pool pool = lower_pool(l, n);
    int chain = lower_left(l, n->inputs[0], LOWER_BY_POOL);
    const lowered_piece *maker = chain >= 0 ? &l->items[chain] : NULL;
    cuda_ref where = cuda_nothing();
    if (piece->live) {
        where = stk_cuda_buffer(l->p, lower_count(l, n->output));
    }
    l->items[index].where = where;
    stk_cuda_max_pool(l->p, &pool,
                      maker != NULL ? maker->inner : stk_cuda_lower_data(l, n->inputs[0]),
                      maker != NULL ? &maker->norm : NULL, lower_act(l, chain), y, where);
}

static void batch_norm(lowering *l, int index, const stk_node *n, cuda_ref x, cuda_ref y) {
    lowered_piece *item = &l->items[index];
    cuda_plane plane = lower_plane(l, n->output);
    cuda_tail none = {.act = STK_OP_COUNT};
    cuda_added nothing = {.x = cuda_nothing(), .dx = cuda_nothing()};
    item->norm = stk_cuda_lower_norm(l, l->pieces->items[index].node);
    if (l->pieces->items[index].training) {
        stk_cuda_norm_stats(l->p, plane, x, &item->norm, cuda_nothing());
    } else {
        stk_cuda_norm_running(l->p, plane.channels, &item->norm);
    }
    stk_cuda_norm_apply(l->p, plane, x, &item->norm, &none, &nothing, y, cuda_nothing());
}

static void batch_norm_back(lowering *l, int index, const stk_node *n, cuda_ref dy) {
    lowered_piece *item = &l->items[index];
    cuda_plane plane = lower_plane(l, n->output);
    cuda_ref x = stk_cuda_lower_data(l, n->inputs[0]);
    item->norm.back = stk_cuda_buffer(l->p, 3 * (size_t)plane.channels * sizeof(float));
    cuda_norm_back back = {.plane = plane,
                           .g = dy,
                           .x = x,
                           .norm = &item->norm,
                           .tail = {.act = STK_OP_COUNT},
                           .added = {.x = cuda_nothing(), .dx = cuda_nothing()},
                           .mask = cuda_nothing(),
                           .dx = cuda_nothing()};
    stk_cuda_norm_reduce(l->p, &back, cuda_nothing(), cuda_nothing());
    if (!l->pieces->needs_grad[n->inputs[0]]) {
        return;
    }
    bool accumulate;
    cuda_ref dx = stk_cuda_lower_grad(l, n->inputs[0], &accumulate);
    back.dx = accumulate ? dy : dx;
    stk_cuda_norm_backward(l->p, &back);
    if (accumulate) {
        stk_cuda_pass(l->p, lower_count(l, n->output), dy, dx, true);
    }
}

/* The gradient of the loss is computed with the loss, in the memory of the logits. */
static void loss(lowering *l, const stk_node *n) {
    lower_value *logits = &l->values[n->inputs[0]];
    int outputs = value_shape(l, n->output).channels;
    const stk_loss *kind = &l->graph->loss;
    if (kind->kind == STK_LOSS_SOFTMAX) {
        stk_cuda_loss(l->p, l->batch, outputs, logits->data, logits->data);
    } else if (kind->kind == STK_LOSS_STEPS) {
        stk_cuda_loss_steps(l->p, l->batch, outputs, logits->data, logits->data);
    } else {
        stk_cuda_loss_outputs(l->p, l->batch, outputs, kind, logits->data, logits->data);
    }
    logits->grad = logits->data;
}

static void conv(lowering *l, int node, cuda_ref y) {
    const stk_node *n = graph_node_of(l, node);
    cuda_conv_op op = stk_cuda_lower_forward_op(l, node, y);
    stk_cuda_conv(l->p, &op);
    if (n->param_count > 1) {
        stk_cuda_bias(l->p, lower_plane(l, n->output), y, cuda_value(l->layout, n->params[1]), y);
    }
}

/* Pictures in padded channels, or as blocks of pixels. */
static void input(lowering *l, int value) {
    bool blocks = l->stem.side > 0;
    size_t side = (size_t)(blocks ? l->stem.side : l->graph->img_size);
    size_t channels =
        blocks ? CUDA_BLOCK_CHANNELS : (size_t)cuda_input_channels(l->graph->channels);
    size_t count = (size_t)l->batch * side * side * channels;
    cuda_ref y = stk_cuda_buffer(l->p, count * cuda_type_bytes(l->p->type));
    l->values[value].data = y;
    if (blocks) {
        stk_cuda_input_blocks(l->p, l->graph, l->batch, l->train, &l->stem, y);
    } else {
        stk_cuda_input(l->p, l->graph, l->batch, l->train, y);
    }
}

/* Nodes that read two values. */
static void join_two(lowering *l, const stk_node *n, cuda_ref y) {
    cuda_ref a = stk_cuda_lower_data(l, n->inputs[0]);
    cuda_ref b = stk_cuda_lower_data(l, n->inputs[1]);
    if (n->op == STK_OP_ADD) {
        stk_cuda_add(l->p, lower_count(l, n->output), a, b, y);
    } else if (n->op == STK_OP_SCALE) {
        stk_cuda_scale(l->p, lower_plane(l, n->output), a, b, y);
    } else {
        stk_cuda_concat(l->p, l->batch, value_shape(l, n->inputs[0]).channels,
                        value_shape(l, n->inputs[1]).channels, a, b, y);
    }
}

void stk_cuda_append_node(lowering *l, int index) {
    const stk_piece *piece = &l->pieces->items[index];
    const stk_node *n = graph_node_of(l, piece->node);
    size_t count = lower_count(l, n->output);
    cuda_plane plane = lower_plane(l, n->output);
    if (n->op == STK_OP_LOSS) {
        loss(l, n);
        return;
    }
    if (n->op == STK_OP_INPUT) {
        input(l, n->output);
        return;
    }
    bool drops = n->op == STK_OP_DROPOUT || n->op == STK_OP_DROP_PATH;
    if (drops && !piece->training) {
        l->values[n->output].data = stk_cuda_lower_data(l, n->inputs[0]);
        return;
    }
    cuda_ref y = lower_buffer(l, n->output);
    l->values[n->output].data = y;
    switch (n->op) {
    case STK_OP_FEATURES:
        stk_cuda_features(l->p, l->batch, plane.channels, l->train, y);
        break;
    case STK_OP_CONV:
    case STK_OP_LINEAR:
        conv(l, piece->node, y);
        break;
    case STK_OP_DEPTHWISE: {
        cuda_depthwise op =
            stk_cuda_lower_depthwise(l, piece->node, stk_cuda_lower_data(l, n->inputs[0]));
        stk_cuda_depthwise(l->p, &op, y, NULL);
        break;
    }
    case STK_OP_BATCH_NORM:
        batch_norm(l, index, n, stk_cuda_lower_data(l, n->inputs[0]), y);
        break;
    case STK_OP_ADD:
    case STK_OP_SCALE:
    case STK_OP_CONCAT:
        join_two(l, n, y);
        break;
    case STK_OP_STEPS:
        stk_cuda_steps(l->p, l->batch, value_shape(l, n->output).channels,
                       stk_cuda_lower_data(l, n->inputs[0]), y);
        break;
    case STK_OP_SHORTCUT:
        stk_cuda_shortcut(l->p, l->batch, value_shape(l, n->inputs[0]), value_shape(l, n->output),
                          n->stride, stk_cuda_lower_data(l, n->inputs[0]), y);
        break;
    case STK_OP_MAX_POOL:
        max_pool(l, index, n, y);
        break;
    case STK_OP_AVG_POOL:
        stk_cuda_avg_pool(l->p, lower_plane(l, n->inputs[0]), stk_cuda_lower_data(l, n->inputs[0]),
                          y);
        break;
    case STK_OP_DROPOUT:
    case STK_OP_DROP_PATH:
        stk_cuda_drop(l->p, plane, n, piece->node, stk_cuda_lower_data(l, n->inputs[0]), y, false);
        break;
    default: /* the activations */
        stk_cuda_act(l->p, n->op, count, stk_cuda_lower_data(l, n->inputs[0]), y);
        break;
    }
}

static void scale_back(lowering *l, const stk_node *n, cuda_ref dy) {
    bool add_x = false;
    bool add_gate = false;
    cuda_ref dx = stk_cuda_lower_grad(l, n->inputs[0], &add_x);
    cuda_ref dgate = stk_cuda_lower_grad(l, n->inputs[1], &add_gate);
    stk_cuda_scale_back(l->p, lower_plane(l, n->output), stk_cuda_lower_data(l, n->inputs[0]),
                        l->values[n->inputs[1]].data, dy, dx, add_x, dgate, add_gate);
}

static void add_back(lowering *l, const stk_node *n, cuda_ref dy) {
    for (int k = 0; k < 2; k++) {
        if (l->pieces->needs_grad[n->inputs[k]]) {
            bool accumulate;
            cuda_ref dx = stk_cuda_lower_grad(l, n->inputs[k], &accumulate);
            stk_cuda_pass(l->p, lower_count(l, n->output), dy, dx, accumulate);
        }
    }
}

static void concat_back(lowering *l, const stk_node *n, cuda_ref dy) {
    bool add_a = false;
    bool add_b = false;
    cuda_ref da = stk_cuda_lower_grad(l, n->inputs[0], &add_a);
    cuda_ref db = stk_cuda_lower_grad(l, n->inputs[1], &add_b);
    stk_cuda_concat_back(l->p, l->batch, value_shape(l, n->inputs[0]).channels,
                         value_shape(l, n->inputs[1]).channels, dy, da, add_a, db, add_b);
}

/* Backward of nodes without parameters and second inputs. */
static void plain_back(lowering *l, int index, const stk_node *n, cuda_ref dy) {
    const stk_piece *piece = &l->pieces->items[index];
    bool accumulate;
    bool later = n->op == STK_OP_MAX_POOL &&
                 lower_left(l, n->inputs[0], LOWER_BY_POOL) >= 0; /* with the chain's norm */
    if (!l->pieces->needs_grad[n->inputs[0]] || later) {
        return;
    }
    cuda_ref dx = stk_cuda_lower_grad(l, n->inputs[0], &accumulate);
    cuda_pool pool = lower_pool(l, n);
    switch (n->op) {
    case STK_OP_SHORTCUT:
        stk_cuda_shortcut_back(l->p, l->batch, pool.in, pool.out, n->stride, dy, dx, accumulate);
        break;
    case STK_OP_MAX_POOL:
        stk_cuda_max_pool_back(l->p, &pool, l->items[index].where, dy, dx, accumulate);
        break;
    case STK_OP_AVG_POOL:
        stk_cuda_avg_pool_back(l->p, lower_plane(l, n->inputs[0]), dy, dx, accumulate);
        break;
    case STK_OP_STEPS:
        stk_cuda_steps_back(l->p, l->batch, value_shape(l, n->output).channels, dy, dx, accumulate);
        break;
    case STK_OP_DROPOUT:
    case STK_OP_DROP_PATH:
        stk_cuda_drop(l->p, lower_plane(l, n->output), n, piece->node, dy, dx, accumulate);
        break;
    default:
        stk_cuda_act_back(l->p, n->op, lower_count(l, n->output),
                          stk_cuda_lower_data(l, n->inputs[0]), l->values[n->output].data, dy, dx,
                          accumulate);
        break;
    }
}

void stk_cuda_append_node_back(lowering *l, int index) {
    const stk_piece *piece = &l->pieces->items[index];
    const stk_node *n = graph_node_of(l, piece->node);
    cuda_ref dy = l->values[n->output].grad;
    switch (n->op) {
    case STK_OP_INPUT:
    case STK_OP_FEATURES:
    case STK_OP_LOSS:
        break;
    case STK_OP_CONCAT:
        concat_back(l, n, dy);
        break;
    case STK_OP_CONV:
    case STK_OP_LINEAR:
        stk_cuda_lower_conv_back(l, piece->node, dy);
        break;
    case STK_OP_DEPTHWISE: {
        cuda_depthwise op =
            stk_cuda_lower_depthwise(l, piece->node, stk_cuda_lower_data(l, n->inputs[0]));
        stk_cuda_lower_depthwise_back(l, &op, n->inputs[0], dy);
        break;
    }
    case STK_OP_BATCH_NORM:
        batch_norm_back(l, index, n, dy);
        break;
    case STK_OP_ADD:
        add_back(l, n, dy);
        break;
    case STK_OP_SCALE:
        scale_back(l, n, dy);
        break;
    default:
        plain_back(l, index, n, dy);
        break;
    }
}
