/*
 * own_kernels.h - inside the CUDA backend: our own kernels around and instead of a library's
 * convolution, for one shape.
 */
#ifndef STK_BACKEND_CUDA_CONVOLUTION_OWN_KERNELS_H
#define STK_BACKEND_CUDA_CONVOLUTION_OWN_KERNELS_H

#include "backend/cuda/convolution/convolutions.h"

typedef enum cuda_own_part {
    CUDA_OWN_TAIL,       /* y = act(y + bias + added) */
    CUDA_OWN_DOWN,       /* the bias in the type of activations, for cuDNN */
    CUDA_OWN_WHOLE,      /* the convolution with all that follows */
    CUDA_OWN_SUMS,       /* sums over what was written, at the workspace's start */
    CUDA_OWN_BLOCKS,     /* a convolution of 16 channels: kernels/conv_blocks.cu, and */
    CUDA_OWN_ROWS,       /* one of 1 by 1 with few channels: kernels/conv_rows.cu, and */
    CUDA_OWN_BLOCKS_SUM, /* what these leave per block, added up: statistics, or a gradient */
    CUDA_OWN_PARTS
} cuda_own_part;

/* What CUDA_OWN_SUMS leaves: as many rows of float32 as it has blocks, see kernels/conv_check.cu */
#define CUDA_OWN_SUM_COUNT 8
#define CUDA_OWN_MOST_SUMS 512

/* Launches, whose buffers are the pointers of a cuda_conv_call. */
typedef struct cuda_own {
    cuda_program program;
    int ops[CUDA_OWN_PARTS]; /* -1: not wanted */
} cuda_own;

/* Whether something follows the convolution. */
bool stk_cuda_own_has_tail(const cuda_conv_shape *shape);

/*
 * Whether CUDA_OWN_BLOCKS or CUDA_OWN_ROWS (never both) is for this shape, on a GPU of this compute
 * capability, and whether CUDA_OWN_BLOCKS_SUM must follow it.
 */
bool stk_cuda_own_has_blocks(const cuda_conv_shape *shape, int major);
bool stk_cuda_own_has_rows(const cuda_conv_shape *shape, int major);
bool stk_cuda_own_sums_blocks(const cuda_conv_shape *shape);

void stk_cuda_own_begin(cuda_own *own, const cuda_conv_shape *shape, int multiprocessors);
void stk_cuda_own_free(cuda_own *own);

/* What a convolution writes: how many numbers, and where. */
size_t stk_cuda_own_written(const cuda_conv_call *call, cuda_pointer *place);

/* Adds the launch of a part; stk_cuda_kernels_make() of the program must follow. */
void stk_cuda_own_want(cuda_own *own, cuda_own_part part, const cuda_conv_shape *shape);

/* Launches a part that was wanted. */
STK_CHECKED stk_status stk_cuda_own_run(const cuda_own *own, cuda_own_part part,
                                        const cuda_convs_config *config, const cuda_conv_call *call,
                                        stk_error *err);

#endif
