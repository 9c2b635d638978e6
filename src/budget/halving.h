/*
 * halving.h - what becomes of a batch that there is no memory for.
 *
 * Half of it, and twice as many for one update of the weights, so that an update has as many
 * pictures as before and learning rate and schedule stay what they are.
 */
#ifndef STK_BUDGET_HALVING_H
#define STK_BUDGET_HALVING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a single picture batch norm has hardly anything to take statistics from. */
#define STK_LEAST_BATCH 2

/*
 * `images` are those of an update as it was asked for: an odd batch comes as near to it as whole
 * batches allow. False, and nothing has changed, where the half would be below the least batch.
 */
bool stk_batch_halve(size_t *batch, int64_t *accumulate, int64_t images);

#endif
