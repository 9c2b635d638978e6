/*
 * program.h - inside the CUDA backend: a program, a list of operations over numbered buffers.
 *
 * A program is, for example, the forward and backward pass of a step, or its update. A step runs
 * two programs; exec.h lists all four of an executable.
 *
 * Lowering appends operations (launches of our own kernels, convolutions of a library) in the order
 * in which they will run. A buffer lives from the first operation that names it to the last; the
 * arena's layout follows from that. Nothing here touches a device, so the memory need of a network
 * is known on any machine. The first failure (no memory) is stored in `error` and later calls do
 * nothing: the caller checks once, in stk_cuda_program_lay_out(). One thread at a time.
 */
#ifndef STK_BACKEND_CUDA_PROGRAM_PROGRAM_H
#define STK_BACKEND_CUDA_PROGRAM_PROGRAM_H

#include <string.h>

#include "engine/backend.h"

/* A position in device memory: a buffer, and bytes from its start. */
typedef struct cuda_ref {
    int buffer; /* CUDA_NO_BUFFER: no memory; a kernel gets NULL */
    size_t offset;
} cuda_ref;

#define CUDA_NO_BUFFER (-1)

static inline cuda_ref cuda_nothing(void) {
    return (cuda_ref){CUDA_NO_BUFFER, 0};
}

static inline bool cuda_is_something(cuda_ref ref) {
    return ref.buffer != CUDA_NO_BUFFER;
}

/* Every offset in the arena and every parameter lies on such a boundary. */
#define CUDA_ALIGN ((size_t)256)

/*
 * Memory outside the arena; these are the first buffer numbers of every program. The blocks of
 * parameters are float32, in the layout of parameter_layout.h.
 */
typedef enum cuda_fixed {
    CUDA_FIXED_VALUES,  /* the parameters that this executable computes with */
    CUDA_FIXED_WEIGHTS, /* weights of convolutions and linear layers in the type of activations */
    CUDA_FIXED_FRESH,   /* fresh gradients: of this step, times the loss scale */
    CUDA_FIXED_GRADIENTS,
    CUDA_FIXED_MOMENTUM,
    CUDA_FIXED_SECOND,
    CUDA_FIXED_EMA,
    CUDA_FIXED_CONSTANTS, /* cuda_step_constants, which the host sets before every step */
    CUDA_FIXED_SCALER,    /* cuda_scaler: the loss scale */
    CUDA_FIXED_RESULT,    /* cuda_result: loss and other results of a step */
    CUDA_FIXED_COUNTERS, /* zero between kernels: a kernel that counts up sets them to zero again */
    CUDA_FIXED_TABLE,    /* cuda_chunk[]: one entry for each chunk of the parameters */
    CUDA_FIXED_WORKSPACE, /* CUDA_WORKSPACE_BYTES for convolutions */
    CUDA_FIXED_POSITIVE,  /* float32 (outputs): stk_loss.positive_weights, if there are any */
    CUDA_FIXED_NORMS, /* float32 (2, channels): scale and shift of pictures; not for 3 channels */
    CUDA_FIXED_COUNT
} cuda_fixed;

/* Execution plans of libraries that need more are not used. */
#define CUDA_WORKSPACE_BYTES ((size_t)64 << 20)

/* How activations and weights are stored; sums are always float32. */
typedef enum cuda_type { CUDA_TYPE_F32, CUDA_TYPE_F16, CUDA_TYPE_BF16 } cuda_type;

static inline size_t cuda_type_bytes(cuda_type type) {
    return type == CUDA_TYPE_F32 ? 4 : 2;
}

typedef enum cuda_arg_kind {
    CUDA_ARG_REF,
    CUDA_ARG_INT,
    CUDA_ARG_LONG,
    CUDA_ARG_FLOAT
} cuda_arg_kind;

typedef struct cuda_arg {
    cuda_arg_kind kind;
    cuda_ref ref;
    int32_t number;
    int64_t big;
    float real;
} cuda_arg;

#define CUDA_MOST_ARGS 24
#define CUDA_MOST_DEFINES 256 /* characters */

/* A macro of a kernel: -DNAME=VALUE. */
typedef struct cuda_define {
    const char *name;
    long value;
} cuda_define;

/* One launch of a kernel of kernels/FILE.cu. */
typedef struct cuda_launch {
    const char *file;                /* "norm"; static */
    const char *name;                /* of the kernel function; static */
    char defines[CUDA_MOST_DEFINES]; /* "-DC=64 -DACT=1 ": its specialisation */
    unsigned grid[2];                /* blocks: x, y */
    unsigned threads;                /* of a block */
    unsigned shared_bytes;           /* dynamic shared memory */
    cuda_arg args[CUDA_MOST_ARGS];
    int arg_count;
} cuda_launch;

typedef enum cuda_conv_kind {
    CUDA_CONV_FORWARD, /* y = conv(x, w), perhaps with bias, addition and activation */
    CUDA_CONV_DATA,    /* dx = or += conv'(dy, w) */
    CUDA_CONV_WEIGHT   /* dw = conv'(dy, x) */
} cuda_conv_kind;

