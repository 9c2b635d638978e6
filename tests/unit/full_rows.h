/* full_rows.h - predictions in full, of values that a test has in an array. */
#ifndef TESTS_FULL_ROWS_H
#define TESTS_FULL_ROWS_H

#include <stdint.h>

#include "predict/ensemble.h"
#include "predict/predict.h"

/* Borrows `values` (rows, outputs), which are not freed. */
static inline stk_predictions full_rows(const double *values, size_t rows, size_t outputs) {
    return (stk_predictions){.rows = rows, .outputs = outputs, .all = (double *)(uintptr_t)values};
}

/* stk_predict_samples() into an array. */
static inline stk_status predict_into(const stk_prediction *prediction, double *probs, bool *have,
                                      stk_predicted *predicted, stk_error *err) {
    stk_predictions rows =
        full_rows(probs, prediction->data.count, (size_t)prediction->graph->classes);
    return stk_predict_samples(prediction, &rows, have, predicted, err);
}

/* stk_ensemble_add() from an array. */
static inline void add_member(stk_ensemble *ensemble, const double *probs, const bool *have,
                              const stk_calibration *calibration, double weight) {
    const stk_predictions rows = full_rows(probs, ensemble->rows, ensemble->classes);
    stk_ensemble_add(ensemble, &rows, have, calibration, weight);
}

/* The averages of all rows, of at most 64 numbers; valid until the next call. */
static inline const double *averages_of(const stk_ensemble *ensemble) {
    static double averages[64];
    for (size_t r = 0; r < ensemble->rows; r++) {
        stk_ensemble_row(ensemble, r, averages + r * ensemble->classes);
    }
    return averages;
}

#endif
