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

/* Weights that are tried; the first is the plain head. */
static const double weights_tried[] = {0, 0.25, 0.5, 1, 2, 4, 8, 16};

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

/* A head with a weight of the means, on the held-out pictures. */
typedef struct tried_weight {
    double value;                            /* the metric, as answers will be chosen */
    stk_judged_part parts[STK_JUDGED_PARTS]; /* `score` is that value of the part's pictures */
    stk_calibration calibration;             /* owned */
} tried_weight;

/* One choice of a weight while it is made. */
typedef struct choosing {
    const stk_means_trial *trial;
    const stk_calibrate_config *config; /* NULL: nothing is calibrated */
    double scale;
    bool fitted;         /* the value depends on the calibration */
    stk_metrics metrics; /* owned */
    float *row;          /* (classes), owned: scratch */
    tried_weight tried[STK_COUNT(weights_tried)];
} choosing;

static stk_metric metric_of(const choosing *c) {
    return c->trial->rated.metric;
}

/* Collects the pictures of a part, STK_JUDGED_PARTS: all, with a weight of the means. */
static void collect(choosing *c, double weight, size_t part) {
    const stk_means_trial *t = c->trial;
    size_t classes = (size_t)t->rated.outputs;
    double factor = weight * c->scale;
    bool all = part == STK_JUDGED_PARTS;
    stk_metrics_reset(&c->metrics);
    for (size_t i = all ? 0 : part; i < t->count; i += all ? 1 : STK_JUDGED_PARTS) {
        for (size_t k = 0; k < classes; k++) {
            size_t at = i * classes + k;
            c->row[k] = (float)(t->plain[at] + factor * t->near[at]);
        }
        (void)stk_metrics_add(&c->metrics, c->row, t->labels[i]);
    }
}

/* Rates plain answers. */
static void rate_plainly(choosing *c, double weight, tried_weight *w) {
    for (size_t p = 0; p < STK_JUDGED_PARTS; p++) {
        collect(c, weight, p);
        w->parts[p].count = c->metrics.count;
        w->parts[p].score = stk_metrics_value(&c->metrics, metric_of(c));
    }
    collect(c, weight, STK_JUDGED_PARTS);
    w->value = stk_metrics_value(&c->metrics, metric_of(c));
}

/* Rates answers that follow a temperature and a rule which have not seen their pictures. */
static stk_status rate_fitted(choosing *c, double weight, tried_weight *w, stk_error *err) {
    stk_calibration *fit = &w->calibration;
    collect(c, weight, STK_JUDGED_PARTS);
    stk_status status = stk_calibrate_parts(&c->metrics, c->config, fit, w->parts, err);
    bool loss = metric_of(c) == STK_METRIC_LOGLOSS;
    bool ruled = fit->score > fit->plain_score;
    w->value = stk_metrics_value(&c->metrics, metric_of(c));
    w->value = loss ? fit->loss : ruled ? fmax(w->value, fit->score) : w->value;
    for (size_t p = 0; p < STK_JUDGED_PARTS; p++) {
        stk_judged_part *part = &w->parts[p];
        part->score = loss ? part->loss : ruled ? part->score : part->plain_score;
    }
    c->fitted = loss || fit->rule.count > 0;
    return status;
}

/* Rates all weights. Where the value does not depend on a calibration only the plain head gets one
 * here: fits take longer than all else. */
static stk_status rate_all(choosing *c, stk_error *err) {
    stk_status status = STK_OK;
    c->fitted = c->config != NULL;
    for (size_t i = 0; i < STK_COUNT(weights_tried) && status == STK_OK; i++) {
        if (c->fitted) {
            status = rate_fitted(c, weights_tried[i], &c->tried[i], err);
        }
        if (!c->fitted) {
            rate_plainly(c, weights_tried[i], &c->tried[i]);
        }
    }
    return status;
}

/* How much more all pictures but those of a part have with a weight than without. */
static double gain_without(const choosing *c, size_t i, size_t part, double *count) {
    const tried_weight *plain = &c->tried[0];
    double gain = 0;
    *count = 0;
    for (size_t p = 0; p < STK_JUDGED_PARTS; p++) {
        double n = (double)plain->parts[p].count;
        if (p != part && n > 0) {
            gain += n * (c->tried[i].parts[p].score - plain->parts[p].score);
            *count += n;
        }
    }
    return *count > 0 ? gain / *count : 0;
}

