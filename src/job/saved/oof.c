/* oof.c - collecting and writing out-of-fold predictions. */
#include "job/saved/oof.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/csv.h"
#include "train/calibrate/calibrate.h"

/* Seconds of writing a number, until that was measured: on a busy core two million a second. */
#define FIRST_NUMBER_S 0.5e-6

stk_status stk_oof_open(stk_oof *oof, const stk_dataset *dataset, stk_error *err) {
    size_t rows = dataset->train.count;
    oof->dataset = dataset;
    oof->number_s = FIRST_NUMBER_S;
    oof->acc1 = NAN;
    oof->metric = NAN;
    oof->probs = stk_mem_new(rows, (size_t)dataset->class_count * sizeof *oof->probs);
    oof->fold = stk_mem_raw(rows, sizeof *oof->fold);
    if (oof->probs == NULL || oof->fold == NULL) {
        stk_oof_free(oof);
        return STK_FAIL_MEMORY(err, "out-of-fold predictions");
    }
    memset(oof->fold, 0xFF, rows * sizeof *oof->fold); /* -1 */
    return STK_OK;
}

void stk_oof_free(stk_oof *oof) {
    stk_mem_free(oof->probs);
    stk_mem_free(oof->fold);
    memset(oof, 0, sizeof *oof);
}

void stk_oof_add(stk_oof *oof, int fold, const size_t *indices, size_t count, const double *probs,
                 const bool *have) {
    size_t classes = (size_t)oof->dataset->class_count;
    for (size_t i = 0; i < count; i++) {
        if (have[i]) {
            oof->fold[indices[i]] = fold;
            memcpy(oof->probs + indices[i] * classes, probs + i * classes, classes * sizeof *probs);
        }
    }
}

/* The least probability that counts, so that its logarithm is finite. */
#define LEAST_PROBABILITY 1e-30

static stk_status add_rows(const stk_oof *oof, const stk_label_rule *rule, stk_metrics *metrics,
                           stk_error *err) {
    const stk_dataset *d = oof->dataset;
    size_t classes = (size_t)d->class_count;
    float *logits = stk_mem_raw(classes, sizeof *logits);
    if (logits == NULL) {
        return STK_FAIL_MEMORY(err, "the out-of-fold score");
    }
    for (size_t i = 0; i < d->train.count; i++) {
        if (oof->fold[i] < 0) {
            continue;
        }
        for (size_t c = 0; c < classes; c++) {
            logits[c] = (float)log(fmax(oof->probs[i * classes + c], LEAST_PROBABILITY));
        }
        stk_metrics_add(metrics, logits, d->train.items[i].label);
        stk_calibrate_decide(metrics, rule, oof->probs + i * classes, -1);
    }
    stk_mem_free(logits);
    return STK_OK;
}

stk_status stk_oof_score(stk_oof *oof, stk_metric metric, const stk_label_rule *rule, size_t *rows,
                         stk_error *err) {
    const stk_dataset *d = oof->dataset;
    stk_metrics metrics;
    const stk_metrics_config rated = {.task = d->task,
                                      .outputs = d->class_count,
                                      .capacity = d->train.count,
                                      .metric = metric};
    stk_status status = stk_metrics_open(&metrics, &rated, err);
    STK_THEN(status, add_rows(oof, rule, &metrics, err));
    if (status == STK_OK) {
        oof->acc1 = stk_metrics_value(&metrics, STK_METRIC_ACC1);
        oof->metric = stk_metrics_value(&metrics, metric);
        oof->scored = metrics.count;
        *rows = metrics.count;
    }
    stk_metrics_free(&metrics);
    return status;
}

static size_t count_rows(const stk_oof *oof) {
    size_t rows = 0;
    for (size_t i = 0; i < oof->dataset->train.count; i++) {
        rows += oof->fold[i] >= 0;
    }
    return rows;
}

double stk_oof_write_seconds(const stk_oof *oof, size_t more_rows) {
    double rows = (double)(count_rows(oof) + more_rows);
    return rows * (double)oof->dataset->class_count * oof->number_s;
}

stk_status stk_oof_write(stk_oof *oof, const char *path, stk_halt late, stk_error *err) {
    const stk_dataset *d = oof->dataset;
    size_t classes = (size_t)d->class_count;
    int64_t start = stk_clock_ns();
    bool in_time = true;
    stk_str text = {0};
    stk_str_append(&text, "id,label,fold");
    for (size_t c = 0; c < classes; c++) {
        stk_str_append(&text, ",");
        stk_csv_append(&text, d->classes[c]);
    }
    stk_str_append(&text, "\n");
    for (size_t i = 0; in_time && i < d->train.count; i++) {
        if (oof->fold[i] < 0) {
            continue;
        }
        in_time = late.asked == NULL || !late.asked(late.user);
        stk_csv_append(&text, d->train.items[i].id);
        stk_str_append(&text, ",");
        stk_csv_append(&text, d->classes[d->train.items[i].label]);
        stk_str_appendf(&text, ",%d", oof->fold[i]);
        for (size_t c = 0; c < classes; c++) {
            stk_str_appendf(&text, ",%.9g", oof->probs[i * classes + c]);
        }
        stk_str_append(&text, "\n");
    }
    stk_status status = !in_time ? STK_FAIL(err, STK_ERR_STOPPED, "no time to write %s", path)
                        : stk_str_ok(&text)
                            ? stk_file_write(path, stk_str_text(&text), text.length, err)
                            : STK_FAIL_MEMORY(err, path);
    size_t rows = count_rows(oof);
    if (status == STK_OK && rows > 0) {
        oof->number_s = stk_clock_since_s(start) / (double)rows / (double)classes;
    }
    stk_str_free(&text);
    return status;
}
