/* state.c - the parameters of a network on the device, with gradients and optimiser state. */
#include "backend/cuda/device.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* First loss scale of fp16, as in PyTorch. */
#define FIRST_SCALE 65536.0f

static size_t block_bytes(const stk_graph *graph) {
    size_t chunks = 0;
    for (int i = 0; i < graph->param_count; i++) {
        chunks += (graph->params[i].count + CUDA_CHUNK - 1) / CUDA_CHUNK;
    }
    return chunks * CUDA_CHUNK * sizeof(float);
}

uint64_t stk_cuda_state_bytes(const stk_graph *graph, const stk_state_config *config) {
    uint64_t kinds = 0;
    for (int k = 0; k < STK_TENSOR_KINDS; k++) {
        kinds += stk_state_keeps(config, (stk_tensor_kind)k);
    }
    return kinds * block_bytes(graph) + CUDA_ALIGN;
}

void stk_cuda_state_free(stk_state *state) {
    if (state == NULL) {
        return;
    }
    stk_cuda_transfer_free(&state->transfer, state->device);
    /* One allocation, which begins with the first block. */
    if (state->blocks[STK_TENSOR_VALUE] != 0 && stk_cuda_enter(state->device, NULL) == STK_OK) {
        stk_cuda_give(state->device, state->blocks[STK_TENSOR_VALUE], state->bytes);
    }
    stk_cuda_parameter_layout_free(&state->layout);
    stk_mem_free(state);
}

static cuda_scaler first_scaler(bool moving) {
    float scale = moving ? FIRST_SCALE : 1;
    return (cuda_scaler){.scale = scale, .inverse = 1 / scale, .dynamic = moving};
}

static stk_status read_scaler(const stk_state *state, cuda_scaler *scaler, stk_error *err) {
    return stk_cuda_finish(state->device,
                           state->device->driver->copy_out(scaler, state->scaler, sizeof *scaler,
                                                           state->device->compute),
                           "reading the loss scale", err);
}

static stk_status set_scaler(stk_state *state, const cuda_scaler *scaler, stk_error *err) {
    state->scaled = scaler->dynamic;
    return stk_cuda_finish(state->device,
                           state->device->driver->copy_in(state->scaler, scaler, sizeof *scaler,
                                                          state->device->compute),
                           "setting the loss scale", err);
}

stk_status stk_cuda_state_scale(stk_state *state, bool moving, stk_error *err) {
    cuda_scaler scaler = first_scaler(moving);
    cuda_scaler before;
    stk_status status = read_scaler(state, &before, err);
    if (status == STK_OK) {
        memcpy(scaler.left_out, before.left_out, sizeof scaler.left_out);
        status = set_scaler(state, &scaler, err);
    }
    return status;
}

static stk_status fill_state(stk_state *state, uint64_t bytes, stk_error *err) {
    stk_status status =
        stk_cuda_finish(state->device,
                        state->device->driver->fill(state->blocks[STK_TENSOR_VALUE], 0, bytes,
                                                    state->device->compute),
                        "clearing the parameters", err);
    cuda_scaler scaler = first_scaler(false);
    return status == STK_OK ? set_scaler(state, &scaler, err) : status;
}

stk_status stk_cuda_state_new(stk_state **out, stk_device *device, const stk_graph *graph,
                              const stk_state_config *config, stk_error *err) {
    stk_state *state = stk_mem_new(1, sizeof *state);
    if (state == NULL) {
        return STK_FAIL_MEMORY(err, "the parameters");
    }
    state->device = device;
    state->graph = graph;
    state->version = 1;
    uint64_t bytes = stk_cuda_state_bytes(graph, config);
    cuda_pointer memory = 0;
    stk_status status = stk_cuda_enter(device, err);
    STK_THEN(status, stk_cuda_parameter_layout_make(&state->layout, graph, CUDA_TYPE_F32,
                                                    config->train, err));
    if (status == STK_OK) {
        char what[96];
        snprintf(what, sizeof what, "taking %.1f MiB of the GPU's memory for the parameters",
                 (double)bytes / 1048576);
        status = stk_cuda_check(device->driver, stk_cuda_take(device, &memory, bytes), what, err);
        state->bytes = bytes;
    }
    for (int k = 0; k < STK_TENSOR_KINDS && status == STK_OK; k++) {
        if (stk_state_keeps(config, (stk_tensor_kind)k)) {
            state->blocks[k] = memory;
            memory += block_bytes(graph);
        }
    }
    if (status == STK_OK) {
        state->scaler = memory;
        status = fill_state(state, bytes, err);
    }
    if (status != STK_OK) {
        stk_cuda_state_free(state);
        return status;
    }
    *out = state;
    return STK_OK;
}

