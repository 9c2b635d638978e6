/* pooled_rows.c - pools the pictures of a validation, and compares the ways of pooling. */
#include "train/calibrate/pooled_rows.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "dataset/targets.h"
#include "metrics/probabilities.h"

/* What is kept of a validation takes so much at most. */
#define MOST_BYTES ((size_t)256 << 20)

/* Fewer rows of several pictures say nothing about how to pool. */
#define FEWEST_ROWS 20

/* A score of n rows has a noise of about 1 / sqrt(n). The largest values have to gain such a part
 * of it; the same rows pooled in two ways differ by less than others would. */
#define LEAST_GAIN 0.1

/* Probabilities count from this one on and up to one minus it, so that logarithms are finite. */
#define LEAST_PROBABILITY 1e-30

/* ---- memory ---- */

/* Whether a row is kept: a fixed choice, which has nothing to do with the order of rows. */
static bool is_kept(const stk_pooled_rows *rows, int64_t row) {
    uint64_t mixed = (uint64_t)row * 0x9E3779B97F4A7C15U;
    return (mixed >> 32) % rows->every == 0;
}

static size_t count_kept(const stk_pooled_rows *rows, const int64_t *row_of, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        kept += is_kept(rows, row_of[i]);
    }
    return kept;
}

void stk_pooled_rows_free(stk_pooled_rows *rows) {
    stk_mem_free(rows->pictures);
    stk_mem_free(rows->labels);
    stk_mem_free(rows->outputs);
    stk_mem_free(rows->targets);
    for (int p = 0; p < STK_POOL_WAYS; p++) {
        stk_metrics_free(&rows->pooled[p]);
    }
    stk_mem_free(rows->values);
    stk_mem_free(rows->logits);
    memset(rows, 0, sizeof *rows);
}

stk_status stk_pooled_rows_open(stk_pooled_rows *rows, const stk_metrics_config *rated,
                                const int64_t *row_of, stk_pooling pool, stk_error *err) {
    size_t outputs = (size_t)rated->outputs;
    bool classes = stk_task_has_classes(rated->task);
    size_t each = outputs * sizeof(float) * (classes ? 1 : 2);
    *rows = (stk_pooled_rows){.metric = rated->metric, .pool = pool, .every = 1};
    rows->every += rated->capacity * each / MOST_BYTES;
    rows->capacity = count_kept(rows, row_of, rated->capacity);
    rows->pictures = stk_mem_raw(rows->capacity, sizeof *rows->pictures);
    rows->labels = stk_mem_raw(rows->capacity, sizeof *rows->labels);
    rows->outputs = stk_mem_raw(rows->capacity, outputs * sizeof *rows->outputs);
    rows->targets = classes ? NULL : stk_mem_raw(rows->capacity, outputs * sizeof *rows->targets);
    rows->values = stk_mem_new(outputs, 2 * sizeof *rows->values);
    rows->logits = stk_mem_new(outputs, sizeof *rows->logits);
    bool good = rows->pictures != NULL && rows->labels != NULL && rows->outputs != NULL &&
                (classes || rows->targets != NULL) && rows->values != NULL && rows->logits != NULL;
    stk_status status = good ? STK_OK : STK_FAIL_MEMORY(err, "validation");
    stk_metrics_config config = *rated;
    config.capacity = rows->capacity;
    for (int p = 0; p < STK_POOL_WAYS; p++) {
        STK_THEN(status, stk_metrics_open(&rows->pooled[p], &config, err));
        STK_THEN(status, stk_metrics_keep_logits(&rows->pooled[p], err));
    }
    if (status != STK_OK) {
        stk_pooled_rows_free(rows);
    }
    return status;
}

void stk_pooled_rows_reset(stk_pooled_rows *rows) {
    rows->count = 0;
}

void stk_pooled_rows_add(stk_pooled_rows *rows, int64_t row, const float *outputs, int label,
                         const float *targets) {
    size_t width = (size_t)rows->pooled[0].outputs;
    size_t at = rows->count;
    if (at == rows->capacity || !is_kept(rows, row)) {
        return;
    }
    rows->pictures[at] = (stk_row_picture){row, at};
    rows->labels[at] = label;
    memcpy(rows->outputs + at * width, outputs, width * sizeof *outputs);
    if (rows->targets != NULL) {
        memcpy(rows->targets + at * width, targets, width * sizeof *targets);
    }
    rows->count++;
}

/* ---- pooling ---- */

/* Whether two pictures have the same answer; a target that is not known is like any. */
static bool is_same(const stk_pooled_rows *rows, size_t a, size_t b) {
    const stk_targets targets = {.outputs = rows->pooled[0].outputs, .numbers = rows->targets};
    return rows->targets != NULL ? stk_targets_agree(&targets, a, b)
                                 : rows->labels[a] == rows->labels[b];
}

