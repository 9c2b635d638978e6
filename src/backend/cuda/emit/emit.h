/*
 * emit.h - inside the CUDA backend: functions that append launches of our own kernels.
 *
 * Each function appends the launches that compute one thing. For a family of kernels,
 * kernels/FAMILY.cu, the file FAMILY.c beside this one chooses grids and specialisations. `T` is
 * the type of activations (cuda_program.type); vectors per channel and sums per sample are float32.
 * Values lie as (N, H, W, C). Unless said otherwise an output may not lie on an input. An optional
 * reference that is not used is cuda_nothing().
 */
#ifndef STK_BACKEND_CUDA_EMIT_EMIT_H
#define STK_BACKEND_CUDA_EMIT_EMIT_H

#include "backend/cuda/program/kernel_constants.h"
#include "backend/cuda/program/program.h"

/* A value as rows of channels: batch * pixels rows. */
typedef struct cuda_plane {
    int batch;
    int pixels; /* height times width */
    int channels;
} cuda_plane;

/* Pixels of the whole batch. */
static inline size_t cuda_rows(cuda_plane plane) {
    return (size_t)plane.batch * (size_t)plane.pixels;
}

/* What follows a norm in its chain. */
typedef struct cuda_tail {
    stk_op act;      /* STK_OP_RELU, RELU6, SILU; STK_OP_COUNT: none */
    int drop_node;   /* stochastic depth: its node */
    float drop_rate; /* 0: none */
} cuda_tail;

/* ---- norm: kernels/norm.cu, norm_back.cu ---- */

/* A norm's parameters; all float32 (C). */
typedef struct cuda_norm {
    cuda_ref weight, bias, running_mean, running_var; /* in CUDA_FIXED_VALUES */
    cuda_ref weight_grad, bias_grad;                  /* in CUDA_FIXED_FRESH; written */
    float epsilon;
    /*
     * float32 (4, C), from forward to backward: mean, 1 / deviation, scale, shift, where the norm
     * of x is scale * x + shift. With `narrow` scale and shift follow once more, as T (2, C), for
     * a library that needs them in that type.
     */
    cuda_ref coefs;
    bool narrow;
    /* float32 (3, C), in backward: a, b, d, where dx = a * dn + b * (x - mean) + d */
    cuda_ref back;
} cuda_norm;

/* The position of the narrow scale and shift. */
static inline cuda_ref cuda_norm_narrow(const cuda_norm *norm, int channels) {
    cuda_ref ref = norm->coefs;
    ref.offset += 4 * (size_t)channels * sizeof(float);
    return ref;
}

/* Bytes for what statistics are computed in: partial sums, or float32 (2, C). */
size_t stk_cuda_norm_scratch(const cuda_program *p, cuda_plane plane);

/*
 * The batch's statistics: fills coefs, moves the running statistics as backend/cpu/kernels/norm.c
 * does. `scratch` has stk_cuda_norm_scratch() bytes; nothing: a buffer of its own.
 */
void stk_cuda_norm_stats(cuda_program *p, cuda_plane plane, cuda_ref x, const cuda_norm *norm,
                         cuda_ref scratch);

/*
 * The same from sums, float32 (2, C), that another operation has accumulated: of x, then of its
 * squares. These are not taken about a pivot: the variance is off by some 1e-7 of the mean's
 * square, which matters only where the mean is hundreds of deviations.
 */
void stk_cuda_norm_finalise(cuda_program *p, cuda_plane plane, const cuda_norm *norm,
                            cuda_ref sums);

/* Computes coefs from the running statistics. */
void stk_cuda_norm_running(cuda_program *p, int channels, const cuda_norm *norm);

/* The second operand of an addition after a norm: x itself, or `norm` applied to x. */
typedef struct cuda_added {
    /* T. In forward, nothing: nothing is added. Backward needs x only if `norm` is set, or if there
     * is an activation without a mask, whose slope depends on the sum. */
    cuda_ref x;
    const cuda_norm *norm; /* NULL: x itself is added */
    cuda_ref dx;           /* in backward: the gradient of x; nothing: none is wanted */
    bool accumulate;       /* add to dx; never with a norm */
} cuda_added;

/*
 * y = act(drop * (scale * x + shift) + added). y may lie on x. mask, one bit per element (bit c % 8
 * of byte row * ceil(C / 8) + c / 8), is set where the activation (ReLU or ReLU6) lets gradients
 * pass.
 */
