/*
 * kernel_constants.h - inside the CUDA backend: structs and numbers that host and kernels share.
 *
 * The C compiler compiles this text and, in front of every kernel, NVRTC: plain C without any
 * include.
 */
#ifndef STK_BACKEND_CUDA_PROGRAM_KERNEL_CONSTANTS_H
#define STK_BACKEND_CUDA_PROGRAM_KERNEL_CONSTANTS_H

/*
 * Values that stay the same during a step and change from step to step. The host copies them to the
 * device before each step: a captured graph cannot take arguments.
 */
typedef struct cuda_step_constants {
    unsigned long long images;   /* address of uint8 (N, H, W, C) on the device */
    unsigned long long labels;   /* address of int (N) */
    unsigned long long targets;  /* address of float (N, outputs); losses without labels */
    unsigned long long features; /* address of float (N, features), if there are any */
    unsigned long long seed;
    unsigned long long step;
    int mix_kind;   /* stk_mix_kind; the mix_ fields are those of stk_mix */
    float mix_keep; /* the part of its own picture that a sample keeps */
    int mix_left, mix_top, mix_right, mix_bottom;
    float label_smoothing;
    int keep_gradients; /* accumulate: add to the gradients of the steps before */
    /* stk_update; [0] is the backbone's, [1] the head's */
    int nesterov;
    float lr[2];
    float momentum;
    float beta2;
    float epsilon;
    float weight_decay;
    float grad_scale;
    float clip_norm;
    float ema_decay;
    long long steps[2]; /* AdamW: number of this update; skipped updates count */
    int frozen;         /* only the head learns */
} cuda_step_constants;

/* The loss scale. With bfloat16 and float32 it is always 1. */
typedef struct cuda_scaler {
    float scale;
    float inverse; /* 1 / scale */
    int dynamic;   /* 0: the scale never changes */
    int good;      /* updates since it last changed */
    int overflow;  /* a gradient since the last update is not finite: the update is skipped */
    /* Skipped updates so far: [0] of the backbone, [1] of the head, which learns alone where the
     * backbone is frozen. Counted here, since the host is some steps ahead. */
    int left_out[2];
} cuda_scaler;

/* Results of a step. The loss kernel sets all fields but `factor`, as for a step without an update:
 * grad_norm is NaN, skipped is 0. If the step updates the weights, the optimiser then sets
 * grad_norm, skipped and scale, and `factor` if it clips. */
typedef struct cuda_result {
    double loss_sum;
    double grad_norm; /* of all gradients before clipping, unscaled; NaN if clip_norm is 0 */
    int correct;
    int skipped;  /* 1: this update was skipped after an overflow */
    float scale;  /* loss scale of the step */
    float factor; /* gradients times this: accumulation and clipping; not set if clip_norm is 0 */
} cuda_result;

/* Parameters are handled in chunks of this many elements; each begins on such a boundary. */
#define CUDA_CHUNK 512

/* One chunk of the parameters: it belongs to one parameter. */
typedef struct cuda_chunk {
    unsigned fresh; /* its first fresh gradient, in units of 16 bytes of CUDA_FIXED_FRESH */
    unsigned char fresh_type; /* cuda_type of the fresh gradients */
    unsigned char trainable;
    unsigned char decay;
    unsigned char head;
    unsigned short count;  /* elements in use, 1 .. CUDA_CHUNK */
    unsigned short weight; /* 1: there is a copy in the type of activations */
} cuda_chunk;

#endif
