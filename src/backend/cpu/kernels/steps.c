/* steps.c - one number becomes the logits of classes that are steps of a scale. */
#include "engine/steps.h"
#include "backend/cpu/kernels/kernels.h"

static void steps_task(void *context, size_t i, int thread) {
    (void)thread;
    const cpu_call *call = context;
    int classes = call->out.channels;
    stk_steps steps = stk_steps_of(classes);
    double x = (double)call->x[0][i];
    float *y = call->y + i * (size_t)classes;
    for (int k = 0; k < classes; k++) {
        double above = k - steps.middle;
        y[k] = (float)(above * (steps.pull * x - steps.fall * above));
    }
}

static void steps_grad_task(void *context, size_t i, int thread) {
    (void)thread;
    const cpu_call *call = context;
    int classes = call->out.channels;
    stk_steps steps = stk_steps_of(classes);
    const float *dy = call->dy + i * (size_t)classes;
    double sum = 0;
    for (int k = 0; k < classes; k++) {
        sum += (k - steps.middle) * (double)dy[k];
    }
    float dx = (float)(steps.pull * sum);
    if (call->dx[0] != NULL) {
        call->dx[0][i] = call->accumulate[0] ? call->dx[0][i] + dx : dx;
    }
}

const cpu_kernel stk_cpu_steps = {.forward_sample = steps_task, .backward_sample = steps_grad_task};
