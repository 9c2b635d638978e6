/* ballot.c - sums and averages of predictions. */
#include "predict/ballot.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* A model that does no better than guessing has this share of the best one's weight. */
#define LEAST_SHARE 0.01

stk_status stk_ballot_open(stk_ballot *ballot, size_t rows, size_t classes, stk_error *err) {
    memset(ballot, 0, sizeof *ballot);
    ballot->rows = rows;
    ballot->classes = classes;
    ballot->sum = stk_mem_new(rows, classes * sizeof *ballot->sum);
    ballot->probs = stk_mem_new(rows, classes * sizeof *ballot->probs);
    ballot->votes = stk_mem_new(rows, sizeof *ballot->votes);
    ballot->priors = stk_mem_new(classes, sizeof *ballot->priors);
    if (ballot->sum == NULL || ballot->probs == NULL || ballot->votes == NULL ||
        ballot->priors == NULL) {
        stk_ballot_free(ballot);
        return STK_FAIL_MEMORY(err, "predictions");
    }
    for (size_t c = 0; c < classes; c++) {
        ballot->priors[c] = 1.0 / (double)classes;
    }
    return STK_OK;
}

void stk_ballot_free(stk_ballot *ballot) {
    stk_mem_free(ballot->sum);
    stk_mem_free(ballot->probs);
    stk_mem_free(ballot->votes);
    stk_mem_free(ballot->priors);
    memset(ballot, 0, sizeof *ballot);
}

void stk_ballot_add(stk_ballot *ballot, const double *probs, const bool *have, double weight) {
    bool any = false;
    for (size_t r = 0; r < ballot->rows; r++) {
        any = any || have[r];
        if (have[r]) {
            ballot->votes[r] += weight;
            for (size_t c = 0; c < ballot->classes; c++) {
                ballot->sum[r * ballot->classes + c] += weight * probs[r * ballot->classes + c];
            }
        }
    }
    ballot->models += any;
}

const double *stk_ballot_count(stk_ballot *ballot) {
    for (size_t r = 0; r < ballot->rows; r++) {
        for (size_t c = 0; c < ballot->classes; c++) {
            size_t i = r * ballot->classes + c;
            ballot->probs[i] =
                ballot->votes[r] > 0 ? ballot->sum[i] / ballot->votes[r] : ballot->priors[c];
        }
    }
    return ballot->probs;
}

void stk_ballot_weigh(const double *acc1, size_t models, int classes, double *weights) {
    double best = 0;
    double sum = 0;
    size_t known = 0;
    for (size_t i = 0; i < models; i++) {
        weights[i] = fmax(acc1[i] - 100.0 / classes, 0);
        best = isnan(acc1[i]) ? best : fmax(best, weights[i]);
    }
    for (size_t i = 0; i < models; i++) {
        weights[i] = best > 0 ? fmax(weights[i], LEAST_SHARE * best) : 1;
        sum += isnan(acc1[i]) ? 0 : weights[i];
        known += !isnan(acc1[i]);
    }
    for (size_t i = 0; i < models; i++) {
        weights[i] = isnan(acc1[i]) && known > 0 ? sum / (double)known : weights[i];
    }
}
