/*
 * autotune.h - inside the CUDA backend: which variant of each fusion is the fastest.
 *
 * Lowering decides between the variants of a fusion (variants/variants.h) by the results that are
 * known. Where there is none yet it takes the plain variant and notes the decision in the program.
 * The executable then times the variants of all open decisions in its own memory
 * (stk_cuda_autotune()) and lowers once more. A new result may lead to further decisions, so this
 * repeats a few times. One thread at a time.
 */
#ifndef STK_BACKEND_CUDA_TUNING_AUTOTUNE_H
#define STK_BACKEND_CUDA_TUNING_AUTOTUNE_H

#include "backend/cuda/player/player.h"
#include "backend/cuda/tuning/tuning_results.h"
#include "backend/cuda/variants/variants.h"

/* The name of a decision in cuda_tuning_results. */
void stk_cuda_decision_name(const cuda_decision *decision, char name[CUDA_RESULT_NAME]);

/* The known result: a variant, or CUDA_UNDECIDED. `results` may be NULL. Notes nothing. */
int stk_cuda_decision_result(cuda_tuning_results *results, const cuda_decision *decision);

/*
 * The variant to take: the known result, or CUDA_PLAIN. Notes the decision in the program; *number
 * is what cuda_conv_op.decision must be for a convolution that is fused because of it. Without
 * results (NULL) and in strict programs always CUDA_PLAIN, and nothing is noted.
 */
int stk_cuda_decide(cuda_program *p, cuda_tuning_results *results, const cuda_decision *decision,
                    int *number);

/*
 * Times the variants of all decisions of the player's program that have no result, in the memory of
 * the player, whose contents are lost. `config` says whether to stop. *tuned: there were such
 * decisions, and the program must be lowered again.
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
