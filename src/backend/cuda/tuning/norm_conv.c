/* norm_conv.c - "norm and ReLU, then a convolution" against "a convolution that does both". */
#include "backend/cuda/tuning/norm_conv.h"

#include "backend/cuda/emit/emit.h"
#include "backend/cuda/tuning/conv_stats.h"

static cuda_ref floats(cuda_program *p, size_t count) {
    return stk_cuda_buffer(p, count * sizeof(float));
}

static cuda_ref numbers(cuda_program *p, size_t count) {
    return stk_cuda_buffer(p, count * cuda_type_bytes(p->type));
}

static size_t count_of(cuda_plane plane) {
    return (size_t)plane.batch * (size_t)plane.pixels * (size_t)plane.channels;
}

static cuda_norm norm_of(cuda_program *p, int channels) {
    size_t count = (size_t)channels;
    return (cuda_norm){.weight = floats(p, count),
                       .bias = floats(p, count),
                       .running_mean = floats(p, count),
                       .running_var = floats(p, count),
                       .weight_grad = floats(p, count),
                       .bias_grad = floats(p, count),
                       .epsilon = 1e-5f,
                       .coefs = floats(p, 5 * count),
                       .narrow = true,
                       .back = floats(p, 3 * count)};
}

/* What a question is about. */
typedef struct scene {
    cuda_plane in, out;
    cuda_norm norm;    /* in front */
    cuda_conv_op conv; /* plain, with raw and in_norm */
} scene;

/* What a norm's coefficients are made of are numbers, too. */
static void settle_norm(cuda_program *p, cuda_plane plane, cuda_ref x, const cuda_norm *norm) {
    size_t channels = (size_t)plane.channels;
    cuda_ref few = numbers(p, channels);
    stk_cuda_noise(p, channels, few);
    stk_cuda_to_float(p, channels, few, norm->weight);
    stk_cuda_to_float(p, channels, few, norm->bias);
    stk_cuda_norm_stats(p, plane, x, norm, cuda_nothing());
}

/* Noise to read, and a norm of it. */
static scene set_scene(cuda_program *p, const cuda_conv_shape *s) {
    scene made = {.in = {s->batch, s->height * s->width, s->channels},
                  .out = {s->batch, s->out_height * s->out_width, s->filters},
                  .norm = norm_of(p, s->channels)};
    size_t taps = (size_t)s->kernel * (size_t)s->kernel * (size_t)s->channels;
    size_t filter = taps * (size_t)s->filters;
    cuda_conv_op *conv = &made.conv;
    *conv = cuda_conv_of(s, numbers(p, count_of(made.in)), numbers(p, filter),
                         numbers(p, count_of(made.out)));
    conv->raw = numbers(p, count_of(made.in));
    conv->in_norm = cuda_norm_narrow(&made.norm, s->channels);
    stk_cuda_noise(p, count_of(made.in), conv->raw);
    stk_cuda_noise(p, count_of(made.in), conv->x);
    stk_cuda_noise(p, filter, conv->w);
    stk_cuda_noise(p, count_of(made.out), conv->y);
    settle_norm(p, made.in, conv->raw, &made.norm);
    return made;
}

/* The convolution, and the statistics of what it makes: two operations. */
static void add_conv(cuda_program *p, const scene *s, const cuda_norm *next) {
    stk_cuda_conv(p, &s->conv);
    if (s->conv.shape.stats) {
        stk_cuda_norm_settle(p, s->out, next, s->conv.stats);
    } else {
        stk_cuda_norm_stats(p, s->out, s->conv.y, next, s->conv.stats);
    }
}

void stk_cuda_normed_ways(cuda_program *p, const cuda_question *question,
                          cuda_range ways[CUDA_CONTEST_WAYS]) {
    scene s = set_scene(p, &question->shape);
    cuda_tail tail = {.act = STK_OP_RELU};
    cuda_norm next = norm_of(p, s.out.channels);
    s.conv.stats = stk_cuda_buffer(p, stk_cuda_norm_scratch(p, s.out));
    s.conv.shape.stats = question->variant == CUDA_STATS_FUSED;
    ways[CUDA_NORMED_APART] = (cuda_range){p->op_count, 3};
    stk_cuda_norm_apply(p, s.in, s.conv.raw, &s.norm, &tail, NULL, s.conv.x, cuda_nothing());
    add_conv(p, &s, &next);
    ways[CUDA_NORMED_FUSED] = (cuda_range){p->op_count, 2};
    s.conv.shape.stats = s.conv.shape.in_norm = true;
    stk_cuda_conv(p, &s.conv);
    stk_cuda_norm_settle(p, s.out, &next, s.conv.stats);
}

void stk_cuda_normed_back_ways(cuda_program *p, const cuda_question *question,
                               cuda_range ways[CUDA_CONTEST_WAYS]) {
    scene s = set_scene(p, &question->shape);
    cuda_tail tail = {.act = STK_OP_RELU};
    cuda_ref g = numbers(p, count_of(s.in));
    stk_cuda_noise(p, count_of(s.in), g);
    for (int way = 0; way < CUDA_CONTEST_WAYS; way++) {
        ways[way] = (cuda_range){p->op_count, 2};
        s.conv.shape.in_norm = way == CUDA_NORMED_FUSED;
        stk_cuda_norm_reduce(p, s.in, g, s.conv.raw, &s.norm, &tail, NULL, cuda_nothing(), s.conv.x,
                             s.conv.shape.in_norm);
        stk_cuda_conv(p, &s.conv);
    }
}

void stk_cuda_join_ways(cuda_program *p, const cuda_question *question,
                        cuda_range ways[CUDA_CONTEST_WAYS]) {
    scene s = set_scene(p, &question->shape);
    cuda_tail tail = {.act = STK_OP_RELU};
    cuda_norm next = norm_of(p, s.out.channels);
    cuda_norm other = norm_of(p, s.in.channels);
    cuda_added added = {.x = numbers(p, count_of(s.in)), .dx = cuda_nothing()};
    stk_cuda_noise(p, count_of(s.in), added.x);
    settle_norm(p, s.in, added.x, &other);
    added.norm = question->variant % 2 == 1 ? &other : NULL;
    cuda_join join = {.plane = s.in,
                      .x = s.conv.raw,
                      .norm = &s.norm,
                      .added = &added,
                      .y = s.conv.x,
                      .mask = stk_cuda_buffer(p, count_of(s.in) / 8),
                      .filters = s.out.channels,
                      .weight = s.conv.w,
                      .z = s.conv.y,
                      .next = &next};
    join.partial = stk_cuda_buffer(p, stk_cuda_join_scratch(p, &join));
    s.conv.stats = stk_cuda_buffer(p, stk_cuda_norm_scratch(p, s.out));
    s.conv.shape.stats = question->variant / 2 == CUDA_STATS_FUSED;
    ways[CUDA_NORMED_APART] = (cuda_range){p->op_count, 3};
    stk_cuda_norm_apply(p, s.in, join.x, join.norm, &tail, &added, join.y, join.mask);
    add_conv(p, &s, &next);
    ways[CUDA_NORMED_FUSED] = (cuda_range){p->op_count, 2};
    stk_cuda_join(p, &join);
    stk_cuda_join_settle(p, &join);
}
