/*
 * step.h - inside the CUDA backend: training steps and inferences of an executable.
 *
 * These are step, collect, infer and fetch of engine/backend.h. A step may still run when
 * stk_cuda_step() returns; stk_cuda_collect() returns its result later. One thread at a time.
 */
#ifndef STK_BACKEND_CUDA_STEP_H
#define STK_BACKEND_CUDA_STEP_H

#include "backend/cuda/exec.h"

/* As step() of the interface, for exactly the batch that the executable was compiled for. */
STK_CHECKED stk_status stk_cuda_step(stk_exec *exec, const stk_step_input *input,
                                     stk_step_output *output, stk_error *err);

/* Queues a result that the smaller executable has computed; collect() returns it in its turn. */
STK_CHECKED stk_status stk_cuda_step_note(stk_exec *exec, const stk_step_output *output,
                                          stk_error *err);

STK_CHECKED stk_status stk_cuda_collect(stk_exec *exec, bool wait, stk_step_output *outputs,
                                        size_t room, size_t *count, stk_error *err);

STK_CHECKED stk_status stk_cuda_infer(stk_exec *exec, const uint8_t *images, size_t count,
                                      float *logits, stk_error *err);
STK_CHECKED stk_status stk_cuda_fetch(stk_exec *exec, float *logits, stk_error *err);

#endif
