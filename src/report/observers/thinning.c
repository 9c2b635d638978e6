/* thinning.c - gaps that grow with a run's age. */
#include "report/observers/thinning.h"

#include <math.h>

#define DENSE_S 3600.0
#define MOST_TIMES 10.0

/* The gap of samples: a little less than they are apart. */
#define SAMPLE_GAP_S 0.9

double stk_thinning_times(double age_s) {
    return fmin(fmax(age_s / DENSE_S, 1), MOST_TIMES);
}

bool stk_thinning_drops(double at_s, double last_s) {
    double times = stk_thinning_times(at_s);
    return times > 1 && at_s - last_s < times * SAMPLE_GAP_S;
}
