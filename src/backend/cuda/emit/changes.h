/*
 * changes.h - inside the CUDA backend: the random changes of pictures on the device.
 *
 * The host draws the changes (image/augment/draw.h), kernels/changes.cu makes them: the bytes are
 * those of stk_augment_make().
 */
#ifndef STK_BACKEND_CUDA_EMIT_CHANGES_H
#define STK_BACKEND_CUDA_EMIT_CHANGES_H

#include "backend/cuda/program/kernel_constants.h"
#include "backend/cuda/program/program.h"
#include "image/augment/draw.h"

/* The largest square, in px: the places of larger ones do not fit into a cuda_change. */
#define CUDA_MOST_SIDE 16384

/* A change of squares of `size` px, up to CUDA_MOST_SIDE, as the kernel takes it. */
void stk_cuda_change_of(const stk_change *change, int size, cuda_change *to);

/*
 * Changes `pictures` squares. `table` is cuda_picture (pictures), of which the kernel
 * reads size, change_count, changes, square, spare and out. `square` and `spare` lie on boundaries
 * of 4 bytes, and their bytes afterwards are of no use. Pictures without changes stay as they are,
 * and nothing is written to their `out`. The number of pictures only is the grid's width: whoever
 * launches it may set another one.
 */
void stk_cuda_picture_changes(cuda_program *p, int pictures, cuda_ref table);

#endif
