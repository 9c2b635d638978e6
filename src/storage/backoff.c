/* backoff.c - pauses that double, with a random part. */
#include "storage/backoff.h"

#define FIRST_S 0.1
#define MOST_S 5.0

double stk_backoff_s(stk_rng *rng, int failures, double asked_s) {
    double pause_s = FIRST_S;
    for (int i = 1; i < failures && pause_s < MOST_S; i++) {
        pause_s *= 2;
    }
    pause_s = (pause_s < MOST_S ? pause_s : MOST_S) * stk_rng_range(rng, 0.5, 1.0);
    return pause_s > asked_s ? pause_s : asked_s < MOST_S ? asked_s : MOST_S;
}
