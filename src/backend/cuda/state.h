/*
 * state.h - inside the CUDA backend: the parameters of a model on the device.
 *
 * These are the state_ and extras_ functions of engine/backend.h; device.h has struct stk_state.
 * One thread at a time.
 */
#ifndef STK_BACKEND_CUDA_STATE_H
#define STK_BACKEND_CUDA_STATE_H

#include "backend/cuda/device.h"

stk_status stk_cuda_state_new(stk_state **state, stk_device *device, const stk_graph *graph,
                              const stk_state_config *config, stk_error *err);
void stk_cuda_state_free(stk_state *state);
uint64_t stk_cuda_state_bytes(const stk_graph *graph, const stk_state_config *config);
bool stk_cuda_state_has(const stk_state *state, stk_tensor_kind kind);
stk_status stk_cuda_state_read(stk_state *state, stk_tensor_kind kind, int param, float *values,
                               stk_error *err);
stk_status stk_cuda_state_write(stk_state *state, stk_tensor_kind kind, int param,
                                const float *values, stk_error *err);
stk_status stk_cuda_state_extras_read(stk_state *state, float extras[STK_STATE_EXTRAS],
                                      stk_error *err);
stk_status stk_cuda_state_extras_write(stk_state *state, const float extras[STK_STATE_EXTRAS],
                                       stk_error *err);
/* Resets the loss scale, dynamic or 1. The count of skipped updates stays. */
STK_CHECKED stk_status stk_cuda_state_scale(stk_state *state, bool moving, stk_error *err);

#endif