void stk_cuda_norm_apply(cuda_program *p, cuda_plane plane, cuda_ref x, const cuda_norm *norm,
                         const cuda_tail *tail, const cuda_added *added, cuda_ref y, cuda_ref mask);

/* The backward of a norm and of what follows it in its chain. Both passes take the same struct. */
typedef struct cuda_norm_back {
    cuda_plane plane;
    cuda_ref g;            /* T: gradient of the chain's output */
    cuda_ref x;            /* T: what the norm read in forward */
    const cuda_norm *norm; /* the first pass writes its gradients and `back`; the second reads it */
    cuda_tail tail;
    cuda_added added;
    cuda_ref mask; /* of stk_cuda_norm_apply(); nothing: the slope is computed from x */
    cuda_ref dx;   /* second pass: T, gradient of x; may lie on g; nothing: not wanted */
} cuda_norm_back;

/*
 * First pass: with dn = drop * slope * g, the sums of dn and of dn * (normalised x) give the
 * gradients of weight and bias, and `back`. With added.norm the same pass also takes the sums of
 * that norm (dn = slope * g). `again`: T, the chain's output is computed once more into it; never
 * where something is added. `scratch`: stk_cuda_norm_reduce_scratch() bytes; nothing: a buffer of
 * its own.
 */
void stk_cuda_norm_reduce(cuda_program *p, const cuda_norm_back *back, cuda_ref again,
                          cuda_ref scratch);

/* Bytes for partial sums of the first pass, with or without `again`. */
size_t stk_cuda_norm_reduce_scratch(const cuda_program *p, const cuda_norm_back *back, bool again);

/*
 * Second pass: dx = a * dn + b * (x - mean) + d. What was added gets slope * g in added.dx, or its
 * gradient through its own norm. added.dx may lie on g.
 */
void stk_cuda_norm_backward(cuda_program *p, const cuda_norm_back *back);

/* ---- convolution and norm: kernels/layer_back.cu ---- */

/*
 * A convolution of 1x1, stride 1, and the norm after it, in backward: what
 * stk_cuda_norm_backward(), CUDA_CONV_DATA and CUDA_CONV_WEIGHT do, in one pass over all rows.
 */
typedef struct cuda_layer_back {
    cuda_plane plane;      /* of the convolution's output */
    int channels;          /* of its input */
    cuda_ref g;            /* T (rows, plane.channels): of the chain's output */
    cuda_ref x;            /* T (rows, plane.channels): what the norm read */
    const cuda_norm *norm; /* with `back` */
    cuda_tail tail;
    cuda_ref mask;            /* as in stk_cuda_norm_backward() */
    cuda_ref added_dx;        /* slope * g is written to it; may lie on g; nothing: not wanted */
    cuda_ref input;           /* T (rows, channels): what the convolution read; see in_norm */
    const cuda_norm *in_norm; /* it read in_act(scale * input + shift); NULL: `input` itself */
    stk_op in_act;
    cuda_ref weight;      /* T (plane.channels, channels) */
    cuda_ref weight_grad; /* T (plane.channels, channels), written */
    cuda_ref dx;          /* T (rows, channels), written; with `accumulate` added to its contents */
    bool accumulate;
    cuda_ref partial; /* stk_cuda_layer_back_scratch() bytes */
} cuda_layer_back;

/*
 * Bytes for partial sums of the weights' gradient; 0: the kernel cannot compute this, because of
 * its type, its channels (multiples of 8, and not too many) or what follows the norm.
 */
size_t stk_cuda_layer_back_scratch(const cuda_program *p, const cuda_layer_back *layer);

/* Appends two launches. Call it only if stk_cuda_layer_back_scratch() is not 0. */
void stk_cuda_layer_back(cuda_program *p, const cuda_layer_back *layer);

/* ---- forward where branches join: kernels/join.cu ---- */

/*
 * A norm, an addition and a ReLU, and a convolution of 1x1, stride 1, that reads what they make,
 * with the statistics of the norm after it: what stk_cuda_norm_apply(), CUDA_CONV_FORWARD with
 * statistics and stk_cuda_norm_finalise() do, in one pass over all rows.
 */
