/* targets.c - lists of labels and numbers of the training records. */
#include "dataset/targets.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* A label that stood alone every time by chance would do so with this probability at most. */
#define BY_CHANCE 0.05

/* Labels from which on they are believed to exclude each other where no picture has two. */
#define TELLING_ROWS 20

static stk_status fail_memory(stk_targets *t, stk_error *err) {
    stk_targets_free(t);
    return STK_FAIL_MEMORY(err, "the labels of the pictures");
}

stk_status stk_targets_open_numbers(stk_targets *t, int outputs, size_t count, stk_error *err) {
    size_t columns = (size_t)outputs;
    *t = (stk_targets){.outputs = outputs, .count = count};
    t->numbers = stk_mem_new(count, columns * sizeof *t->numbers);
    t->least = stk_mem_new(columns, sizeof *t->least);
    t->most = stk_mem_new(columns, sizeof *t->most);
    t->mean = stk_mem_new(columns, sizeof *t->mean);
    t->scale = stk_mem_new(columns, sizeof *t->scale);
    if (t->numbers == NULL || t->least == NULL || t->most == NULL || t->mean == NULL ||
        t->scale == NULL) {
        return fail_memory(t, err);
    }
    for (size_t i = 0; i < count * columns; i++) {
        t->numbers[i] = NAN;
    }
    return STK_OK;
}

stk_status stk_targets_open_labels(stk_targets *t, int outputs, size_t count, stk_error *err) {
    *t = (stk_targets){.outputs = outputs, .is_labels = true};
    t->starts = stk_mem_new(count + 1, sizeof *t->starts);
    t->exclusive = stk_mem_new((size_t)outputs, sizeof *t->exclusive);
    return t->starts != NULL && t->exclusive != NULL ? STK_OK : fail_memory(t, err);
}

stk_status stk_targets_add_label(stk_targets *t, int label, stk_error *err) {
    for (size_t i = t->starts[t->count]; i < t->label_count; i++) {
        if (t->labels[i] == label) {
            return STK_OK; /* a cell that names a label twice means it once */
        }
    }
    if (!STK_RESERVE(t->labels, t->label_capacity, t->label_count + 1)) {
        return STK_FAIL_MEMORY(err, "the labels of the pictures");
    }
    t->labels[t->label_count++] = label;
    return STK_OK;
}

void stk_targets_end_record(stk_targets *t) {
    t->starts[++t->count] = t->label_count;
}

/*
 * Which labels exclude all others: those that never stand beside another one, though that would
 * have been likely by how often the other labels do.
 */
static void mark_exclusive(stk_targets *t, const size_t *alone, const size_t *all) {
    double all_sum = 0;
    double alone_sum = 0;
    for (int k = 0; k < t->outputs; k++) {
        all_sum += (double)all[k];
        alone_sum += (double)alone[k];
    }
    for (int k = 0; k < t->outputs; k++) {
        double others = all_sum - (double)all[k];
        double share = others > 0 ? (alone_sum - (double)alone[k]) / others : 1;
        bool telling = share < 1 ? pow(share, (double)all[k]) < BY_CHANCE : all_sum >= TELLING_ROWS;
        t->exclusive[k] = t->outputs > 1 && all[k] > 0 && alone[k] == all[k] && telling;
    }
}

static stk_status find_exclusive(stk_targets *t, stk_error *err) {
    size_t *alone = stk_mem_new((size_t)t->outputs, sizeof *alone);
    size_t *all = stk_mem_new((size_t)t->outputs, sizeof *all);
    bool ok = alone != NULL && all != NULL;
    for (size_t r = 0; ok && r < t->count; r++) {
        bool lonely = t->starts[r + 1] - t->starts[r] < 2;
        for (size_t i = t->starts[r]; i < t->starts[r + 1]; i++) {
            all[t->labels[i]]++;
            alone[t->labels[i]] += lonely;
        }
    }
    if (ok) {
        mark_exclusive(t, alone, all);
    }
    stk_mem_free(alone);
    stk_mem_free(all);
    return ok ? STK_OK : STK_FAIL_MEMORY(err, "the labels of the pictures");
}

