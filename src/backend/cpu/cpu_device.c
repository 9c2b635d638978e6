/*
 * cpu_device.c - the backend interface on plain C and CBLAS.
 *
 * A step walks the nodes forward and then backward, each through its kernel, in the arena that the
 * plan laid out; then one pass over all parameters is the optimiser.
 */
#include "backend/cpu/cpu_device.h"

#include <math.h>
#include <string.h>

#include "backend/cpu/cpu_blas.h"
#include "backend/cpu/cpu_kernels.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"

static const cpu_kernel *const kernels[STK_OP_COUNT] = {
    [STK_OP_INPUT] = &stk_cpu_input,
    [STK_OP_CONV] = &stk_cpu_conv,
    [STK_OP_BATCH_NORM] = &stk_cpu_batch_norm,
    [STK_OP_RELU] = &stk_cpu_relu,
    [STK_OP_ADD] = &stk_cpu_add,
    [STK_OP_MAX_POOL] = &stk_cpu_max_pool,
    [STK_OP_AVG_POOL] = &stk_cpu_avg_pool,
    [STK_OP_LINEAR] = &stk_cpu_linear,
    [STK_OP_LOSS] = &stk_cpu_loss,
};

struct stk_device {
    stk_pool *pool;
    stk_device_config config;
};

struct stk_state {
    stk_device *device;
    const stk_graph *graph;
    float *values; /* graph->param_elements of each, parameters one behind the other */
    float *gradients;
    float *momentum;
};

struct stk_exec {
    stk_state *state;
    stk_plan plan;
    char *arena; /* plan.arena_bytes */
};

static stk_status cpu_device_open(stk_device **out, const stk_device_config *config,
                                  stk_error *err) {
    stk_device *device = stk_mem_new(1, sizeof *device);
    if (device == NULL) {
        return STK_FAIL_MEMORY(err, "the CPU device");
    }
    stk_status status = stk_pool_new(&device->pool, config->threads, err);
    if (status != STK_OK) {
        stk_mem_free(device);
        return status;
    }
    device->config = *config;
    stk_cpu_blas_single_thread();
    *out = device;
    return STK_OK;
}

static void cpu_device_close(stk_device *device) {
    if (device != NULL) {
        stk_pool_free(device->pool);
        stk_mem_free(device);
    }
}

static void cpu_state_free(stk_state *state) {
    if (state != NULL) {
        stk_mem_free(state->values);
        stk_mem_free(state->gradients);
        stk_mem_free(state->momentum);
        stk_mem_free(state);
    }
}

static float *new_zeros(size_t count) {
    float *block = stk_mem_aligned(count * sizeof *block);
    if (block != NULL) {
        memset(block, 0, count * sizeof *block);
    }
    return block;
}

static stk_status cpu_state_new(stk_state **out, stk_device *device, const stk_graph *graph,
                                stk_error *err) {
    stk_state *state = stk_mem_new(1, sizeof *state);
    if (state == NULL) {
        return STK_FAIL_MEMORY(err, "the parameters");
    }
    state->device = device;
    state->graph = graph;
    state->values = new_zeros(graph->param_elements);
    state->gradients = new_zeros(graph->param_elements);
    state->momentum = new_zeros(graph->param_elements);
    if (state->values == NULL || state->gradients == NULL || state->momentum == NULL) {
        cpu_state_free(state);
        return STK_FAIL_MEMORY(err, "the parameters");
    }
    *out = state;
    return STK_OK;
}

static uint64_t cpu_state_bytes(const stk_state *state) {
    return 3 * (uint64_t)state->graph->param_elements * sizeof(float);
}

static float *tensor_of(const stk_state *state, stk_tensor_kind kind, int param) {
    float *const blocks[] = {[STK_TENSOR_VALUE] = state->values,
                             [STK_TENSOR_GRADIENT] = state->gradients,
                             [STK_TENSOR_MOMENTUM] = state->momentum};
    return blocks[kind] + state->graph->params[param].offset;
}

static stk_status cpu_state_read(stk_state *state, stk_tensor_kind kind, int param, float *values,
                                 stk_error *err) {
    (void)err;
    memcpy(values, tensor_of(state, kind, param),
           state->graph->params[param].count * sizeof *values);
    return STK_OK;
}

static stk_status cpu_state_write(stk_state *state, stk_tensor_kind kind, int param,
                                  const float *values, stk_error *err) {
    (void)err;
    memcpy(tensor_of(state, kind, param), values,
           state->graph->params[param].count * sizeof *values);
    return STK_OK;
}