typedef struct cuda_join {
    cuda_plane plane; /* of the value */
    cuda_ref x;       /* T (rows, plane.channels): what the norm reads */
    const cuda_norm *norm;
    const cuda_added *added;
    cuda_ref y, mask; /* as in stk_cuda_norm_apply(); y may not lie on x */
    int filters;
    cuda_ref weight;       /* T (filters, plane.channels) */
    cuda_ref z;            /* T (rows, filters): what the convolution makes */
    const cuda_norm *next; /* of z */
    cuda_ref partial;      /* stk_cuda_join_scratch() bytes */
} cuda_join;

/* Bytes for partial sums; 0: the kernel cannot compute this, because of type or channels. */
size_t stk_cuda_join_scratch(const cuda_program *p, const cuda_join *join);

/* Computes y, mask, z and partial sums. Call it only if stk_cuda_join_scratch() is not 0. */
void stk_cuda_join(cuda_program *p, const cuda_join *join);

/* Computes coefs and running statistics of `next` from the partial sums. */
void stk_cuda_join_finalise(cuda_program *p, const cuda_join *join);

/* ---- backward where branches join: kernels/join_back.cu ---- */

/*
 * Backward of a value that a norm, an addition and a ReLU make, and that a 1x1 convolution of
 * stride 1 and others read. One pass over all rows does what CUDA_CONV_DATA and
 * stk_cuda_norm_reduce() do. The pass also applies the mask: dz is the gradient in front of the
 * ReLU, which is also the gradient of what was added. stk_cuda_norm_backward() then reads dz
 * without an activation.
 */
typedef struct cuda_join_back {
    cuda_plane plane; /* of the value */
    int filters;      /* of the convolution */
    cuda_ref dy;      /* T (rows, filters): gradient of the convolution's output */
    cuda_ref weight;  /* T (filters, plane.channels) */
    cuda_ref old;     /* T (rows, plane.channels): the gradients of all other readers */
    cuda_ref mask;    /* of the ReLU, as in stk_cuda_norm_apply() */
    cuda_ref x;       /* T (rows, plane.channels): what the norm read */
    const cuda_norm *norm;
    /* The added operand, if a second norm made it: T, what that norm read, and the norm. Nothing
     * and NULL: a stored value was added. */
    cuda_ref other_x;
    const cuda_norm *other_norm;
    cuda_ref dz;      /* T (rows, plane.channels), written; may lie on old */
    cuda_ref partial; /* stk_cuda_join_back_scratch() bytes */
} cuda_join_back;

/*
 * Bytes for partial sums; 0: the kernel cannot compute this, because of its type or channels
 * (filters: a multiple of 16, and not too many; the value's: a multiple of 128).
 */
size_t stk_cuda_join_back_scratch(const cuda_program *p, const cuda_join_back *join);

/* Computes dz and partial sums. Call it only if stk_cuda_join_back_scratch() is not 0. */
void stk_cuda_join_back(cuda_program *p, const cuda_join_back *join);

/* Computes the gradients of the norms' weights and biases, and their `back`, from partial sums. */
void stk_cuda_join_back_finalise(cuda_program *p, const cuda_join_back *join);

/* ---- depthwise: kernels/depthwise.cu, depthwise_back.cu ---- */

typedef struct cuda_depthwise {
    int batch;
    int height, width, channels;
    int out_height, out_width;
    int kernel, stride, pad; /* pad: above and left */
    cuda_ref weight;         /* float32 (C, 1, kernel, kernel) */
    cuda_ref weight_grad;    /* float32 (C, 1, kernel, kernel), written */
    cuda_ref x;              /* what the convolution reads; see in_norm */
    /* The convolution reads act(scale * x + shift), with scale and shift of this norm; NULL: x. */
    const cuda_norm *in_norm;
    stk_op in_act;
} cuda_depthwise;

/* y = conv(input); with `norm` its statistics too, as stk_cuda_norm_stats() of y would. */
void stk_cuda_depthwise(cuda_program *p, const cuda_depthwise *conv, cuda_ref y,
                        const cuda_norm *norm);

/* Computes weight_grad from dy and the input. */
void stk_cuda_depthwise_weight(cuda_program *p, const cuda_depthwise *conv, cuda_ref dy);

/*
 * The same, and dx = conv'(dy), added to dx when `accumulate`. With in_norm, dx is multiplied by
 * the slope of in_act, and weight_grad, bias_grad and back of in_norm are computed, as
 * stk_cuda_norm_reduce() would. in_norm and `accumulate` exclude each other.
 */
