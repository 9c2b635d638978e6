/*
 * decoder.h - inside the CUDA backend: JPEGs decoded by the GPU, for loaders.
 *
 * Workers of loaders offer pictures, which gather in a group. The decoder's one thread decodes a
 * group after the other, and while the kernels of one run it begins the next. With hardware engines
 * for JPEG these decode; otherwise the GPU's processors do, which are faster with large groups.
 *
 * A library call may hang, and so may the GPU. Then all pictures go back to the loaders, and the
 * thread is abandoned with all that it uses; closing says so.
 */
#ifndef STK_BACKEND_CUDA_DECODE_DECODER_H
#define STK_BACKEND_CUDA_DECODE_DECODER_H

#include "backend/cuda/decode/group.h"

typedef struct cuda_decoder cuda_decoder;

typedef struct cuda_decoder_config {
    const cuda_driver *driver;       /* borrowed */
    const cuda_libraries *libraries; /* borrowed */
    cuda_kernels *kernels;           /* borrowed: makes the kernels */
    cuda_context context;            /* current in the calling thread */
    cuda_pointer memory;             /* borrowed: stk_cuda_decoder_own_bytes() */
    size_t memory_bytes;
} cuda_decoder_config;

/* Bytes of device memory that a decoder needs on a GPU with so much memory, and the part of them
 * that it is handed; the library takes the rest by itself. */
size_t stk_cuda_decoder_bytes(size_t total_bytes);
size_t stk_cuda_decoder_own_bytes(size_t total_bytes);

/* STK_ERR_DEVICE: there is no nvJPEG, or it does not work on this GPU. */
STK_CHECKED stk_status stk_cuda_decoder_open(cuda_decoder **decoder,
                                             const cuda_decoder_config *config, stk_error *err);

/* False: the thread hangs in a library. It was abandoned, and what the config names must stay. */
bool stk_cuda_decoder_close(cuda_decoder *decoder);

/* What loaders get of it. */
stk_device_decoder stk_cuda_decoder_for_loaders(cuda_decoder *decoder);

#endif
