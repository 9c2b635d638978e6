/* loss.c - launches of kernels/loss.cu: losses and their gradients. */
#include "backend/cuda/emit/emit.h"
#include "backend/cuda/program/grid.h"
#include "engine/steps.h"

#define STEPS_THREADS 128

/* Threads of a block that has one sample. With 512 each may still have 128 registers. */
static unsigned threads_for(int outputs) {
    return outputs > 4096 ? 512 : outputs > 128 ? 256 : 64;
}

/* A launch with the arguments that all kernels begin with. */
static cuda_launch *loss(cuda_program *p, const char *name, int batch, unsigned blocks,
                         unsigned threads, cuda_ref logits, cuda_ref dlogits) {
    cuda_ref losses = stk_cuda_buffer(p, (size_t)batch * sizeof(float));
    cuda_ref right = stk_cuda_buffer(p, (size_t)batch * sizeof(int));
    cuda_ref counter = stk_cuda_counters(p, 1);
    cuda_launch *l = stk_cuda_launch(p, "loss", name, blocks, 1, threads, threads * 12 + 8);
    CUDA_ARGS(l, logits, dlogits, cuda_fixed_at(CUDA_FIXED_CONSTANTS, 0),
              cuda_fixed_at(CUDA_FIXED_SCALER, 0), cuda_fixed_at(CUDA_FIXED_RESULT, 0), losses,
              right, counter);
    return l;
}

void stk_cuda_loss(cuda_program *p, int batch, int classes, cuda_ref logits, cuda_ref dlogits) {
    cuda_launch *l = loss(p, "loss", batch, (unsigned)batch, threads_for(classes), logits, dlogits);
    CUDA_ARGS(l, cuda_int(classes));
}

void stk_cuda_loss_steps(cuda_program *p, int batch, int classes, cuda_ref logits,
                         cuda_ref dlogits) {
    stk_steps steps = stk_steps_of(classes);
    unsigned blocks = (unsigned)cuda_ceil((size_t)batch, STEPS_THREADS);
    cuda_launch *l = loss(p, "loss_steps", batch, blocks, STEPS_THREADS, logits, dlogits);
    CUDA_ARGS(l, cuda_int(batch), cuda_int(classes), cuda_float((float)steps.middle),
              cuda_float((float)steps.deviation), cuda_float((float)steps.span));
}

void stk_cuda_loss_outputs(cuda_program *p, int batch, int outputs, const stk_loss *kind,
                           cuda_ref logits, cuda_ref dlogits) {
    bool sigmoid = kind->kind == STK_LOSS_SIGMOID;
    bool weighted = sigmoid && kind->positive_weights != NULL;
    bool focus = sigmoid && (kind->gamma_pos > 0 || kind->gamma_neg > 0 || kind->margin > 0);
    cuda_launch *l =
        loss(p, "loss_outputs", batch, (unsigned)batch, threads_for(outputs), logits, dlogits);
    CUDA_DEFINES(l, {"KIND", (long)kind->kind}, {"FOCUS", focus});
    CUDA_ARGS(l, weighted ? cuda_fixed_at(CUDA_FIXED_POSITIVE, 0) : cuda_nothing(),
              cuda_int(outputs), cuda_float(sigmoid ? kind->gamma_pos : kind->huber_delta),
              cuda_float(kind->gamma_neg), cuda_float(kind->margin));
}