static void measure_output(stk_targets *t, int k) {
    double sum = 0;
    double squares = 0;
    size_t known = 0;
    t->least[k] = INFINITY;
    t->most[k] = -INFINITY;
    for (size_t r = 0; r < t->count; r++) {
        double x = t->numbers[r * (size_t)t->outputs + (size_t)k];
        if (!isnan(x)) {
            t->least[k] = fmin(t->least[k], x);
            t->most[k] = fmax(t->most[k], x);
            sum += x;
            known++;
        }
    }
    t->mean[k] = known > 0 ? sum / (double)known : 0;
    for (size_t r = 0; r < t->count; r++) {
        double x = t->numbers[r * (size_t)t->outputs + (size_t)k];
        squares += isnan(x) ? 0 : (x - t->mean[k]) * (x - t->mean[k]);
    }
    double scale = known > 0 ? sqrt(squares / (double)known) : 0;
    t->scale[k] = scale > 0 ? scale : 1;
}

stk_status stk_targets_finish(stk_targets *t, stk_error *err) {
    for (int k = 0; !t->is_labels && k < t->outputs; k++) {
        measure_output(t, k);
    }
    return t->is_labels ? find_exclusive(t, err) : STK_OK;
}

void stk_targets_free(stk_targets *t) {
    stk_mem_free(t->starts);
    stk_mem_free(t->labels);
    stk_mem_free(t->exclusive);
    stk_mem_free(t->numbers);
    stk_mem_free(t->least);
    stk_mem_free(t->most);
    stk_mem_free(t->mean);
    stk_mem_free(t->scale);
    memset(t, 0, sizeof *t);
}

void stk_targets_row(const stk_targets *t, size_t record, float *row) {
    if (!t->is_labels) {
        memcpy(row, t->numbers + record * (size_t)t->outputs, (size_t)t->outputs * sizeof *row);
        return;
    }
    memset(row, 0, (size_t)t->outputs * sizeof *row);
    for (size_t i = t->starts[record]; i < t->starts[record + 1]; i++) {
        row[t->labels[i]] = 1;
    }
}

double stk_targets_learned_number(const stk_targets *t, int k, double number) {
    if (!t->shares) {
        return (number - t->mean[k]) / t->scale[k];
    }
    double range = t->most[k] - t->least[k];
    return range > 0 ? (number - t->least[k]) / range : number - t->least[k];
}

void stk_targets_learned(const stk_targets *t, size_t record, float *row) {
    if (record >= t->count) {
        for (int k = 0; k < t->outputs; k++) {
            row[k] = NAN;
        }
        return;
    }
    stk_targets_row(t, record, row);
    for (int k = 0; !t->is_labels && k < t->outputs; k++) {
        row[k] = (float)stk_targets_learned_number(t, k, row[k]);
    }
}

bool stk_targets_agree(const stk_targets *t, size_t a, size_t b) {
    size_t outputs = (size_t)t->outputs;
    if (t->is_labels) {
        size_t count = t->starts[a + 1] - t->starts[a];
        return count == t->starts[b + 1] - t->starts[b] &&
               (count == 0 || memcmp(t->labels + t->starts[a], t->labels + t->starts[b],
                                     count * sizeof *t->labels) == 0);
    }
    bool same = true;
    for (size_t k = 0; k < outputs; k++) {
        float x = t->numbers[a * outputs + k];
        float y = t->numbers[b * outputs + k];
        same = same && !(x < y) && !(x > y);
    }
    return same;
}

void stk_targets_means(const stk_targets *t, double *means) {
    for (int k = 0; k < t->outputs; k++) {
        means[k] = t->is_labels ? 0 : t->mean[k];
    }
    for (size_t i = 0; t->is_labels && i < t->label_count; i++) {
        means[t->labels[i]] += 1.0 / (double)t->count;
    }
}