/*
 * A convolution by its shape; equal shapes share an execution plan. x is (batch, height, width,
 * channels), y is (batch, out_height, out_width, filters), w is (filters, kernel, kernel,
 * channels); all are of type `type`, sums are float32. A linear layer is a convolution of 1 by 1
 * pixels.
 */
typedef struct cuda_conv_shape {
    cuda_conv_kind kind;
    cuda_type type;
    bool strict; /* float32 without TF32 */
    int batch;
    int height, width, channels;
    int out_height, out_width, filters;
    int kernel, stride;
    int pad; /* above and left; below and right follow from the shapes */
    /* CUDA_CONV_DATA: dx += instead of dx = */
    bool accumulate;
    /* CUDA_CONV_FORWARD in inference: y = act(conv + bias + added) */
    bool bias;  /* float32 (filters) */
    bool added; /* of y's shape */
    stk_op act; /* STK_OP_RELU, ...; STK_OP_COUNT: none */
    /* CUDA_CONV_FORWARD alone: also the sums of y and of its squares, float32 (2, filters). Not
     * every shape has a plan for it: see stk_cuda_convs_has(). */
    bool stats;
    /* CUDA_CONV_FORWARD with `stats`, and CUDA_CONV_WEIGHT: x is relu(scale * raw + shift) and
     * never stored. Not every shape has a plan for it either. */
    bool in_norm;
} cuda_conv_shape;

typedef struct cuda_conv_op {
    cuda_conv_shape shape;
    cuda_ref x, w, y; /* for DATA: x is dx and y is dy; for WEIGHT: w is dw and y is dy */
    cuda_ref bias, added;
    cuda_ref stats; /* receives the sums; ignored without shape.stats */
    /* With shape.in_norm: the tensor that is read instead of x, and its scale and shift, of type
     * `type` (2, channels). Ignored without shape.in_norm. */
    cuda_ref raw, in_norm;
    /* Which of the program's decisions made the shape a fused one, counted from 1; 0: none. Where
     * no library has a plan for the shape, this decision is taken back. */
    int decision;
} cuda_conv_op;

/* A convolution without any optional operand. */
static inline cuda_conv_op cuda_conv_of(const cuda_conv_shape *shape, cuda_ref x, cuda_ref w,
                                        cuda_ref y) {
    return (cuda_conv_op){.shape = *shape,
                          .x = x,
                          .w = w,
                          .y = y,
                          .bias = cuda_nothing(),
                          .added = cuda_nothing(),
                          .stats = cuda_nothing(),
                          .raw = cuda_nothing(),
                          .in_norm = cuda_nothing()};
}

typedef enum cuda_op_kind { CUDA_OP_LAUNCH, CUDA_OP_CONV } cuda_op_kind;

typedef struct cuda_op {
    cuda_op_kind kind;
    int time; /* for lives of buffers; variants of one computation share their times */
    cuda_launch launch;
    cuda_conv_op conv;
} cuda_op;

/*
 * What may be computed plainly, by several operations, or fused, by fewer. Each is a row of the
 * table in variants/variants.c, which says what the two variants are.
 */
typedef enum cuda_fusion {
    CUDA_FUSE_STATS,       /* a convolution, and the statistics of the norm that follows */
    CUDA_FUSE_LAYER_BACK,  /* backward: a norm, and the 1x1 convolution in front of it */
    CUDA_FUSE_NORM_CONV,   /* a norm and ReLU, and the convolution that reads them */
    CUDA_FUSE_NORM_WEIGHT, /* backward: a norm and ReLU, and the weight gradient of their reader */
    CUDA_FUSE_JOIN,        /* a norm, an addition and ReLU, and the 1x1 convolution that follows */
    CUDA_FUSE_JOIN_BACK,   /* backward of a join: the data gradient, ReLU and the norm's sums */
    CUDA_FUSIONS
} cuda_fusion;

/* One choice between the variants of a fusion. Equal decisions have the same answer everywhere. */
typedef struct cuda_decision {
    cuda_fusion fusion;
    cuda_conv_shape shape; /* of the convolution, as the plain variant computes it */
    int detail;            /* what else the speed depends on; its meaning is the fusion's */
} cuda_decision;

typedef struct cuda_buffer {
    size_t bytes;     /* 0: fixed memory, which is not laid out here */
    size_t offset;    /* in the arena, once laid out */
    int birth, death; /* times of the first and last operation that names it; -1: none */
} cuda_buffer;

