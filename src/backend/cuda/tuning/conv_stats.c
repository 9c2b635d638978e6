/* conv_stats.c - "convolution with statistics" against "convolution, then a kernel". */
#include "backend/cuda/tuning/conv_stats.h"

#include "backend/cuda/emit/emit.h"

static cuda_ref channels_of(cuda_program *p, const cuda_conv_shape *s, size_t vectors) {
    return stk_cuda_buffer(p, vectors * (size_t)s->filters * sizeof(float));
}

void stk_cuda_stats_ways(cuda_program *p, const cuda_question *question,
                         cuda_range ways[CUDA_CONTEST_WAYS]) {
    const cuda_conv_shape *s = &question->shape;
    size_t of_type = cuda_type_bytes(s->type);
    size_t pixels = (size_t)s->batch * (size_t)s->height * (size_t)s->width;
    size_t taps = (size_t)s->kernel * (size_t)s->kernel * (size_t)s->channels;
    cuda_plane plane = {s->batch, s->out_height * s->out_width, s->filters};
    size_t rows = (size_t)plane.batch * (size_t)plane.pixels;
    cuda_norm norm = {.weight = channels_of(p, s, 1),
                      .bias = channels_of(p, s, 1),
                      .running_mean = channels_of(p, s, 1),
                      .running_var = channels_of(p, s, 1),
                      .weight_grad = cuda_nothing(),
                      .bias_grad = cuda_nothing(),
                      .coefs = channels_of(p, s, 4),
                      .back = cuda_nothing()};
    cuda_ref x = stk_cuda_buffer(p, pixels * (size_t)s->channels * of_type);
    cuda_ref w = stk_cuda_buffer(p, taps * (size_t)s->filters * of_type);
    cuda_ref y = stk_cuda_buffer(p, rows * (size_t)s->filters * of_type);
    cuda_conv_op conv = cuda_conv_of(s, x, w, y);
    conv.stats = stk_cuda_buffer(p, stk_cuda_norm_scratch(p, plane));
    stk_cuda_noise(p, pixels * (size_t)s->channels, conv.x);
    stk_cuda_noise(p, taps * (size_t)s->filters, conv.w);
    ways[CUDA_STATS_APART] = (cuda_range){p->op_count, 2};
    stk_cuda_conv(p, &conv);
    stk_cuda_norm_stats(p, plane, conv.y, &norm, conv.stats);
    ways[CUDA_STATS_FUSED] = (cuda_range){p->op_count, 2};
    conv.shape.stats = true;
    stk_cuda_conv(p, &conv);
    stk_cuda_norm_settle(p, plane, &norm, conv.stats);
}
