/*
 * picture_kernels.h - inside the CUDA backend: the kernels between the planes of pictures and their
 * squares.
 *
 * Their functions are made once, on the device's thread, and launched on the decoder's: after that
 * they are only read.
 */
#ifndef STK_BACKEND_CUDA_DECODE_PICTURE_KERNELS_H
#define STK_BACKEND_CUDA_DECODE_PICTURE_KERNELS_H

#include "backend/cuda/program/kernel_constants.h"
#include "backend/cuda/program/kernels.h"

typedef struct cuda_picture_kernels {
    const cuda_driver *driver; /* borrowed */
    cuda_function rgb, square, changes;
    unsigned change_threads, change_shared_bytes; /* of a block of `changes` */
} cuda_picture_kernels;

/* The widest part of a picture that the kernels take, px: its row lies in shared memory. */
int stk_cuda_widest_part(int size);

/* Shared memory for a square: a row of the part as 16-bit numbers, and one of the square. */
unsigned stk_cuda_square_shared(int columns, int size);

STK_CHECKED stk_status stk_cuda_picture_kernels_make(cuda_picture_kernels *made,
                                                     cuda_kernels *kernels,
                                                     const cuda_driver *driver, stk_error *err);

/* What the launches for some pictures depend on: the largest of each. */
typedef struct cuda_picture_extent {
    int pictures;
    unsigned shared_bytes; /* stk_cuda_square_shared() */
    int size;              /* of a square, px */
    bool changed;
} cuda_picture_extent;

/* Puts the launches on a stream; `pictures` is the address of cuda_picture[extent->pictures]. The
 * result is the driver's code. */
int stk_cuda_picture_kernels_launch(const cuda_picture_kernels *kernels, cuda_pointer pictures,
                                    const cuda_picture_extent *extent, cuda_stream stream);

#endif
