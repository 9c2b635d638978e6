/* cuda_pooling.c - launches of kernels/pooling.cu. */
#include "backend/cuda/cuda_emit.h"
#include "backend/cuda/cuda_grid.h"

#define THREADS 256
#define PER_PROCESSOR 8 /* blocks that a multiprocessor can hold */

static const char file[] = "pooling";

/* A launch in which each of `pixels` of a sample is a thread per vector of channels. */
static cuda_launch *windows(cuda_program *p, const char *name, const cuda_pool *pool,
                            size_t pixels) {
    int wide = cuda_wide(pool->in.channels);
    size_t vectors = pixels * (size_t)(pool->in.channels / wide);
    cuda_launch *l = stk_cuda_launch(p, file, name, (unsigned)cuda_ceil(vectors, THREADS),
                                     (unsigned)pool->batch, THREADS, 0);
    stk_cuda_define(l, "C", pool->in.channels);
    stk_cuda_define(l, "WIDE", wide);
    stk_cuda_define(l, "SIDE", pool->kernel);
    stk_cuda_define(l, "STRIDE", pool->stride);
    stk_cuda_define(l, "PAD", pool->pad);
    return l;
}

static void shapes(cuda_launch *l, const cuda_pool *pool) {
    stk_cuda_arg_int(l, pool->in.height);
    stk_cuda_arg_int(l, pool->in.width);
    stk_cuda_arg_int(l, pool->out.height);
    stk_cuda_arg_int(l, pool->out.width);
}

void stk_cuda_max_pool(cuda_program *p, const cuda_pool *pool, cuda_ref x, const cuda_norm *norm,
                       stk_op act, cuda_ref y, cuda_ref where) {
    size_t pixels = (size_t)pool->out.height * (size_t)pool->out.width;
    cuda_launch *l = windows(p, "max_pool", pool, pixels);
    stk_cuda_define(l, "NORM", norm != NULL);
    stk_cuda_define(l, "ACT", norm != NULL ? stk_cuda_act_code(act) : 0);
    stk_cuda_define(l, "KEEP", cuda_is_something(where));
    stk_cuda_arg(l, x);
    stk_cuda_arg(l, norm != NULL ? norm->coefs : cuda_nothing());
    stk_cuda_arg(l, y);
    stk_cuda_arg(l, where);
    shapes(l, pool);
}

void stk_cuda_max_pool_back(cuda_program *p, const cuda_pool *pool, cuda_ref where, cuda_ref dy,
                            cuda_ref dx, bool accumulate) {
    /* A thread has a cell of stride by stride pixels; the first cell begins in the padding. */
    int down = (pool->in.height - 1 + pool->pad) / pool->stride + 1;
    int across = (pool->in.width - 1 + pool->pad) / pool->stride + 1;
    cuda_launch *l = windows(p, "max_pool_back", pool, (size_t)down * (size_t)across);
    stk_cuda_define(l, "ACCUMULATE", accumulate);
    stk_cuda_arg(l, where);
    stk_cuda_arg(l, dy);
    stk_cuda_arg(l, dx);
    shapes(l, pool);
}

void stk_cuda_avg_pool(cuda_program *p, cuda_plane plane, cuda_ref x, cuda_ref y) {
    cuda_tiles t = cuda_tiles_of(plane.channels);
    cuda_launch *l = stk_cuda_launch(p, file, "avg_pool", (unsigned)t.count, (unsigned)plane.batch,
                                     THREADS, (unsigned)(THREADS * t.wide) * sizeof(float));
    stk_cuda_define(l, "C", plane.channels);
    stk_cuda_define(l, "WIDE", t.wide);
    stk_cuda_define(l, "TILE", t.tile);
    stk_cuda_arg(l, x);
    stk_cuda_arg(l, y);
    stk_cuda_arg_int(l, plane.pixels);
}

void stk_cuda_avg_pool_back(cuda_program *p, cuda_plane plane, cuda_ref dy, cuda_ref dx,
                            bool accumulate) {
    int wide = cuda_wide(plane.channels);
    size_t vectors = (size_t)plane.pixels * (size_t)(plane.channels / wide);
    unsigned blocks = cuda_blocks(p, vectors, THREADS, PER_PROCESSOR);
    cuda_launch *l =
        stk_cuda_launch(p, file, "avg_pool_back", blocks, (unsigned)plane.batch, THREADS, 0);
    stk_cuda_define(l, "C", plane.channels);
    stk_cuda_define(l, "WIDE", wide);
    stk_cuda_define(l, "ACCUMULATE", accumulate);
    stk_cuda_arg(l, dy);
    stk_cuda_arg(l, dx);
    stk_cuda_arg_int(l, plane.pixels);
}
