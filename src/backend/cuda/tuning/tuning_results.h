/*
 * tuning_results.h - inside the CUDA backend: which of several ways to compute a thing is taken.
 *
 * A choice is a name, which says what is computed and in which shape, and a number, which says how.
 * It is made once for a device, by a race (exec.h), and kept in memory and in the store. One
 * thread at a time.
 */
#ifndef STK_BACKEND_CUDA_TUNING_TUNING_RESULTS_H
#define STK_BACKEND_CUDA_TUNING_TUNING_RESULTS_H

#include "backend/cuda/driver/store.h"

typedef struct cuda_choices cuda_choices;

#define CUDA_UNDECIDED (-1)
#define CUDA_CHOICE_NAME 160 /* characters that a name may have */

/* The store is borrowed; NULL: nothing is kept. */
STK_CHECKED stk_status stk_cuda_choices_open(cuda_choices **choices, cuda_store *store,
                                             stk_error *err);
void stk_cuda_choices_close(cuda_choices *choices);

int stk_cuda_choice_of(cuda_choices *choices, const char *name);

/* From 0 to 255. Where there is no memory left to note it, it stays undecided. */
void stk_cuda_choice_set(cuda_choices *choices, const char *name, int way);

/* How many were set since open. */
int stk_cuda_choices_made(const cuda_choices *choices);

#endif
