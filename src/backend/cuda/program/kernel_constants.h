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

/* What a change is to a kernel; emit/changes.c translates from stk_change_kind. */
enum cuda_change_kind {
    CUDA_CHANGE_IDENTITY,
    CUDA_CHANGE_MAP, /* rotation, shears */
    CUDA_CHANGE_TRANSLATE_X,
    CUDA_CHANGE_TRANSLATE_Y,
    CUDA_CHANGE_BRIGHTNESS,
    CUDA_CHANGE_SATURATION,
    CUDA_CHANGE_CONTRAST,
    CUDA_CHANGE_SHARPNESS,
    CUDA_CHANGE_POSTERIZE,
    CUDA_CHANGE_SOLARIZE,
    CUDA_CHANGE_AUTOCONTRAST,
    CUDA_CHANGE_EQUALIZE,
    CUDA_CHANGE_HUE,
    CUDA_CHANGE_ERASE
};

/* Fill colour of erased pixels and of pixels from outside, as in image/augment/ops.h. */
#define CUDA_FILL_RED 124
#define CUDA_FILL_GREEN 116
#define CUDA_FILL_BLUE 104

/* Shares of grey in 1/65536, as in image/augment/ops.h. */
#define CUDA_GREY_RED 19595
#define CUDA_GREY_GREEN 38470
#define CUDA_GREY_BLUE 7471

/*
 * One random change of a picture: the fields of stk_change. CUDA_CHANGE_MAP has the numbers of a
 * stk_augment_map instead, since only the host computes sines: amount is x_x and y_y, which are the
 * same; x and y are x_y and y_x; width and height are x_at and y_at.
 */
typedef struct cuda_change {
    int kind; /* cuda_change_kind */
    int amount;
    int x, y, width, height;
} cuda_change;

#define CUDA_MOST_CHANGES 20

/* A picture between decoding and the batch: where it lies, and what becomes of it. Addresses are
 * the device's. */
typedef struct cuda_picture {
    unsigned long long planes[3]; /* uint8 (height, pitch): brightness, blue, red */
    int pitch[3];                 /* bytes between the rows of a plane */
    int kind;                     /* stk_jpeg_planes */
    int width, height;            /* px, of brightness */
    int colour_width, colour_height;
    int left, top, columns, rows; /* the part that the square needs, px */
    int size;                     /* px, side of the square */
    unsigned long long rgb;       /* (rows, rgb_pitch): that part in RGB */
    int rgb_pitch;                /* bytes, a multiple of 4, with room for three pixels more */
    unsigned long long first_x;   /* int (size): first column of each output column, from `left` */
    unsigned long long first_y;   /* int (size): the same of rows, from `top` */
    unsigned long long weights_x; /* short (size, taps_x) */
    unsigned long long weights_y; /* short (size, taps_y) */
    int taps_x, taps_y;           /* weights of an output pixel, trailing zeros included */
    int used_x, used_y;           /* of these, so many may differ from zero */
    int mirror_y;                 /* output rows from the bottom up */
    int swapped;                  /* rows and columns of the square are exchanged */
    unsigned long long square;    /* (size, size, 3): the square before its changes */
    unsigned long long spare;     /* (size, size, 3) */
    unsigned long long out;       /* (size, size, 3): the square that is copied to the batch */
    int change_count;             /* 0: the scaled square goes to `out` at once */
    cuda_change changes[CUDA_MOST_CHANGES];
} cuda_picture;

#endif
