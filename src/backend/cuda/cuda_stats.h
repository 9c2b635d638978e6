/*
 * cuda_stats.h - inside the CUDA backend: who takes the statistics of a norm behind a convolution.
 *
 * Either cuDNN's convolution does, while its output is still in registers, or a kernel of our own
 * reads the output again. Not all convolutions can, and those that can are not always faster for
 * it: the choice is by shape.
 */
#ifndef STK_BACKEND_CUDA_STATS_H
#define STK_BACKEND_CUDA_STATS_H

#include "backend/cuda/cuda_choice.h"
#include "backend/cuda/cuda_exec.h"

/* The two ways, by their numbers in cuda_choices. */
enum { CUDA_STATS_APART, CUDA_STATS_FUSED };

/* What such a choice is called. */
void stk_cuda_stats_name(const cuda_conv_shape *shape, char name[CUDA_CHOICE_NAME]);

/* Whether the convolution does; choices NULL, or nothing decided: no. */
bool stk_cuda_stats_fused(cuda_choices *choices, const cuda_conv_shape *shape);

/*
 * Decides for all convolutions of the player's program that have a place for statistics and about
 * whose shape nothing is known, by races in the memory of the player, whose contents are lost. Not
 * for programs that are strict, nor where the device has no choices. *fused: for some of them the
 * convolution will do it from now on.
 */
STK_CHECKED stk_status stk_cuda_stats_choose(const cuda_player *player, bool *fused,
                                             stk_error *err);

/*
 * After the program's convolutions were prepared: where one was to take statistics and no plan is
 * there that does (what was kept on disk is gone, or damaged), that is decided anew. True when
 * there was one: the program is of no use then.
 */
bool stk_cuda_stats_missing(const cuda_player *player);

#endif
