/* concat.c - launches of kernels/concat.cu: features, and two values side by side. */
#include "backend/cuda/emit/emit.h"
#include "backend/cuda/program/grid.h"

#define THREADS 128

/* A launch with a thread for each channel of each sample. */
static cuda_launch *rows(cuda_program *p, const char *name, int batch, int channels) {
    return stk_cuda_launch(p, "concat", name, (unsigned)cuda_ceil((size_t)channels, THREADS),
                           (unsigned)batch, THREADS, 0);
}

void stk_cuda_features(cuda_program *p, int batch, int count, bool train, cuda_ref y) {
    cuda_launch *l = rows(p, "features", batch, count);
    stk_cuda_define(l, "TRAIN", train);
    CUDA_ARGS(l, cuda_fixed_at(CUDA_FIXED_CONSTANTS, 0), y, cuda_int(count));
}

void stk_cuda_concat(cuda_program *p, int batch, int first, int second, cuda_ref a, cuda_ref b,
                     cuda_ref y) {
    cuda_launch *l = rows(p, "concat", batch, first + second);
    CUDA_ARGS(l, a, b, y, cuda_int(first), cuda_int(second));
}

void stk_cuda_concat_back(cuda_program *p, int batch, int first, int second, cuda_ref dy,
                          cuda_ref da, bool add_a, cuda_ref db, bool add_b) {
    cuda_launch *l = rows(p, "concat_back", batch, first + second);
    CUDA_ARGS(l, dy, da, cuda_int(add_a), db, cuda_int(add_b), cuda_int(first), cuda_int(second));
}
