/*
 * transfer.h - inside the CUDA backend: parameters to and from the GPU in few waits.
 *
 * A state is set and saved tensor by tensor, and it has hundreds. Where other programs compute on
 * the GPU, each wait for it takes milliseconds. So a read brings the memory behind its tensor
 * along, for the reads that follow, and a write does not wait: its numbers are copied to memory
 * that the GPU reads later, in the order of the compute stream.
 */
#ifndef STK_BACKEND_CUDA_TRANSFER_H
#define STK_BACKEND_CUDA_TRANSFER_H

#include "engine/backend.h"

#include "backend/cuda/driver/api.h"

/* A tensor on the GPU, and where the block that it is a part of ends. */
typedef struct cuda_tensor_place {
    cuda_pointer start;
    size_t bytes;
    cuda_pointer block_end;
} cuda_tensor_place;

/* Zeros are a transfer that has not begun. */
typedef struct cuda_transfer {
    size_t bytes;            /* of each of these two; 0: nothing was taken yet */
    unsigned char *ahead;    /* owned, pinned: what was read last; NULL: there was no memory */
    unsigned char *sent;     /* owned, pinned: what was written and may be under way; or NULL */
    cuda_pointer ahead_from; /* where on the GPU it was read from */
    size_t ahead_bytes;
    uint64_t version;  /* of the parameters that it was read from */
    size_t sent_bytes; /* since the last wait */
} cuda_transfer;

/* Copies a tensor to `values`, as it is after everything that the device was given before.
 * `version` grows with every change of the parameters. */
STK_CHECKED stk_status stk_cuda_transfer_read(cuda_transfer *transfer, stk_device *device,
                                              const cuda_tensor_place *place, uint64_t version,
                                              float *values, stk_error *err);

/* Copies `values` to a tensor, for everything that the device is given later; `values` may be freed
 * at once. Until `version` only this tensor is changed. What fails on the way is found by the next
 * wait for the device. */
STK_CHECKED stk_status stk_cuda_transfer_write(cuda_transfer *transfer, stk_device *device,
                                               const cuda_tensor_place *place, uint64_t version,
                                               const float *values, stk_error *err);

/* Waits for what is under way and frees the memory. */
void stk_cuda_transfer_free(cuda_transfer *transfer, stk_device *device);

#endif
