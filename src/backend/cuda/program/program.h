/*
 * program.h - inside the CUDA backend: a step as a list of operations over numbered buffers.
 *
 * Lowering a graph appends operations (launches of our own kernels, convolutions of a library) in
 * the order in which they will run. A buffer lives from the first operation that names it to the
 * last; from that the arena is laid out. Nothing here touches a device, so that a plan can be made
 * anywhere. The first mistake (no memory) is kept in `error`, and what is added afterwards is lost:
 * whoever lowers looks once, at the end.
 */
#ifndef STK_BACKEND_CUDA_PROGRAM_PROGRAM_H
#define STK_BACKEND_CUDA_PROGRAM_PROGRAM_H

#include "engine/backend.h"

/* A place in device memory: a buffer, and bytes from its start. */
typedef struct cuda_ref {
    int buffer; /* CUDA_NO_BUFFER: nothing, which a kernel sees as NULL */
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
 * Memory that is not in the arena; these are the first buffer numbers. The blocks of parameters are
 * float32 in the layout of parameter_layout.h.
 */
typedef enum cuda_fixed {
    CUDA_FIXED_VALUES,  /* parameters: those that this executable computes with */
    CUDA_FIXED_WEIGHTS, /* the same in the type of activations (of a convolution or linear layer) */
    CUDA_FIXED_FRESH,   /* gradients of this step, times the loss scale: see parameter_layout.h */
    CUDA_FIXED_GRADIENTS,
    CUDA_FIXED_MOMENTUM,
    CUDA_FIXED_SECOND,
    CUDA_FIXED_EMA,
    CUDA_FIXED_KNOBS,     /* cuda_knobs: what the host sets before every step */
    CUDA_FIXED_SCALER,    /* cuda_scaler: the loss scale, kept on the device */
    CUDA_FIXED_RESULT,    /* cuda_result: what a step came to */
    CUDA_FIXED_COUNTERS,  /* zeroed once; whoever counts up leaves zeros behind */
    CUDA_FIXED_TABLE,     /* cuda_chunk[]: what each chunk of the parameters is */
    CUDA_FIXED_WORKSPACE, /* CUDA_WORKSPACE_BYTES for convolutions */
    CUDA_FIXED_COUNT
} cuda_fixed;

/* No library plan that needs more is used. */
#define CUDA_WORKSPACE_BYTES ((size_t)64 << 20)

/* What numbers of activations and weights are stored as; reductions are float32 always. */
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
#define CUDA_MOST_DEFINES 224 /* characters */

/* One launch of a kernel of kernels/FILE.cu. */
typedef struct cuda_launch {
    const char *file;                /* "norm"; static */
    const char *name;                /* of the function; static */
    char defines[CUDA_MOST_DEFINES]; /* "-DC=64 -DACT=1 ": what it is specialised to */
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
 * A convolution by shape alone: two equal ones share a plan. x is (batch, height, width, channels),
 * y is (batch, out_height, out_width, filters), w is (filters, kernel, kernel, channels); all are
 * of type `type`, sums are float32. A linear layer is a convolution of 1 by 1 pixels.
 */
typedef struct cuda_conv_shape {
    cuda_conv_kind kind;
    cuda_type type;
    bool strict; /* float32 without TF32 */
    int batch;
    int height, width, channels;
    int out_height, out_width, filters;
    int kernel, stride;
    int pad; /* above and left; below and right what the shapes imply */
    /* CUDA_CONV_DATA: add to what is there */
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
    cuda_ref stats; /* may be there without shape.stats: nothing is written then */
    /* What shape.in_norm makes x of, and its scale and shift, of type `type` (2, channels). They
     * may be there without it; with it x itself is neither written nor read. */
    cuda_ref raw, in_norm;
    int asked; /* a question of the program by whose answer the shape is what it is; 0: none */
} cuda_conv_op;

/* A convolution with nothing that is optional. */
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

typedef enum cuda_op_kind {
    CUDA_OP_LAUNCH,
    CUDA_OP_CONV,
    CUDA_OP_HOLD /* nothing: the arguments of `launch` live until here */
} cuda_op_kind;

typedef struct cuda_op {
    cuda_op_kind kind;
    cuda_launch launch;
    cuda_conv_op conv;
} cuda_op;

/*
 * What can be computed in several ways, of which only a race can tell the fastest: see
 * autotune.h.
 */
typedef enum cuda_question_kind {
    CUDA_ASK_STATS, /* who takes the statistics of a norm behind a convolution: conv_stats.c */
    CUDA_ASK_LAYER, /* backward of a norm and the convolution before it: norm_conv_back.c */
    /* Who computes norm and ReLU in front of a convolution, and of a gradient of its filters:
     * norm_conv.c. */
    CUDA_ASK_NORMED,
    CUDA_ASK_NORMED_BACK,
    /* Whether norm, addition, ReLU and the convolution of 1 by 1 behind them are one kernel: there,
     * too. */
    CUDA_ASK_JOIN,
    CUDA_ASK_JOIN_BACK, /* where gradients of a value join, up to the norm in front:
                           join_conv_back.c */
    CUDA_ASK_KINDS
} cuda_question_kind;

typedef struct cuda_question {
    cuda_question_kind kind;
    cuda_conv_shape shape; /* of the convolution in question, in the plain way */
    int variant;           /* what else its speed depends on, by kind */
} cuda_question;

typedef struct cuda_buffer {
    size_t bytes;     /* 0: fixed memory, which is not laid out here */
    size_t offset;    /* in the arena, once laid out */
    int birth, death; /* first and last operation that names it */
} cuda_buffer;

typedef struct cuda_program {
    cuda_type type;
    bool strict;
    int multiprocessors;  /* of the device: how many blocks are worth having */
    int major;            /* its compute capability; 0, as it begins: nothing is known of it */
    cuda_buffer *buffers; /* owned; the first CUDA_FIXED_COUNT are the fixed ones */
    int buffer_count;
    size_t buffer_capacity;
    cuda_op *ops; /* owned */
    int op_count;
    size_t op_capacity;
    cuda_question *questions; /* owned; that were asked when it was lowered */
    int question_count;
    size_t question_capacity;
    int counters;       /* of CUDA_FIXED_COUNTERS that are used, 4 bytes each */
    size_t arena_bytes; /* once laid out */
    stk_error error;
} cuda_program;

void stk_cuda_program_begin(cuda_program *p, cuda_type type, bool strict, int multiprocessors);
void stk_cuda_program_free(cuda_program *p);

/* A new buffer of the arena. */
cuda_ref stk_cuda_buffer(cuda_program *p, size_t bytes);

/* A place in fixed memory. */
static inline cuda_ref cuda_fixed_at(cuda_fixed which, size_t offset) {
    return (cuda_ref){(int)which, offset};
}

/* `count` counters of 4 bytes that are zero whenever no kernel runs. */
cuda_ref stk_cuda_counters(cuda_program *p, int count);

/*
 * Adds a launch; the caller then adds defines and arguments, in the order of the kernel's
 * parameters. The result is never NULL: after a mistake it is a place that nobody reads. It is
 * valid until the next operation is added.
 */
cuda_launch *stk_cuda_launch(cuda_program *p, const char *file, const char *name, unsigned grid_x,
                             unsigned grid_y, unsigned threads, unsigned shared_bytes);
void stk_cuda_define(cuda_launch *launch, const char *name, long value);
void stk_cuda_arg(cuda_launch *launch, cuda_ref ref);
void stk_cuda_arg_int(cuda_launch *launch, int32_t value);
void stk_cuda_arg_long(cuda_launch *launch, int64_t value);
void stk_cuda_arg_float(cuda_launch *launch, float value);

/* What an activation is called in kernels: ACT_ of kernels/prelude.cuh; 0: none. */
int stk_cuda_act_code(stk_op act);

void stk_cuda_conv(cuda_program *p, const cuda_conv_op *conv);

/*
 * An operation that does nothing but name buffers (stk_cuda_arg()): what another way to compute the
 * same would use then, so that the memory plan does not depend on which way is taken.
 */
cuda_launch *stk_cuda_hold(cuda_program *p);

/* Makes one of those of the launch that was added last. */
void stk_cuda_hold_last(cuda_program *p);

/* Lives and places of all buffers; tells the first mistake. */
STK_CHECKED stk_status stk_cuda_program_lay_out(cuda_program *p, stk_error *err);

#endif
