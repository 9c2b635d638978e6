/* halving.c - half a batch, twice as often. */
#include "budget/halving.h"

bool stk_batch_halve(size_t *batch, int64_t *accumulate, int64_t images) {
    size_t half = *batch / 2;
    if (half < STK_LEAST_BATCH) {
        return false;
    }
    int64_t size = (int64_t)half;
    *batch = half;
    *accumulate = (images + size / 2) / size; /* rounded */
    return true;
}
