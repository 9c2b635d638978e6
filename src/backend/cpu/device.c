/*
 * device.c - the backend interface on plain C and CBLAS.
 *
 * A step goes through the pieces of the network forward and then backward, each with its kernel, in
 * the arena of the memory layout. Then the optimiser makes one pass over all parameters.
 */
#include "backend/cpu/device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/cpu/blas.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/optim.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/numbers/typical.h"

static const cpu_kernel *const kernels[STK_OP_COUNT] = {
    [STK_OP_INPUT] = &stk_cpu_input,
    [STK_OP_CONV] = &stk_cpu_conv,
    [STK_OP_DEPTHWISE] = &stk_cpu_depthwise,
    [STK_OP_BATCH_NORM] = &stk_cpu_batch_norm,
    [STK_OP_RELU] = &stk_cpu_activation,
    [STK_OP_RELU6] = &stk_cpu_activation,
    [STK_OP_SILU] = &stk_cpu_activation,
    [STK_OP_SIGMOID] = &stk_cpu_activation,
    [STK_OP_ADD] = &stk_cpu_add,
    [STK_OP_SCALE] = &stk_cpu_scale,
    [STK_OP_SHORTCUT] = &stk_cpu_shortcut,
    [STK_OP_MAX_POOL] = &stk_cpu_max_pool,
    [STK_OP_AVG_POOL] = &stk_cpu_avg_pool,
    [STK_OP_DROPOUT] = &stk_cpu_drop,
    [STK_OP_DROP_PATH] = &stk_cpu_drop,
    [STK_OP_LINEAR] = &stk_cpu_linear,
    [STK_OP_FEATURES] = &stk_cpu_features,
    [STK_OP_CONCAT] = &stk_cpu_concat,
    [STK_OP_STEPS] = &stk_cpu_steps,
    [STK_OP_LOSS] = &stk_cpu_loss,
};

/* A chain's own node is its norm. */
static int main_node(const stk_piece *piece) {
    return piece->node != STK_NO_NODE ? piece->node : piece->norm;
}

static const cpu_kernel *kernel_of(const stk_pieces *pieces, int index) {
    int node = pieces->items[index].node;
    return node != STK_NO_NODE ? kernels[pieces->graph->nodes[node].op] : &stk_cpu_chain;
}

struct stk_device {
    stk_pool *pool;
    char description[64]; /* "16 threads" */
    stk_device_config config;
};

struct stk_exec {
    stk_state *state;
    stk_pieces pieces;
    stk_memory_layout layout;
    stk_tensor_kind weights;               /* which parameters are computed with */
    char *arena;                           /* layout.arena_bytes */
    stk_step_output done[STK_STEPS_AHEAD]; /* results that were not collected yet */
    size_t done_count;
    stk_typical long_part_s; /* part_times.long_s of the last calls */
};

static void describe_threads(stk_device *device, int wanted) {
    int threads = stk_pool_threads(device->pool);
    int length = snprintf(device->description, sizeof device->description, "%d thread%s", threads,
                          threads == 1 ? "" : "s");
    if (threads < wanted) {
        snprintf(device->description + length, sizeof device->description - (size_t)length,
                 ": the system refuses more");
    }
}

static stk_status cpu_device_open(stk_device **out, const stk_device_config *config,
                                  stk_error *err) {
    stk_device *device = stk_mem_new(1, sizeof *device);
    if (device == NULL) {
        return STK_FAIL_MEMORY(err, "the CPU device");
    }
    stk_status status = stk_cpu_blas_begin(err);
    STK_THEN(status, stk_pool_new(&device->pool, config->threads, err));
    if (status != STK_OK) {
        stk_mem_free(device);
        return status;
    }
    device->config = *config;
    describe_threads(device, config->threads);
    *out = device;
    return STK_OK;
}

static void cpu_device_close(stk_device *device) {
    if (device != NULL) {
        stk_pool_free(device->pool);
        stk_mem_free(device);
    }
}

static const char *cpu_describe(const stk_device *device) {
    return device->description;
}

static stk_status cpu_memory(stk_device *device, stk_device_memory *memory, stk_error *err) {
    (void)err;
    uint64_t held = device->config.memory_bytes;
    uint64_t bytes = stk_machine_memory();
    bytes = held > 0 && held < bytes ? held : bytes;
    /* Nine tenths count as free: most memory of other processes can be swapped out. */
    *memory = (stk_device_memory){.total_bytes = bytes, .free_bytes = bytes / 10 * 9};
    return STK_OK;
}

