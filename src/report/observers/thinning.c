/* thinning.c - gaps that grow with a run's age. */
#include "report/observers/thinning.h"

#include <math.h>

#define DENSE_S 3600.0
#define MOST_TIMES 10.0

/* The least time between two steps: who watches live wants to see life, not every step. */
#define STEP_GAP_S 0.5

/* The gap of samples: a little less than they are apart. */
#define SAMPLE_GAP_S 0.9

/* The factor by which the gap between two steps or samples grows at this age of the run: 1 to 10.
 */
static double times_at(double age_s) {
    return fmin(fmax(age_s / DENSE_S, 1), MOST_TIMES);
}

bool stk_thinning_drops_step(double at_s, double last_s) {
    return at_s - last_s < times_at(at_s) * STEP_GAP_S;
}

bool stk_thinning_drops_sample(double at_s, double last_s) {
    double times = times_at(at_s);
    return times > 1 && at_s - last_s < times * SAMPLE_GAP_S;
}
