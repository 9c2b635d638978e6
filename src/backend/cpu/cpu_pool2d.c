/* cpu_pool2d.c - max pooling and the average over all pixels; a task is one image. */
#include "backend/cpu/cpu_kernels.h"

#include <string.h>

/* ---- max pool: which pixel of the window won is kept in one byte per output ---- */

static stk_piece_needs max_needs(const cpu_ask *ask) {
    size_t outputs = ask->batch * stk_shape_count(ask->graph->values[ask->node->output].shape);
    return (stk_piece_needs){.saved_bytes = ask->piece->live ? outputs : 0};
}

/* The best of one window for every channel. Positions outside the picture never win. */
static void max_window(const cpu_call *call, const float *image, int y0, int x0, float *best,
                       uint8_t *where) {
    size_t channels = (size_t)call->in.channels;
    int kernel = call->node->kernel;
    bool first = true;
    for (int ky = 0; ky < kernel; ky++) {
        for (int kx = 0; kx < kernel; kx++) {
            int y = y0 + ky;
            int x = x0 + kx;
            if (y < 0 || y >= call->in.height || x < 0 || x >= call->in.width) {
                continue;
            }
            const float *pixel =
                image + ((size_t)y * (size_t)call->in.width + (size_t)x) * channels;
            uint8_t position = (uint8_t)(ky * kernel + kx);
            for (size_t c = 0; c < channels; c++) {
                bool wins = first || pixel[c] > best[c];
                best[c] = wins ? pixel[c] : best[c];
                if (where != NULL) {
                    where[c] = wins ? position : where[c];
                }
            }
            first = false;
        }
    }
}

static void max_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_call *call = context;
    const stk_node *node = call->node;
    const float *image = call->x[0] + task * stk_shape_count(call->in);
    size_t out_floats = stk_shape_count(call->out);
    uint8_t *where = call->saved != NULL ? (uint8_t *)call->saved + task * out_floats : NULL;
    float *out = call->y + task * out_floats;
    for (int y = 0; y < call->out.height; y++) {
        for (int x = 0; x < call->out.width; x++) {
            max_window(call, image, y * node->stride - node->pad, x * node->stride - node->pad, out,
                       where);
            out += call->out.channels;
            where = where != NULL ? where + call->out.channels : NULL;
        }
    }
}

static void max_grad_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_call *call = context;
    const stk_node *node = call->node;
    size_t channels = (size_t)call->in.channels;
    size_t in_floats = stk_shape_count(call->in);
    size_t out_floats = stk_shape_count(call->out);
    float *dx = call->dx[0] + task * in_floats;
    const float *dy = call->dy + task * out_floats;
    const uint8_t *where = (const uint8_t *)call->saved + task * out_floats;
    if (!call->accumulate[0]) {
        memset(dx, 0, in_floats * sizeof *dx);
    }
    for (int y = 0; y < call->out.height; y++) {
        for (int x = 0; x < call->out.width; x++) {
            for (size_t c = 0; c < channels; c++) {
                int in_y = y * node->stride - node->pad + where[c] / node->kernel;
                int in_x = x * node->stride - node->pad + where[c] % node->kernel;
                dx[((size_t)in_y * (size_t)call->in.width + (size_t)in_x) * channels + c] += dy[c];
            }
            dy += channels;
            where += channels;
        }
    }
}

static void max_forward(const cpu_call *call) {
    cpu_call copy = *call;
    stk_pool_run(call->pool, call->batch, max_task, &copy);
}

static void max_backward(const cpu_call *call) {
    cpu_call copy = *call;
    if (call->dx[0] != NULL) {
        stk_pool_run(call->pool, call->batch, max_grad_task, &copy);
    }
}

const cpu_kernel stk_cpu_max_pool = {max_needs, max_forward, max_backward};

/* ---- average over all pixels ---- */

static void average_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_call *call = context;
    size_t channels = (size_t)call->in.channels;
    size_t pixels = (size_t)call->in.height * (size_t)call->in.width;
    const float *x = call->x[0] + task * pixels * channels;
    float *y = call->y + task * channels;
    memset(y, 0, channels * sizeof *y);
    for (size_t p = 0; p < pixels; p++, x += channels) {
        for (size_t c = 0; c < channels; c++) {
            y[c] += x[c];
        }
    }
    for (size_t c = 0; c < channels; c++) {
        y[c] /= (float)pixels;
    }
}

static void average_grad_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_call *call = context;
    size_t channels = (size_t)call->in.channels;
    size_t pixels = (size_t)call->in.height * (size_t)call->in.width;
    float *dx = call->dx[0] + task * pixels * channels;
    const float *dy = call->dy + task * channels;
    float share = 1.0f / (float)pixels;
    bool accumulate = call->accumulate[0];
    for (size_t p = 0; p < pixels; p++, dx += channels) {
        for (size_t c = 0; c < channels; c++) {
            float g = dy[c] * share;
            dx[c] = accumulate ? dx[c] + g : g;
        }
    }
}

static void average_forward(const cpu_call *call) {
    cpu_call copy = *call;
    stk_pool_run(call->pool, call->batch, average_task, &copy);
}

static void average_backward(const cpu_call *call) {
    cpu_call copy = *call;
    if (call->dx[0] != NULL) {
        stk_pool_run(call->pool, call->batch, average_grad_task, &copy);
    }
}

const cpu_kernel stk_cpu_avg_pool = {.forward = average_forward, .backward = average_backward};
