/* steps.c - launches of kernels/steps.cu: logits of classes that are steps of a scale. */
#include "backend/cuda/emit/emit.h"
#include "backend/cuda/program/grid.h"
#include "engine/steps.h"

#define THREADS 128

static cuda_launch *samples(cuda_program *p, const char *name, int batch) {
    return stk_cuda_launch(p, "steps", name, (unsigned)cuda_ceil((size_t)batch, THREADS), 1,
                           THREADS, 0);
}

void stk_cuda_steps(cuda_program *p, int batch, int classes, cuda_ref x, cuda_ref y) {
    stk_steps steps = stk_steps_of(classes);
    cuda_launch *l = samples(p, "steps", batch);
    CUDA_ARGS(l, x, y, cuda_int(batch), cuda_int(classes), cuda_float((float)steps.middle),
              cuda_float((float)steps.pull), cuda_float((float)steps.fall));
}

void stk_cuda_steps_back(cuda_program *p, int batch, int classes, cuda_ref dy, cuda_ref dx,
                         bool add) {
    stk_steps steps = stk_steps_of(classes);
    cuda_launch *l = samples(p, "steps_back", batch);
    CUDA_ARGS(l, dy, dx, cuda_int(add), cuda_int(batch), cuda_int(classes),
              cuda_float((float)steps.middle), cuda_float((float)steps.pull));
}
