/*
 * remedies.h - inside the monitor room: what would make a training faster, and by how much.
 *
 * Every remedy of the table is asked whether it can apply here and what it is predicted to bring;
 * those that bring too little are left out. Pure. Threads: safe.
 */
#ifndef STK_MONITOR_REMEDIES_H
#define STK_MONITOR_REMEDIES_H

#include "monitor/shares.h"
#include "monitor/verdict.h"

/* A larger batch must be predicted to be so much faster to be called for by name. */
#define STK_BATCH_WORTH 1.10

/* Part of the device's memory from which on it is full. */
#define STK_MEMORY_FULL 0.85

/* Part of the reads that a cache which has been filled answers. */
#define STK_CACHE_FULL 0.90

typedef struct stk_larger_batch {
    int64_t batch; /* that of now when none is faster */
    double gain;   /* images/s predicted, by those of now: 1 or more */
} stk_larger_batch;

/*
 * The smallest batch that is about as fast as any larger one, of those that leave an epoch enough
 * steps; with `that_fits` also of those that the memory has room for.
 */
stk_larger_batch stk_remedies_batch(const stk_evidence *evidence, const stk_rates *rates,
                                    bool that_fits);

/* No larger batch than that of now has room in the device's memory. */
bool stk_remedies_memory_full(const stk_evidence *evidence);

/*
 * Fills verdict->event.remedies, the greatest gain first, for the verdict->kind that was found. The
 * rates are those that predictions start from.
 */
void stk_remedies_find(const stk_evidence *evidence, const stk_shares *shares,
                       const stk_rates *rates, stk_verdict *verdict);

#endif