static stk_node_needs node_needs(void *context, const stk_graph *graph, int node, size_t batch,
                                 bool train) {
    const stk_device *device = context;
    const stk_node *n = &graph->nodes[node];
    const cpu_kernel *kernel = kernels[n->op];
    return kernel->needs != NULL
               ? kernel->needs(graph, n, batch, train, stk_pool_threads(device->pool))
               : (stk_node_needs){0};
}

static stk_status make_plan(stk_plan *plan, stk_device *device, const stk_graph *graph,
                            const stk_compile_config *config, stk_error *err) {
    return stk_plan_make(plan, graph, config->batch, config->train, node_needs, device, err);
}

static stk_status cpu_plan_bytes(stk_device *device, const stk_graph *graph,
                                 const stk_compile_config *config, uint64_t *bytes,
                                 stk_error *err) {
    stk_plan plan;
    stk_status status = make_plan(&plan, device, graph, config, err);
    if (status == STK_OK) {
        *bytes = plan.arena_bytes;
        stk_plan_free(&plan);
    }
    return status;
}

static void cpu_exec_free(stk_exec *exec) {
    if (exec != NULL) {
        stk_plan_free(&exec->plan);
        stk_mem_free(exec->arena);
        stk_mem_free(exec);
    }
}

static stk_status cpu_compile(stk_exec **out, stk_state *state, const stk_compile_config *config,
                              stk_error *err) {
    stk_exec *exec = stk_mem_new(1, sizeof *exec);
    if (exec == NULL) {
        return STK_FAIL_MEMORY(err, "a compiled network");
    }
    exec->state = state;
    stk_status status = make_plan(&exec->plan, state->device, state->graph, config, err);
    if (status == STK_OK) {
        exec->arena = stk_mem_aligned(exec->plan.arena_bytes);
        if (exec->arena == NULL) {
            status = STK_FAIL(err, STK_ERR_MEMORY,
                              "batch %zu at %d px needs %zu MB of memory, which cannot be had; use "
                              "a smaller --batch or --img-size",
                              config->batch, state->graph->img_size, exec->plan.arena_bytes >> 20);
        }
    }
    if (status != STK_OK) {
        cpu_exec_free(exec);
        return status;
    }
    *out = exec;
    return STK_OK;
}

static uint64_t cpu_exec_bytes(const stk_exec *exec) {
    return exec->plan.arena_bytes;
}

static float *at(const stk_exec *exec, size_t offset) {
    return offset != SIZE_MAX ? (float *)(void *)(exec->arena + offset) : NULL;
}

/* Fills in what a node reads and writes. */
static void aim(const stk_exec *exec, int index, cpu_call *call) {
    const stk_graph *graph = exec->state->graph;
    const stk_node *node = &graph->nodes[index];
    call->node = node;
    call->out = graph->values[node->output].shape;
    call->in = node->input_count > 0 ? graph->values[node->inputs[0]].shape : call->out;
    call->y = at(exec, exec->plan.values[node->output]);
    call->dy = at(exec, exec->plan.grads[node->output]);
    call->saved = at(exec, exec->plan.saved[index]);
    call->workspace = at(exec, exec->plan.workspace);
    for (int i = 0; i < node->input_count; i++) {
        int value = node->inputs[i];
        call->x[i] = at(exec, exec->plan.values[value]);
        call->dx[i] = at(exec, exec->plan.grads[value]);
        call->accumulate[i] = graph->values[value].last_consumer != index;
    }
    for (int i = 0; i < node->param_count; i++) {
        call->param[i] = tensor_of(exec->state, STK_TENSOR_VALUE, node->params[i]);
        call->param_grad[i] = tensor_of(exec->state, STK_TENSOR_GRADIENT, node->params[i]);
    }
}

/* ---- the optimiser ---- */

typedef struct update_job {
    const stk_state *state;
    const stk_update *update;
    const stk_param *param;
} update_job;

static void update_task(void *context, size_t task, int thread) {
    (void)thread;
    const update_job *job = context;
    const stk_update *u = job->update;
    size_t from = job->param->offset + task * CPU_GRAIN;
    size_t to = cpu_min(from + CPU_GRAIN, job->param->offset + job->param->count);
    float *w = job->state->values;
    float *v = job->state->momentum;
    const float *gradient = job->state->gradients;
    float decay = job->param->decay ? u->weight_decay : 0;
    for (size_t i = from; i < to; i++) {
        float g = gradient[i] * u->grad_scale + decay * w[i];
        v[i] = u->momentum * v[i] + g;
        w[i] -= u->lr * (u->nesterov ? g + u->momentum * v[i] : v[i]);
    }
}

