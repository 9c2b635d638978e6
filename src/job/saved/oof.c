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

/* Bytes of text that are collected before they are written. */
#define FLUSH_BYTES ((size_t)256 * 1024)

stk_status stk_oof_open(stk_oof *oof, const stk_dataset *dataset, stk_error *err) {
    size_t rows = dataset->train.count;
    size_t outputs = (size_t)dataset->class_count;
    size_t kept = stk_predictions_kept(&dataset->answer, rows, outputs);
    oof->dataset = dataset;
    oof->number_s = FIRST_NUMBER_S;
    oof->acc1 = NAN;
    oof->metric = NAN;
    oof->fold = stk_mem_raw(rows, sizeof *oof->fold);
    stk_status status = oof->fold != NULL
                            ? stk_predictions_open(&oof->probs, rows, outputs, kept, err)
                            : STK_FAIL_MEMORY(err, "out-of-fold predictions");
    if (status != STK_OK) {
        stk_oof_free(oof);
        return status;
    }
    memset(oof->fold, 0xFF, rows * sizeof *oof->fold); /* -1 */
    return STK_OK;
}

void stk_oof_free(stk_oof *oof) {
    stk_predictions_free(&oof->probs);
    stk_mem_free(oof->fold);
    memset(oof, 0, sizeof *oof);
}

void stk_oof_add(stk_oof *oof, int fold, const size_t *indices, size_t count,
                 const stk_predictions *probs, const bool *have) {
    for (size_t i = 0; i < count; i++) {
        if (have[i]) {
            oof->fold[indices[i]] = fold;
            stk_predictions_copy(&oof->probs, indices[i], probs, i);
        }
    }
}

/* Probabilities count from this one on and up to one minus it, so that logarithms are finite. */
#define LEAST_PROBABILITY 1e-30

/* What adding a row takes. */
typedef struct row_adder {
    stk_metrics *metrics;
    const stk_label_rule *rule;
    float *outputs;  /* (classes), owned */
    float *targets;  /* (classes), owned */
    bool *chosen;    /* (classes), owned */
    double *values;  /* (classes), owned: of a row */
    double *scratch; /* (classes), owned: of a sample */
} row_adder;

