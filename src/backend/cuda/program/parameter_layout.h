/*
 * parameter_layout.h - inside the CUDA backend: where each parameter lies in the flat blocks.
 *
 * A block (values, gradients, moments, averages) holds all parameters in float32, each beginning on
 * a boundary of CUDA_CHUNK elements. The copy of weights in the type of activations has the same
 * element offsets. The fresh gradients of a step lie in a block of their own: of weights of
 * convolutions and linear layers in the type of activations, since libraries write them, of
 * everything else in float32. In inference that block holds, at the position of a norm's bias, the
 * bias of the convolution that the norm was folded into. A layout is read-only once made.
 */
#ifndef STK_BACKEND_CUDA_PROGRAM_PARAMETER_LAYOUT_H
#define STK_BACKEND_CUDA_PROGRAM_PARAMETER_LAYOUT_H

#include "backend/cuda/program/kernel_constants.h"
#include "backend/cuda/program/program.h"

typedef struct cuda_parameter_layout {
    const stk_graph *graph; /* borrowed */
    cuda_type type;
    bool train;      /* otherwise weights have no fresh gradients */
    size_t *offsets; /* owned, per parameter: elements before it */
    size_t *fresh;   /* owned, per parameter: bytes before its fresh gradient; each a multiple of
                        CUDA_ALIGN */
    bool *weight;    /* owned, per parameter: a convolution or linear layer reads the copy of it */
    size_t elements; /* of a block; a multiple of CUDA_CHUNK */
    size_t fresh_bytes; /* of the block of fresh gradients */
    cuda_chunk *chunks; /* owned: elements / CUDA_CHUNK */
} cuda_parameter_layout;

STK_CHECKED stk_status stk_cuda_parameter_layout_make(cuda_parameter_layout *layout,
                                                      const stk_graph *graph, cuda_type type,
                                                      bool train, stk_error *err);
void stk_cuda_parameter_layout_free(cuda_parameter_layout *layout);

/* Where a parameter, its copy in the type of activations and its fresh gradient lie. */
static inline cuda_ref cuda_value(const cuda_parameter_layout *layout, int param) {
    return cuda_fixed_at(CUDA_FIXED_VALUES, layout->offsets[param] * sizeof(float));
}

static inline cuda_ref cuda_weight(const cuda_parameter_layout *layout, int param) {
    return cuda_fixed_at(CUDA_FIXED_WEIGHTS,
                         layout->offsets[param] * cuda_type_bytes(layout->type));
}

static inline cuda_ref cuda_fresh(const cuda_parameter_layout *layout, int param) {
    return cuda_fixed_at(CUDA_FIXED_FRESH, layout->fresh[param]);
}

#endif
