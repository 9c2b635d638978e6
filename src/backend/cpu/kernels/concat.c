/* concat.c - features given beside the pictures, and the channels of two values side by side. */
#include "backend/cpu/kernels/kernels.h"

#include <string.h>

/* ---- features ---- */

/* Mixed in the same proportion as targets, whatever part of the picture is whose. */
static void features_task(void *context, size_t i, int thread) {
    (void)thread;
    const cpu_call *call = context;
    size_t count = (size_t)call->out.channels;
    const float *own = call->features + i * count;
    const float *other = call->features + (call->batch - 1 - i) * count;
    float *y = call->y + i * count;
    bool mixed = call->step != NULL && call->step->mix.kind != STK_MIX_NONE;
    float keep = mixed ? call->step->mix.keep : 1;
    for (size_t c = 0; c < count; c++) {
        y[c] = keep >= 1 ? own[c] : keep <= 0 ? other[c] : keep * own[c] + (1 - keep) * other[c];
    }
}

const cpu_kernel stk_cpu_features = {.forward_sample = features_task};

/* ---- concatenation ---- */

static void concat_task(void *context, size_t i, int thread) {
    (void)thread;
    const cpu_call *call = context;
    size_t all = (size_t)call->out.channels;
    size_t first = (size_t)call->in.channels;
    memcpy(call->y + i * all, call->x[0] + i * first, first * sizeof *call->y);
    memcpy(call->y + i * all + first, call->x[1] + i * (all - first),
           (all - first) * sizeof *call->y);
}

static void concat_grad_task(void *context, size_t i, int thread) {
    (void)thread;
    const cpu_call *call = context;
    size_t all = (size_t)call->out.channels;
    size_t first = (size_t)call->in.channels;
    size_t counts[2] = {first, all - first};
    for (int k = 0; k < 2; k++) {
        const float *dy = call->dy + i * all + (k == 0 ? 0 : first);
        float *dx = call->dx[k] != NULL ? call->dx[k] + i * counts[k] : NULL;
        for (size_t c = 0; dx != NULL && c < counts[k]; c++) {
            dx[c] = call->accumulate[k] ? dx[c] + dy[c] : dy[c];
        }
    }
}

const cpu_kernel stk_cpu_concat = {.forward_sample = concat_task,
                                   .backward_sample = concat_grad_task};
