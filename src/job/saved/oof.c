/* oof.c - collecting and writing out-of-fold predictions. */
#include "job/saved/oof.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/csv.h"
#include "job/saved/true_answer.h"
#include "train/calibrate/calibrate.h"
#include "weights/label_sets.h"

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

/* Probabilities count from this one on and up to one minus it, so that logarithms are finite. */
#define LEAST_PROBABILITY 1e-30

/* What adding a row takes. */
typedef struct row_adder {
    stk_metrics *metrics;
    const stk_label_rule *rule;
    float *outputs; /* (classes), owned */
    float *targets; /* (classes), owned */
    bool *chosen;   /* (classes), owned */
} row_adder;

static void free_adder(row_adder *a) {
    stk_mem_free(a->outputs);
    stk_mem_free(a->targets);
    stk_mem_free(a->chosen);
}

static void add_class(const row_adder *a, const stk_dataset *d, int label, const double *probs) {
    bool ranked = d->answer.kind == STK_ANSWER_RANKED;
    for (int c = 0; c < d->class_count; c++) {
        a->outputs[c] = (float)log(fmax(probs[c], LEAST_PROBABILITY));
    }
    stk_metrics_add(a->metrics, a->outputs, label);
    stk_calibrate_decide(a->metrics, a->rule, probs, ranked ? d->answer.stranger : -1);
}

/* Adds labels as the submission will name them. */
static void add_labels(const row_adder *a, const stk_dataset *d, const double *probs) {
    stk_labels_choose_set(a->rule, probs, d->class_count, d->targets.exclusive, a->chosen);
    for (int c = 0; c < d->class_count; c++) {
        double p = fmax(probs[c], LEAST_PROBABILITY);
        a->outputs[c] = (float)(log(p) - log(fmax(1 - p, LEAST_PROBABILITY)));
    }
    stk_metrics_add_chosen(a->metrics, a->outputs, a->targets, a->chosen);
}

static void add_numbers(const row_adder *a, const stk_dataset *d, const double *numbers) {
    for (int c = 0; c < d->class_count; c++) {
        a->outputs[c] = (float)numbers[c];
    }
    stk_metrics_add_targets(a->metrics, a->outputs, a->targets);
}

static void add_row(const row_adder *a, const stk_dataset *d, const stk_sample *sample,
                    const double *probs) {
    if (stk_task_has_classes(d->task)) {
        add_class(a, d, sample->label, probs);
        return;
    }
    stk_targets_row(&d->targets, (size_t)sample->record, a->targets);
    if (d->targets.is_labels) {
        add_labels(a, d, probs);
    } else {
        add_numbers(a, d, probs);
    }
}

static stk_status add_rows(const stk_oof *oof, const stk_label_rule *rule, stk_metrics *metrics,
                           stk_error *err) {
    const stk_dataset *d = oof->dataset;
    size_t classes = (size_t)d->class_count;
    row_adder adder = {.metrics = metrics,
                       .rule = rule,
                       .outputs = stk_mem_raw(classes, sizeof(float)),
                       .targets = stk_mem_raw(classes, sizeof(float)),
                       .chosen = stk_mem_raw(classes, sizeof(bool))};
    bool ok = adder.outputs != NULL && adder.targets != NULL && adder.chosen != NULL;
    for (size_t i = 0; ok && i < d->train.count; i++) {
        if (oof->fold[i] >= 0) {
            add_row(&adder, d, &d->train.items[i], oof->probs + i * classes);
        }
    }
    free_adder(&adder);
    return ok ? STK_OK : STK_FAIL_MEMORY(err, "the out-of-fold score");
}

stk_status stk_oof_score(stk_oof *oof, stk_metric metric, const stk_label_rule *rule, size_t *rows,
                         stk_error *err) {
    const stk_dataset *d = oof->dataset;
    stk_metrics metrics;
    const stk_metrics_config rated = {.task = d->task,
                                      .outputs = d->class_count,
                                      .capacity = d->train.count,
                                      .metric = metric,
                                      .k = d->answer.most};
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
        stk_true_answer_append(&text, d, &d->train.items[i]);
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
