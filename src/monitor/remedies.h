/*
 * remedies.h - inside the monitor: which changes would make a training faster, and by how much.
 *
 * A table in remedies.c lists all remedies. Each one says whether it applies and what gain the
 * rates predict; remedies with too small a gain are left out. Pure. Threads: safe.
 */
#ifndef STK_MONITOR_REMEDIES_H
#define STK_MONITOR_REMEDIES_H

#include "monitor/shares.h"
#include "monitor/verdict.h"

/* Least predicted gain for which a verdict asks for a larger batch. */
#define STK_BATCH_WORTH 1.10

/* Share of the device's memory in use from which on it counts as full. */
#define STK_MEMORY_FULL 0.85

/* Share of reads answered by the cache from which on it counts as filled. */
#define STK_CACHE_FULL 0.90

typedef struct stk_larger_batch {
    int64_t batch; /* the present batch when no larger one is faster */
    double gain;   /* predicted images/s divided by the present ones; 1 or more */
} stk_larger_batch;

/*
 * The smallest batch that is about as fast as any larger one. Only batches that leave enough steps
 * per epoch are considered; with `that_fits`, only those that fit in the device's memory.
 */
stk_larger_batch stk_remedies_batch(const stk_evidence *evidence, const stk_rates *rates,
                                    bool that_fits);

/* Whether no batch larger than the present one fits in the device's memory. */
bool stk_remedies_memory_full(const stk_evidence *evidence);

/* Fills verdict->event.remedies for verdict->kind, greatest gain first, predicted from `rates`. A
 * gain of which only the most is known is NaN and stands where that belongs. */
void stk_remedies_find(const stk_evidence *evidence, const stk_shares *shares,
                       const stk_rates *rates, stk_verdict *verdict);

#endif
