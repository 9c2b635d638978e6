/* pf1.c - the F1 score with probabilities counted as parts of decisions. */
#include "metrics/formulas.h"

void stk_pf1_add(stk_pf1_sums *sums, double probability, bool positive) {
    *(positive ? &sums->hits : &sums->misses) += probability;
    sums->positives += positive;
}

/* Precision is hits / (hits + misses), recall is hits / positives; this is their harmonic mean. A
 * sum that is NaN stays NaN. */
double stk_metrics_pf1(const stk_pf1_sums *sums) {
    double whole = sums->hits + sums->misses + (double)sums->positives;
    return sums->positives == 0 || whole <= 0 ? 0 : 2 * sums->hits / whole;
}
