/* pooling.c - launches of kernels/pooling.cu: maximum and average pools. */
#include "backend/cuda/emit/emit.h"
#include "backend/cuda/program/grid.h"

#define THREADS 256
#define PER_PROCESSOR 8 /* blocks that a multiprocessor can hold */
#define CELL_ROUNDS \
    8 /* rounds of blocks over the cells: short blocks, so that none is waited for long */

static const char file[] = "pooling";

/* A launch in which each of `pixels` of a sample is a thread per vector of channels. */
static cuda_launch *windows(cuda_program *p, const char *name, const cuda_pool *pool,
                            size_t pixels) {
    int wide = cuda_wide(pool->in.channels);
    size_t vectors = pixels * (size_t)(pool->in.channels / wide);
    cuda_launch *l = stk_cuda_launch(p, file, name, (unsigned)cuda_ceil(vectors, THREADS),
                                     (unsigned)pool->batch, THREADS, 0);
    CUDA_DEFINES(l, {"C", pool->in.channels}, {"WIDE", wide}, {"SIDE", pool->kernel},
                 {"STRIDE", pool->stride}, {"PAD", pool->pad});
    return l;
}

static void shapes(cuda_launch *l, const cuda_pool *pool) {
    CUDA_ARGS(l, cuda_int(pool->in.height), cuda_int(pool->in.width), cuda_int(pool->out.height),
              cuda_int(pool->out.width));
}

void stk_cuda_max_pool(cuda_program *p, const cuda_pool *pool, cuda_ref x, const cuda_norm *norm,
                       stk_op act, cuda_ref y, cuda_ref where) {
    size_t pixels = (size_t)pool->out.height * (size_t)pool->out.width;
    cuda_launch *l = windows(p, "max_pool", pool, pixels);
    CUDA_DEFINES(l, {"NORM", norm != NULL}, {"ACT", norm != NULL ? stk_cuda_act_code(act) : 0},
                 {"KEEP", cuda_is_something(where)});
    CUDA_ARGS(l, x, norm != NULL ? norm->coefs : cuda_nothing(), y, where);
    shapes(l, pool);
}

/* A thread has a cell of stride by stride pixels; the first cell begins in the padding. */
static size_t cells_of(const cuda_pool *pool) {
    int down = (pool->in.height - 1 + pool->pad) / pool->stride + 1;
    int across = (pool->in.width - 1 + pool->pad) / pool->stride + 1;
    return (size_t)down * (size_t)across;
}

void stk_cuda_max_pool_back(cuda_program *p, const cuda_pool *pool, cuda_ref where, cuda_ref dy,
                            cuda_ref dx, bool accumulate) {
    cuda_launch *l = windows(p, "max_pool_back", pool, cells_of(pool));
    CUDA_DEFINES(l, {"REACHES", 1}, {"ACCUMULATE", accumulate});
    CUDA_ARGS(l, where, dy, dx);
    shapes(l, pool);
}

/* A launch over all windows or cells of all samples, in tiles of channels. */
static cuda_launch *cells(cuda_program *p, const char *name, const cuda_pool *pool, cuda_tiles t,
                          unsigned blocks, stk_op act) {
    size_t room = (size_t)(t.wide > 4 ? t.wide : 4) * sizeof(float); /* or two doubles */
    cuda_launch *l = stk_cuda_launch(p, file, name, blocks, (unsigned)t.count, THREADS,
                                     (unsigned)(THREADS * room));
    CUDA_DEFINES(l, {"C", pool->in.channels}, {"WIDE", t.wide}, {"TILE", t.tile},
                 {"SIDE", pool->kernel}, {"STRIDE", pool->stride}, {"PAD", pool->pad},
                 {"ACT", stk_cuda_act_code(act)}, {"REACHES", 1});
    return l;
}

void stk_cuda_pool_norm_back(cuda_program *p, const cuda_pool *pool, cuda_ref where, cuda_ref dy,
                             cuda_ref x, const cuda_norm *norm, stk_op act, cuda_ref dx) {
    cuda_tiles t = cuda_tiles_of(pool->in.channels);
    size_t at_once = THREADS / (size_t)t.tile;
    size_t batch = (size_t)pool->batch;
    size_t windows_count = batch * (size_t)pool->out.height * (size_t)pool->out.width;
    unsigned blocks = cuda_blocks(p, batch * cells_of(pool), at_once, 2 * CELL_ROUNDS);
    unsigned sums = cuda_blocks(p, windows_count, at_once, 4);
    size_t partial = sums * 2 * (size_t)pool->in.channels * sizeof(float);
    cuda_launch *l = cells(p, "pool_norm_reduce", pool, t, sums, act);
    stk_cuda_define_stats(p, l);
    CUDA_ARGS(l, where, dy, x, norm->weight, norm->coefs, norm->weight_grad, norm->bias_grad,
              norm->back, stk_cuda_buffer(p, partial), stk_cuda_counters(p, t.count),
              cuda_int(pool->batch));
    shapes(l, pool);
    l = cells(p, "pool_norm_backward", pool, t, blocks, act);
    CUDA_ARGS(l, where, dy, x, norm->coefs, norm->back, dx, cuda_int(pool->batch));
    shapes(l, pool);
}

void stk_cuda_avg_pool(cuda_program *p, cuda_plane plane, cuda_ref x, cuda_ref y) {
    cuda_tiles t = cuda_tiles_of(plane.channels);
    cuda_launch *l = stk_cuda_launch(p, file, "avg_pool", (unsigned)t.count, (unsigned)plane.batch,
                                     THREADS, (unsigned)(THREADS * t.wide) * sizeof(float));
    CUDA_DEFINES(l, {"C", plane.channels}, {"WIDE", t.wide}, {"TILE", t.tile});
    CUDA_ARGS(l, x, y, cuda_int(plane.pixels));
}

void stk_cuda_avg_pool_back(cuda_program *p, cuda_plane plane, cuda_ref dy, cuda_ref dx,
                            bool accumulate) {
    int wide = cuda_wide(plane.channels);
    size_t vectors = (size_t)plane.pixels * (size_t)(plane.channels / wide);
    unsigned blocks = cuda_blocks(p, vectors, THREADS, PER_PROCESSOR);
    cuda_launch *l =
        stk_cuda_launch(p, file, "avg_pool_back", blocks, (unsigned)plane.batch, THREADS, 0);
    CUDA_DEFINES(l, {"C", plane.channels}, {"WIDE", wide}, {"ACCUMULATE", accumulate});
    CUDA_ARGS(l, dy, dx, cuda_int(plane.pixels));
}
