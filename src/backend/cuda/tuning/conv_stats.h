/*
 * conv_stats.h - inside the CUDA backend: who takes the statistics of a norm behind a convolution.
 *
 * Either cuDNN's convolution does, while its output is still in registers, or a kernel of our own
 * reads the output again. Not all convolutions can, and those that can are not always faster for
 * it: the question is CUDA_ASK_STATS of a shape.
 */
#ifndef STK_BACKEND_CUDA_TUNING_CONV_STATS_H
#define STK_BACKEND_CUDA_TUNING_CONV_STATS_H

#include "backend/cuda/tuning/autotune.h"

/* The two ways. */
enum { CUDA_STATS_APART, CUDA_STATS_FUSED };

cuda_contest_ways stk_cuda_stats_ways;

#endif
