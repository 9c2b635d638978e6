/*
 * decisions.h - inside the CUDA backend: which variant of a fusion lowering takes.
 *
 * Lowering decides between the variants of a fusion (variants/variants.h) by the results that are
 * known. Without a result it takes the plain variant. It notes every decision in the program, and
 * autotune.h times those that are open. Needs no device. One thread at a time.
 */
#ifndef STK_BACKEND_CUDA_TUNING_DECISIONS_H
#define STK_BACKEND_CUDA_TUNING_DECISIONS_H

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

#endif
