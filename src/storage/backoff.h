/*
 * backoff.h - inside storage: how long to wait before a failed request is made again. Readers and
 * the lister of S3 share it. Threads: the owner of the random numbers guards them.
 */
#ifndef STK_STORAGE_BACKOFF_H
#define STK_STORAGE_BACKOFF_H

#include "base/numbers/rng.h"

/*
 * Seconds to wait after `failures` failures in a row, 1 or more: 0.1 after the first, twice as long
 * after each further one, at most 5. A random half of that is left out, since requests that failed
 * together must not come back together. When the location asks to wait for `asked_s` the pause is
 * at least that, but no more than 5 either.
 */
double stk_backoff_s(stk_rng *rng, int failures, double asked_s);

#endif
