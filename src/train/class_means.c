/* class_means.c - directions of classes, and how much of them a head takes. */
#include "train/class_means.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* Held-out pictures take so much, and their products so many multiplications, at most. */
#define MOST_BYTES ((size_t)256 << 20)
#define MOST_PRODUCTS 1e10

/* A score of n pictures has a noise of about 1 / sqrt(n). Means have to gain such a part of it; the
 * same pictures with and without means differ by less than others would. */
#define LEAST_GAIN 0.2

/* Weights that are tried. */
static const double weights_tried[] = {0.25, 0.5, 1, 2, 4, 8, 16};

/* ---- directions ---- */

stk_status stk_class_means_open(stk_class_means *m, int classes, size_t width, int stranger,
                                stk_error *err) {
    *m = (stk_class_means){.classes = (size_t)classes, .width = width, .stranger = stranger};
    m->counts = stk_mem_new(m->classes, sizeof *m->counts);
    m->directions = stk_mem_new(m->classes, width * sizeof *m->directions);
    m->centre = stk_mem_new(width, sizeof *m->centre);
    if (m->counts == NULL || m->directions == NULL || m->centre == NULL) {
        stk_class_means_free(m);
        return STK_FAIL_MEMORY(err, "the means of classes");
    }
    return STK_OK;
}

void stk_class_means_free(stk_class_means *m) {
    stk_mem_free(m->counts);
    stk_mem_free(m->directions);
    stk_mem_free(m->centre);
    memset(m, 0, sizeof *m);
}

void stk_class_means_add(stk_class_means *m, int label, const float *features) {
    float *sum = m->directions + (size_t)label * m->width;
    bool finite = true;
    for (size_t k = 0; k < m->width; k++) {
        finite = finite && isfinite(features[k]);
    }
    for (size_t k = 0; finite && k < m->width; k++) {
        sum[k] += features[k];
        m->centre[k] += features[k];
    }
    m->counts[label] += finite;
    m->count += finite;
}

void stk_class_means_finish(stk_class_means *m) {
    for (size_t k = 0; k < m->width && m->count > 0; k++) {
        m->centre[k] /= (double)m->count;
    }
    for (size_t c = 0; c < m->classes; c++) {
        float *row = m->directions + c * m->width;
        double square = 0;
        bool counts = m->counts[c] > 0 && (int)c != m->stranger;
        for (size_t k = 0; k < m->width && counts; k++) {
            row[k] = (float)((double)row[k] / (double)m->counts[c] - m->centre[k]);
            square += (double)row[k] * row[k];
        }
        counts = counts && square > 0;
        for (size_t k = 0; k < m->width; k++) {
            row[k] = counts ? (float)(row[k] / sqrt(square)) : 0;
        }
    }
}

double stk_class_means_scale(const stk_class_means *m, const float *weights) {
    double square = 0;
    for (size_t k = 0; k < m->width; k++) {
        double sum = 0;
        double squares = 0;
        for (size_t c = 0; c < m->classes; c++) {
            double w = weights[c * m->width + k];
            sum += w;
            squares += w * w;
        }
        square += squares - sum * sum / (double)m->classes;
    }
    return square > 0 ? sqrt(square / (double)m->classes) : 1;
}

void stk_class_means_join(const stk_class_means *m, double factor, float *weights, float *bias) {
    for (size_t c = 0; c < m->classes; c++) {
        const float *row = m->directions + c * m->width;
        double at_centre = 0;
        for (size_t k = 0; k < m->width; k++) {
            weights[c * m->width + k] += (float)(factor * row[k]);
            at_centre += m->centre[k] * row[k];
        }
        bias[c] -= (float)(factor * at_centre);
    }
}

/* ---- held-out pictures ---- */

size_t stk_means_trial_most(size_t classes, size_t width) {
    size_t by_memory = MOST_BYTES / (2 * sizeof(float)) / classes;
    double by_time = MOST_PRODUCTS / (double)classes / (double)width;
    return by_time < (double)by_memory ? (size_t)by_time : by_memory;
}

stk_status stk_means_trial_open(stk_means_trial *t, const stk_metrics_config *rated,
                                stk_error *err) {
    size_t classes = (size_t)rated->outputs;
    *t = (stk_means_trial){.rated = *rated};
    t->plain = stk_mem_raw(rated->capacity, classes * sizeof *t->plain);
    t->near = stk_mem_raw(rated->capacity, classes * sizeof *t->near);
    t->labels = stk_mem_raw(rated->capacity, sizeof *t->labels);
    if (t->plain == NULL || t->near == NULL || t->labels == NULL) {
        stk_means_trial_free(t);
        return STK_FAIL_MEMORY(err, "held-out pictures");
    }
    return STK_OK;
}

