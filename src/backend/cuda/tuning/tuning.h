/*
 * tuning.h - inside the CUDA backend: autotune, which finds the faster variant of each fusion.
 *
 * Lowering decides between the variants of a fusion (variants/variants.h) by the results that are
 * known. Without a result it takes the plain variant. It notes every decision in its program. The
 * executable then times the variants of all decisions without a result, in its own memory, and
 * lowers once more. A new result may lead to further decisions, so this repeats a few times. One
 * thread at a time.
 */
#ifndef STK_BACKEND_CUDA_TUNING_TUNING_H
#define STK_BACKEND_CUDA_TUNING_TUNING_H

#include "backend/cuda/driver/store.h"
#include "backend/cuda/player/player.h"
#include "backend/cuda/variants/variants.h"

/*
 * ---- tuning_results.c: which variant was the fastest, by name ----
 *
 * A name says which fusion it is about and in which shape; its result is the number of a variant.
 * Autotune sets a result once for a device; it is stored in memory and on disk, so that the next
 * start measures nothing.
 */

typedef struct cuda_tuning_results cuda_tuning_results;

#define CUDA_UNDECIDED (-1)
#define CUDA_RESULT_NAME 160 /* characters of a name, with the final 0 */

/* The store is borrowed; NULL: results live in memory only. */
STK_CHECKED stk_status stk_cuda_tuning_results_open(cuda_tuning_results **results,
                                                    cuda_store *store, stk_error *err);
void stk_cuda_tuning_results_close(cuda_tuning_results *results);

/* The variant, or CUDA_UNDECIDED. */
int stk_cuda_tuning_result(cuda_tuning_results *results, const char *name);

/* `variant` is from 0 to 255. Where there is no memory for it, the name stays undecided. */
void stk_cuda_tuning_result_set(cuda_tuning_results *results, const char *name, int variant);

/* How many results were set since open. */
int stk_cuda_tuning_results_made(const cuda_tuning_results *results);

/* ---- decisions.c: which variant lowering takes; needs no device ---- */

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

/* ---- autotune.c: times the variants ---- */

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
