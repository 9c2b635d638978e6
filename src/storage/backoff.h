/*
 * backoff.h - inside storage: how long to wait before a failed request is made again. Readers and
 * the lister of S3 share it. Threads: the caller's lock guards `rng`.
 */
#ifndef STK_STORAGE_BACKOFF_H
#define STK_STORAGE_BACKOFF_H

#include "base/numbers/rng.h"

/*
 * Seconds to wait after `failures` failures in a row, 1 or more: 0.1 after the first, twice as long
 * after each further one, at most 5. A random part, up to half, is left out, so that requests that
 * failed together do not come back together. If the location asks for a wait of `asked_s`, the
 * pause is at least that long, but at most 5.
 */
double stk_backoff_s(stk_rng *rng, int failures, double asked_s);

#endif