typedef struct cuda_program {
    cuda_type type;
    bool strict;
    bool kept_stats;      /* norms that train use their running statistics */
    int multiprocessors;  /* of the device: grids are chosen by it */
    int major;            /* of the compute capability; 0 at the start: not known */
    cuda_buffer *buffers; /* owned; the first CUDA_FIXED_COUNT are the fixed ones */
    int buffer_count;
    size_t buffer_capacity;
    cuda_op *ops; /* owned */
    int op_count;
    size_t op_capacity;
    int time;                 /* of the next operation */
    cuda_decision *decisions; /* owned; all that were made while it was lowered, in order */
    int decision_count;
    size_t decision_capacity;
    int counters;       /* used in CUDA_FIXED_COUNTERS, 4 bytes each */
    size_t arena_bytes; /* once laid out */
    stk_error error;    /* the first failure */
    cuda_op lost;       /* takes operations after a failure; never read */
} cuda_program;

void stk_cuda_program_begin(cuda_program *p, cuda_type type, bool strict, int multiprocessors);
/* With the same properties as another one. */
void stk_cuda_program_begin_like(cuda_program *p, const cuda_program *other);
void stk_cuda_program_free(cuda_program *p);

/* A new buffer of the arena. */
cuda_ref stk_cuda_buffer(cuda_program *p, size_t bytes);

/* A position in fixed memory. */
static inline cuda_ref cuda_fixed_at(cuda_fixed which, size_t offset) {
    return (cuda_ref){(int)which, offset};
}

/* `count` counters of 4 bytes that are zero whenever no kernel runs. */
cuda_ref stk_cuda_counters(cuda_program *p, int count);

/*
 * Adds a launch. The caller then adds defines, and arguments in the order of the kernel's
 * parameters. The result is never NULL: after a failure it is `lost`. It is valid until the next
 * operation is added.
 */
cuda_launch *stk_cuda_launch(cuda_program *p, const char *file, const char *name, unsigned grid_x,
                             unsigned grid_y, unsigned threads, unsigned shared_bytes);
void stk_cuda_define(cuda_launch *launch, const char *name, long value);
void stk_cuda_arg(cuda_launch *launch, cuda_ref ref);

/* For every kernel that calls norm_set_coefs() or norm_set_back() of kernels/prelude.cuh. */
void stk_cuda_define_stats(const cuda_program *p, cuda_launch *launch);

/*
 * A number as an argument, for stk_cuda_arg() and CUDA_ARGS() alone: it stands in the place of a
 * position, with its type instead of a buffer and its bits instead of an offset.
 */
enum { CUDA_NUMBER_INT = CUDA_NO_BUFFER - 3, CUDA_NUMBER_LONG, CUDA_NUMBER_FLOAT };

static inline cuda_ref cuda_int(int32_t value) {
    return (cuda_ref){CUDA_NUMBER_INT, (size_t)value};
}

static inline cuda_ref cuda_long(size_t value) {
    return (cuda_ref){CUDA_NUMBER_LONG, value};
}

static inline cuda_ref cuda_float(float value) {
    cuda_ref number = {CUDA_NUMBER_FLOAT, 0};
    memcpy(&number.offset, &value, sizeof value);
    return number;
}

/* Several at once, in this order: CUDA_DEFINES(launch, {"C", 64}, {"ACT", 1}) and
 * CUDA_ARGS(launch, x, y, cuda_int(rows)). */
#define CUDA_DEFINES(launch, ...)                                \
    stk_cuda_defines(launch, (const cuda_define[]){__VA_ARGS__}, \
                     sizeof((const cuda_define[]){__VA_ARGS__}) / sizeof(cuda_define))
#define CUDA_ARGS(launch, ...)                             \
    stk_cuda_args(launch, (const cuda_ref[]){__VA_ARGS__}, \
                  sizeof((const cuda_ref[]){__VA_ARGS__}) / sizeof(cuda_ref))
void stk_cuda_defines(cuda_launch *launch, const cuda_define *defines, size_t count);
void stk_cuda_args(cuda_launch *launch, const cuda_ref *refs, size_t count);

/* The number of an activation in kernels: ACT_ of kernels/prelude.cuh; 0: none. */
int stk_cuda_act_code(stk_op act);

void stk_cuda_conv(cuda_program *p, const cuda_conv_op *conv);

/*
 * Several variants of one computation, of which at most one runs. The caller appends the operations
 * of each variant in turn. Those of a variant that does not run are removed again, but their
 * buffers are laid out as if they ran, and all variants begin at the same time. So neither the
 * arena nor the number of counters depends on which variant runs. Spans may be nested.
 */
typedef struct cuda_variant_span {
    int first_op;      /* of the variant that is being appended */
    int time;          /* at which each variant begins */
    int counters;      /* of the program, before each variant */
    int end;           /* the latest time at which a variant ends */
    int most_counters; /* of the program, after the variant that uses most */
} cuda_variant_span;

cuda_variant_span stk_cuda_variants_begin(const cuda_program *p);

/* Ends a variant: all that was appended since begin() or the last call. */
void stk_cuda_variants_add(cuda_program *p, cuda_variant_span *span, bool runs);
void stk_cuda_variants_end(cuda_program *p, const cuda_variant_span *span);

/* Lives and offsets of all buffers. Returns the first failure of all calls so far. */
STK_CHECKED stk_status stk_cuda_program_lay_out(cuda_program *p, stk_error *err);

#endif
