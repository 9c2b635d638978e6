/*
 * device.h - one GPU: stk_device, and the backend's table (defined in exec.c); the parameters of a
 * network on it: stk_state.
 *
 * A device owns its context, its streams, compiled kernels, execution plans and the store of
 * results on disk. A state holds the parameters of one network on a device. Both belong to one
 * thread at a time, which makes the context current (stk_cuda_enter()).
 */
#ifndef STK_BACKEND_CUDA_DEVICE_H
#define STK_BACKEND_CUDA_DEVICE_H

#include "backend/cuda/transfer.h"
#include "backend/cuda/tuning/tuning.h"
#include "backend/cuda/convolution/convolutions.h"
#include "backend/cuda/decode/decoder.h"
#include "backend/cuda/program/kernels.h"
#include "backend/cuda/program/parameter_layout.h"
#include "engine/backend.h"

extern const stk_backend stk_cuda_backend;

/*
 * Whether the GPU with this number can be used: opens the driver, counts the devices and looks for
 * the libraries, without touching the device. `why` says in a few words what was found or what is
 * missing ("NVIDIA H200, driver for CUDA 13.0, cuDNN 9.19"; "no libcuda.so.1 was found: there is no
 * NVIDIA driver").
 */
bool stk_cuda_usable(int index, char *why, size_t room);

struct stk_device {
    stk_device_config config;
    cuda_libraries libraries;
    const cuda_driver *driver; /* of the libraries */
    int ordinal;
    cuda_context context;
    char name[128];
    char bus_id[32]; /* "0000:19:00.0"; "": not known */
    int multiprocessors;
    int major, minor;
    size_t total_bytes;  /* of the GPU's memory */
    size_t limit_bytes;  /* executables and parameters may take so many; SIZE_MAX: no limit */
    size_t taken_bytes;  /* executables and parameters take so many now */
    cuda_stream compute; /* owned: all kernels and convolutions */
    cuda_stream copy;    /* owned: pictures to the device */
    cuda_store *store;
    cuda_kernels *kernels;
    cuda_convs *convs;
    cuda_tuning_results *tuning_results; /* NULL: deterministic, plain variants always */
    cuda_decoder *decoder;               /* NULL: none was opened */
    bool decoder_is_abandoned;           /* its thread hangs and uses the device for ever */
    cuda_pointer decoder_memory;
    size_t decoder_bytes;
    char description[400]; /* "NVIDIA H200, 139.8 GiB, ..." */
};

/* ---- device.c: functions of stk_backend ---- */

stk_status stk_cuda_device_open(stk_device **device, const stk_device_config *config,
                                stk_error *err);
void stk_cuda_device_close(stk_device *device);
const char *stk_cuda_device_describe(const stk_device *device);
const char *stk_cuda_device_bus_id(const stk_device *device);
stk_status stk_cuda_device_memory(stk_device *device, stk_device_memory *memory, stk_error *err);
void stk_cuda_device_counts(const stk_device *device, stk_device_counts *counts);
stk_precision stk_cuda_device_precision(const stk_device *device, stk_precision asked);
void *stk_cuda_device_host_take(stk_device *device, size_t bytes);
void stk_cuda_device_host_free(stk_device *device, void *memory);

/* Takes and frees memory of the GPU, within limit_bytes. The context is current. Returns the
 * driver's code. */
int stk_cuda_take(stk_device *device, cuda_pointer *pointer, size_t bytes);
void stk_cuda_give(stk_device *device, cuda_pointer pointer, size_t bytes);

/* Makes the device's context current for the calling thread. */
STK_CHECKED stk_status stk_cuda_enter(stk_device *device, stk_error *err);

/* Waits until a driver call on the compute stream has ended; `result` is what the call returned. */
STK_CHECKED stk_status stk_cuda_finish(const stk_device *device, int result, const char *what,
                                       stk_error *err);

/* ---- device_decoder.c: the decoder_ functions of stk_backend ---- */

uint64_t stk_cuda_device_decoder_bytes(stk_device *device);
stk_status stk_cuda_device_decoder_open(stk_device_decoder *decoder, stk_device *device,
                                        stk_error *err);
void stk_cuda_device_decoder_close(stk_device *device);

struct stk_state {
    stk_device *device;
    const stk_graph *graph;
    cuda_parameter_layout layout;          /* of float32: offsets do not depend on the type */
    cuda_pointer blocks[STK_TENSOR_KINDS]; /* layout.elements float32 each; 0: the state has none */
    cuda_pointer scaler;                   /* cuda_scaler */
    size_t bytes;                          /* of blocks and scaler: one allocation */
    cuda_transfer transfer;                /* of the blocks to the host and back */
    bool scaled;      /* the loss scale is dynamic, as fp16 needs it; otherwise it is 1 */
    uint64_t version; /* grows with every change of the parameters: executables then renew copies */
};

/* ---- state.c: the state_ and extras_ functions of stk_backend ---- */

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
