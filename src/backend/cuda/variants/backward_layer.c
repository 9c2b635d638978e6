/*
 * backward_layer.c - CUDA_FUSE_LAYER_BACK: a norm's second pass backward, and both gradients of the
 * 1x1 convolution in front of the norm.
 *
 * The fused kernel passes over all rows once; with few channels only memory bounds it.
 */
#include "backend/cuda/program/grid.h"
#include "backend/cuda/variants/variants.h"

size_t stk_cuda_layer_back_site_scratch(const cuda_program *p, const cuda_site *site) {
    return stk_cuda_layer_back_scratch(p, &site->layer_back.layers[0].fused);
}

void stk_cuda_emit_layer_back(cuda_program *p, const cuda_site *site, int part, int variant) {
    (void)part;
    const cuda_layer_back_site *s = &site->layer_back;
    if (variant == CUDA_PLAIN) {
        stk_cuda_norm_backward(p, &s->pass);
    }
    for (int i = 0; i < s->count; i++) {
        const cuda_layer *layer = &s->layers[i];
        if (variant == CUDA_FUSED) {
            stk_cuda_layer_back(p, &layer->fused);
            continue;
        }
        if (!layer->weight_later) {
            stk_cuda_conv(p, &layer->weight);
        }
        if (layer->join != NULL) {
            const cuda_site join = {.join_back = *layer->join};
            stk_cuda_emit_variants(p, stk_cuda_emit_join_back, &join, 0, layer->joins);
        } else {
            stk_cuda_conv(p, &layer->data);
        }
    }
}

/* ---- cuda_decision.detail: the code of the activation after the norm, and these bits ---- */

enum {
    MASK_BIT = 8,
    ADDED_BIT = 16,
    DROP_BIT = 32,
    IN_NORM_BIT = 64,      /* the convolution's input is a norm and activation of what is stored */
    IN_ACT_SHIFT = 7,      /* code of that activation */
    SECOND_BIT = 1024,     /* there is a second convolution */
    SECOND_ADDS_BIT = 2048 /* whose data gradient is added to an existing one */
};

/* Activations by their codes, stk_cuda_act_code(). */
static const stk_op acts[] = {STK_OP_COUNT,   STK_OP_RELU,  STK_OP_RELU6, STK_OP_SILU,
                              STK_OP_SIGMOID, STK_OP_COUNT, STK_OP_COUNT, STK_OP_COUNT};

int stk_cuda_layer_back_detail(const cuda_layer_back_site *site) {
    const cuda_layer_back *layer = &site->layers[0].fused;
    int detail = stk_cuda_act_code(layer->tail.act);
    detail |= cuda_is_something(layer->mask) ? MASK_BIT : 0;
    detail |= cuda_is_something(layer->added_dx) ? ADDED_BIT : 0;
    detail |= layer->tail.drop_rate > 0 ? DROP_BIT : 0;
    if (layer->in_norm != NULL) {
        detail |= IN_NORM_BIT | stk_cuda_act_code(layer->in_act) << IN_ACT_SHIFT;
    }
    if (site->count > 1) {
        detail |= SECOND_BIT | (site->layers[1].fused.accumulate ? SECOND_ADDS_BIT : 0);
    }
    return detail;
}

/* ---- a site on noise ---- */

static cuda_norm norm_of(cuda_program *p, int channels) {
    return (cuda_norm){.coefs = stk_cuda_noise_floats(p, 4 * (size_t)channels),
                       .back = stk_cuda_noise_floats(p, 3 * (size_t)channels)};
}