/* Pools a row of `count` pictures, and adds it to the rows of this way. */
static void add_row(stk_pooled_rows *rows, stk_pooling pool, const stk_row_picture *first,
                    size_t count, double temperature) {
    stk_metrics *m = &rows->pooled[pool];
    size_t width = (size_t)m->outputs;
    double *row = rows->values + width;
    for (size_t i = 0; i < count; i++) {
        const float *outputs = rows->outputs + first[i].place * width;
        if (m->task == STK_TASK_REGRESSION) {
            for (size_t k = 0; k < width; k++) {
                rows->values[k] = outputs[k];
            }
        } else if (m->task == STK_TASK_MULTILABEL) {
            stk_sigmoids(outputs, m->outputs, temperature, rows->values);
        } else {
            stk_softmax(outputs, m->outputs, temperature, rows->values);
        }
        stk_pooling_add(pool, rows->values, width, i, row);
    }
    stk_pooling_end(pool, m->task, width, count, row);
    for (size_t k = 0; k < width; k++) {
        double log_p = log(fmax(row[k], LEAST_PROBABILITY));
        double log_not =
            m->task == STK_TASK_MULTILABEL ? log(fmax(1 - row[k], LEAST_PROBABILITY)) : 0;
        rows->logits[k] = (float)(m->task == STK_TASK_REGRESSION ? row[k] : log_p - log_not);
    }
    if (rows->targets == NULL) {
        (void)stk_metrics_add(m, rows->logits, rows->labels[first->place]);
    } else {
        (void)stk_metrics_add_targets(m, rows->logits, rows->targets + first->place * width);
    }
}

/* Pools all rows that have a known answer, in the ways that may count. */
static void pool_rows(stk_pooled_rows *rows, double temperature) {
    rows->several = 0;
    for (int p = 0; p < STK_POOL_WAYS; p++) {
        stk_metrics_reset(&rows->pooled[p]);
    }
    stk_rows_sort(rows->pictures, rows->count);
    for (size_t first = 0, end; first < rows->count; first = end) {
        const stk_row_picture *pictures = rows->pictures + first;
        bool known = true;
        end = stk_rows_end(rows->pictures, rows->count, first);
        for (size_t i = first + 1; i < end; i++) {
            known = known && is_same(rows, pictures->place, rows->pictures[i].place);
        }
        rows->several += known && end - first > 1;
        for (int p = 0; p < STK_POOL_WAYS && known; p++) {
            add_row(rows, (stk_pooling)p, pictures, end - first, temperature);
        }
    }
}

/* The way that counts by these scores. */
static stk_pooling way_by(const stk_pooled_rows *rows, const double *scores) {
    const stk_metric_info *info = stk_metric_info_of(rows->metric);
    double gain = (scores[STK_POOL_MAX] - scores[STK_POOL_MEAN]) * (info->is_loss ? -1 : 1);
    double noise = (info->percent ? 100 : 1) / sqrt((double)rows->pooled[0].count);
    if (rows->pool != STK_POOL_AUTO) {
        return rows->pool;
    }
    bool comparable = rows->several >= FEWEST_ROWS && rows->pooled[0].task != STK_TASK_REGRESSION;
    return comparable && gain > LEAST_GAIN * noise ? STK_POOL_MAX : STK_POOL_MEAN;
}

double stk_pooled_rows_value(stk_pooled_rows *rows) {
    double scores[STK_POOL_WAYS];
    pool_rows(rows, 1);
    for (int p = 0; p < STK_POOL_WAYS; p++) {
        scores[p] = stk_metrics_value(&rows->pooled[p], rows->metric);
    }
    return rows->pooled[0].count > 0 ? scores[way_by(rows, scores)] : NAN;
}

stk_status stk_pooled_rows_fit(stk_pooled_rows *rows, const stk_calibrate_config *config,
                               stk_calibration *calibration, stk_error *err) {
    stk_calibration fits[STK_POOL_WAYS] = {{0}};
    double scores[STK_POOL_WAYS];
    stk_calibrate_config tempered = *config;
    stk_status status = STK_OK;
    tempered.tempered = true;
    pool_rows(rows, stk_calibration_temperature(calibration));
    for (int p = 0; p < STK_POOL_WAYS; p++) {
        STK_THEN(status, stk_calibrate(&rows->pooled[p], &tempered, &fits[p], err));
        double plain = stk_metrics_value(&rows->pooled[p], rows->metric);
        bool ruled = fits[p].rule.count > 0 && fits[p].score > fits[p].plain_score;
        scores[p] = ruled ? fits[p].score : plain;
    }
    if (status == STK_OK && rows->pooled[0].count > 0) {
        stk_pooling way = way_by(rows, scores);
        stk_mem_free(calibration->rule.numbers);
        calibration->rule = fits[way].rule;
        calibration->plain_score = fits[way].plain_score;
        calibration->score = fits[way].score;
        calibration->pool = way;
        calibration->rows = rows->pooled[way].count;
        memcpy(calibration->pool_scores, scores, sizeof scores);
        fits[way].rule = (stk_label_rule){0};
    }
    for (int p = 0; p < STK_POOL_WAYS; p++) {
        stk_calibration_free(&fits[p]);
    }
    return status;
}