void stk_cuda_depthwise_back(cuda_program *p, const cuda_depthwise *conv, cuda_ref dy, cuda_ref dx,
                             bool accumulate);

/* ---- squeeze and excite: kernels/squeeze.cu, kernels/squeeze_layers.cu ---- */

/*
 * The block after a depthwise chain: s = act(scale * x + shift) is never stored; squeezed (N, C) =
 * mean over pixels of s; hidden = hidden_act(squeezed W1' + b1); gate = sigmoid(hidden W2' + b2);
 * p = s * gate.
 */
typedef struct cuda_squeeze {
    cuda_plane plane;
    cuda_ref x; /* T: what the norm reads */
    const cuda_norm *norm;
    stk_op act;
    int reduced;                 /* channels of `hidden` */
    stk_op hidden_act;           /* STK_OP_SILU or STK_OP_RELU */
    cuda_ref w1, b1, w2, b2;     /* float32 in CUDA_FIXED_VALUES: (R, C), (R), (C, R), (C) */
    cuda_ref dw1, db1, dw2, db2; /* in CUDA_FIXED_FRESH, written: T, float32, T, float32 */
    cuda_ref squeezed;           /* float32 (N, C), from forward to backward */
    cuda_ref hidden;             /* float32 (N, R): before its activation, to backward */
    cuda_ref gate;               /* float32 (N, C), to backward */
} cuda_squeeze;

/* Computes squeezed, hidden, gate and p (T), in training and in inference. */
void stk_cuda_squeeze(cuda_program *p, const cuda_squeeze *block, cuda_ref out);

/*
 * From dp (T): the gradients of w1, b1, w2, b2 and of the norm, and dx (T), the gradient of x,
 * which may lie on dp. Reads x twice and dp twice in all: sums per sample and channel in the first
 * pass give what the norm's backward needs. `again`, a T buffer: p is computed once more into it.
 */
void stk_cuda_squeeze_reduce(cuda_program *p, const cuda_squeeze *block, cuda_ref dp,
                             cuda_ref again, cuda_ref dsqueezed /* float32 (N, C) */);
void stk_cuda_squeeze_backward(cuda_program *p, const cuda_squeeze *block, cuda_ref dp,
                               cuda_ref dsqueezed, cuda_ref dx);

/* ---- single nodes: kernels/pointwise.cu, kernels/pooling.cu ---- */

/* ReLU, ReLU6, SiLU, sigmoid; y may lie on x. */
void stk_cuda_act(cuda_program *p, stk_op act, size_t count, cuda_ref x, cuda_ref y);
/* dx = or += dy * slope, from x (SiLU) or y (the others); dx may lie on dy. */
void stk_cuda_act_back(cuda_program *p, stk_op act, size_t count, cuda_ref x, cuda_ref y,
                       cuda_ref dy, cuda_ref dx, bool accumulate);
/* y = a + b; y may lie on either. */
void stk_cuda_add(cuda_program *p, size_t count, cuda_ref a, cuda_ref b, cuda_ref y);
/* dx = or += dy */
void stk_cuda_pass(cuda_program *p, size_t count, cuda_ref dy, cuda_ref dx, bool accumulate);
/* y = x + bias per channel; y may lie on x. The bias is float32. */
void stk_cuda_bias(cuda_program *p, cuda_plane plane, cuda_ref x, cuda_ref bias, cuda_ref y);
/* Sums over all rows of dy, float32 (C), written. */
void stk_cuda_bias_back(cuda_program *p, cuda_plane plane, cuda_ref dy, cuda_ref bias_grad);
/* y = x * gate (N, C); and back: dx = or += dy * gate, dgate = or += sum over pixels of dy * x. */
void stk_cuda_scale(cuda_program *p, cuda_plane plane, cuda_ref x, cuda_ref gate, cuda_ref y);
void stk_cuda_scale_back(cuda_program *p, cuda_plane plane, cuda_ref x, cuda_ref gate, cuda_ref dy,
                         cuda_ref dx, bool accumulate_x, cuda_ref dgate, bool accumulate_gate);
/* Dropout (per element) or stochastic depth (per sample), as stk_drop_factor(); y may lie on x. The
 * backward is the same with gradients, added to dx when `accumulate`. */
void stk_cuda_drop(cuda_program *p, cuda_plane plane, const stk_node *node, int number, cuda_ref x,
                   cuda_ref y, bool accumulate);
