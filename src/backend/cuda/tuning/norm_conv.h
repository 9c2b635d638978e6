/*
 * norm_conv.h - inside the CUDA backend: who computes the norm and the ReLU in front of a
 * convolution.
 *
 * Either a kernel of our own does and stores the result, which the convolution reads, or cuDNN's
 * convolution does as it loads what the norm is of. That saves a tensor's way to memory and back,
 * but such convolutions are slower: the questions are CUDA_ASK_NORMED and CUDA_ASK_NORMED_BACK of a
 * shape. Where something is added between norm and ReLU the result has other readers and is always
 * stored; stk_cuda_join() computes the convolution of 1 by 1 that reads it first at the same time:
 * CUDA_ASK_JOIN.
 */
#ifndef STK_BACKEND_CUDA_TUNING_NORM_CONV_H
#define STK_BACKEND_CUDA_TUNING_NORM_CONV_H

#include "backend/cuda/tuning/autotune.h"

/* The two ways of these questions. */
enum { CUDA_NORMED_APART, CUDA_NORMED_FUSED };

/* Forward. The variant is the answer to CUDA_ASK_STATS: a fused one always takes statistics too. */
cuda_contest_ways stk_cuda_normed_ways;

/* The gradient of the filters: the norm's own backward computes its output again, or does not. */
cuda_contest_ways stk_cuda_normed_back_ways;

/* The variant tells the answer to CUDA_ASK_STATS, and whether what is added has a norm itself. */
cuda_contest_ways stk_cuda_join_ways;

static inline int stk_cuda_join_variant(int stats, bool normed) {
    return 2 * stats + normed;
}

#endif
