/*
 * backward.c - fusions of a norm's backward with a gradient of the convolution that reads the norm.
 */
#include "backend/cuda/program/grid.h"
#include "backend/cuda/variants/variants.h"

/* ---- CUDA_FUSE_NORM_WEIGHT ---- */

void stk_cuda_emit_norm_weight(cuda_program *p, const cuda_site *site, int part, int variant) {
    (void)part;
    const cuda_norm_weight_site *s = &site->norm_weight;
    bool fused = variant == CUDA_FUSED;
    cuda_conv_op conv = s->conv;
    if (fused) {
        conv.shape.in_norm = true;
        conv.x = cuda_nothing(); /* the convolution reads `raw` instead */
        conv.decision = s->decision;
    } else {
        conv.raw = conv.in_norm = cuda_nothing();
    }
    stk_cuda_norm_reduce(p, &s->back, fused ? cuda_nothing() : s->again, s->scratch);
    stk_cuda_conv(p, &conv);
}

static cuda_norm norm_of(cuda_program *p, size_t channels) {
    return (cuda_norm){.weight = stk_cuda_noise_floats(p, channels),
                       .bias = stk_cuda_noise_floats(p, channels),
                       .running_mean = stk_cuda_noise_floats(p, channels),
                       .running_var = stk_cuda_noise_floats(p, channels),
                       .weight_grad = stk_cuda_noise_floats(p, channels),
                       .bias_grad = stk_cuda_noise_floats(p, channels),
                       .epsilon = 1e-5f,
                       .coefs = stk_cuda_noise_floats(p, 5 * channels),
                       .narrow = true,
                       .back = stk_cuda_noise_floats(p, 3 * channels)};
}

void stk_cuda_rehearse_norm_weight(cuda_program *p, const cuda_decision *decision,
                                   cuda_rehearsal *made) {
    const cuda_conv_shape *s = &decision->shape;
    cuda_norm_weight_site *site = &made->site.norm_weight;
    cuda_plane in = {s->batch, s->height * s->width, s->channels};
    size_t channels = (size_t)s->channels;
    size_t taps = (size_t)s->kernel * (size_t)s->kernel * channels;
    size_t written = (size_t)s->batch * (size_t)(s->out_height * s->out_width) * (size_t)s->filters;
    made->norms[0] = norm_of(p, channels);
    const cuda_norm *norm = &made->norms[0];
    *site = (cuda_norm_weight_site){.back = {.plane = in,
                                             .g = stk_cuda_noise_room(p, cuda_plane_count(in)),
                                             .x = stk_cuda_noise_room(p, cuda_plane_count(in)),
                                             .norm = norm,
                                             .tail = {.act = STK_OP_RELU},
                                             .added = {.x = cuda_nothing(), .dx = cuda_nothing()},
                                             .mask = cuda_nothing(),
                                             .dx = cuda_nothing()},
                                    .again = stk_cuda_noise_room(p, cuda_plane_count(in)),
                                    .scratch = cuda_nothing()};
    site->conv = cuda_conv_of(s, site->again, stk_cuda_room(p, taps * (size_t)s->filters),
                              stk_cuda_noise_room(p, written));
    site->conv.raw = site->back.x;
    site->conv.in_norm = cuda_norm_narrow(norm, s->channels);
    stk_cuda_rehearse_coefs(p, in, site->back.x, norm);
}

/* ---- CUDA_FUSE_JOIN_BACK ---- */

size_t stk_cuda_join_back_site_scratch(const cuda_program *p, const cuda_site *site) {
    return stk_cuda_join_back_scratch(p, &site->join_back.join);
}

cuda_norm_back stk_cuda_join_back_pass(const cuda_norm_back *plain) {
    cuda_norm_back back = *plain;
    back.tail = (cuda_tail){.act = STK_OP_COUNT};
    back.mask = cuda_nothing();
    if (plain->added.norm == NULL) {
        /* The gradient of the added value is g itself. */
        back.added.x = cuda_nothing();
        back.added.dx = plain->added.accumulate ? plain->added.dx : cuda_nothing();
    }
    return back;
}

void stk_cuda_emit_join_back(cuda_program *p, const cuda_site *site, int part, int variant) {
    const cuda_join_back_site *s = &site->join_back;
    bool fused = variant == CUDA_FUSED;
    if (part == 0) {
        fused ? stk_cuda_join_back(p, &s->join) : stk_cuda_conv(p, &s->data);
    } else if (part == 1) {
        fused ? stk_cuda_join_back_finalise(p, &s->join)
              : stk_cuda_norm_reduce(p, &s->back, cuda_nothing(), cuda_nothing());
    } else {
        cuda_norm_back back = fused ? stk_cuda_join_back_pass(&s->back) : s->back;
        stk_cuda_norm_backward(p, &back);
    }
}

void stk_cuda_rehearse_join_back(cuda_program *p, const cuda_decision *decision,
                                 cuda_rehearsal *made) {
    const cuda_conv_shape *s = &decision->shape;
    bool added_norm = decision->detail == cuda_join_back_detail(true);
    cuda_plane plane = {s->batch, s->height * s->width, s->channels};
    size_t count = cuda_plane_count(plane);
    size_t rows = (size_t)plane.batch * (size_t)plane.pixels;
    size_t filters = (size_t)s->filters;
    size_t channels = (size_t)s->channels;
    cuda_join_back_site *site = &made->site.join_back;
    made->norms[0] = norm_of(p, channels);
    made->norms[1] = norm_of(p, channels);
    cuda_join_back join = {
        .plane = plane,
        .filters = s->filters,
        .dy = stk_cuda_noise_room(p, rows * filters),
        .weight = stk_cuda_noise_room(p, filters * channels),
        .old = stk_cuda_noise_room(p, count),
        .mask = stk_cuda_noise_room(p, cuda_ceil(count / 8, cuda_type_bytes(p->type))),
        .x = stk_cuda_noise_room(p, count),
        .norm = &made->norms[0],
        .other_x = added_norm ? stk_cuda_noise_room(p, count) : cuda_nothing(),
        .other_norm = added_norm ? &made->norms[1] : NULL};
    join.dz = join.old;
    join.partial = stk_cuda_buffer(p, stk_cuda_join_back_scratch(p, &join));
    cuda_ref fresh = stk_cuda_noise_room(p, count);
    /* Where the added value is not read, any tensor stands for it. */
    *site = (cuda_join_back_site){.join = join,
                                  .data = cuda_conv_of(s, join.dz, join.weight, join.dy),
                                  .back = {.plane = plane,
                                           .g = join.dz,
                                           .x = join.x,
                                           .norm = join.norm,
                                           .tail = {.act = STK_OP_RELU},
                                           .added = {.x = added_norm ? join.other_x : join.x,
                                                     .norm = join.other_norm,
                                                     .dx = added_norm ? fresh : join.dz},
                                           .mask = join.mask,
                                           .dx = added_norm ? join.dz : fresh}};
}
