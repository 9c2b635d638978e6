/*
 * join_conv_back.h - inside the CUDA backend: where the gradients of a value join, whether the
 * last of them is computed together with what the norm in front needs.
 *
 * Either stk_cuda_join_back() adds the gradient, takes it through the ReLU and sums it for the
 * norm, in one pass over a tensor that is wide and nothing but memory bounds; or a convolution
 * adds, a second kernel sums, and the norm's second pass has to look at the mask once more and to
 * write what goes on to what was added. The question is CUDA_ASK_JOIN_BACK of the shape of a
 * CUDA_CONV_DATA.
 */
#ifndef STK_BACKEND_CUDA_TUNING_JOIN_CONV_BACK_H
#define STK_BACKEND_CUDA_TUNING_JOIN_CONV_BACK_H

#include "backend/cuda/tuning/autotune.h"

/* The two ways. */
enum { CUDA_JOIN_BACK_APART, CUDA_JOIN_BACK_TOGETHER };

/* A variant of the question: a second norm was added, not a value. */
#define CUDA_JOIN_BACK_OTHER 1

cuda_contest_ways stk_cuda_join_back_ways;

#endif
