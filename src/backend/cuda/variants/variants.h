/*
 * variants.h - inside the CUDA backend: what can be computed plainly or fused, and how.
 *
 * A fusion (cuda_fusion) is one row of a table: a name, whether the fused variant can compute a
 * site, the functions that append the operations of both variants, and a site on noise for
 * autotune. A site is one place of a network, or its like on noise, with all buffers that either
 * variant uses. Lowering and autotune append the same operations through the same functions.
 *
 * A fusion may have several parts, since other pieces of the network lie between them: a forward
 * fusion begins where a value is made and ends where the convolution reads it. Autotune runs all
 * parts in a row; lowering appends each part in its place. Nothing here keeps state.
 *
 * A row with kernels of our own says which types, channels and devices they can compute
 * (`scratch`). Which nodes of the graph form a site is decided in lowering/: in chain_join.c,
 * chain_join_back.c and chain_layer_back.c for one fusion each, in chain.c, places.c and
 * conv_back.c for the others.
 *
 * One more fusion: a number in cuda_fusion, a row in variants.c, and the functions of its row.
 */
#ifndef STK_BACKEND_CUDA_VARIANTS_VARIANTS_H
#define STK_BACKEND_CUDA_VARIANTS_VARIANTS_H

#include "backend/cuda/emit/emit.h"

/* The variants of every fusion. */
enum { CUDA_PLAIN, CUDA_FUSED, CUDA_VARIANTS };

/*
 * Forward: a norm with what follows it, the convolution that reads the result, and the statistics
 * of the next norm. CUDA_FUSE_STATS uses the convolution and the next norm only.
 *
 *   CUDA_FUSE_STATS, part 0       plain: convolution, then norm_stats reads its output again
 *                                 fused: the convolution accumulates the sums as it writes
 *   CUDA_FUSE_NORM_CONV, part 0   plain: norm_apply stores y       fused: nothing
 *                        part 1   plain: CUDA_FUSE_STATS           fused: a convolution that
 *                                 computes norm and ReLU as it loads, with sums
 *   CUDA_FUSE_JOIN, part 0        plain: norm_apply stores y       fused: kernels/join.cu stores y
 *                                 and computes the convolution with its sums
 *                   part 1        plain: CUDA_FUSE_STATS           fused: nothing
 */
typedef struct cuda_forward_site {
    cuda_plane plane; /* of y */
    cuda_ref x;       /* T: what the norm reads */
    const cuda_norm *norm;
    cuda_tail tail;
    cuda_added added;
    cuda_ref mask;         /* of ReLU, as in stk_cuda_norm_apply() */
    cuda_ref y;            /* T: result of norm, addition and activation */
    cuda_conv_op conv;     /* reads y; plain shape; `stats` is scratch for sums; raw and in_norm are
                              set where CUDA_FUSE_NORM_CONV may apply */
    cuda_plane out;        /* of the convolution's output */
    const cuda_norm *next; /* of that output */
    int stats_variant;     /* the variant of CUDA_FUSE_STATS that runs inside the plain variants */
    /* For cuda_conv_op.decision of the convolution with sums, and of the one that computes the norm
     * as well. */
    int stats_decision, norm_decision;
} cuda_forward_site;

/*
 * Backward of a norm and ReLU whose output was not stored, with the weight gradient of the
 * convolution that read that output: CUDA_FUSE_NORM_WEIGHT, one part.
 *
 *   plain: norm_reduce computes the output again, which the weight gradient reads
 *   fused: norm_reduce does not; the weight gradient computes it as it loads
 */
typedef struct cuda_norm_weight_site {
    cuda_norm_back back;
    cuda_ref again;    /* T: the norm's output, computed again */
    cuda_ref scratch;  /* for norm_reduce of either variant */
    cuda_conv_op conv; /* CUDA_CONV_WEIGHT, plain: x is `again`; raw and in_norm are set */
    int decision;      /* for cuda_conv_op.decision of the fused convolution */
} cuda_norm_weight_site;

/*
 * Backward of a value that a norm, an addition and ReLU make: the last gradient that arrives is
 * that of a 1x1 convolution. CUDA_FUSE_JOIN_BACK:
 *
 *   part 0   plain: the convolution's data gradient is added to the value's gradient
 *            fused: kernels/join_back.cu adds it, applies ReLU's mask and accumulates the sums of
 *            the norm's first pass
 *   part 1   plain: norm_reduce          fused: sums become coefficients and gradients
 *   part 2   plain: norm_backward        fused: norm_backward without ReLU, which was applied
 */
typedef struct cuda_join_back_site {
    cuda_join_back join;
    cuda_conv_op data;   /* CUDA_CONV_DATA that accumulates into join.dz */
    cuda_norm_back back; /* of the plain variant; needed by parts 1 and 2 */
} cuda_join_back_site;

/*
 * Backward of a norm's second pass and of the 1x1 convolution in front of it, or of two such
 * convolutions whose norms are added. CUDA_FUSE_LAYER_BACK, one part:
 *
 *   plain: norm_backward, then weight and data gradient of each convolution
 *   fused: kernels/layer_back.cu for each convolution
 */
