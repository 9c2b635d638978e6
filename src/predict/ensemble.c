/* ensemble.c - weighted sums of probabilities, and their averages. */
#include "predict/ensemble.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* A model that does no better than guessing has this share of the best one's weight. */
#define LEAST_SHARE 0.01

stk_status stk_ensemble_open(stk_ensemble *ensemble, size_t rows, size_t classes, stk_error *err) {
    memset(ensemble, 0, sizeof *ensemble);
    ensemble->rows = rows;
    ensemble->classes = classes;
    ensemble->sum = stk_mem_new(rows, classes * sizeof *ensemble->sum);
    ensemble->probs = stk_mem_new(rows, classes * sizeof *ensemble->probs);
    ensemble->weights = stk_mem_new(rows, sizeof *ensemble->weights);
    ensemble->priors = stk_mem_new(classes, sizeof *ensemble->priors);
    stk_status status = stk_calibration_mean_open(&ensemble->calibration, (int)classes, NULL);
    if (status != STK_OK || ensemble->sum == NULL || ensemble->probs == NULL ||
        ensemble->weights == NULL || ensemble->priors == NULL) {
        stk_ensemble_free(ensemble);
        return STK_FAIL_MEMORY(err, "predictions");
    }
    for (size_t c = 0; c < classes; c++) {
        ensemble->priors[c] = 1.0 / (double)classes;
    }
    return STK_OK;
}

static void free_early(stk_ensemble *ensemble) {
    stk_mem_free(ensemble->early);
    stk_mem_free(ensemble->early_have);
    stk_calibration_mean_free(&ensemble->early_calibration);
    ensemble->early = NULL;
    ensemble->early_have = NULL;
}

void stk_ensemble_free(stk_ensemble *ensemble) {
    stk_mem_free(ensemble->sum);
    stk_mem_free(ensemble->probs);
    stk_mem_free(ensemble->weights);
    stk_mem_free(ensemble->priors);
    stk_calibration_mean_free(&ensemble->calibration);
    free_early(ensemble);
    memset(ensemble, 0, sizeof *ensemble);
}

/* Early predictions that no row needs any more are freed. */
static void drop_early(stk_ensemble *ensemble) {
    bool needed = false;
    for (size_t r = 0; r < ensemble->rows && ensemble->early != NULL && !needed; r++) {
        needed = ensemble->early_have[r] && ensemble->weights[r] <= 0;
    }
    if (!needed) {
        free_early(ensemble);
    }
}

void stk_ensemble_add(stk_ensemble *ensemble, const double *probs, const bool *have,
                      const stk_calibration *calibration, double weight) {
    bool any = false;
    for (size_t r = 0; r < ensemble->rows; r++) {
        any = any || have[r];
        if (have[r]) {
            ensemble->weights[r] += weight;
            for (size_t c = 0; c < ensemble->classes; c++) {
                ensemble->sum[r * ensemble->classes + c] +=
                    weight * probs[r * ensemble->classes + c];
            }
        }
    }
    ensemble->models += any;
    drop_early(ensemble);
    if (any) {
        stk_calibration_mean_add(&ensemble->calibration, calibration, weight);
    }
}

stk_status stk_ensemble_set_early(stk_ensemble *ensemble, double *probs, bool *have,
                                  const stk_calibration *calibration, stk_error *err) {
    stk_calibration_mean mean = {0};
    stk_status status = stk_calibration_mean_open(&mean, (int)ensemble->classes, err);
    if (status != STK_OK) {
        return status;
    }
    stk_calibration_mean_add(&mean, calibration, 1);
    free_early(ensemble);
    ensemble->early = probs;
    ensemble->early_have = have;
    ensemble->early_calibration = mean;
    return STK_OK;
}

const double *stk_ensemble_average(stk_ensemble *ensemble) {
    for (size_t r = 0; r < ensemble->rows; r++) {
        bool early = ensemble->early != NULL && ensemble->early_have[r];
        for (size_t c = 0; c < ensemble->classes; c++) {
            size_t i = r * ensemble->classes + c;
            ensemble->probs[i] = ensemble->weights[r] > 0 ? ensemble->sum[i] / ensemble->weights[r]
                                 : early                  ? ensemble->early[i]
                                                          : ensemble->priors[c];
        }
    }
    return ensemble->probs;
}

const stk_label_rule *stk_ensemble_rule(stk_ensemble *ensemble) {
    bool early = ensemble->models == 0 && ensemble->early != NULL;
    return stk_calibration_mean_rule(early ? &ensemble->early_calibration : &ensemble->calibration);
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
