/*
 * profile.h - inside the CUDA backend: what is measured on the device for people: where the time of
 * a step goes, and how fast memory is copied. These are functions of engine/backend.h.
 */
#ifndef STK_BACKEND_CUDA_PROFILE_H
#define STK_BACKEND_CUDA_PROFILE_H

#include "backend/cuda/exec.h"

/* profile.c */
stk_status stk_cuda_profile(stk_exec *exec, stk_profile_line *lines, size_t room, size_t *count,
                            stk_error *err);

/* bandwidth.c: bytes per second of copies on the device, and to it. */
double stk_cuda_bandwidth(stk_device *device);
double stk_cuda_copy_bandwidth(stk_device *device, size_t bytes);

#endif