typedef struct cuda_layer {
    cuda_layer_back fused;
    cuda_conv_op weight, data; /* of the plain variant */
    bool weight_later;         /* plain: the weight gradient is appended by others, since its input
                                  must be computed again first */
    /* If set, the plain variant runs part 0 of CUDA_FUSE_JOIN_BACK, in its variant `joins`, instead
     * of `data`. */
    const cuda_join_back_site *join;
    int joins;
} cuda_layer;

typedef struct cuda_layer_back_site {
    cuda_norm_back pass;  /* second pass of the norms, in the plain variant */
    cuda_layer layers[2]; /* the second one where two are added */
    int count;            /* 1 or 2 */
} cuda_layer_back_site;

typedef union cuda_site {
    cuda_forward_site forward;         /* STATS, NORM_CONV, JOIN */
    cuda_norm_weight_site norm_weight; /* NORM_WEIGHT */
    cuda_join_back_site join_back;     /* JOIN_BACK */
    cuda_layer_back_site layer_back;   /* LAYER_BACK */
} cuda_site;

/* A site on noise, with the norms that it points to. It must not be copied. */
typedef struct cuda_rehearsal {
    cuda_site site;
    cuda_norm norms[3];
} cuda_rehearsal;

typedef void cuda_emit_part(cuda_program *p, const cuda_site *site, int part, int variant);
typedef void cuda_rehearse(cuda_program *p, const cuda_decision *decision, cuda_rehearsal *made);

typedef struct cuda_fusion_row {
    /* Begins the names of decisions in the store; its number grows when a variant changes so that
     * old answers may be wrong. */
    const char *name;
    int parts;
    /* Bytes of scratch that the fused kernels need; 0: they cannot compute this site, for its type,
     * its channels or the device. NULL: a library decides, when plans are looked for. */
    size_t (*scratch)(const cuda_program *p, const cuda_site *site);
    cuda_emit_part *emit;
    /* Appends operations that fill what both variants read with noise, and describes the site. */
    cuda_rehearse *rehearse;
} cuda_fusion_row;

extern const cuda_fusion_row stk_cuda_fusions[CUDA_FUSIONS];

/*
 * Appends both variants of a part of a row's `emit`. `chosen` runs; of the other one only the
 * buffers are laid out, so that the memory need is the same whichever is chosen
 * (stk_cuda_variants_begin()).
 */
void stk_cuda_emit_variants(cuda_program *p, cuda_emit_part *emit, const cuda_site *site, int part,
                            int chosen);

/* The norm's second pass where ReLU and its mask were applied already. */
cuda_norm_back stk_cuda_join_back_pass(const cuda_norm_back *plain);

/* ---- cuda_decision.detail ---- */

/* CUDA_FUSE_NORM_CONV: the variant of CUDA_FUSE_STATS. */

/* CUDA_FUSE_JOIN: the variant of CUDA_FUSE_STATS, and whether the added value has its own norm. */
static inline int cuda_join_detail(int stats, bool added_norm) {
    return 2 * stats + added_norm;
}

/* CUDA_FUSE_JOIN_BACK: whether what was added has a norm of its own. */
static inline int cuda_join_back_detail(bool added_norm) {
    return added_norm;
}

/* CUDA_FUSE_LAYER_BACK: bits for all that selects another kernel. */
int stk_cuda_layer_back_detail(const cuda_layer_back_site *site);

/* ---- functions of the rows ---- */

/* forward.c */
cuda_emit_part stk_cuda_emit_stats, stk_cuda_emit_norm_conv, stk_cuda_emit_join;
cuda_rehearse stk_cuda_rehearse_stats, stk_cuda_rehearse_norm_conv, stk_cuda_rehearse_join;
size_t stk_cuda_join_site_scratch(const cuda_program *p, const cuda_site *site);

/* backward.c */
cuda_emit_part stk_cuda_emit_norm_weight, stk_cuda_emit_join_back;
cuda_rehearse stk_cuda_rehearse_norm_weight, stk_cuda_rehearse_join_back;
size_t stk_cuda_join_back_site_scratch(const cuda_program *p, const cuda_site *site);

/* backward_layer.c */
cuda_emit_part stk_cuda_emit_layer_back;
cuda_rehearse stk_cuda_rehearse_layer_back;
size_t stk_cuda_layer_back_site_scratch(const cuda_program *p, const cuda_site *site);

/* ---- sites.c: for the files above ---- */

/* A buffer for `count` numbers of T, or of float32. */
cuda_ref stk_cuda_room(cuda_program *p, size_t count);
cuda_ref stk_cuda_room_floats(cuda_program *p, size_t count);

/* The same, filled with noise. As float32 the noise is arbitrary numbers, perhaps not finite. */
cuda_ref stk_cuda_noise_room(cuda_program *p, size_t count);
cuda_ref stk_cuda_noise_floats(cuda_program *p, size_t count);

/* Gives a norm on noise finite coefficients, since results are compared: weight and bias from
 * noise, the rest from statistics of x. */
void stk_cuda_rehearse_coefs(cuda_program *p, cuda_plane plane, cuda_ref x, const cuda_norm *norm);

static inline size_t cuda_plane_count(cuda_plane plane) {
    return (size_t)plane.batch * (size_t)plane.pixels * (size_t)plane.channels;
}

#endif
