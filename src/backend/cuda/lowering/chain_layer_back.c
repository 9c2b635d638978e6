/*
 * chain_layer_back.c - CUDA_FUSE_LAYER_BACK: the second pass backward of a norm, and the 1x1
 * convolution in front of it.
 *
 * The fused kernel needs the convolution's input at once. If backward computes that input again,
 * the plain variant does it in a later pass of the norm in front. The fused kernel computes the
 * input itself, and the later pass does not.
 *
 * Where two chains are added, both are fused or neither, because the plain variant computes both
 * norms in one pass over all rows.
 */
#include "backend/cuda/lowering/lowering.h"

/* Whether a chain begins with a 1x1 convolution of which both gradients are wanted. */
static bool has_pointwise(const lowering *l, const stk_piece *piece) {
    if (piece->conv == STK_NO_NODE || !stk_cuda_lower_is_pointwise(l, piece->conv)) {
        return false;
    }
    const stk_node *n = graph_node_of(l, piece->conv);
    return n->param_count == 1 && stk_cuda_lower_learns(l, piece->conv) &&
           l->pieces->needs_grad[n->inputs[0]];
}

/* The convolution's input: a stored value, or what the norm in front reads. False: neither. */
static bool find_input(const lowering *l, int value, cuda_layer_back *layer) {
    const lower_value *v = &l->values[value];
    layer->input = v->data;
    if (v->again) {
        const stk_piece *maker = piece_of(l, v->maker);
        if (l->items[v->maker].kind != LOWER_CHAIN || maker->drop != STK_NO_NODE) {
            return false;
        }
        layer->input = l->items[v->maker].inner;
        layer->in_norm = &l->items[v->maker].norm;
        layer->in_act = graph_node_of(l, maker->act)->op;
    }
    return cuda_is_something(layer->input);
}

/* One chain of a site, whose output's gradient goes through `pass`. */
static bool find_layer(const lowering *l, int chain, const cuda_norm_back *pass, cuda_tail tail,
                       cuda_ref added_dx, cuda_layer *layer) {
    const stk_piece *piece = piece_of(l, chain);
    if (!has_pointwise(l, piece)) {
        return false;
    }
    const stk_node *n = graph_node_of(l, piece->conv);
    layer->weight_later = l->values[n->inputs[0]].again;
    layer->fused = (cuda_layer_back){.plane = lower_plane(l, n->output),
                                     .channels = value_shape(l, n->inputs[0]).channels,
                                     .g = pass->g,
                                     .x = l->items[chain].inner,
                                     .norm = &l->items[chain].norm,
                                     .tail = tail,
                                     .mask = pass->mask,
                                     .added_dx = added_dx,
                                     .weight = cuda_weight(l->layout, n->params[0]),
                                     .weight_grad = cuda_fresh(l->layout, n->params[0]),
                                     .dx = cuda_nothing(),
                                     .partial = cuda_nothing()};
    return find_input(l, n->inputs[0], &layer->fused) &&
           stk_cuda_layer_back_scratch(l->p, &layer->fused) > 0;
}

/* The site of a chain. If the chain adds another one and computes its norm, that one is the second
 * layer of the site. */
static bool find_site(const lowering *l, int chain, const cuda_norm_back *pass,
                      cuda_layer_back_site *site) {
    const stk_piece *piece = piece_of(l, chain);
    cuda_layer *first = &site->layers[0];
    cuda_layer *second = &site->layers[1];
    *site = (cuda_layer_back_site){.pass = *pass, .count = 1};
    if (pass->added.norm == NULL) {
        return find_layer(l, chain, pass, pass->tail, pass->added.dx, first);
    }
    int added = l->values[piece->inputs[1]].maker;
    const cuda_tail tail = {.act = pass->tail.act};
    site->count = 2;
    return find_layer(l, chain, pass, pass->tail, cuda_nothing(), first) &&
           find_layer(l, added, pass, tail, cuda_nothing(), second) &&
           first->fused.channels == second->fused.channels && second->fused.in_norm == NULL &&
           piece_of(l, added)->inputs[0] != piece->inputs[0];
}

/*
 * Fills in buffers and convolutions of layer i in all sites; these differ in what the norm's pass
 * reads. First decides whether the data gradient is fused with the join in front of the layer.
 */
