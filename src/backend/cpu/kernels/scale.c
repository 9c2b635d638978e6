/* scale.c - every pixel times a gate per sample and channel, and the padded shortcut. */
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector.h"

#include <string.h>

/* ---- scale: y (N, H, W, C) = x (N, H, W, C) gate (N, 1, 1, C); a task is one sample ---- */

CPU_BODY void scale_body(const float *x, const float *gate, float *y, size_t pixels,
                         size_t channels) {
    for (size_t p = 0; p < pixels; p++, x += channels, y += channels) {
        CPU_EACH for (size_t c = 0; c < channels; c++) {
            y[c] = x[c] * gate[c];
        }
    }
}

CPU_VECTOR(scale, (const float *x, const float *gate, float *y, size_t pixels, size_t channels),
           (x, gate, y, pixels, channels))

/* dx = dy gate, or added; dgate += the sum over pixels of dy x. Either may be NULL. */
CPU_BODY void scale_grad_body(const float *dy, const float *x, const float *gate, float *dx,
                              float *dgate, size_t pixels, size_t channels, bool accumulate) {
    for (size_t at = 0; at < pixels * channels; at += channels) {
        if (dgate != NULL) {
            CPU_EACH for (size_t c = 0; c < channels; c++) {
                dgate[c] += dy[at + c] * x[at + c];
            }
        }
        if (dx != NULL && accumulate) {
            CPU_EACH for (size_t c = 0; c < channels; c++) {
                dx[at + c] += dy[at + c] * gate[c];
            }
        } else if (dx != NULL) {
            CPU_EACH for (size_t c = 0; c < channels; c++) {
                dx[at + c] = dy[at + c] * gate[c];
            }
        }
    }
}

CPU_VECTOR(scale_grad,
           (const float *dy, const float *x, const float *gate, float *dx, float *dgate,
            size_t pixels, size_t channels, bool accumulate),
           (dy, x, gate, dx, dgate, pixels, channels, accumulate))

static size_t pixels_of(stk_shape shape) {
    return (size_t)shape.height * (size_t)shape.width;
}

static void scale_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_call *call = context;
    size_t channels = (size_t)call->out.channels;
    size_t at = task * stk_shape_count(call->out);
    scale(call->x[0] + at, call->x[1] + task * channels, call->y + at, pixels_of(call->out),
          channels);
}

static void scale_grad_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_call *call = context;
    size_t channels = (size_t)call->out.channels;
    size_t at = task * stk_shape_count(call->out);
    float *dx = call->dx[0] != NULL ? call->dx[0] + at : NULL;
    float *dgate = call->dx[1] != NULL ? call->dx[1] + task * channels : NULL;
    if (dgate != NULL && !call->accumulate[1]) {
        memset(dgate, 0, channels * sizeof *dgate);
    }
    scale_grad(call->dy + at, call->x[0] + at, call->x[1] + task * channels, dx, dgate,
               pixels_of(call->out), channels, call->accumulate[0]);
}

const cpu_kernel stk_cpu_scale = {.forward_sample = scale_task, .backward_sample = scale_grad_task};

/* ---- shortcut: every stride-th pixel, zeros before and after its channels ---- */

/* Where the pixel that output (y, x) comes from begins. */
static size_t source(const cpu_call *call, size_t sample, int y, int x) {
    size_t row = sample * (size_t)call->in.height + (size_t)(y * call->node->stride);
    return (row * (size_t)call->in.width + (size_t)(x * call->node->stride)) *
           (size_t)call->in.channels;
}

static void shortcut_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_call *call = context;
    size_t channels = (size_t)call->in.channels;
    size_t before = ((size_t)call->out.channels - channels) / 2;
    float *to = call->y + task * stk_shape_count(call->out);
    memset(to, 0, stk_shape_count(call->out) * sizeof *to);
    for (int y = 0; y < call->out.height; y++) {
        for (int x = 0; x < call->out.width; x++, to += call->out.channels) {
            memcpy(to + before, call->x[0] + source(call, task, y, x), channels * sizeof *to);
        }
    }
}

static void shortcut_grad_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_call *call = context;
    size_t channels = (size_t)call->in.channels;
    size_t floats = stk_shape_count(call->in);
    const float *dy =
        call->dy + task * stk_shape_count(call->out) + ((size_t)call->out.channels - channels) / 2;
    if (!call->accumulate[0]) {
        memset(call->dx[0] + task * floats, 0, floats * sizeof *dy);
    }
    for (int y = 0; y < call->out.height; y++) {
        for (int x = 0; x < call->out.width; x++, dy += call->out.channels) {
            float *dx = call->dx[0] + source(call, task, y, x);
            for (size_t c = 0; c < channels; c++) {
                dx[c] += dy[c];
            }
        }
    }
}

const cpu_kernel stk_cpu_shortcut = {.forward_sample = shortcut_task,
                                     .backward_sample = shortcut_grad_task};
