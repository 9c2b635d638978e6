/*
 * norm_conv_back.h - inside the CUDA backend: whether a norm and the convolution of 1 by 1 before
 * it go backward together.
 *
 * Either stk_cuda_layer_back() does all of it in one pass, which little but memory bounds where
 * there are few channels, or three operations follow each other. Where two such are added, five
 * operations stand against two. The question is CUDA_ASK_LAYER of
 * the shape of the convolution's CUDA_CONV_DATA.
 */
#ifndef STK_BACKEND_CUDA_TUNING_NORM_CONV_BACK_H
#define STK_BACKEND_CUDA_TUNING_NORM_CONV_BACK_H

#include "backend/cuda/tuning/autotune.h"
#include "backend/cuda/emit/emit.h"

/* The two ways. */
enum { CUDA_LAYER_APART, CUDA_LAYER_TOGETHER };

/*
 * What decides about a layer, and the one that is added to it: of the same shape, and without
 * in_norm; NULL: there is none. `shape` is that of the layer's CUDA_CONV_DATA.
 */
cuda_question stk_cuda_layer_question(const cuda_layer_back *layer, const cuda_layer_back *other,
                                      cuda_conv_shape shape);

cuda_contest_ways stk_cuda_layer_ways;

#endif
