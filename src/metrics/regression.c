/* regression.c - errors of numbers. */
#include <math.h>

#include "metrics/formulas.h"

/* The spread grows as in Welford's method: sums of squares would lose the digits of targets that
 * are far from 0. */
void stk_target_sums_add(stk_target_sums *sums, double output, double target) {
    double error = output - target;
    double from = target - sums->mean;
    sums->count++;
    sums->squared += error * error;
    sums->absolute += fabs(error);
    sums->mean += from / (double)sums->count;
    sums->spread += from * (target - sums->mean);
}

/* Where all values are equal there is nothing to explain: 1 without an error, otherwise 0. */
static double r2_of(const stk_target_sums *sums) {
    double share = sums->squared / sums->spread;
    return sums->count < 2      ? NAN
           : sums->spread > 0   ? 1 - share
           : sums->squared == 0 ? 1
           : sums->squared > 0  ? 0
                                : NAN;
}

static double value_of(const stk_target_sums *sums, stk_metric metric) {
    double n = (double)sums->count;
    return metric == STK_METRIC_RMSE  ? sqrt(sums->squared / n)
           : metric == STK_METRIC_MAE ? sums->absolute / n
           : metric == STK_METRIC_R2  ? r2_of(sums)
                                      : NAN;
}

double stk_target_sums_value(const stk_target_sums *sums, int targets, stk_metric metric) {
    double total = 0;
    int known = 0;
    for (int c = 0; c < targets; c++) {
        total += sums[c].count > 0 ? value_of(&sums[c], metric) : 0;
        known += sums[c].count > 0;
    }
    return known > 0 ? total / known : NAN;
}
