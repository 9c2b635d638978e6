/* cpu_pointwise.c - what is done to each element by itself: input and addition. */
#include "backend/cpu/cpu_kernels.h"

#include <string.h>

/* ---- input: uint8 to normalised float, mixed with its partner when asked ---- */

/* scale and shift per channel: (pixel / 255 - mean) / std */
static void normalise_row(const stk_graph *graph, const uint8_t *pixels, size_t count, float weight,
                          float *out) {
    for (int c = 0; c < 3; c++) {
        float scale = weight / (255.0f * graph->std[c]);
        float shift = weight * graph->mean[c] / graph->std[c];
        for (size_t i = 0; i < count; i++) {
            out[3 * i + (size_t)c] += (float)pixels[3 * i + (size_t)c] * scale - shift;
        }
    }
}

static void input_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_call *call = context;
    size_t side = (size_t)call->out.width;
    size_t floats = side * (size_t)call->out.height * 3;
    const uint8_t *own = call->images + task * floats;
    const uint8_t *other = call->images + (call->batch - 1 - task) * floats;
    float *out = call->y + task * floats;
    const stk_mix *mix = call->step != NULL ? &call->step->mix : NULL;
    memset(out, 0, floats * sizeof *out);
    if (mix == NULL || mix->kind == STK_MIX_NONE) {
        normalise_row(call->graph, own, floats / 3, 1, out);
    } else if (mix->kind == STK_MIX_MIXUP) {
        normalise_row(call->graph, own, floats / 3, mix->keep, out);
        normalise_row(call->graph, other, floats / 3, 1 - mix->keep, out);
    } else {
        for (size_t y = 0; y < (size_t)call->out.height; y++) {
            bool inside = (int)y >= mix->top && (int)y < mix->bottom;
            size_t from = inside ? (size_t)mix->left : 0;
            size_t to = inside ? (size_t)mix->right : 0;
            const uint8_t *row = own + y * side * 3;
            float *out_row = out + y * side * 3;
            normalise_row(call->graph, row, from, 1, out_row);
            normalise_row(call->graph, other + (y * side + from) * 3, to - from, 1,
                          out_row + from * 3);
            normalise_row(call->graph, row + to * 3, side - to, 1, out_row + to * 3);
        }
    }
}

static void input_forward(const cpu_call *call) {
    cpu_call copy = *call;
    stk_pool_run(call->pool, call->batch, input_task, &copy);
}

const cpu_kernel stk_cpu_input = {.forward = input_forward};

/* ---- addition ---- */

static size_t elements(const cpu_call *call) {
    return call->batch * stk_shape_count(call->out);
}

static void add_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_call *call = context;
    size_t end = cpu_min((task + 1) * CPU_GRAIN, elements(call));
    for (size_t i = task * CPU_GRAIN; i < end; i++) {
        call->y[i] = call->x[0][i] + call->x[1][i];
    }
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
        for (size_t i = from; i < end; i++) {
            dx[i] += call->dy[i];
        }
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