bool stk_cuda_state_has(const stk_state *state, stk_tensor_kind kind) {
    return state->blocks[kind] != 0;
}

static stk_status find_tensor(stk_state *state, stk_tensor_kind kind, int param,
                              cuda_tensor_place *place, stk_error *err) {
    const cuda_parameter_layout *layout = &state->layout;
    cuda_pointer block = state->blocks[kind];
    if (block == 0) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "the state has no tensors of kind %d", kind);
    }
    *place = (cuda_tensor_place){.start = block + layout->offsets[param] * sizeof(float),
                                 .bytes = state->graph->params[param].count * sizeof(float),
                                 .block_end = block + layout->elements * sizeof(float)};
    return stk_cuda_enter(state->device, err);
}

stk_status stk_cuda_state_read(stk_state *state, stk_tensor_kind kind, int param, float *values,
                               stk_error *err) {
    cuda_tensor_place place;
    stk_status status = find_tensor(state, kind, param, &place, err);
    return status == STK_OK ? stk_cuda_transfer_read(&state->transfer, state->device, &place,
                                                     state->version, values, err)
                            : status;
}

stk_status stk_cuda_state_write(stk_state *state, stk_tensor_kind kind, int param,
                                const float *values, stk_error *err) {
    cuda_tensor_place place;
    stk_status status = find_tensor(state, kind, param, &place, err);
    state->version++;
    return status == STK_OK ? stk_cuda_transfer_write(&state->transfer, state->device, &place,
                                                      state->version, values, err)
                            : status;
}

/* The loss scale, whether it is dynamic, updates since its last change, and skipped updates of the
 * head and of the backbone. Older files lack these counts, which are then 0. */
stk_status stk_cuda_state_extras_read(stk_state *state, float extras[STK_STATE_EXTRAS],
                                      stk_error *err) {
    cuda_scaler scaler = {.scale = 1};
    stk_status status = stk_cuda_enter(state->device, err);
    STK_THEN(status, read_scaler(state, &scaler, err));
    extras[0] = scaler.scale;
    extras[1] = (float)scaler.dynamic;
    extras[2] = (float)scaler.good;
    extras[3] = (float)scaler.left_out[1];
    extras[4] = (float)scaler.left_out[0];
    return status;
}

stk_status stk_cuda_state_extras_write(stk_state *state, const float extras[STK_STATE_EXTRAS],
                                       stk_error *err) {
    cuda_scaler scaler = first_scaler(state->scaled);
    if (extras != NULL &&
        !(extras[0] >= 1 && extras[0] <= 1e9f && extras[2] >= 0 && extras[2] <= 1e6f)) {
        return STK_FAIL(err, STK_ERR_DATA, "%g is no loss scale", (double)extras[0]);
    }
    if (extras != NULL && !(extras[4] >= 0 && extras[4] <= extras[3] && extras[3] <= 1e9f)) {
        return STK_FAIL(err, STK_ERR_DATA, "%g and %g updates cannot have been left out",
                        (double)extras[3], (double)extras[4]);
    }
    /* A state saved without a loss scale says nothing of it: the scale starts again. */
    if (extras != NULL && extras[1] > 0) {
        scaler = (cuda_scaler){
            .scale = extras[0], .inverse = 1 / extras[0], .dynamic = true, .good = (int)extras[2]};
    }
    if (extras != NULL) {
        scaler.left_out[0] = (int)extras[4];
        scaler.left_out[1] = (int)extras[3];
    }
    stk_status status = stk_cuda_enter(state->device, err);
    return status == STK_OK ? set_scaler(state, &scaler, err) : status;
}