/* The padded shortcut of stk_graph_shortcut(). */
void stk_cuda_shortcut(cuda_program *p, int batch, stk_shape in, stk_shape out, int stride,
                       cuda_ref x, cuda_ref y);
void stk_cuda_shortcut_back(cuda_program *p, int batch, stk_shape in, stk_shape out, int stride,
                            cuda_ref dy, cuda_ref dx, bool accumulate);

typedef struct cuda_pool {
    int batch;
    stk_shape in, out;
    int kernel, stride, pad;
} cuda_pool;

/*
 * `where` gets one byte per output element: where the maximum is within its window. Of equal maxima
 * the first counts, in the order of backend/cpu/kernels/pool2d.c. `where` is nothing in inference.
 * With `norm` the input is act(scale * x + shift).
 */
void stk_cuda_max_pool(cuda_program *p, const cuda_pool *pool, cuda_ref x, const cuda_norm *norm,
                       stk_op act, cuda_ref y, cuda_ref where);
void stk_cuda_max_pool_back(cuda_program *p, const cuda_pool *pool, cuda_ref where, cuda_ref dy,
                            cuda_ref dx, bool accumulate);
/*
 * Both passes of the norm in front of a maximum pool (stk_cuda_max_pool() with `norm`), from
 * dy, the gradient of the maxima: weight_grad, bias_grad and back of the norm, and dx, the gradient
 * of x, which the norm read.
 */
void stk_cuda_pool_norm_back(cuda_program *p, const cuda_pool *pool, cuda_ref where, cuda_ref dy,
                             cuda_ref x, const cuda_norm *norm, stk_op act, cuda_ref dx);
/* Over all pixels: (N, C). */
void stk_cuda_avg_pool(cuda_program *p, cuda_plane plane, cuda_ref x, cuda_ref y);
void stk_cuda_avg_pool_back(cuda_program *p, cuda_plane plane, cuda_ref dy, cuda_ref dx,
                            bool accumulate);

/* ---- ends: kernels/ends.cu ---- */

/* How many channels pictures have in T: those past their own are zeros. */
static inline int cuda_input_channels(int channels) {
    return channels <= 4 ? 4 : (channels + 7) / 8 * 8;
}

/*
 * uint8 (N, size, size, channels) at the constants' `images` to T (N, size, size, padded channels),
 * normalised; mixed with their partners as constants say when `train`.
 */
void stk_cuda_input(cuda_program *p, const stk_graph *graph, int batch, bool train, cuda_ref y);
/* How many numbers CUDA_FIXED_NORMS has; 0 where pictures have three channels. Writes them to
 * `norms`, unless that is NULL. */
size_t stk_cuda_input_norms(const stk_graph *graph, float *norms);
/* A filter over pictures to one over padded channels, and the gradient back (T to T), (filters,
 * taps, channels). */
void stk_cuda_pad_filter(cuda_program *p, int filters, int taps, int channels, cuda_ref w,
                         cuda_ref padded);
void stk_cuda_drop_padding(cuda_program *p, int filters, int taps, int channels, cuda_ref padded,
                           cuda_ref w);

/*
 * A first layer of stride 2 reads pictures as blocks of 2 by 2 pixels with 16 channels (four of
 * each pixel), and becomes a layer of stride 1 over blocks: with so few channels libraries are slow
 * otherwise. The layer's padding around a picture is part of the blocks. Pictures of more than
 * CUDA_STEM_CHANNELS channels are not read so.
 */
#define CUDA_BLOCK_CHANNELS 16
#define CUDA_STEM_CHANNELS 4

typedef struct cuda_stem {
    int side;     /* blocks in a row, and rows of blocks */
    int before;   /* pixels of padding above and left of the picture in the first blocks */
    int lead;     /* zero taps before the filter's first one: 0 or 1 */
    int taps;     /* of the filter over blocks, on each side */
    int kernel;   /* of the filter over pixels */
    int channels; /* of pictures */
} cuda_stem;

/* As stk_cuda_input(), to T (N, stem side, stem side, 16). */
void stk_cuda_input_blocks(cuda_program *p, const stk_graph *graph, int batch, bool train,
                           const cuda_stem *stem, cuda_ref y);
/* A filter (filters, kernel, kernel, channels) to (filters, taps, taps, 16), and its gradient back.
 */
