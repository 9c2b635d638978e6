/*
 * drop.h - the factor by which dropout or stochastic depth multiplies one number or sample. It is a
 * function of seed, step, node and index, so all backends and resumed runs drop the same.
 */
#ifndef STK_ENGINE_DROP_H
#define STK_ENGINE_DROP_H

#include <stdint.h>

#include "base/numbers/rng.h"

/*
 * 0 with probability `rate`, else 1 / (1 - rate). `index` is the element's number in (N, H, W, C)
 * order for dropout, the sample's for stochastic depth.
 */
static inline float stk_drop_factor(float rate, uint64_t seed, uint64_t step, int node,
                                    uint64_t index) {
    stk_rng rng = stk_rng_make(seed, STK_RNG_DROP, step, ((uint64_t)node << 40) + index);
    return stk_rng_uniform(&rng) < rate ? 0 : 1 / (1 - rate);
}

#endif
