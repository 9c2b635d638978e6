/* cuda_join_back_ways.c - "a gradient joins, and the norm in front sums it" at once or one after
 * the other.
 */
#include "backend/cuda/cuda_join_back_ways.h"

#include "backend/cuda/cuda_emit.h"
#include "backend/cuda/cuda_grid.h"

void stk_cuda_join_back_ways(cuda_program *p, const cuda_question *question,
                             cuda_range ways[CUDA_CONTEST_WAYS]) {
    const cuda_conv_shape *s = &question->shape;
    size_t rows = (size_t)s->batch * (size_t)s->height * (size_t)s->width;
    size_t n = (size_t)s->filters;
    size_t k = (size_t)s->channels;
    cuda_tail relu = {.act = STK_OP_RELU};
    cuda_tail none = {.act = STK_OP_COUNT};
    cuda_norm norm = {.weight = stk_cuda_noise_floats(p, k),
                      .weight_grad = stk_cuda_noise_floats(p, k),
                      .bias_grad = stk_cuda_noise_floats(p, k),
                      .coefs = stk_cuda_noise_floats(p, 4 * k),
                      .back = stk_cuda_noise_floats(p, 3 * k)};
    cuda_join_back join = {
        .plane = {s->batch, s->height * s->width, s->channels},
        .filters = s->filters,
        .dy = stk_cuda_noise_place(p, rows * n),
        .weight = stk_cuda_noise_place(p, n * k),
        .old = stk_cuda_noise_place(p, rows * k),
        .mask = stk_cuda_noise_place(p, cuda_ceil(rows * (k / 8), cuda_type_bytes(p->type))),
        .x = stk_cuda_noise_place(p, rows * k),
        .norm = &norm};
    join.dz = join.old;
    join.partial = stk_cuda_buffer(p, stk_cuda_join_back_scratch(p, &join));
    cuda_ref dx = stk_cuda_noise_place(p, rows * k);
    cuda_conv_op conv = cuda_conv_of(s, join.dz, join.weight, join.dy);
    /* What was added is not read: which tensor it is does not matter. */
    cuda_added added = {.x = join.x, .dx = join.dz};
    cuda_added nothing = {.x = cuda_nothing(), .dx = cuda_nothing()};
    ways[CUDA_JOIN_BACK_APART] = (cuda_range){p->op_count, 3};
    stk_cuda_conv(p, &conv);
    stk_cuda_norm_reduce(p, join.plane, join.dz, join.x, &norm, &relu, &added, join.mask,
                         cuda_nothing(), false);
    stk_cuda_norm_backward(p, join.plane, join.dz, join.x, &norm, &relu, &added, join.mask, dx);
    ways[CUDA_JOIN_BACK_TOGETHER] = (cuda_range){p->op_count, 3};
    stk_cuda_join_back(p, &join);
    stk_cuda_join_back_settle(p, &join);
    stk_cuda_norm_backward(p, join.plane, join.dz, join.x, &norm, &none, &nothing, cuda_nothing(),
                           dx);
}