/* One convolution with the buffers that it alone has; the convolution's input is stored. */
static cuda_layer layer_of(cuda_program *p, const cuda_conv_shape *s, const cuda_norm *norm) {
    size_t rows = (size_t)s->batch * (size_t)s->out_height * (size_t)s->out_width;
    size_t n = (size_t)s->filters;
    size_t k = (size_t)s->channels;
    return (cuda_layer){.fused = {.plane = {s->batch, s->out_height * s->out_width, s->filters},
                                  .channels = s->channels,
                                  .x = stk_cuda_noise_room(p, rows * n),
                                  .norm = norm,
                                  .mask = cuda_nothing(),
                                  .added_dx = cuda_nothing(),
                                  .input = stk_cuda_noise_room(p, rows * k),
                                  .weight = stk_cuda_noise_room(p, n * k),
                                  .weight_grad = stk_cuda_room(p, n * k),
                                  .dx = stk_cuda_noise_room(p, rows * k),
                                  .accumulate = s->accumulate}};
}

/* Scratch of the fused variant, and the convolutions of the plain one, whose output's gradient is
 * dy. */
static void finish_layer(cuda_program *p, const cuda_conv_shape *s, cuda_layer *layer,
                         cuda_ref dy) {
    cuda_layer_back *fused = &layer->fused;
    fused->partial = stk_cuda_buffer(p, stk_cuda_layer_back_scratch(p, fused));
    layer->data = cuda_conv_of(s, fused->dx, fused->weight, dy);
    layer->data.shape.accumulate = fused->accumulate;
    layer->weight = cuda_conv_of(s, fused->input, fused->weight_grad, dy);
    layer->weight.shape.kind = CUDA_CONV_WEIGHT;
    layer->weight.shape.accumulate = false;
}

void stk_cuda_rehearse_layer_back(cuda_program *p, const cuda_decision *decision,
                                  cuda_rehearsal *made) {
    const cuda_conv_shape *s = &decision->shape;
    int detail = decision->detail;
    cuda_layer_back_site *site = &made->site.layer_back;
    made->norms[0] = norm_of(p, s->filters);
    made->norms[1] = norm_of(p, s->channels); /* in front of the convolution */
    made->norms[2] = norm_of(p, s->filters);  /* of the second convolution */
    *site = (cuda_layer_back_site){.count = (detail & SECOND_BIT) != 0 ? 2 : 1};
    cuda_layer *first = &site->layers[0];
    *first = layer_of(p, s, &made->norms[0]);
    cuda_layer_back *fused = &first->fused;
    size_t count = cuda_plane_count(fused->plane);
    fused->tail = (cuda_tail){.act = acts[detail & 7], .drop_rate = detail & DROP_BIT ? 0.125F : 0};
    fused->g = stk_cuda_noise_room(p, count);
    fused->in_norm = detail & IN_NORM_BIT ? &made->norms[1] : NULL;
    fused->in_act = acts[detail >> IN_ACT_SHIFT & 7];
    if (detail & MASK_BIT) {
        fused->mask = stk_cuda_noise_room(p, cuda_ceil(count / 8, cuda_type_bytes(p->type)));
    }
    fused->added_dx = detail & ADDED_BIT ? fused->g : cuda_nothing();
    site->pass =
        (cuda_norm_back){.plane = fused->plane,
                         .g = fused->g,
                         .x = fused->x,
                         .norm = fused->norm,
                         .tail = fused->tail,
                         .added = {.x = cuda_nothing(), .dx = fused->added_dx},
                         .mask = fused->mask,
                         .dx = detail & ADDED_BIT ? stk_cuda_noise_room(p, count) : fused->g};
    finish_layer(p, s, first, site->pass.dx);
    if (site->count > 1) {
        cuda_layer *second = &site->layers[1];
        *second = layer_of(p, s, &made->norms[2]);
        second->fused.tail = (cuda_tail){.act = fused->tail.act};
        second->fused.g = fused->g;
        second->fused.mask = fused->mask;
        second->fused.accumulate = (detail & SECOND_ADDS_BIT) != 0;
        site->pass.added = (cuda_added){
            .x = second->fused.x, .norm = &made->norms[2], .dx = stk_cuda_noise_room(p, count)};
        finish_layer(p, s, second, site->pass.added.dx);
    }
}