void stk_cuda_block_filter(cuda_program *p, int filters, const cuda_stem *stem, cuda_ref w,
                           cuda_ref blocked);
void stk_cuda_unblock_filter(cuda_program *p, int filters, const cuda_stem *stem, cuda_ref blocked,
                             cuda_ref w);

/* T to float32. */
void stk_cuda_to_float(cuda_program *p, size_t count, cuda_ref x, cuda_ref y);

/* Random T numbers between -1 and 1: plans and variants are timed on them. */
void stk_cuda_noise(cuda_program *p, size_t count, cuda_ref y);

/* ---- features and concatenation: kernels/concat.cu ---- */

/* float32 (N, count) at the constants' `features` to T (N, count); mixed when `train`. */
void stk_cuda_features(cuda_program *p, int batch, int count, bool train, cuda_ref y);
/* y (N, first + second) = a (N, first) beside b (N, second). */
void stk_cuda_concat(cuda_program *p, int batch, int first, int second, cuda_ref a, cuda_ref b,
                     cuda_ref y);
/* The gradients da and db, each added to what is there where asked; nothing: not wanted. */
void stk_cuda_concat_back(cuda_program *p, int batch, int first, int second, cuda_ref dy,
                          cuda_ref da, bool add_a, cuda_ref db, bool add_b);

/* ---- classes that are steps of a scale: kernels/steps.cu ---- */

/* y T (N, classes) from x T (N). */
void stk_cuda_steps(cuda_program *p, int batch, int classes, cuda_ref x, cuda_ref y);
/* dx from dy; added to what is there where asked. */
void stk_cuda_steps_back(cuda_program *p, int batch, int classes, cuda_ref dy, cuda_ref dx,
                         bool add);

/* ---- losses: kernels/loss.cu ---- */

/*
 * Softmax cross-entropy of logits T (N, classes) against the labels of constants, as
 * backend/cpu/kernels/loss.c: sets loss_sum and correct of CUDA_FIXED_RESULT; dlogits T (which may
 * lie on the logits) is the gradient of the mean, times the loss scale. The same bits every time.
 */
void stk_cuda_loss(cuda_program *p, int batch, int classes, cuda_ref logits, cuda_ref dlogits);
/* The same of STK_LOSS_STEPS. */
void stk_cuda_loss_steps(cuda_program *p, int batch, int classes, cuda_ref logits,
                         cuda_ref dlogits);
/* The same for every other loss, against the targets of constants. Weights of the outputs, if there
 * are any, lie in CUDA_FIXED_POSITIVE. */
void stk_cuda_loss_outputs(cuda_program *p, int batch, int outputs, const stk_loss *kind,
                           cuda_ref logits, cuda_ref dlogits);

/* ---- parameters: kernels/optimiser.cu ---- */

/* What the optimiser works on: blocks of parameter_layout.h. */
typedef struct cuda_optimiser {
    size_t elements; /* of a block */
    stk_optimizer kind;
    bool ema;
} cuda_optimiser;

/*
 * gradients = (keep_gradients ? gradients : 0) + fresh / scale, for every chunk that is trainable;
 * sets `overflow` of the scaler where one is not finite.
 */
void stk_cuda_gather(cuda_program *p, const cuda_optimiser *o);
/*
 * One update as backend/cpu/optim.c does it: the norm when constants->clip_norm is above 0, the
 * step unless there was an overflow, the averages, the copy of the weights; then the loss scale:
 * halved after an overflow (not below 1), doubled after 2000 updates without one (not above 2^24).
 * Sets grad_norm (NaN unless clipping asked for it), skipped and scale of CUDA_FIXED_RESULT.
 */
void stk_cuda_optimise(cuda_program *p, const cuda_optimiser *o);
/* Makes the copy of the weights from CUDA_FIXED_VALUES. */
void stk_cuda_copy_weights(cuda_program *p, size_t elements);
/*
 * For inference: weights times the norm's scale, from running statistics, into T `folded` (filters,
 * per_filter), and the shift into float32 `bias` (filters). Without a norm (NULL): a plain copy and
 * the bias given (nothing: zeros). depthwise: `folded` is float32.
 */
void stk_cuda_fold(cuda_program *p, int filters, int per_filter, cuda_ref weight /* float32 */,
                   cuda_ref own_bias, const cuda_norm *norm, bool depthwise, cuda_ref folded,
                   cuda_ref bias);

#endif
