/*
 * lower.h - inside the CUDA backend: from the pieces of a network to a program.
 *
 * What is stored and what is not is decided here, by rule from the graph alone:
 *
 * - the output of a convolution in front of a norm is stored from forward to backward;
 * - what a norm and an activation make of it is computed again in backward, in the pass that reads
 *   the convolution's output anyway, when it has one reader;
 * - where that reader is a depthwise convolution, a maximum pool, a squeeze-and-excite block or an
 *   addition behind another norm, it is never stored at all: the reader computes it while it loads;
 * - a ReLU behind an addition is kept as one bit per number.
 *
 * Which of several kernels computes a thing may have been found out on the device
 * (tuning_results.h). A choice must not change what the memory plan says, which is made before
 * anything is chosen: all ways have the same operations, and these name the same buffers, of the
 * size that the greediest way needs. So it is with the statistics of a norm behind a convolution:
 * the convolution takes the sums and a small kernel makes coefficients of them, or a kernel reads
 * all of its output again; one buffer holds the sums or the partial sums, and both operations name
 * it. And so with a norm and ReLU that a convolution computes as it loads: the place of what is
 * then never stored stays. Where ways have different operations, all that either names lives from
 * before the first of them until behind the last, in both: stk_cuda_hold().
 */
#ifndef STK_BACKEND_CUDA_LOWERING_LOWER_H
#define STK_BACKEND_CUDA_LOWERING_LOWER_H

#include "backend/cuda/tuning/tuning_results.h"
#include "backend/cuda/emit/emit.h"
#include "backend/cuda/program/parameter_layout.h"
#include "engine/pieces.h"

/*
 * Forward and backward of a training step up to the fresh gradients, or forward alone when the
 * pieces are for inference; then *logits, float32 (batch, classes), is the result. The program has
 * been begun; it is laid out by the caller. choices NULL: of several ways always the plain one.
 */
STK_CHECKED stk_status stk_cuda_lower(cuda_program *p, const stk_pieces *pieces,
                                      const cuda_layout *layout, int batch, cuda_choices *choices,
                                      cuda_ref *logits, stk_error *err);

/* What must be done once whenever the parameters have changed: copies, and norms folded. */
void stk_cuda_lower_weights(cuda_program *p, const stk_pieces *pieces, const cuda_layout *layout);

#endif
