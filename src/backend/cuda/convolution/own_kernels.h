/*
 * own_kernels.h - inside convolution/: our own kernels around and instead of a library's
 * convolution, for one shape.
 *
 * A cuda_own is a small program whose buffers are the addresses of a cuda_conv_call. It is owned by
 * whoever began it; read-only once its kernels are made.
 */
#ifndef STK_BACKEND_CUDA_CONVOLUTION_OWN_KERNELS_H
#define STK_BACKEND_CUDA_CONVOLUTION_OWN_KERNELS_H

#include "backend/cuda/convolution/convolutions.h"

typedef enum cuda_own_part {
    CUDA_OWN_TAIL,       /* y = act(y + bias + added) */
    CUDA_OWN_DOWN,       /* converts the bias to the type of activations, for cuDNN */
    CUDA_OWN_WHOLE,      /* the whole convolution: kernels/conv_plain.cu */
    CUDA_OWN_SUMS,       /* fingerprint of the result, written at the workspace's start */
    CUDA_OWN_BLOCKS,     /* a convolution of 16 channels: kernels/conv_blocks.cu */
    CUDA_OWN_ROWS,       /* a 1x1 convolution of few channels: kernels/conv_rows.cu */
    CUDA_OWN_BLOCKS_SUM, /* adds up what CUDA_OWN_BLOCKS and CUDA_OWN_ROWS leave per block:
                            statistics or a gradient */
    CUDA_OWN_PARTS
} cuda_own_part;

/* CUDA_OWN_SUMS writes one row of float32 for each of its blocks: kernels/conv_check.cu. */
#define CUDA_OWN_SUM_COUNT 8
#define CUDA_OWN_MOST_SUMS 512

typedef struct cuda_own {
    cuda_program program;
    int ops[CUDA_OWN_PARTS]; /* the part's operation in `program`; -1: not wanted */
} cuda_own;

/* Whether bias, addition or activation follow the convolution. */
bool stk_cuda_own_has_tail(const cuda_conv_shape *shape);

/*
 * Whether CUDA_OWN_BLOCKS or CUDA_OWN_ROWS (never both) can compute a shape on a GPU of this major
 * compute capability, and whether CUDA_OWN_BLOCKS_SUM must follow.
 */
bool stk_cuda_own_has_blocks(const cuda_conv_shape *shape, int major);
bool stk_cuda_own_has_rows(const cuda_conv_shape *shape, int major);
bool stk_cuda_own_sums_blocks(const cuda_conv_shape *shape);

void stk_cuda_own_begin(cuda_own *own, const cuda_conv_shape *shape, int multiprocessors);
void stk_cuda_own_free(cuda_own *own);

/* How many numbers a convolution writes, and their address. */
size_t stk_cuda_own_written(const cuda_conv_call *call, cuda_pointer *place);

/* Adds the launch of a part; stk_cuda_kernels_make() of the program must follow. */
void stk_cuda_own_want(cuda_own *own, cuda_own_part part, const cuda_conv_shape *shape);

/* Launches a part that was wanted. */
STK_CHECKED stk_status stk_cuda_own_run(const cuda_own *own, cuda_own_part part,
                                        const cuda_convs_config *config, const cuda_conv_call *call,
                                        stk_error *err);

#endif
