/*
 * tuning_results.h - inside the CUDA backend: which variant was the fastest, by name.
 *
 * A name says which fusion it is about and in which shape; its result is the number of a variant.
 * Autotune sets a result once for a device; it is stored in memory and on disk, so that the next
 * start measures nothing. One thread at a time.
 */
#ifndef STK_BACKEND_CUDA_TUNING_TUNING_RESULTS_H
#define STK_BACKEND_CUDA_TUNING_TUNING_RESULTS_H

#include "backend/cuda/driver/store.h"

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

#endif
