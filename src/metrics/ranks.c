/* ranks.c - a list of answers of which one can be right. */
#include "metrics/formulas.h"

/* The precision of the list's beginning up to the right answer; there is no second one to find. */
double stk_metrics_average_precision(int place, int k) {
    return place >= 1 && place <= k ? 1.0 / place : 0;
}
