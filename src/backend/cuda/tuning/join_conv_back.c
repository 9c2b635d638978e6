/* join_conv_back.c - "a gradient joins, and the norm in front sums it" at once or one after
 * the other.
 */
#include "backend/cuda/tuning/join_conv_back.h"

#include "backend/cuda/emit/emit.h"
#include "backend/cuda/program/grid.h"

static cuda_norm norm_of(cuda_program *p, size_t channels) {
    return (cuda_norm){.weight = stk_cuda_noise_floats(p, channels),
                       .weight_grad = stk_cuda_noise_floats(p, channels),
                       .bias_grad = stk_cuda_noise_floats(p, channels),
                       .coefs = stk_cuda_noise_floats(p, 4 * channels),
                       .back = stk_cuda_noise_floats(p, 3 * channels)};
}

void stk_cuda_join_back_ways(cuda_program *p, const cuda_question *question,
                             cuda_range ways[CUDA_CONTEST_WAYS]) {
    const cuda_conv_shape *s = &question->shape;
    bool other = question->variant == CUDA_JOIN_BACK_OTHER;
    size_t n = (size_t)s->filters;
    size_t k = (size_t)s->channels;
    size_t rows = (size_t)s->batch * (size_t)s->height * (size_t)s->width;
    size_t count = rows * k;
    cuda_tail relu = {.act = STK_OP_RELU};
    cuda_tail none = {.act = STK_OP_COUNT};
    cuda_norm norm = norm_of(p, k);
    cuda_norm other_norm = norm_of(p, k);
    cuda_join_back join = {
        .plane = {s->batch, s->height * s->width, s->channels},
        .filters = s->filters,
        .dy = stk_cuda_noise_place(p, rows * n),
        .weight = stk_cuda_noise_place(p, n * k),
        .old = stk_cuda_noise_place(p, count),
        .mask = stk_cuda_noise_place(p, cuda_ceil(count / 8, cuda_type_bytes(p->type))),
        .x = stk_cuda_noise_place(p, count),
        .norm = &norm,
        .other_x = other ? stk_cuda_noise_place(p, count) : cuda_nothing(),
        .other_norm = other ? &other_norm : NULL};
    join.dz = join.old;
    join.partial = stk_cuda_buffer(p, stk_cuda_join_back_scratch(p, &join));
    cuda_conv_op conv = cuda_conv_of(s, join.dz, join.weight, join.dy);
    cuda_ref fresh = stk_cuda_noise_place(p, count);
    /* Where what was added is not read, it does not matter which tensor it is. */
    cuda_added added = {
        .x = other ? join.other_x : join.x, .norm = join.other_norm, .dx = other ? fresh : join.dz};
    cuda_added nothing = {.x = cuda_nothing(), .dx = cuda_nothing()};
    cuda_ref dx = other ? join.dz : fresh;
    ways[CUDA_JOIN_BACK_APART] = (cuda_range){p->op_count, 3};
    stk_cuda_conv(p, &conv);
    stk_cuda_norm_reduce(p, join.plane, join.dz, join.x, &norm, &relu, &added, join.mask,
                         cuda_nothing(), false);
    stk_cuda_norm_backward(p, join.plane, join.dz, join.x, &norm, &relu, &added, join.mask, dx);
    ways[CUDA_JOIN_BACK_TOGETHER] = (cuda_range){p->op_count, 3};
    stk_cuda_join_back(p, &join);
    stk_cuda_join_back_settle(p, &join);
    stk_cuda_norm_backward(p, join.plane, join.dz, join.x, &norm, &none, other ? &added : &nothing,
                           cuda_nothing(), dx);
}