static void apply_update(const stk_state *state, const stk_update *update) {
    for (int p = 0; p < state->graph->param_count; p++) {
        update_job job = {state, update, &state->graph->params[p]};
        if (job.param->trainable) {
            stk_pool_run(state->device->pool, cpu_tasks(job.param->count, CPU_GRAIN), update_task,
                         &job);
        }
    }
}

static stk_status check_count(const stk_exec *exec, size_t count, bool train, stk_error *err) {
    if (count < 1 || count > exec->plan.batch || train != exec->plan.train) {
        return STK_FAIL(err, STK_ERR_INTERNAL,
                        "a network compiled for %s of up to %zu samples was called for %s of %zu",
                        exec->plan.train ? "training" : "inference", exec->plan.batch,
                        train ? "training" : "inference", count);
    }
    return STK_OK;
}

/* The parts of one call, timed so that a halt comes before it is too late. */
typedef struct parts {
    int64_t last_ns;   /* when the last part ended */
    double longest_s;  /* of all so far */
    double next_times; /* a backward part has twice the products of its forward part */
} parts;

static stk_status check_halt(const stk_exec *exec, parts *p, stk_error *err) {
    const stk_device_config *config = &exec->state->device->config;
    if (config->halted == NULL) {
        return STK_OK;
    }
    p->longest_s = fmax(p->longest_s, stk_clock_since_s(p->last_ns));
    p->last_ns = stk_clock_ns();
    return config->halted(config->user, p->next_times * p->longest_s)
               ? STK_FAIL(err, STK_ERR_STOPPED, "stopped in the middle of a step")
               : STK_OK;
}

static stk_status cpu_step(stk_exec *exec, const stk_step_input *input, stk_step_output *output,
                           stk_error *err) {
    const stk_graph *graph = exec->state->graph;
    stk_status status = check_count(exec, input->count, true, err);
    if (status != STK_OK) {
        return status;
    }
    memset(output, 0, sizeof *output);
    cpu_call call = {.pool = exec->state->device->pool,
                     .graph = graph,
                     .batch = input->count,
                     .train = true,
                     .step = input,
                     .images = input->images,
                     .result = output};
    if (!input->keep_gradients) {
        memset(exec->state->gradients, 0, graph->param_elements * sizeof(float));
    }
    parts timed = {.last_ns = stk_clock_ns(), .next_times = 2};
    for (int n = 0; n < graph->node_count && status == STK_OK; n++) {
        aim(exec, n, &call);
        kernels[graph->nodes[n].op]->forward(&call);
        status = check_halt(exec, &timed, err);
    }
    for (int n = graph->node_count - 1; n >= 0 && status == STK_OK; n--) {
        const cpu_kernel *kernel = kernels[graph->nodes[n].op];
        if (kernel->backward != NULL) {
            aim(exec, n, &call);
            kernel->backward(&call);
            status = check_halt(exec, &timed, err);
        }
    }
    if (status == STK_OK && input->update != NULL) {
        apply_update(exec->state, input->update);
    }
    return status;
}

static stk_status cpu_infer(stk_exec *exec, const uint8_t *images, size_t count, float *logits,
                            stk_error *err) {
    const stk_graph *graph = exec->state->graph;
    stk_status status = check_count(exec, count, false, err);
    if (status != STK_OK) {
        return status;
    }
    cpu_call call = {
        .pool = exec->state->device->pool, .graph = graph, .batch = count, .images = images};
    parts timed = {.last_ns = stk_clock_ns(), .next_times = 1};
    for (int n = 0; n < graph->node_count && status == STK_OK; n++) {
        if (graph->nodes[n].op != STK_OP_LOSS) {
            aim(exec, n, &call);
            kernels[graph->nodes[n].op]->forward(&call);
            status = check_halt(exec, &timed, err);
        }
    }
    if (status == STK_OK) {
        memcpy(logits, at(exec, exec->plan.values[graph->logits]),
               count * (size_t)graph->classes * sizeof *logits);
    }
    return status;
}

const stk_backend stk_cpu_backend = {
    .name = "cpu",
    .device_open = cpu_device_open,
    .device_close = cpu_device_close,
    .state_new = cpu_state_new,
    .state_free = cpu_state_free,
    .state_bytes = cpu_state_bytes,
    .state_read = cpu_state_read,
    .state_write = cpu_state_write,
    .plan_bytes = cpu_plan_bytes,
    .compile = cpu_compile,
    .exec_free = cpu_exec_free,
    .exec_bytes = cpu_exec_bytes,
    .step = cpu_step,
    .infer = cpu_infer,
};
