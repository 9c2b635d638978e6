/* pointwise.c - what is done to each element by itself: input and addition. */
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector.h"

#include <string.h>

/* ---- input: uint8 to normalised float, mixed with its partner when asked ---- */

/* out = or += pixels * scale - shift, where scale and shift repeat after `period` floats */
CPU_BODY void normalise_body(const uint8_t *pixels, size_t count, size_t period, const float *scale,
                             const float *shift, bool add, float *out) {
    for (size_t at = 0; at < count; at += period) {
        size_t n = cpu_min(period, count - at);
        if (add) {
            CPU_EACH for (size_t i = 0; i < n; i++) {
                out[at + i] += (float)pixels[at + i] * scale[i] - shift[i];
            }
        } else {
            CPU_EACH for (size_t i = 0; i < n; i++) {
                out[at + i] = (float)pixels[at + i] * scale[i] - shift[i];
            }
        }
    }
}

CPU_VECTOR(normalise,
           (const uint8_t *pixels, size_t count, size_t period, const float *scale,
            const float *shift, bool add, float *out),
           (pixels, count, period, scale, shift, add, out))

/* After how many floats the channels repeat: whole vectors where the channels allow it. */
static size_t period_of(size_t channels) {
    enum { WHOLE = 48 };
    return WHOLE % channels == 0 ? WHOLE : STK_MOST_CHANNELS / channels * channels;
}

/* weight * (pixel / 255 - mean) / std for `count` pixels */
static void normalise_row(const stk_graph *graph, const uint8_t *pixels, size_t count, float weight,
                          bool add, float *out) {
    float scale[STK_MOST_CHANNELS];
    float shift[STK_MOST_CHANNELS];
    size_t channels = (size_t)graph->channels;
    size_t period = period_of(channels);
    for (size_t i = 0; i < period; i++) {
        size_t c = i % channels;
        scale[i] = weight / (255.0f * graph->std[c]);
        shift[i] = weight * graph->mean[c] / graph->std[c];
    }
    normalise(pixels, channels * count, period, scale, shift, add, out);
}

static void input_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_call *call = context;
    size_t side = (size_t)call->out.width;
    size_t channels = (size_t)call->out.channels;
    size_t pixels = side * (size_t)call->out.height;
    size_t floats = pixels * channels;
    const uint8_t *own = call->images + task * floats;
    const uint8_t *other = call->images + (call->batch - 1 - task) * floats;
    float *out = call->y + task * floats;
    const stk_mix *mix = call->step != NULL ? &call->step->mix : NULL;
    if (mix == NULL || mix->kind == STK_MIX_NONE) {
        normalise_row(call->graph, own, pixels, 1, false, out);
    } else if (mix->kind == STK_MIX_MIXUP) {
        normalise_row(call->graph, own, pixels, mix->keep, false, out);
        normalise_row(call->graph, other, pixels, 1 - mix->keep, true, out);
    } else {
        for (size_t y = 0; y < (size_t)call->out.height; y++) {
            bool inside = (int)y >= mix->top && (int)y < mix->bottom;
            size_t from = inside ? (size_t)mix->left : 0;
            size_t to = inside ? (size_t)mix->right : 0;
            const uint8_t *row = own + y * side * channels;
            float *out_row = out + y * side * channels;
            normalise_row(call->graph, row, from, 1, false, out_row);
            normalise_row(call->graph, other + (y * side + from) * channels, to - from, 1, false,
                          out_row + from * channels);
            normalise_row(call->graph, row + to * channels, side - to, 1, false,
                          out_row + to * channels);
        }
    }
}

const cpu_kernel stk_cpu_input = {.forward_sample = input_task};

/* ---- addition ---- */

static size_t elements(const cpu_call *call) {
    return call->batch * stk_shape_count(call->out);
}

CPU_BODY void sum_body(const float *a, const float *b, float *sum, size_t count) {
    CPU_EACH for (size_t i = 0; i < count; i++) {
        sum[i] = a[i] + b[i];
    }
}

CPU_VECTOR(sum, (const float *a, const float *b, float *sum, size_t count), (a, b, sum, count))

static void add_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_call *call = context;
    size_t from = task * CPU_GRAIN;
    size_t count = cpu_min(CPU_GRAIN, elements(call) - from);
    sum(call->x[0] + from, call->x[1] + from, call->y + from, count);
}

static void add_grad_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_call *call = context;
    size_t from = task * CPU_GRAIN;
    size_t end = cpu_min(from + CPU_GRAIN, elements(call));
    for (int k = 0; k < 2; k++) {
        float *dx = call->dx[k];
        if (dx == NULL) {
            continue;
        }
        if (!call->accumulate[k]) {
            memcpy(dx + from, call->dy + from, (end - from) * sizeof *dx);
            continue;
        }
        sum(dx + from, call->dy + from, dx + from, end - from);
    }
}

static void add_forward(const cpu_call *call) {
    cpu_call copy = *call;
    stk_pool_run(call->pool, cpu_tasks(elements(call), CPU_GRAIN), add_task, &copy);
}

static void add_backward(const cpu_call *call) {
    cpu_call copy = *call;
    stk_pool_run(call->pool, cpu_tasks(elements(call), CPU_GRAIN), add_grad_task, &copy);
}

const cpu_kernel stk_cpu_add = {.forward = add_forward, .backward = add_backward};
