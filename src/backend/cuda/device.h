/* device.h - the CUDA backend's table, and what its files share. */
#ifndef STK_BACKEND_CUDA_DEVICE_H
#define STK_BACKEND_CUDA_DEVICE_H

#include "backend/cuda/tuning/tuning_results.h"
#include "backend/cuda/convolution/convolutions.h"
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
    char bus_id[32]; /* "0000:19:00.0"; "": not told */
    int multiprocessors;
    int major, minor;
    size_t total_bytes;  /* that the GPU has */
    size_t held_bytes;   /* that executables and parameters may take; SIZE_MAX: what there is */
    size_t taken_bytes;  /* by them, now */
    cuda_stream compute; /* everything that computes */
    cuda_stream copy;    /* pictures to the device */
    cuda_store *store;
    cuda_kernels *kernels;
    cuda_convs *convs;
    cuda_tuning_results *tuning_results; /* NULL: deterministic, plain variants always */
    char description[400];               /* "NVIDIA H200, 139.8 GiB, ..." */
};

/* ---- device.c: these parts of the interface ---- */

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

/* The GPU's memory for tensors, all of which goes through here: within what the configuration holds
 * it to. Entered; returns the driver's code. */
int stk_cuda_take(stk_device *device, cuda_pointer *pointer, size_t bytes);
void stk_cuda_give(stk_device *device, cuda_pointer pointer, size_t bytes);

/* Makes the device's context current for the calling thread. */
STK_CHECKED stk_status stk_cuda_enter(stk_device *device, stk_error *err);

struct stk_state {
    stk_device *device;
    const stk_graph *graph;
    cuda_parameter_layout layout;          /* of float32: offsets do not depend on the type */
    cuda_pointer blocks[STK_TENSOR_KINDS]; /* layout.elements float32 each; 0: not kept */
    cuda_pointer scaler;                   /* cuda_scaler */
    size_t bytes;                          /* of all of these: one allocation */
    bool scaled;      /* the loss scale is fp16's, which moves; otherwise it is 1 */
    uint64_t version; /* changes whenever parameters do: executables refresh their copies */
};

#endif
