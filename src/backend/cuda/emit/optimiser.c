/* optimiser.c - launches of kernels/optimiser.cu: gathering gradients, updates and copies of
 * weights. */
#include "backend/cuda/emit/emit.h"
#include "backend/cuda/program/grid.h"

#define THREADS 256
#define PER_PROCESSOR 8
#define PER_BLOCK (THREADS * 8 / CUDA_CHUNK) /* chunks that a block has at a time */

static const char file[] = "optimiser";

static int chunks_of(size_t elements) {
    return (int)(elements / CUDA_CHUNK);
}

/* A launch over all chunks, of which a thread takes `flight` in a round. */
static cuda_launch *over(cuda_program *p, const char *name, size_t elements, size_t flight) {
    unsigned blocks =
        cuda_blocks(p, (size_t)chunks_of(elements), PER_BLOCK * flight, PER_PROCESSOR);
    return stk_cuda_launch(p, file, name, blocks, 1, THREADS, 0);
}

static cuda_ref fixed(cuda_fixed which) {
    return cuda_fixed_at(which, 0);
}

void stk_cuda_gather(cuda_program *p, const cuda_optimiser *o) {
    cuda_launch *l = over(p, "gather", o->elements, 4);
    CUDA_ARGS(l, fixed(CUDA_FIXED_FRESH), fixed(CUDA_FIXED_GRADIENTS), fixed(CUDA_FIXED_TABLE),
              fixed(CUDA_FIXED_CONSTANTS), fixed(CUDA_FIXED_SCALER),
              cuda_int(chunks_of(o->elements)));
}

/* The norm of all gradients, for clipping. */
static void squares(cuda_program *p, const cuda_optimiser *o) {
    unsigned blocks = cuda_blocks(p, (size_t)chunks_of(o->elements), PER_BLOCK, PER_PROCESSOR);
    cuda_ref partial = stk_cuda_buffer(p, blocks * sizeof(double));
    cuda_ref counter = stk_cuda_counters(p, 1);
    cuda_launch *l = stk_cuda_launch(p, file, "squares", blocks, 1, THREADS,
                                     (THREADS + 1) * (unsigned)sizeof(double));
    CUDA_ARGS(l, fixed(CUDA_FIXED_GRADIENTS), fixed(CUDA_FIXED_TABLE), fixed(CUDA_FIXED_CONSTANTS),
              fixed(CUDA_FIXED_RESULT), partial, counter, cuda_int(chunks_of(o->elements)));
}

static void update(cuda_program *p, const cuda_optimiser *o) {
    cuda_launch *l = over(p, "update", o->elements, 1);
    l->shared_bytes = o->kind == STK_ADAMW ? 4 * sizeof(float) : 0; /* one `adam` a block */
    CUDA_DEFINES(l, {"ADAMW", o->kind == STK_ADAMW}, {"EMA", o->ema});
    CUDA_ARGS(l, fixed(CUDA_FIXED_VALUES), fixed(CUDA_FIXED_WEIGHTS), fixed(CUDA_FIXED_GRADIENTS),
              fixed(CUDA_FIXED_MOMENTUM),
              o->kind == STK_ADAMW ? fixed(CUDA_FIXED_SECOND) : cuda_nothing(),
              o->ema ? fixed(CUDA_FIXED_EMA) : cuda_nothing(), fixed(CUDA_FIXED_TABLE),
              fixed(CUDA_FIXED_CONSTANTS), fixed(CUDA_FIXED_SCALER), fixed(CUDA_FIXED_RESULT),
              cuda_int(chunks_of(o->elements)));
}

void stk_cuda_optimise(cuda_program *p, const cuda_optimiser *o) {
    squares(p, o);
    update(p, o);
    cuda_launch *l = stk_cuda_launch(p, file, "rescale", 1, 1, 1, 0);
    CUDA_ARGS(l, fixed(CUDA_FIXED_CONSTANTS), fixed(CUDA_FIXED_SCALER), fixed(CUDA_FIXED_RESULT));
}

void stk_cuda_copy_weights(cuda_program *p, size_t elements) {
    cuda_launch *l = over(p, "copy_weights", elements, 1);
    CUDA_ARGS(l, fixed(CUDA_FIXED_VALUES), fixed(CUDA_FIXED_WEIGHTS), fixed(CUDA_FIXED_TABLE),
              cuda_int(chunks_of(elements)));
}

void stk_cuda_fold(cuda_program *p, int filters, int per_filter, cuda_ref weight, cuda_ref own_bias,
                   const cuda_norm *norm, bool depthwise, cuda_ref folded, cuda_ref bias) {
    unsigned threads = per_filter > 64 ? 128 : 32;
    cuda_launch *l = stk_cuda_launch(p, file, "fold", (unsigned)filters, 1, threads, 0);
    CUDA_DEFINES(l, {"NORM", norm != NULL}, {"DEPTHWISE", depthwise});
    CUDA_ARGS(l, weight, own_bias, norm != NULL ? norm->weight : cuda_nothing(),
              norm != NULL ? norm->bias : cuda_nothing(),
              norm != NULL ? norm->running_mean : cuda_nothing(),
              norm != NULL ? norm->running_var : cuda_nothing(),
              cuda_float(norm != NULL ? norm->epsilon : 0), folded, bias, cuda_int(per_filter));
}
