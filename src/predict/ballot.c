/* ballot.c - sums and averages of predictions. */
#include "predict/ballot.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

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

void stk_ballot_add(stk_ballot *ballot, const double *probs, const bool *have) {
    for (size_t r = 0; r < ballot->rows; r++) {
        if (have[r]) {
            ballot->votes[r]++;
            for (size_t c = 0; c < ballot->classes; c++) {
                ballot->sum[r * ballot->classes + c] += probs[r * ballot->classes + c];
            }
        }
    }
    ballot->models++;
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
