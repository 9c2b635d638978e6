/*
 * kernel_constants.h - inside the CUDA backend: what host and kernels share. This text is compiled
 * by the C compiler and, in front of every kernel, by NVRTC: plain C without any include.
 */
#ifndef STK_BACKEND_CUDA_PROGRAM_KERNEL_CONSTANTS_H
#define STK_BACKEND_CUDA_PROGRAM_KERNEL_CONSTANTS_H

/* What the host sets before every step; a captured graph reads it from device memory. */
typedef struct cuda_step_constants {
    unsigned long long images; /* address of uint8 (N, H, W, 3) on the device */
    unsigned long long labels; /* address of int (N) */
    unsigned long long seed;
    unsigned long long step;
    int mix_kind; /* stk_mix_kind */
    float mix_keep;
    int mix_left, mix_top, mix_right, mix_bottom;
    float label_smoothing;
    int keep_gradients; /* add to the gradients that are there */
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
    long long steps[2]; /* AdamW: this update's number, those that were left out included */
    int frozen;         /* only the head learns */
} cuda_step_constants;

/* The loss scale; with bfloat16 and float32 it is 1 and stays so. */
typedef struct cuda_scaler {
    float scale;
    float inverse; /* 1 / scale */
    int dynamic;   /* 0: the scale never changes */
    int good;      /* updates since it last changed */
    int overflow;  /* a gradient since the last update was no number: the update is left out */
    /* Updates that were left out so far: [0] of the backbone, [1] of the head, which learns alone
     * where the backbone is frozen. The host, which is some steps ahead, cannot know. */
    int left_out[2];
} cuda_scaler;

/* What a step came to; the loss kernel sets loss_sum and correct, and the others as they are where
 * no update follows; the optimiser sets those. */
typedef struct cuda_result {
    double loss_sum;
    double grad_norm; /* of all gradients before clipping, unscaled */
    int correct;
    int skipped;  /* this update was left out */
    float scale;  /* that the step was computed with */
    float factor; /* what gradients are multiplied with: accumulation and clipping together */
} cuda_result;

/* Parameters are handled in chunks of this many elements; each begins on such a boundary. */
#define CUDA_CHUNK 512

/* What one chunk of the parameters is. */
typedef struct cuda_chunk {
    unsigned fresh; /* its first fresh gradient, in units of 16 bytes of CUDA_FIXED_FRESH */
    unsigned char fresh_type; /* cuda_type of the fresh gradients */
    unsigned char trainable;
    unsigned char decay;
    unsigned char head;
    unsigned short count;  /* of elements that are parameters, 1 .. CUDA_CHUNK */
    unsigned short weight; /* a copy in the type of activations is kept */
} cuda_chunk;

#endif