/* The weight that gains most, and more than chance gives: for all pictures, or for those of all
 * parts but one. */
static size_t best_without(const choosing *c, size_t part) {
    const stk_metric_info *info = stk_metric_info_of(metric_of(c));
    bool all = part == STK_JUDGED_PARTS;
    double most = LEAST_GAIN * (info->percent ? 100 : 1);
    size_t best = 0;
    for (size_t i = 1; i < STK_COUNT(weights_tried); i++) {
        double count = (double)c->trial->count;
        double gain =
            all ? c->tried[i].value - c->tried[0].value : gain_without(c, i, part, &count);
        double told = sqrt(count) * (info->is_loss ? -gain : gain);
        if (told > most) {
            most = told;
            best = i;
        }
    }
    return best;
}

/* What the pictures of each part gain by the weight that is best for the others: so many weights
 * are tried that the best value of the same pictures is partly chance. */
static double judge(const choosing *c) {
    double gain = 0;
    double count = 0;
    for (size_t p = 0; p < STK_JUDGED_PARTS; p++) {
        double n = (double)c->tried[0].parts[p].count;
        size_t i = best_without(c, p);
        gain += n > 0 ? n * (c->tried[i].parts[p].score - c->tried[0].parts[p].score) : 0;
        count += n;
    }
    return count > 0 ? gain / count : 0;
}

/* Makes the choice, once all weights were rated. */
static stk_status take(choosing *c, stk_means_choice *choice, stk_error *err) {
    const tried_weight *plain = &c->tried[0];
    bool is_loss = stk_metric_is_loss(metric_of(c));
    size_t best = best_without(c, STK_JUDGED_PARTS);
    double gain = best > 0 ? judge(c) : 0;
    stk_status status = STK_OK;
    choice->plain = plain->value;
    choice->best = plain->value + gain;
    for (size_t i = 1; i < STK_COUNT(weights_tried) && best == 0; i++) {
        double value = c->tried[i].value;
        bool better = i == 1 || (is_loss ? value < choice->best : value > choice->best);
        choice->best = better ? value : choice->best;
    }
    if (!(is_loss ? gain < 0 : gain > 0)) {
        return STK_OK;
    }
    if (c->config != NULL && !c->fitted) {
        collect(c, weights_tried[best], STK_JUDGED_PARTS);
        status = stk_calibrate(&c->metrics, c->config, &c->tried[best].calibration, err);
    }
    choice->weight = weights_tried[best];
    choice->calibration = c->tried[best].calibration;
    choice->calibration.means = choice->weight;
    /* Epochs are rated at temperature 1. */
    bool tempered = metric_of(c) == STK_METRIC_LOGLOSS && c->config != NULL;
    choice->calibration.means_gain =
        choice->best - (tempered ? plain->calibration.plain_loss : plain->value);
    c->tried[best].calibration = (stk_calibration){0};
    return status;
}

stk_status stk_means_trial_choose(const stk_means_trial *t, double scale,
                                  const stk_calibrate_config *config, stk_means_choice *choice,
                                  stk_error *err) {
    choosing c = {.trial = t, .config = config, .scale = scale};
    *choice = (stk_means_choice){.plain = NAN, .best = NAN};
    c.row = stk_mem_raw((size_t)t->rated.outputs, sizeof *c.row);
    stk_status status = c.row != NULL ? STK_OK : STK_FAIL_MEMORY(err, "held-out pictures");
    STK_THEN(status, stk_metrics_open(&c.metrics, &t->rated, err));
    STK_THEN(status, stk_metrics_keep_logits(&c.metrics, err));
    STK_THEN(status, rate_all(&c, err));
    STK_THEN(status, take(&c, choice, err));
    for (size_t i = 0; i < STK_COUNT(weights_tried); i++) {
        stk_calibration_free(&c.tried[i].calibration);
    }
    stk_metrics_free(&c.metrics);
    stk_mem_free(c.row);
    return status;
}
