/* norm_conv_back.c - "norm and convolution backward at once" against "one after the other". */
#include "backend/cuda/tuning/norm_conv_back.h"

#include "backend/cuda/program/grid.h"

/* What else the speed depends on, as bits of cuda_question.variant. */
enum {
    MASK_BIT = 8,
    ADDED_BIT = 16,
    DROP_BIT = 32,
    IN_NORM_BIT = 64,
    IN_ACT_SHIFT = 7,
    OTHER_BIT = 1024, /* there is another one */
    OTHER_ADDS_BIT = 2048
};

/* Activations by their codes. */
static const stk_op acts[] = {STK_OP_COUNT,   STK_OP_RELU,  STK_OP_RELU6, STK_OP_SILU,
                              STK_OP_SIGMOID, STK_OP_COUNT, STK_OP_COUNT, STK_OP_COUNT};

cuda_question stk_cuda_layer_question(const cuda_layer_back *layer, const cuda_layer_back *other,
                                      cuda_conv_shape shape) {
    int variant = stk_cuda_act_code(layer->tail->act);
    variant |= cuda_is_something(layer->mask) ? MASK_BIT : 0;
    variant |= cuda_is_something(layer->added_dx) ? ADDED_BIT : 0;
    variant |= layer->tail->drop_rate > 0 ? DROP_BIT : 0;
    if (layer->in_norm != NULL) {
        variant |= IN_NORM_BIT | stk_cuda_act_code(layer->in_act) << IN_ACT_SHIFT;
    }
    if (other != NULL) {
        variant |= OTHER_BIT | (other->accumulate ? OTHER_ADDS_BIT : 0);
    }
    shape.accumulate = layer->accumulate;
    return (cuda_question){.kind = CUDA_ASK_LAYER, .shape = shape, .variant = variant};
}

/* The convolution's input is there in any case: computing it again is not a part of either way. */
static void add_conv(cuda_program *p, const cuda_layer_back *layer, const cuda_conv_shape *shape,
                     cuda_ref dy) {
    cuda_conv_op conv = cuda_conv_of(shape, layer->dx, layer->weight, dy);
    conv.shape.accumulate = layer->accumulate;
    stk_cuda_conv(p, &conv);
    conv.shape.kind = CUDA_CONV_WEIGHT;
    conv.shape.accumulate = false;
    conv.x = layer->input;
    conv.w = layer->weight_grad;
    stk_cuda_conv(p, &conv);
}

/* What a layer reads and writes, save for g and the mask. */
static cuda_layer_back layer_of(cuda_program *p, const cuda_conv_shape *s, const cuda_norm *norm,
                                const cuda_tail *tail) {
    size_t rows = (size_t)s->batch * (size_t)s->out_height * (size_t)s->out_width;
    size_t n = (size_t)s->filters;
    size_t k = (size_t)s->channels;
    return (cuda_layer_back){.plane = {s->batch, s->out_height * s->out_width, s->filters},
                             .channels = s->channels,
                             .x = stk_cuda_noise_place(p, rows * n),
                             .norm = norm,
                             .tail = tail,
                             .mask = cuda_nothing(),
                             .added_dx = cuda_nothing(),
                             .input = stk_cuda_noise_place(p, rows * k),
                             .weight = stk_cuda_noise_place(p, n * k),
                             .weight_grad = stk_cuda_buffer(p, n * k * cuda_type_bytes(p->type)),
                             .dx = stk_cuda_noise_place(p, rows * k),
                             .accumulate = s->accumulate};
}

static cuda_norm norm_of(cuda_program *p, int channels) {
    return (cuda_norm){.coefs = stk_cuda_noise_floats(p, 4 * (size_t)channels),
                       .back = stk_cuda_noise_floats(p, 3 * (size_t)channels)};
}

static void add_scratch(cuda_program *p, cuda_layer_back *layer) {
    layer->partial = stk_cuda_buffer(p, stk_cuda_layer_back_scratch(p, layer));
}

void stk_cuda_layer_ways(cuda_program *p, const cuda_question *question,
                         cuda_range ways[CUDA_CONTEST_WAYS]) {
    const cuda_conv_shape *s = &question->shape;
    int variant = question->variant;
    bool two = (variant & OTHER_BIT) != 0;
    cuda_norm norm = norm_of(p, s->filters);
    cuda_norm in_norm = norm_of(p, s->channels);
    cuda_norm other_norm = norm_of(p, s->filters);
    cuda_tail tail = {.act = acts[variant & 7], .drop_rate = variant & DROP_BIT ? 0.125F : 0};
    cuda_tail other_tail = {.act = tail.act};
    cuda_layer_back layer = layer_of(p, s, &norm, &tail);
    cuda_layer_back other = layer;
    size_t count = (size_t)s->batch * (size_t)layer.plane.pixels * (size_t)s->filters;
    layer.g = stk_cuda_noise_place(p, count);
    layer.in_norm = variant & IN_NORM_BIT ? &in_norm : NULL;
    layer.in_act = acts[variant >> IN_ACT_SHIFT & 7];
    if (variant & MASK_BIT) {
        layer.mask = stk_cuda_noise_place(p, cuda_ceil(count / 8, cuda_type_bytes(p->type)));
    }
    layer.added_dx = variant & ADDED_BIT ? layer.g : cuda_nothing();
    cuda_added added = {.x = cuda_nothing(), .dx = layer.added_dx};
    cuda_ref dy = variant & ADDED_BIT ? stk_cuda_noise_place(p, count) : layer.g;
    add_scratch(p, &layer);
    if (two) {
        other = layer_of(p, s, &other_norm, &other_tail);
        other.g = layer.g;
        other.mask = layer.mask;
        other.accumulate = (variant & OTHER_ADDS_BIT) != 0;
        added =
            (cuda_added){.x = other.x, .norm = &other_norm, .dx = stk_cuda_noise_place(p, count)};
        add_scratch(p, &other);
    }
    ways[CUDA_LAYER_APART].first = p->op_count;
    stk_cuda_norm_backward(p, layer.plane, layer.g, layer.x, &norm, &tail, &added, layer.mask, dy);
    add_conv(p, &layer, s, dy);
    if (two) {
        add_conv(p, &other, s, added.dx);
    }
    ways[CUDA_LAYER_APART].count = p->op_count - ways[CUDA_LAYER_APART].first;
    ways[CUDA_LAYER_TOGETHER].first = p->op_count;
    stk_cuda_layer_back(p, &layer);
    if (two) {
        stk_cuda_layer_back(p, &other);
    }
    ways[CUDA_LAYER_TOGETHER].count = p->op_count - ways[CUDA_LAYER_TOGETHER].first;
}