static void begin_layer(lowering *l, int chain, int i, cuda_layer_back_site sites[CUDA_VARIANTS],
                        int count, cuda_ref dy) {
    const stk_piece *piece = piece_of(l, chain);
    lower_value *v = &l->values[piece->inputs[0]];
    size_t bytes = 0;
    for (int k = 0; k < count; k++) {
        size_t needed = stk_cuda_layer_back_scratch(l->p, &sites[k].layers[i].fused);
        bytes = needed > bytes ? needed : bytes;
    }
    bool accumulate;
    cuda_ref partial = stk_cuda_buffer(l->p, bytes);
    cuda_ref dx = stk_cuda_lower_grad(l, piece->inputs[0], &accumulate);
    bool joins = stk_cuda_lower_join_back(l, piece->conv, dy, dx, accumulate);
    for (int k = 0; k < count; k++) {
        cuda_layer *layer = &sites[k].layers[i];
        layer->fused.partial = partial;
        layer->fused.dx = dx;
        layer->fused.accumulate = accumulate;
        layer->weight = stk_cuda_lower_weight_op(l, piece->conv, v->data, dy);
        layer->data = stk_cuda_lower_data_op(l, piece->conv, dy, dx, accumulate);
        layer->join = joins ? &v->join_back.join_back : NULL;
        layer->joins = v->join_back_variant;
    }
}

/* The fused kernels cannot do what CUDA_FUSE_JOIN_BACK does to the data gradient. */
static int decide(const lowering *l, int chain, const cuda_layer_back_site *site) {
    for (int i = 0; i < site->count; i++) {
        if (site->layers[i].join != NULL && site->layers[i].joins == CUDA_FUSED) {
            return CUDA_PLAIN;
        }
    }
    cuda_decision decision = {
        .fusion = CUDA_FUSE_LAYER_BACK,
        .shape = stk_cuda_lower_conv_shape(l, piece_of(l, chain)->conv, CUDA_CONV_DATA),
        .detail = stk_cuda_layer_back_detail(site)};
    int number;
    decision.shape.accumulate = site->layers[0].fused.accumulate;
    return stk_cuda_decide(l->p, l->results, &decision, &number);
}

bool stk_cuda_lower_layer_back(lowering *l, int chain, const cuda_norm_back *back) {
    const stk_piece *piece = piece_of(l, chain);
    const lower_value *output = &l->values[piece->output];
    bool act_reads_sum = cuda_is_something(back->added.x) && back->tail.act != STK_OP_COUNT &&
                         !cuda_is_something(back->mask);
    if (act_reads_sum || back->added.accumulate) {
        return false;
    }
    /* What the norm's pass reads depends on the variant of CUDA_FUSE_JOIN_BACK that the chain's
     * output takes. Where that fusion applies there is a site for each variant. */
    cuda_layer_back_site sites[CUDA_VARIANTS];
    int passes = output->may_join_back ? CUDA_VARIANTS : 1;
    int chosen = output->may_join_back ? output->join_back_variant : CUDA_PLAIN;
    for (int k = 0; k < passes; k++) {
        cuda_norm_back pass = k == CUDA_FUSED ? stk_cuda_join_back_pass(back) : *back;
        if (!find_site(l, chain, &pass, &sites[k])) {
            return false;
        }
    }
    const cuda_layer_back_site *site = &sites[chosen];
    const int chains[2] = {chain, site->count > 1 ? l->values[piece->inputs[1]].maker : -1};
    const cuda_ref dys[2] = {back->dx, back->added.dx};
    for (int i = 0; i < site->count; i++) {
        begin_layer(l, chains[i], i, sites, passes, dys[i]);
    }
    int variant = decide(l, chain, site);
    cuda_variant_span span = stk_cuda_variants_begin(l->p);
    for (int k = 0; k < passes; k++) {
        const cuda_site both = {.layer_back = sites[k]};
        stk_cuda_emit_variants(l->p, stk_cuda_emit_layer_back, &both, 0, variant);
        stk_cuda_variants_add(l->p, &span, k == chosen);
    }
    stk_cuda_variants_end(l->p, &span);
    for (int i = 0; i < site->count; i++) {
        if (site->layers[i].weight_later) {
            const stk_piece *one = piece_of(l, chains[i]);
            l->values[one->inputs[0]].late =
                (lower_late_weight){.node = one->conv, .dy = dys[i], .done = variant == CUDA_FUSED};
        }
    }
    if (site->count > 1) {
        l->items[chains[1]].done = true;
    }
    return true;
}
