/* logloss.c - cross-entropies. */
#include <math.h>

#include "metrics/formulas.h"

#define LEAST_PROBABILITY 1e-15

/* NaN stays NaN. */
double stk_metrics_clipped(double loss) {
    double most = -log(LEAST_PROBABILITY);
    return loss > most ? most : loss;
}

/* log(1 + exp(-z)) for z towards the right answer, without overflow. */
double stk_metrics_binary_loss(double logit, bool is) {
    double z = is ? logit : -logit;
    return z > 0 ? log1p(exp(-z)) : log1p(exp(z)) - z;
}
