/* pool2d.c - max pooling and the average over all pixels; a task is one image. */
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector.h"

#include <string.h>

#define CHUNK ((size_t)64) /* channels of a window at once */

/* ---- max pool: which pixel of the window won is kept in one byte per output ---- */

static stk_piece_needs max_needs(const cpu_ask *ask) {
    size_t outputs = ask->batch * stk_shape_count(ask->graph->values[ask->node->output].shape);
    return (stk_piece_needs){.saved_bytes = ask->piece->live ? outputs : 0};
}

/* A window: the pixels of it that lie within the picture, and the number of each in the window. */
typedef struct window {
    const float *image;
    size_t row; /* floats from one row of the image to the next */
    size_t channels;
    int kernel;
    int y0, x0;                   /* where it begins, perhaps outside */
    int top, left, bottom, right; /* taps within */
} window;

static window window_at(const cpu_call *call, const float *image, int y, int x) {
    const stk_node *node = call->node;
    window w = {.image = image,
                .row = (size_t)call->in.width * (size_t)call->in.channels,
                .channels = (size_t)call->in.channels,
                .kernel = node->kernel,
                .y0 = y * node->stride - node->pad,
                .x0 = x * node->stride - node->pad};
    w.top = w.y0 < 0 ? -w.y0 : 0;
    w.left = w.x0 < 0 ? -w.x0 : 0;
    w.bottom = w.y0 + w.kernel > call->in.height ? call->in.height - w.y0 : w.kernel;
    w.right = w.x0 + w.kernel > call->in.width ? call->in.width - w.x0 : w.kernel;
    return w;
}

static inline size_t tap_at(const window *w, int ky, int kx) {
    return (size_t)(w->y0 + ky) * w->row + (size_t)(w->x0 + kx) * w->channels;
}

/* The best of channels c .. c+count-1, count <= CHUNK. */
CPU_BODY void max_chunk(const window *w, size_t c, size_t count, float *best, uint8_t *where) {
    float top[CHUNK];
    int32_t winner[CHUNK] = {0}; /* as wide as the numbers, for the sake of vectors */
    bool first = true;
    for (int ky = w->top; ky < w->bottom; ky++) {
        for (int kx = w->left; kx < w->right; kx++) {
            const float *pixel = w->image + tap_at(w, ky, kx) + c;
            int32_t position = ky * w->kernel + kx;
            if (first) {
                memcpy(top, pixel, count * sizeof *top);
            }
            CPU_EACH for (size_t i = 0; i < count; i++) {
                bool wins = first || pixel[i] > top[i];
                top[i] = wins ? pixel[i] : top[i];
                winner[i] = wins ? position : winner[i];
            }
            first = false;
        }
    }
    memcpy(best + c, top, count * sizeof *top);
    for (size_t i = 0; i < count && where != NULL; i++) {
        where[c + i] = (uint8_t)winner[i];
    }
}

/* Positions outside the picture never win. */
CPU_BODY void max_window_body(const window *w, float *best, uint8_t *where) {
    for (size_t c = 0; c < w->channels; c += CHUNK) {
        max_chunk(w, c, cpu_min(CHUNK, w->channels - c), best, where);
    }
}

CPU_VECTOR(max_window, (const window *w, float *best, uint8_t *where), (w, best, where))

/* Adds a window's gradient to the pixels that won it. */
CPU_BODY void max_share_body(const window *w, const float *dy, const uint8_t *where, float *dx) {
    for (int ky = w->top; ky < w->bottom; ky++) {
        for (int kx = w->left; kx < w->right; kx++) {
            float *pixel = dx + tap_at(w, ky, kx);
            int position = ky * w->kernel + kx;
            CPU_EACH for (size_t c = 0; c < w->channels; c++) {
                pixel[c] += where[c] == position ? dy[c] : 0;
            }
        }
    }
}

CPU_VECTOR(max_share, (const window *w, const float *dy, const uint8_t *where, float *dx),
           (w, dy, where, dx))

static void max_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_call *call = context;
    const float *image = call->x[0] + task * stk_shape_count(call->in);
    size_t out_floats = stk_shape_count(call->out);
    uint8_t *where = call->saved != NULL ? (uint8_t *)call->saved + task * out_floats : NULL;
    float *out = call->y + task * out_floats;
    for (int y = 0; y < call->out.height; y++) {
        for (int x = 0; x < call->out.width; x++) {
            window w = window_at(call, image, y, x);
            max_window(&w, out, where);
            out += call->out.channels;
            where = where != NULL ? where + call->out.channels : NULL;
        }
    }
}

static void max_grad_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_call *call = context;
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
            window w = window_at(call, NULL, y, x);
            max_share(&w, dy, where, dx);
            dy += channels;
            where += channels;
        }
    }
}

const cpu_kernel stk_cpu_max_pool = {
    .needs = max_needs, .forward_sample = max_task, .backward_sample = max_grad_task};

/* ---- average over all pixels ---- */

CPU_BODY void average_body(const float *x, float *y, size_t pixels, size_t channels) {
    memset(y, 0, channels * sizeof *y);
    size_t p = 0;
    for (; p + 4 <= pixels; p += 4, x += 4 * channels) {
        CPU_EACH for (size_t c = 0; c < channels; c++) {
            y[c] += (x[c] + x[channels + c]) + (x[2 * channels + c] + x[3 * channels + c]);
        }
    }
    for (; p < pixels; p++, x += channels) {
        CPU_EACH for (size_t c = 0; c < channels; c++) {
            y[c] += x[c];
        }
    }
    for (size_t c = 0; c < channels; c++) {
        y[c] /= (float)pixels;
    }
}

CPU_VECTOR(average, (const float *x, float *y, size_t pixels, size_t channels),
           (x, y, pixels, channels))

CPU_BODY void share_body(const float *dy, float *dx, size_t pixels, size_t channels,
                         bool accumulate) {
    float share = 1.0f / (float)pixels;
    for (size_t p = 0; p < pixels; p++, dx += channels) {
        if (accumulate) {
            CPU_EACH for (size_t c = 0; c < channels; c++) {
                dx[c] += dy[c] * share;
            }
        } else {
            CPU_EACH for (size_t c = 0; c < channels; c++) {
                dx[c] = dy[c] * share;
            }
        }
    }
}

CPU_VECTOR(share, (const float *dy, float *dx, size_t pixels, size_t channels, bool accumulate),
           (dy, dx, pixels, channels, accumulate))

static void average_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_call *call = context;
    size_t channels = (size_t)call->in.channels;
    size_t pixels = (size_t)call->in.height * (size_t)call->in.width;
    average(call->x[0] + task * pixels * channels, call->y + task * channels, pixels, channels);
}

static void average_grad_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_call *call = context;
    size_t channels = (size_t)call->in.channels;
    size_t pixels = (size_t)call->in.height * (size_t)call->in.width;
    share(call->dy + task * channels, call->dx[0] + task * pixels * channels, pixels, channels,
          call->accumulate[0]);
}

const cpu_kernel stk_cpu_avg_pool = {.forward_sample = average_task,
                                     .backward_sample = average_grad_task};