void stk_means_trial_free(stk_means_trial *t) {
    stk_mem_free(t->plain);
    stk_mem_free(t->near);
    stk_mem_free(t->labels);
    memset(t, 0, sizeof *t);
}

void stk_means_trial_add(stk_means_trial *t, const stk_class_means *m, int label,
                         const float *logits, const float *features) {
    size_t at = t->count;
    if (at == t->rated.capacity) {
        return;
    }
    memcpy(t->plain + at * m->classes, logits, m->classes * sizeof *logits);
    for (size_t c = 0; c < m->classes; c++) {
        const float *row = m->directions + c * m->width;
        float product = 0;
        for (size_t k = 0; k < m->width; k++) {
            product += row[k] * (features[k] - (float)m->centre[k]);
        }
        t->near[at * m->classes + c] = product;
    }
    t->labels[at] = label;
    t->count++;
}

/* Collects all held-out pictures with a head that takes `factor` times the means, and calibrates
 * it, unless `config` is NULL. *value is the metric, as answers will be chosen. */
static stk_status rate(const stk_means_trial *t, double factor, const stk_calibrate_config *config,
                       stk_metrics *metrics, float *row, stk_calibration *calibration,
                       double *value, stk_error *err) {
    size_t classes = (size_t)t->rated.outputs;
    stk_metrics_reset(metrics);
    for (size_t i = 0; i < t->count; i++) {
        for (size_t c = 0; c < classes; c++) {
            row[c] = (float)(t->plain[i * classes + c] + factor * t->near[i * classes + c]);
        }
        (void)stk_metrics_add(metrics, row, t->labels[i]);
    }
    *value = stk_metrics_value(metrics, t->rated.metric);
    if (config == NULL) {
        return STK_OK;
    }
    stk_status status = stk_calibrate(metrics, config, calibration, err);
    bool ruled = calibration->rule.count > 0;
    *value = t->rated.metric == STK_METRIC_LOGLOSS ? calibration->loss
             : ruled                               ? fmax(*value, calibration->score)
                                                   : *value;
    return status;
}

stk_status stk_means_trial_choose(const stk_means_trial *t, double scale,
                                  const stk_calibrate_config *config, stk_means_choice *choice,
                                  stk_error *err) {
    const stk_metric_info *info = stk_metric_info_of(t->rated.metric);
    double sign = info->is_loss ? -1 : 1;
    double least = LEAST_GAIN * (info->percent ? 100 : 1) / sqrt((double)t->count);
    stk_metrics metrics = {0};
    stk_calibration tried = {0};
    float *row = stk_mem_raw((size_t)t->rated.outputs, sizeof *row);
    *choice = (stk_means_choice){.plain = NAN, .unruled = NAN, .best = NAN};
    stk_status status = row != NULL ? STK_OK : STK_FAIL_MEMORY(err, "held-out pictures");
    STK_THEN(status, stk_metrics_open(&metrics, &t->rated, err));
    STK_THEN(status, stk_metrics_keep_logits(&metrics, err));
    STK_THEN(status, rate(t, 0, config, &metrics, row, &tried, &choice->plain, err));
    choice->unruled = t->rated.metric == STK_METRIC_LOGLOSS && config != NULL
                          ? tried.plain_loss
                          : stk_metrics_value(&metrics, t->rated.metric);
    double best = choice->plain + sign * least;
    for (size_t i = 0; i < STK_COUNT(weights_tried) && status == STK_OK; i++) {
        double value = NAN;
        stk_calibration_free(&tried);
        status = rate(t, weights_tried[i] * scale, config, &metrics, row, &tried, &value, err);
        if (status == STK_OK && sign * (value - best) > 0) {
            stk_calibration_free(&choice->calibration);
            choice->calibration = tried;
            tried = (stk_calibration){0};
            choice->weight = weights_tried[i];
            best = value;
        }
        choice->best = isnan(choice->best) ? value
                       : info->is_loss     ? fmin(choice->best, value)
                                           : fmax(choice->best, value);
    }
    stk_calibration_free(&tried);
    stk_metrics_free(&metrics);
    stk_mem_free(row);
    return status;
}
