/*
 * conv.h - inside the CPU backend: convolution, in the parts that other kernels and tests use.
 *
 * Each part is a product of matrices whose one side are patches of a picture (patches.h),
 * computed in tiles (gemm.h). The parts need call->workspace to be as large as
 * stk_cpu_conv_needs() says for the same `gemm`; `gemm` NULL is the best one for this processor.
 * Bits depend on shapes and on `gemm`, not on the number of threads.
 */
#ifndef STK_BACKEND_CPU_CONVOLUTION_CONV_H
#define STK_BACKEND_CPU_CONVOLUTION_CONV_H

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/kernels/kernels.h"

stk_piece_needs stk_cpu_conv_needs(const cpu_gemm *gemm, const cpu_ask *ask);

/*
 * y = conv(x) and, when the node has two parameters, plus a bias per channel.
 *
 * With `stats` not NULL it also writes statistics of y, for the batch norm after it, while y is in
 * the cache. The pixels of y, all of the batch one after the other, are cut into blocks:
 * block b has the pixels from stk_cpu_conv_block_start(.., b) up to that of b + 1. `stats` is
 * (blocks, 2, channels):
 *     stats[b][0][c]  the mean of channel c over the pixels of block b
 *     stats[b][1][c]  the sum over those pixels of (value - that mean) squared, up to rounding
 *                     (it may be a trifle below zero)
 * chain.c makes one mean and one variance out of all blocks.
 */
void stk_cpu_conv_forward(const cpu_gemm *gemm, const cpu_call *call, float *stats);

/* How many blocks of `stats` an output of so many pixels (batch * height * width) has. */
size_t stk_cpu_conv_blocks(size_t pixels);
size_t stk_cpu_conv_block_start(size_t pixels, size_t block);

/* The gradient of x from dy; added to dx if call->accumulate[0]. Each element is written once. */
void stk_cpu_conv_data_gradient(const cpu_gemm *gemm, const cpu_call *call);

/* Adds to the gradients of the weights and, when there is one, of the bias. */
void stk_cpu_conv_weight_gradient(const cpu_gemm *gemm, const cpu_call *call);

#endif
