/*
 * forward.c - fusions of a convolution with the norms around it.
 *
 * All three fusions end with the statistics of the norm after the convolution. cuDNN computes the
 * fused convolutions of CUDA_FUSE_STATS and CUDA_FUSE_NORM_CONV, in fp16 only. A convolution that
 * applies a norm as it loads saves writing and reading a tensor, but is slower itself.
 */
#include "backend/cuda/variants/variants.h"

/* The convolution, then the statistics of its output: from the sums of a fused convolution, or by
 * reading the output again. */
static void emit_conv(cuda_program *p, const cuda_forward_site *s, const cuda_conv_op *conv) {
    stk_cuda_conv(p, conv);
    if (conv->shape.stats) {
        stk_cuda_norm_finalise(p, s->out, s->next, conv->stats);
    } else {
        stk_cuda_norm_stats(p, s->out, conv->y, s->next, conv->stats);
    }
}

static void emit_apply(cuda_program *p, const cuda_forward_site *s) {
    stk_cuda_norm_apply(p, s->plane, s->x, s->norm, &s->tail, &s->added, s->y, s->mask);
}

void stk_cuda_emit_stats(cuda_program *p, const cuda_site *site, int part, int variant) {
    (void)part;
    const cuda_forward_site *s = &site->forward;
    cuda_conv_op conv = s->conv;
    conv.raw = conv.in_norm = cuda_nothing();
    if (variant == CUDA_FUSED) {
        conv.shape.stats = true;
        conv.decision = s->stats_decision;
    }
    emit_conv(p, s, &conv);
}

void stk_cuda_emit_norm_conv(cuda_program *p, const cuda_site *site, int part, int variant) {
    const cuda_forward_site *s = &site->forward;
    if (variant == CUDA_PLAIN) {
        part == 0 ? emit_apply(p, s)
                  : stk_cuda_emit_variants(p, stk_cuda_emit_stats, site, 0, s->stats_variant);
    } else if (part == 1) {
        cuda_conv_op conv = s->conv;
        conv.x = cuda_nothing(); /* the convolution reads `raw` instead */
        conv.shape.stats = conv.shape.in_norm = true;
        conv.decision = s->norm_decision;
        emit_conv(p, s, &conv);
    }
}

static cuda_join join_of(const cuda_forward_site *s) {
    return (cuda_join){.plane = s->plane,
                       .x = s->x,
                       .norm = s->norm,
                       .added = &s->added,
                       .y = s->y,
                       .mask = s->mask,
                       .filters = s->out.channels,
                       .weight = s->conv.w,
                       .z = s->conv.y,
                       .next = s->next,
                       .partial = s->conv.stats};
}

size_t stk_cuda_join_site_scratch(const cuda_program *p, const cuda_site *site) {
    cuda_join join = join_of(&site->forward);
    return stk_cuda_join_scratch(p, &join);
}

void stk_cuda_emit_join(cuda_program *p, const cuda_site *site, int part, int variant) {
    const cuda_forward_site *s = &site->forward;
    cuda_join join = join_of(s);
    if (variant == CUDA_PLAIN) {
        part == 0 ? emit_apply(p, s)
                  : stk_cuda_emit_variants(p, stk_cuda_emit_stats, site, 0, s->stats_variant);
    } else if (part == 0) {
        stk_cuda_join(p, &join);
        stk_cuda_join_finalise(p, &join);
    }
}

/* ---- sites on noise ---- */

static cuda_norm norm_of(cuda_program *p, int channels) {
    size_t count = (size_t)channels;
    return (cuda_norm){.weight = stk_cuda_room_floats(p, count),
                       .bias = stk_cuda_room_floats(p, count),
                       .running_mean = stk_cuda_room_floats(p, count),
                       .running_var = stk_cuda_room_floats(p, count),
                       .weight_grad = cuda_nothing(),
                       .bias_grad = cuda_nothing(),
                       .epsilon = 1e-5f,
                       .coefs = stk_cuda_room_floats(p, 5 * count),
                       .narrow = true,
                       .back = cuda_nothing()};
}

/* The convolution of a decision, with the next norm: all that CUDA_FUSE_STATS needs. */
static void rehearse_conv(cuda_program *p, const cuda_conv_shape *s, cuda_rehearsal *made) {
    size_t taps = (size_t)s->kernel * (size_t)s->kernel * (size_t)s->channels;
    cuda_forward_site *site = &made->site.forward;
    *site = (cuda_forward_site){.plane = {s->batch, s->height * s->width, s->channels},
                                .norm = &made->norms[0],
                                .tail = {.act = STK_OP_RELU},
                                .added = {.x = cuda_nothing(), .dx = cuda_nothing()},
                                .mask = cuda_nothing(),
                                .out = {s->batch, s->out_height * s->out_width, s->filters},
                                .next = &made->norms[1]};
    site->y = stk_cuda_noise_room(p, cuda_plane_count(site->plane));
    site->conv = cuda_conv_of(s, site->y, stk_cuda_noise_room(p, taps * (size_t)s->filters),
                              stk_cuda_room(p, cuda_plane_count(site->out)));
    site->conv.stats = stk_cuda_buffer(p, stk_cuda_norm_scratch(p, site->out));
    made->norms[1] = norm_of(p, s->filters);
}

/* The norm in front. */
static void rehearse_norm(cuda_program *p, cuda_rehearsal *made) {
    cuda_forward_site *site = &made->site.forward;
    site->x = stk_cuda_noise_room(p, cuda_plane_count(site->plane));
    made->norms[0] = norm_of(p, site->plane.channels);
    stk_cuda_rehearse_coefs(p, site->plane, site->x, &made->norms[0]);
}

void stk_cuda_rehearse_stats(cuda_program *p, const cuda_decision *decision, cuda_rehearsal *made) {
    rehearse_conv(p, &decision->shape, made);
}

void stk_cuda_rehearse_norm_conv(cuda_program *p, const cuda_decision *decision,
                                 cuda_rehearsal *made) {
    cuda_forward_site *site = &made->site.forward;
    rehearse_conv(p, &decision->shape, made);
    rehearse_norm(p, made);
    site->conv.raw = site->x;
    site->conv.in_norm = cuda_norm_narrow(site->norm, site->plane.channels);
    site->stats_variant = decision->detail;
}

void stk_cuda_rehearse_join(cuda_program *p, const cuda_decision *decision, cuda_rehearsal *made) {
    cuda_forward_site *site = &made->site.forward;
    rehearse_conv(p, &decision->shape, made);
    rehearse_norm(p, made);
    site->added.x = stk_cuda_noise_room(p, cuda_plane_count(site->plane));
    if (decision->detail == cuda_join_detail(decision->detail / 2, true)) {
        made->norms[2] = norm_of(p, site->plane.channels);
        stk_cuda_rehearse_coefs(p, site->plane, site->added.x, &made->norms[2]);
        site->added.norm = &made->norms[2];
    }
    site->mask = stk_cuda_buffer(p, cuda_plane_count(site->plane) / 8);
    size_t plain = stk_cuda_norm_scratch(p, site->out);
    size_t fused = stk_cuda_join_site_scratch(p, &made->site);
    site->conv.stats = stk_cuda_buffer(p, plain > fused ? plain : fused);
    site->stats_variant = decision->detail / 2;
}