static void free_adder(row_adder *a) {
    stk_mem_free(a->outputs);
    stk_mem_free(a->targets);
    stk_mem_free(a->chosen);
    stk_mem_free(a->scratch);
    stk_mem_free(a->values);
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

/* The samples that were predicted, those of a row beside each other. Returns how many there are. */
static size_t list_rows(const stk_oof *oof, stk_row_picture *items) {
    const stk_dataset *d = oof->dataset;
    size_t count = 0;
    for (size_t i = 0; i < d->train.count; i++) {
        if (oof->fold[i] >= 0) {
            items[count++] = stk_row_picture_of(d->train_has_rows ? d->train.items[i].row : 0, i);
        }
    }
    stk_rows_sort(items, count);
    return count;
}

/* Whether two samples have the same answer; a target that is not known is like any. */
static bool is_same(const stk_dataset *d, size_t a, size_t b) {
    const stk_sample *x = &d->train.items[a];
    const stk_sample *y = &d->train.items[b];
    return stk_task_has_classes(d->task)
               ? x->label == y->label
               : stk_targets_agree(&d->targets, (size_t)x->record, (size_t)y->record);
}

/* Adds the samples, pooled row by row. */
static void add_rows(const stk_oof *oof, const row_adder *a, const stk_row_picture *items,
                     size_t count, stk_pooling pool) {
    const stk_dataset *d = oof->dataset;
    size_t classes = (size_t)d->class_count;
    for (size_t first = 0, end; first < count; first = end) {
        bool known = true;
        end = stk_rows_end(items, count, first);
        for (size_t i = first; i < end; i++) {
            const double *probs = stk_predictions_row(&oof->probs, items[i].place, a->scratch);
            stk_pooling_add(pool, probs, classes, i - first, a->values);
            known = known && is_same(d, items[first].place, items[i].place);
        }
        stk_pooling_end(pool, d->task, classes, end - first, a->values);
        if (known) {
            add_row(a, d, &d->train.items[items[first].place], a->values);
        }
    }
}

stk_status stk_oof_score(stk_oof *oof, stk_metric metric, const stk_label_rule *rule,
                         stk_pooling pool, size_t *rows, stk_error *err) {
    const stk_dataset *d = oof->dataset;
    size_t classes = (size_t)d->class_count;
    stk_metrics metrics;
    const stk_metrics_config rated = {.task = d->task,
                                      .outputs = d->class_count,
                                      .capacity = d->train.count,
                                      .metric = metric,
                                      .k = d->answer.most};
    row_adder adder = {.metrics = &metrics,
                       .rule = rule,
                       .outputs = stk_mem_raw(classes, sizeof(float)),
                       .targets = stk_mem_raw(classes, sizeof(float)),
                       .chosen = stk_mem_raw(classes, sizeof(bool)),
                       .values = stk_mem_raw(classes, sizeof(double)),
                       .scratch = stk_mem_raw(classes, sizeof(double))};
    stk_row_picture *items = stk_mem_raw(d->train.count, sizeof *items);
    bool ok = adder.outputs != NULL && adder.targets != NULL && adder.chosen != NULL &&
              adder.values != NULL && adder.scratch != NULL && items != NULL;
    stk_status status = stk_metrics_open(&metrics, &rated, err);
    if (status == STK_OK && !ok) {
        status = STK_FAIL_MEMORY(err, "the out-of-fold score");
    }
    if (status == STK_OK) {
        add_rows(oof, &adder, items, list_rows(oof, items),
                 pool == STK_POOL_AUTO ? STK_POOL_MEAN : pool);
        oof->acc1 = stk_metrics_value(&metrics, STK_METRIC_ACC1);
        oof->metric = stk_metrics_value(&metrics, metric);
        oof->scored = metrics.count;
        *rows = metrics.count;
    }
    stk_metrics_free(&metrics);
    free_adder(&adder);
    stk_mem_free(items);
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
    return oof->probs.kept > 0 ? 0 : rows * (double)oof->dataset->class_count * oof->number_s;
}

static void append_header(const stk_dataset *d, stk_str *text) {
    stk_str_append(text, "id,label,fold");
    for (int c = 0; c < d->class_count; c++) {
        stk_str_append(text, ",");
        stk_csv_append(text, d->classes[c]);
    }
    stk_str_append(text, "\n");
}

static void append_row(const stk_oof *oof, size_t row, stk_str *text) {
    const stk_sample *sample = &oof->dataset->train.items[row];
    const double *probs = stk_predictions_row(&oof->probs, row, NULL);
    stk_csv_append(text, sample->id);
    stk_str_append(text, ",");
    stk_true_answer_append(text, oof->dataset, sample);
    stk_str_appendf(text, ",%d", oof->fold[row]);
    for (int c = 0; c < oof->dataset->class_count; c++) {
        stk_str_appendf(text, ",%.9g", probs[c]);
    }
    stk_str_append(text, "\n");
}

/* Writes the collected text and empties it. */
static stk_status flush(stk_file_writer *writer, stk_str *text, const char *path, stk_error *err) {
    stk_status status = stk_str_ok(text)
                            ? stk_file_append(writer, stk_str_text(text), text->length, err)
                            : STK_FAIL_MEMORY(err, path);
    stk_str_clear(text);
    return status;
}

static stk_status write_rows(const stk_oof *oof, const char *path, stk_halt late,
                             stk_file_writer *writer, stk_error *err) {
    const stk_dataset *d = oof->dataset;
    stk_status status = STK_OK;
    stk_str text = {0};
    append_header(d, &text);
    for (size_t i = 0; status == STK_OK && i < d->train.count; i++) {
        if (oof->fold[i] < 0) {
            continue;
        }
        append_row(oof, i, &text);
        if (late.asked != NULL && late.asked(late.user)) {
            status = STK_FAIL(err, STK_ERR_STOPPED, "no time to write %s", path);
        } else if (text.length >= FLUSH_BYTES || !stk_str_ok(&text)) {
            status = flush(writer, &text, path, err);
        }
    }
    STK_THEN(status, flush(writer, &text, path, err));
    stk_str_free(&text);
    return status;
}

stk_status stk_oof_write(stk_oof *oof, const char *path, stk_halt late, stk_error *err) {
    int64_t start = stk_clock_ns();
    stk_file_writer *writer = NULL;
    if (oof->probs.kept > 0) {
        return STK_OK;
    }
    stk_status status = stk_file_create(&writer, path, err);
    STK_THEN(status, write_rows(oof, path, late, writer, err));
    if (status != STK_OK) {
        stk_file_discard(writer);
        return status;
    }
    status = stk_file_commit(writer, err);
    size_t rows = count_rows(oof);
    if (status == STK_OK && rows > 0) {
        oof->number_s = stk_clock_since_s(start) / (double)rows / (double)oof->dataset->class_count;
    }
    return status;
}