static stk_precision cpu_precision(const stk_device *device, stk_precision asked) {
    (void)device;
    return asked == STK_PRECISION_FP32_STRICT ? asked : STK_PRECISION_FP32;
}

static void *cpu_host_take(stk_device *device, size_t bytes) {
    (void)device;
    return stk_mem_aligned(bytes);
}

static void cpu_host_free(stk_device *device, void *memory) {
    (void)device;
    stk_mem_free(memory);
}

static void cpu_state_free(stk_state *state) {
    if (state != NULL) {
        for (int k = 0; k < STK_TENSOR_KINDS; k++) {
            stk_mem_free(state->blocks[k]);
        }
        stk_mem_free(state->spans);
        stk_mem_free(state->squares);
        stk_mem_free(state);
    }
}

static stk_status cpu_state_new(stk_state **out, stk_device *device, const stk_graph *graph,
                                const stk_state_config *config, stk_error *err) {
    stk_state *state = stk_mem_new(1, sizeof *state);
    bool good = state != NULL;
    size_t bytes = graph->param_elements * sizeof(float);
    for (int k = 0; k < STK_TENSOR_KINDS && good; k++) {
        if (stk_state_keeps(config, (stk_tensor_kind)k)) {
            state->blocks[k] = stk_mem_aligned(bytes);
            good = state->blocks[k] != NULL;
            if (good) {
                memset(state->blocks[k], 0, bytes);
            }
        }
    }
    if (!good) {
        cpu_state_free(state);
        return STK_FAIL_MEMORY(err, "the parameters");
    }
    state->device = device;
    state->pool = device->pool;
    state->graph = graph;
    if (config->train && stk_cpu_spans_make(state, err) != STK_OK) {
        cpu_state_free(state);
        return STK_ERR_MEMORY;
    }
    *out = state;
    return STK_OK;
}

static uint64_t cpu_state_bytes(const stk_graph *graph, const stk_state_config *config) {
    uint64_t kinds = 0;
    for (int k = 0; k < STK_TENSOR_KINDS; k++) {
        kinds += stk_state_keeps(config, (stk_tensor_kind)k);
    }
    return kinds * graph->param_elements * sizeof(float);
}

static bool cpu_state_has(const stk_state *state, stk_tensor_kind kind) {
    return state->blocks[kind] != NULL;
}

static float *tensor_of(const stk_state *state, stk_tensor_kind kind, int param) {
    float *block = state->blocks[kind];
    return block != NULL ? block + state->graph->params[param].offset : NULL;
}

static stk_status check_kind(const stk_state *state, stk_tensor_kind kind, stk_error *err) {
    return state->blocks[kind] != NULL
               ? STK_OK
               : STK_FAIL(err, STK_ERR_INTERNAL, "the state has no tensors of kind %d", kind);
}

static stk_status cpu_state_read(stk_state *state, stk_tensor_kind kind, int param, float *values,
                                 stk_error *err) {
    stk_status status = check_kind(state, kind, err);
    if (status == STK_OK) {
        memcpy(values, tensor_of(state, kind, param),
               state->graph->params[param].count * sizeof *values);
    }
    return status;
}

static stk_status cpu_state_write(stk_state *state, stk_tensor_kind kind, int param,
                                  const float *values, stk_error *err) {
    stk_status status = check_kind(state, kind, err);
    if (status == STK_OK) {
        memcpy(tensor_of(state, kind, param), values,
               state->graph->params[param].count * sizeof *values);
    }
    return status;
}

static stk_piece_needs piece_needs(void *context, const stk_pieces *pieces, int index,
                                   size_t batch) {
    const stk_device *device = context;
    const stk_piece *piece = &pieces->items[index];
    cpu_ask ask = {.graph = pieces->graph,
                   .piece = piece,
                   .node = &pieces->graph->nodes[main_node(piece)],
                   .batch = batch,
                   .threads = stk_pool_threads(device->pool)};
    const cpu_kernel *kernel = kernel_of(pieces, index);
    return kernel->needs != NULL ? kernel->needs(&ask) : (stk_piece_needs){0};
}

/* The pieces and their memory layout; both are freed by the caller, also after an error. */
static stk_status make_layout(stk_pieces *pieces, stk_memory_layout *layout, stk_device *device,
                              const stk_graph *graph, const stk_compile_config *config,
                              stk_error *err) {
    stk_pieces_config cut = stk_pieces_config_of(config);
    memset(layout, 0, sizeof *layout);
    stk_status status = stk_pieces_make(pieces, stk_compile_graph(config, graph), &cut, err);
    return status == STK_OK
               ? stk_memory_layout_make(layout, pieces, config->batch, piece_needs, device, err)
               : status;
}

