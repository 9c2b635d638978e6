/* ensemble.c - weighted sums of probabilities, and their averages. */
#include "predict/ensemble.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* A model that does no better than guessing has this share of the best one's weight. */
#define LEAST_SHARE 0.01

stk_status stk_ensemble_open(stk_ensemble *ensemble, size_t rows, size_t classes, size_t kept,
                             stk_error *err) {
    memset(ensemble, 0, sizeof *ensemble);
    ensemble->rows = rows;
    ensemble->classes = classes;
    ensemble->weights = stk_mem_new(rows, sizeof *ensemble->weights);
    ensemble->priors = stk_mem_new(classes, sizeof *ensemble->priors);
    ensemble->scratch[0] = stk_mem_new(classes, sizeof(double));
    ensemble->scratch[1] = stk_mem_new(classes, sizeof(double));
    stk_status status = stk_calibration_mean_open(&ensemble->calibration, (int)classes, NULL);
    STK_THEN(status, stk_predictions_open(&ensemble->sum, rows, classes, kept, NULL));
    if (status != STK_OK || ensemble->weights == NULL || ensemble->priors == NULL ||
        ensemble->scratch[0] == NULL || ensemble->scratch[1] == NULL) {
        stk_ensemble_free(ensemble);
        return STK_FAIL_MEMORY(err, "predictions");
    }
    for (size_t c = 0; c < classes; c++) {
        ensemble->priors[c] = 1.0 / (double)classes;
    }
    return STK_OK;
}

static void free_early(stk_ensemble *ensemble) {
    stk_predictions_free(&ensemble->early);
    stk_mem_free(ensemble->early_have);
    stk_calibration_mean_free(&ensemble->early_calibration);
    ensemble->early_have = NULL;
}

void stk_ensemble_free(stk_ensemble *ensemble) {
    stk_predictions_free(&ensemble->sum);
    stk_mem_free(ensemble->weights);
    stk_mem_free(ensemble->priors);
    stk_mem_free(ensemble->scratch[0]);
    stk_mem_free(ensemble->scratch[1]);
    stk_calibration_mean_free(&ensemble->calibration);
    free_early(ensemble);
    memset(ensemble, 0, sizeof *ensemble);
}

/* Early predictions that no row needs any more are freed. */
static void drop_early(stk_ensemble *ensemble) {
    bool needed = false;
    for (size_t r = 0; r < ensemble->rows && ensemble->early_have != NULL && !needed; r++) {
        needed = ensemble->early_have[r] && ensemble->weights[r] <= 0;
    }
    if (!needed) {
        free_early(ensemble);
    }
}

static void add_row(stk_ensemble *ensemble, size_t r, const stk_predictions *probs, double weight) {
    double *sum = ensemble->scratch[0];
    const double *before = stk_predictions_row(&ensemble->sum, r, sum);
    const double *row = stk_predictions_row(probs, r, ensemble->scratch[1]);
    for (size_t c = 0; c < ensemble->classes; c++) {
        sum[c] = before[c] + weight * row[c];
    }
    stk_predictions_set(&ensemble->sum, r, sum, -1);
}

void stk_ensemble_add(stk_ensemble *ensemble, const stk_predictions *probs, const bool *have,
                      const stk_calibration *calibration, double weight) {
    bool any = false;
    for (size_t r = 0; r < ensemble->rows; r++) {
        any = any || have[r];
        if (have[r]) {
            ensemble->weights[r] += weight;
            add_row(ensemble, r, probs, weight);
        }
    }
    ensemble->models += any;
    drop_early(ensemble);
    if (any) {
        stk_calibration_mean_add(&ensemble->calibration, calibration, weight);
    }
}

stk_status stk_ensemble_set_early(stk_ensemble *ensemble, stk_predictions *probs, bool *have,
                                  const stk_calibration *calibration, stk_error *err) {
    stk_calibration_mean mean = {0};
    stk_status status = stk_calibration_mean_open(&mean, (int)ensemble->classes, err);
    if (status != STK_OK) {
        return status;
    }
    stk_calibration_mean_add(&mean, calibration, 1);
    free_early(ensemble);
    ensemble->early = *probs;
    ensemble->early_have = have;
    ensemble->early_calibration = mean;
    *probs = (stk_predictions){0};
    return STK_OK;
}

stk_row_source stk_ensemble_source(const stk_ensemble *ensemble, size_t row) {
    bool early = ensemble->early_have != NULL && ensemble->early_have[row];
    return ensemble->weights[row] > 0 ? STK_ROW_MEMBERS : early ? STK_ROW_EARLY : STK_ROW_PRIORS;
}

void stk_ensemble_row(const stk_ensemble *ensemble, size_t row, double *probs) {
    double weight = ensemble->weights[row];
    stk_row_source source = stk_ensemble_source(ensemble, row);
    const double *from = source == STK_ROW_MEMBERS ? stk_predictions_row(&ensemble->sum, row, probs)
                         : source == STK_ROW_EARLY
                             ? stk_predictions_row(&ensemble->early, row, probs)
                             : ensemble->priors;
    for (size_t c = 0; c < ensemble->classes; c++) {
        probs[c] = weight > 0 ? from[c] / weight : from[c];
    }
}

static bool is_early(const stk_ensemble *ensemble) {
    return ensemble->models == 0 && ensemble->early_have != NULL;
}

const stk_label_rule *stk_ensemble_rule(stk_ensemble *ensemble) {
    return stk_calibration_mean_rule(is_early(ensemble) ? &ensemble->early_calibration
                                                        : &ensemble->calibration);
}

stk_pooling stk_ensemble_pool(const stk_ensemble *ensemble) {
    return is_early(ensemble) ? ensemble->early_calibration.pool : ensemble->calibration.pool;
}

void stk_ensemble_weights(const double *acc1, size_t models, int classes, double *weights) {
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
