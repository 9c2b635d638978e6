/* cpu_optim.c - the optimiser: one pass over all parameters. */
#include "backend/cpu/cpu_optim.h"

#include <math.h>

#include "backend/cpu/cpu_kernels.h"

typedef struct update_job {
    const stk_state *state;
    const stk_update *update;
    const stk_param *param;
} update_job;

static void sgd_task(void *context, size_t task, int thread) {
    (void)thread;
    const update_job *job = context;
    const stk_update *u = job->update;
    size_t from = job->param->offset + task * CPU_GRAIN;
    size_t to = cpu_min(from + CPU_GRAIN, job->param->offset + job->param->count);
    float *w = job->state->blocks[STK_TENSOR_VALUE];
    float *v = job->state->blocks[STK_TENSOR_MOMENTUM];
    const float *gradient = job->state->blocks[STK_TENSOR_GRADIENT];
    float decay = job->param->decay ? u->weight_decay : 0;
    float lr = job->param->head ? u->head_lr : u->lr;
    for (size_t i = from; i < to; i++) {
        float g = gradient[i] * u->grad_scale + decay * w[i];
        v[i] = u->momentum * v[i] + g;
        w[i] -= lr * (u->nesterov ? g + u->momentum * v[i] : v[i]);
    }
}

double stk_cpu_optimize(const stk_state *state, const stk_update *update, bool frozen) {
    for (int p = 0; p < state->graph->param_count; p++) {
        update_job job = {state, update, &state->graph->params[p]};
        if (job.param->trainable && (job.param->head || !frozen)) {
            stk_pool_run(state->pool, cpu_tasks(job.param->count, CPU_GRAIN), sgd_task, &job);
        }
    }
    return NAN;
}