static stk_status cpu_exec_need(stk_device *device, const stk_graph *graph,
                                const stk_compile_config *config, uint64_t *bytes,
                                uint64_t *workspace, stk_error *err) {
    stk_pieces pieces;
    stk_memory_layout layout;
    stk_status status = make_layout(&pieces, &layout, device, graph, config, err);
    *bytes = layout.arena_bytes;
    if (workspace != NULL) {
        *workspace = layout.workspace_bytes;
    }
    stk_memory_layout_free(&layout);
    stk_pieces_free(&pieces);
    return status;
}

static void cpu_exec_free(stk_exec *exec) {
    if (exec != NULL) {
        stk_memory_layout_free(&exec->layout);
        stk_pieces_free(&exec->pieces);
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
    exec->weights = config->ema && !config->train ? STK_TENSOR_EMA : STK_TENSOR_VALUE;
    stk_status status = check_kind(state, exec->weights, err);
    STK_THEN(status,
             stk_graph_check_params(state->graph, stk_compile_graph(config, state->graph), err));
    if (status == STK_OK && config->train) {
        status = check_kind(state, STK_TENSOR_GRADIENT, err);
    }
    STK_THEN(status,
             make_layout(&exec->pieces, &exec->layout, state->device, state->graph, config, err));
    if (status == STK_OK) {
        exec->arena = stk_mem_aligned(exec->layout.arena_bytes);
        if (exec->arena == NULL) {
            status = STK_FAIL(err, STK_ERR_MEMORY,
                              "batch %zu at %d px needs %zu MB of memory, which cannot be had%s",
                              config->batch, exec->pieces.graph->img_size,
                              exec->layout.arena_bytes >> 20,
                              config->train ? "; use a smaller --batch or --img-size" : "");
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
    return exec->layout.arena_bytes;
}

static float *at(const stk_exec *exec, size_t offset) {
    return offset != SIZE_MAX ? (float *)(void *)(exec->arena + offset) : NULL;
}

/* Sets the pointers of a piece: all that it reads and writes. */
static void aim(const stk_exec *exec, int index, cpu_call *call) {
    const stk_graph *graph = exec->pieces.graph;
    const stk_pieces *pieces = &exec->pieces;
    const stk_piece *piece = &pieces->items[index];
    const stk_node *node = &graph->nodes[main_node(piece)];
    call->weights = exec->state->blocks[exec->weights];
    call->gradients = exec->state->blocks[STK_TENSOR_GRADIENT];
    call->piece = piece;
    call->node = node;
    call->train = piece->training;
    call->kept_stats = pieces->config.kept_stats;
    call->out = graph->values[piece->output].shape;
    call->in = piece->input_count > 0 ? graph->values[piece->inputs[0]].shape : call->out;
    call->y = at(exec, exec->layout.values[piece->output]);
    call->dy = at(exec, exec->layout.grads[piece->output]);
    bool filters = piece->inner != STK_NO_VALUE;
    call->inner = filters ? at(exec, exec->layout.values[piece->inner]) : NULL;
    call->dinner = filters ? at(exec, exec->layout.grads[piece->inner]) : NULL;
    call->saved = at(exec, exec->layout.saved[index]);
    call->workspace = at(exec, exec->layout.workspace);
    for (int i = 0; i < piece->input_count; i++) {
        int value = piece->inputs[i];
        call->x[i] = at(exec, exec->layout.values[value]);
        call->dx[i] = at(exec, exec->layout.grads[value]);
        call->accumulate[i] = pieces->last_reader[value] != index;
    }
    for (int i = 0; i < node->param_count; i++) {
        call->param[i] = cpu_param(call, node, i);
        call->param_grad[i] = cpu_param_grad(call, node, i);
    }
}

static void run_forward(const cpu_kernel *kernel, cpu_call *call) {
    if (kernel->forward != NULL) {
        kernel->forward(call);
    } else {
        stk_pool_run(call->pool, call->batch, kernel->forward_sample, call);
    }
}

static void run_backward(const cpu_kernel *kernel, cpu_call *call) {
    bool wanted = false; /* the gradient of an input */
    for (int i = 0; i < call->piece->input_count; i++) {
        wanted = wanted || call->dx[i] != NULL;
    }
    if (kernel->backward != NULL) {
        kernel->backward(call);
    } else if (wanted) {
        stk_pool_run(call->pool, call->batch, kernel->backward_sample, call);
    }
}

static bool is_loss(const stk_exec *exec, int index) {
    int node = exec->pieces.items[index].node;
    return node != STK_NO_NODE && exec->pieces.graph->nodes[node].op == STK_OP_LOSS;
}

static stk_status check_count(const stk_exec *exec, size_t count, bool train, stk_error *err) {
    if (count < 1 || count > exec->layout.batch || train != exec->pieces.config.train) {
        return STK_FAIL(err, STK_ERR_INTERNAL,
                        "a network compiled for %s of up to %zu samples was called for %s of %zu",
                        exec->pieces.config.train ? "training" : "inference", exec->layout.batch,
                        train ? "training" : "inference", count);
    }
    return STK_OK;
}

/* How often `halted` is asked within a part. A part is the forward or the backward pass of one
 * piece over the whole batch. */
#define ASK_S 0.005

/* The parts of one call, timed so that a halt comes before it is too late. */
typedef struct part_times {
    const stk_device_config *config;
    stk_pool *pool;
    int64_t asked_ns;  /* when `halted` was last asked within a part */
    int64_t last_ns;   /* when the last part ended */
    int count;         /* parts so far */
    double sum_s;      /* seconds that they took */
    double longest_s;  /* the longest part so far */
    double long_s;     /* the longest but one: one part alone may have been held up */
    double next_times; /* a backward part has twice the products of its forward part */
} part_times;

static bool halted_within(void *user) {
    part_times *p = user;
    if (stk_clock_since_s(p->asked_ns) < ASK_S) {
        return false;
    }
    p->asked_ns = stk_clock_ns();
    return p->config->halted(p->config->user, 0);
}

static void begin_parts(const stk_exec *exec, part_times *p, double next_times) {
    const stk_device *device = exec->state->device;
    int64_t now = stk_clock_ns();
    *p = (part_times){.config = &device->config,
                      .pool = device->pool,
                      .asked_ns = now,
                      .last_ns = now,
                      .next_times = next_times};
    stk_pool_watch(p->pool, p->config->halted != NULL ? halted_within : NULL, p);
}

/* The work that follows is not halted. */
static void end_parts(stk_exec *exec, const part_times *p) {
    stk_pool_watch(p->pool, NULL, NULL);
    stk_typical_note(&exec->long_part_s, p->long_s);
}

static void note_part(part_times *p) {
    int64_t now = stk_clock_ns();
    double seconds = (double)(now - p->last_ns) * 1e-9;
    bool first = p->longest_s <= 0;
    p->long_s = first ? seconds : fmax(p->long_s, fmin(seconds, p->longest_s));
    p->longest_s = fmax(p->longest_s, seconds);
    p->sum_s += seconds;
    p->count++;
    p->last_ns = now;
}

/*
 * How long the next part may take, in seconds: the typical longest part of this call and of earlier
 * calls. Parts of this call alone do not tell, since the longest may come first. The first call has
 * only its own parts, and on a busy machine several of these are held up, so its mean part counts.
 * If a part takes longer than that, the check within the part ends it in time.
 */
static double long_part(const stk_exec *exec, const part_times *p) {
    double seconds[STK_TYPICAL_MOST] = {p->long_s};
    int count = exec->long_part_s.count;
    if (count == 0) {
        return p->count > 0 ? p->sum_s / p->count : 0;
    }
    memcpy(seconds + 1, exec->long_part_s.values, (size_t)count * sizeof *seconds);
    return stk_typical_of(seconds, count + 1);
}

static stk_status check_halt(stk_exec *exec, part_times *p, stk_error *err) {
    const stk_device_config *config = p->config;
    if (config->halted == NULL) {
        return STK_OK;
    }
    note_part(p);
    bool halted = stk_pool_was_halted(p->pool) ||
                  config->halted(config->user, p->next_times * long_part(exec, p));
    return halted ? STK_FAIL(err, STK_ERR_STOPPED, "stopped in the middle of a step") : STK_OK;
}

static stk_status cpu_step(stk_exec *exec, const stk_step_input *input, stk_step_output *output,
                           stk_error *err) {
    const stk_graph *graph = exec->pieces.graph;
    stk_status status = check_count(exec, input->count, true, err);
    STK_THEN(status, stk_step_check(graph, input, err));
    if (status == STK_OK && output == NULL && exec->done_count == STK_STEPS_AHEAD) {
        status = STK_FAIL(err, STK_ERR_INTERNAL, "nobody collects what steps came to");
    }
    if (status != STK_OK) {
        return status;
    }
    int64_t start = stk_clock_ns();
    bool later = output == NULL;
    output = later ? &exec->done[exec->done_count] : output;
    *output = (stk_step_output){.grad_norm = NAN, .loss_scale = 1};
    cpu_call call = {.pool = exec->state->device->pool,
                     .graph = graph,
                     .batch = input->count,
                     .step = input,
                     .images = input->images,
                     .features = input->features,
                     .result = output};
    if (!input->keep_gradients) {
        memset(exec->state->blocks[STK_TENSOR_GRADIENT], 0, graph->param_elements * sizeof(float));
    }
    part_times timed;
    begin_parts(exec, &timed, 2);
    status = check_halt(exec, &timed, err);
    for (int i = 0; i < exec->pieces.count && status == STK_OK; i++) {
        aim(exec, i, &call);
        run_forward(kernel_of(&exec->pieces, i), &call);
        status = check_halt(exec, &timed, err);
    }
    for (int i = exec->pieces.count - 1; i >= 0 && status == STK_OK; i--) {
        const cpu_kernel *kernel = kernel_of(&exec->pieces, i);
        bool passes = kernel->backward != NULL || kernel->backward_sample != NULL;
        if (exec->pieces.items[i].live && passes) {
            aim(exec, i, &call);
            run_backward(kernel, &call);
            status = check_halt(exec, &timed, err);
        }
    }
    end_parts(exec, &timed);
    if (status == STK_OK && input->update != NULL) {
        int64_t update_start = stk_clock_ns();
        output->grad_norm =
            stk_cpu_optimize(exec->state, input->update, exec->pieces.config.frozen);
        output->update_s = stk_clock_since_s(update_start);
    }
    output->busy_s = stk_clock_since_s(start);
    exec->done_count += later && status == STK_OK;
    return status;
}

static stk_status cpu_collect(stk_exec *exec, bool wait, stk_step_output *outputs, size_t room,
                              size_t *count, stk_error *err) {
    (void)wait;
    (void)err;
    *count = cpu_min(room, exec->done_count);
    memcpy(outputs, exec->done, *count * sizeof *outputs);
    exec->done_count -= *count;
    memmove(exec->done, exec->done + *count, exec->done_count * sizeof *outputs);
    return STK_OK;
}

static stk_status cpu_infer(stk_exec *exec, const uint8_t *images, const float *features,
                            size_t count, float *logits, stk_error *err) {
    const stk_graph *graph = exec->pieces.graph;
    stk_status status = check_count(exec, count, false, err);
    STK_THEN(status, stk_features_check(graph, features, err));
    if (status != STK_OK) {
        return status;
    }
    cpu_call call = {.pool = exec->state->device->pool,
                     .graph = graph,
                     .batch = count,
                     .images = images,
                     .features = features};
    part_times timed;
    begin_parts(exec, &timed, 1);
    status = check_halt(exec, &timed, err);
    for (int i = 0; i < exec->pieces.count && status == STK_OK; i++) {
        if (!is_loss(exec, i)) {
            aim(exec, i, &call);
            run_forward(kernel_of(&exec->pieces, i), &call);
            if (i + 1 == exec->pieces.count || is_loss(exec, i + 1)) {
                timed.next_times = 0; /* no part follows */
            }
            status = check_halt(exec, &timed, err);
        }
    }
    end_parts(exec, &timed);
    if (status == STK_OK) {
        memcpy(logits, at(exec, exec->layout.values[graph->logits]),
               count * stk_graph_answers(graph) * sizeof *logits);
    }
    return status;
}

const stk_backend stk_cpu_backend = {
    .name = "cpu",
    .device_open = cpu_device_open,
    .device_close = cpu_device_close,
    .describe = cpu_describe,
    .memory = cpu_memory,
    .precision = cpu_precision,
    .host_take = cpu_host_take,
    .host_free = cpu_host_free,
    .state_new = cpu_state_new,
    .state_free = cpu_state_free,
    .state_bytes = cpu_state_bytes,
    .state_has = cpu_state_has,
    .state_read = cpu_state_read,
    .state_write = cpu_state_write,
    .exec_need = cpu_exec_need,
    .compile = cpu_compile,
    .exec_free = cpu_exec_free,
    .exec_bytes = cpu_exec_bytes,
    .step = cpu_step,
    .collect = cpu_collect,
    .infer = cpu_infer,
};
