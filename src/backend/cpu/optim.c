/*
 * optim.c - the optimiser: one pass over all parameters.
 *
 * The work is cut into spans whose tensors fit a cache together, so that the moving average reads
 * what the update has just written. Only the norm for clipping, which must be known first, is a
 * pass of its own, over the gradients alone.
 */
#include "backend/cpu/optim.h"

#include <math.h>

#include "backend/cpu/kernels/kernels.h"
#include "base/error.h"
#include "base/mem.h"

/* What clip_grad_norm_ of PyTorch adds to the norm before it divides by it. */
#define CLIP_EPSILON 1e-6

typedef struct update_args {
    const stk_state *state;
    const stk_update *update;
    bool frozen;
    float scale; /* of the gradients: accumulation and clipping together */
} update_args;

stk_status stk_cpu_spans_make(stk_state *state, stk_error *err) {
    const stk_graph *graph = state->graph;
    for (int p = 0; p < graph->param_count; p++) {
        state->span_count += cpu_tasks(graph->params[p].count, CPU_GRAIN);
    }
    state->spans = stk_mem_new(state->span_count, sizeof *state->spans);
    state->squares = stk_mem_new(state->span_count, sizeof *state->squares);
    if (state->spans == NULL || state->squares == NULL) {
        return STK_FAIL_MEMORY(err, "the optimiser");
    }
    size_t span = 0;
    for (int p = 0; p < graph->param_count; p++) {
        size_t end = graph->params[p].offset + graph->params[p].count;
        for (size_t from = graph->params[p].offset; from < end; from += CPU_GRAIN) {
            state->spans[span++] = (cpu_span){from, cpu_min(from + CPU_GRAIN, end), p};
        }
    }
    return STK_OK;
}

static bool learns(const update_args *args, const stk_param *param) {
    return param->trainable && (param->head || !args->frozen);
}

static void sgd(const update_args *args, const stk_param *param, const cpu_span *span) {
    const stk_update *u = args->update;
    float *restrict w = args->state->blocks[STK_TENSOR_VALUE];
    float *restrict v = args->state->blocks[STK_TENSOR_MOMENTUM];
    const float *restrict gradient = args->state->blocks[STK_TENSOR_GRADIENT];
    const float scale = args->scale;
    const float momentum = u->momentum;
    const float decay = param->decay ? u->weight_decay : 0;
    const float lr = param->head ? u->head_lr : u->lr;
    /* Nesterov's step is g + momentum * v, the plain one 0 * g + 1 * v. */
    const float of_g = u->nesterov ? 1 : 0;
    const float of_v = u->nesterov ? momentum : 1;
    for (size_t i = span->from; i < span->to; i++) {
        float g = gradient[i] * scale + decay * w[i];
        v[i] = momentum * v[i] + g;
        w[i] -= lr * (of_g * g + of_v * v[i]);
    }
}

static void adamw(const update_args *args, const stk_param *param, const cpu_span *span) {
    const stk_update *u = args->update;
    float *restrict w = args->state->blocks[STK_TENSOR_VALUE];
    float *restrict m = args->state->blocks[STK_TENSOR_MOMENTUM];
    float *restrict v = args->state->blocks[STK_TENSOR_SECOND];
    const float *restrict gradient = args->state->blocks[STK_TENSOR_GRADIENT];
    const float scale = args->scale;
    const double lr = param->head ? u->head_lr : u->lr;
    const double updates = (double)(param->head ? u->head_updates : u->updates);
    const float keep = (float)(1 - lr * (param->decay ? u->weight_decay : 0));
    const float added1 = 1 - u->momentum;
    const float kept2 = u->beta2;
    const float added2 = 1 - u->beta2;
    const float size = (float)(lr / (1 - pow(u->momentum, updates)));
    const float root = (float)(1 / sqrt(1 - pow(u->beta2, updates)));
    const float epsilon = u->epsilon;
    for (size_t i = span->from; i < span->to; i++) {
        float g = gradient[i] * scale;
        m[i] += added1 * (g - m[i]);
        v[i] = kept2 * v[i] + added2 * g * g;
        w[i] = keep * w[i] - size * (m[i] / (sqrtf(v[i]) * root + epsilon));
    }
}

static void average(const update_args *args, const cpu_span *span) {
    const float *restrict w = args->state->blocks[STK_TENSOR_VALUE];
    float *restrict mean = args->state->blocks[STK_TENSOR_EMA];
    const float kept = args->update->ema_decay;
    const float added = 1 - kept;
    for (size_t i = span->from; i < span->to; i++) {
        mean[i] = kept * mean[i] + added * w[i];
    }
}

static void update_task(void *context, size_t task, int thread) {
    (void)thread;
    const update_args *args = context;
    const cpu_span *span = &args->state->spans[task];
    const stk_param *param = &args->state->graph->params[span->param];
    if (learns(args, param) && args->update->kind == STK_ADAMW) {
        adamw(args, param, span);
    } else if (learns(args, param)) {
        sgd(args, param, span);
    }
    if (args->state->blocks[STK_TENSOR_EMA] != NULL) {
        average(args, span);
    }
}

static void square_task(void *context, size_t task, int thread) {
    (void)thread;
    const update_args *args = context;
    const cpu_span *span = &args->state->spans[task];
    const float *g = args->state->blocks[STK_TENSOR_GRADIENT] + span->from;
    size_t count =
        learns(args, &args->state->graph->params[span->param]) ? span->to - span->from : 0;
    double sums[4] = {0, 0, 0, 0}; /* four chains of additions run side by side */
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        for (size_t k = 0; k < 4; k++) {
            sums[k] += (double)g[i + k] * g[i + k];
        }
    }
    for (; i < count; i++) {
        sums[0] += (double)g[i] * g[i];
    }
    args->state->squares[task] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* Sums of spans are added in their order, so that the bits do not depend on the threads. */
static double gradient_norm(update_args *args) {
    const stk_state *state = args->state;
    double sum = 0;
    stk_pool_run(state->pool, state->span_count, square_task, args);
    for (size_t i = 0; i < state->span_count; i++) {
        sum += state->squares[i];
    }
    return sqrt(sum);
}

double stk_cpu_optimize(const stk_state *state, const stk_update *update, bool frozen) {
    update_args args = {state, update, frozen, update->grad_scale};
    double norm = NAN;
    if (update->clip_norm > 0) {
        norm = gradient_norm(&args) * update->grad_scale;
        double cut = update->clip_norm / (norm + CLIP_EPSILON);
        args.scale *= cut < 1 ? (float)cut : 1;
    }
    stk_pool_run(state->pool, state->span_count, update_task, &args);
    return norm;
}
