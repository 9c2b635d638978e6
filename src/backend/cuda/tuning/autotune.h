/*
 * autotune.h - inside the CUDA backend: times the variants of fusions.
 *
 * Lowering notes in its program every decision between variants (decisions.h). The executable then
 * times the variants of all decisions without a result, in its own memory, and lowers once more. A
 * new result may lead to further decisions, so this repeats a few times. One thread at a time.
 */
#ifndef STK_BACKEND_CUDA_TUNING_AUTOTUNE_H
#define STK_BACKEND_CUDA_TUNING_AUTOTUNE_H

#include "backend/cuda/player/player.h"
#include "backend/cuda/tuning/decisions.h"

/*
 * Times the variants of all decisions of the player's program that have no result, in the memory of
 * the player, whose contents are lost. `config` says whether to stop. *tuned: variants were timed,
 * and the program must be lowered again. It is false where no decision is open, and where the
 * memory is too small for the trials.
 */
STK_CHECKED stk_status stk_cuda_autotune(const cuda_player *player, cuda_tuning_results *results,
                                         const stk_device_config *config, bool *tuned,
                                         stk_error *err);

/*
 * After the program's convolutions were prepared: takes back each decision for a fused convolution
 * that has no plan, because stored plans are gone or damaged. Returns true when there was one: the
 * program must be lowered again.
 */
bool stk_cuda_autotune_retract(const cuda_player *player, cuda_tuning_results *results);

#endif
