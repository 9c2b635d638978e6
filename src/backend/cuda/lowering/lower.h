/*
 * lower.h - inside the CUDA backend: stk_cuda_lower(), from the pieces of a network to a program.
 * (lowering.h is what its files share.)
 *
 * Lowering decides from the graph alone what is stored:
 *
 * - the output of a convolution in front of a norm is stored from forward to backward;
 * - where a convolution is the only reader of the result of a norm and an activation, or of a
 *   squeeze-and-excite block after them, the result is not kept: backward computes it again, in the
 *   pass that reads the output of the convolution in front of the norm anyway;
 * - where the only reader is a depthwise convolution, a maximum pool, a squeeze-and-excite block or
 *   an addition after another norm, the result is never stored: the reader computes it as it loads;
 * - a ReLU after an addition is stored as one bit per number.
 *
 * Autotune (tuning/tuning.h) decides which variant computes a piece. Lowering appends every
 * variant that applies, and only the chosen one runs (stk_cuda_emit_variants()). So the memory need
 * is the same for all results of autotune, and known before anything is timed.
 */
#ifndef STK_BACKEND_CUDA_LOWERING_LOWER_H
#define STK_BACKEND_CUDA_LOWERING_LOWER_H

#include "backend/cuda/program/parameter_layout.h"
#include "backend/cuda/tuning/tuning.h"
#include "engine/pieces.h"

/*
 * Appends forward and backward of a training step up to the fresh gradients. Where the pieces are
 * for inference, appends forward alone, and *logits, float32 (batch, classes), is the result. The
 * caller has begun the program and lays it out. `results` NULL: always the plain variants.
 */
STK_CHECKED stk_status stk_cuda_lower(cuda_program *p, const stk_pieces *pieces,
                                      const cuda_parameter_layout *layout, int batch,
                                      cuda_tuning_results *results, cuda_ref *logits,
                                      stk_error *err);

/*
 * Appends what must run after a change of the parameters that the executable's own update did not
 * make: the copies of the weights in the type of activations and, for inference, norms folded into
 * convolutions.
 */
void stk_cuda_lower_weights(cuda_program *p, const stk_pieces *pieces,
                            const cuda_parameter_layout *layout);

#endif
