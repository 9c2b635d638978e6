/*
 * records.c - makes samples of the rows of a table: their classes, or their targets and the stratum
 * by which they are divided.
 */
#include "dataset/records.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/names.h"
#include "dataset/label_columns.h"
#include "dataset/label_lists.h"

/* Numbers are divided by their size: into so many strata, with so many rows each at least. */
#define MOST_STRATA 10
#define LEAST_ROWS 10

static stk_status fail_memory(stk_error *err) {
    return STK_FAIL_MEMORY(err, "the labels of the pictures");
}

/* The outputs' names are those of the label columns. */
static stk_status name_columns(stk_listing *listing, const stk_csv *csv, const stk_ask *ask,
                               stk_error *err) {
    int label;
    stk_status status = STK_OK;
    for (size_t i = 0; status == STK_OK && i < ask->count; i++) {
        status = stk_listing_class(listing, csv->header[ask->labels[i]], &label, err);
    }
    return status;
}

/* ---- several labels ---- */

/* Names of all labels that cells list, sorted as classes are. */
static stk_status name_listed(stk_listing *listing, const stk_csv *csv, size_t column, char divider,
                              stk_error *err) {
    stk_status status = STK_OK;
    for (size_t row = 0; status == STK_OK && row < csv->rows; row++) {
        const char *word;
        size_t length;
        int label;
        for (const char *at = stk_csv_cell(csv, row, column);
             status == STK_OK && (word = stk_label_list_next(&at, divider, &length)) != NULL;) {
            char *name = stk_mem_strndup(word, length);
            status =
                name != NULL ? stk_listing_class(listing, name, &label, err) : fail_memory(err);
            stk_mem_free(name);
        }
    }
    STK_THEN(status, stk_listing_sort_classes(listing->dataset, err));
    /* The map still has the numbers in the order of their first rows. */
    stk_map_free(&listing->class_labels);
    for (int k = 0; status == STK_OK && k < listing->dataset->class_count; k++) {
        bool added;
        status =
            stk_map_add(&listing->class_labels, listing->dataset->classes[k], (size_t)k, &added)
                ? STK_OK
                : fail_memory(err);
    }
    return status;
}

static stk_status add_listed(stk_listing *listing, const char *cell, char divider, stk_error *err) {
    stk_targets *targets = &listing->dataset->targets;
    stk_status status = STK_OK;
    const char *word;
    size_t length;
    while (status == STK_OK && (word = stk_label_list_next(&cell, divider, &length)) != NULL) {
        size_t label = 0;
        char *name = stk_mem_strndup(word, length);
        if (name == NULL || !stk_map_find(&listing->class_labels, name, &label)) {
            status = fail_memory(err);
        }
        stk_mem_free(name);
        STK_THEN(status, stk_targets_add_label(targets, (int)label, err));
    }
    return status;
}

static stk_status add_flags(stk_listing *listing, const stk_csv *csv, const stk_ask *ask,
                            size_t row, stk_error *err) {
    stk_status status = STK_OK;
    for (size_t i = 0; status == STK_OK && i < ask->count; i++) {
        double x;
        const char *cell = stk_csv_cell(csv, row, ask->labels[i]);
        if (stk_cell_number(cell, &x) && x >= 0.5) {
            status = stk_targets_add_label(&listing->dataset->targets, (int)i, err);
        }
    }
    return status;
}

static stk_status read_labels(stk_listing *listing, const stk_csv *csv, const stk_ask *ask,
                              stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    bool lists = ask->count == 1;
    stk_status status = lists ? name_listed(listing, csv, ask->labels[0], ask->divider, err)
                              : name_columns(listing, csv, ask, err);
    STK_THEN(status,
             stk_targets_open_labels(&dataset->targets, dataset->class_count, csv->rows, err));
    for (size_t row = 0; status == STK_OK && row < csv->rows; row++) {
        status =
            lists ? add_listed(listing, stk_csv_cell(csv, row, ask->labels[0]), ask->divider, err)
                  : add_flags(listing, csv, ask, row, err);
        if (status == STK_OK) {
            stk_targets_end_record(&dataset->targets);
        }
    }
    return status;
}

/* The stratum of a record is its rarest label; the last stratum has no label. */
static stk_status stratify_labels(const stk_targets *t, int *strata, int *count, stk_error *err) {
    size_t *have = stk_mem_new((size_t)t->outputs, sizeof *have);
    if (have == NULL) {
        return fail_memory(err);
    }
    for (size_t i = 0; i < t->label_count; i++) {
        have[t->labels[i]]++;
    }
    for (size_t r = 0; r < t->count; r++) {
        strata[r] = t->outputs;
        for (size_t i = t->starts[r]; i < t->starts[r + 1]; i++) {
            int label = t->labels[i];
            bool rarer = strata[r] == t->outputs || have[label] < have[strata[r]];
            strata[r] = rarer ? label : strata[r];
        }
    }
    *count = t->outputs + 1;
    stk_mem_free(have);
    return STK_OK;
}

/* ---- numbers ---- */

static stk_status read_numbers(stk_listing *listing, const stk_csv *csv, const stk_ask *ask,
                               stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    stk_status status = name_columns(listing, csv, ask, err);
    STK_THEN(status, stk_targets_open_numbers(&dataset->targets, (int)ask->count, csv->rows, err));
    for (size_t row = 0; status == STK_OK && row < csv->rows; row++) {
        double sum =
            ask->answer.shares ? stk_label_columns_sum(csv, row, ask->labels, ask->count) : 1;
        for (size_t i = 0; sum > 0 && i < ask->count; i++) {
            double x;
            if (stk_cell_number(stk_csv_cell(csv, row, ask->labels[i]), &x)) {
                dataset->targets.numbers[row * ask->count + i] = (float)(x / sum);
            }
        }
    }
    return status;
}

static int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a;
    float y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* The stratum of a record is the tenth of all records in which its first number lies. */
static stk_status stratify_numbers(const stk_targets *t, int *strata, int *count, stk_error *err) {
    float *sorted = stk_mem_new(t->count, sizeof *sorted);
    size_t known = 0;
    if (sorted == NULL) {
        return fail_memory(err);
    }
    for (size_t r = 0; r < t->count; r++) {
        float x = t->numbers[r * (size_t)t->outputs];
        if (!isnan(x)) {
            sorted[known++] = x;
        }
    }
    qsort(sorted, known, sizeof *sorted, compare_floats);
    size_t wanted = known / LEAST_ROWS;
    *count = wanted < 1 ? 1 : wanted > MOST_STRATA ? MOST_STRATA : (int)wanted;
    for (size_t r = 0; r < t->count; r++) {
        float x = t->numbers[r * (size_t)t->outputs];
        strata[r] = 0;
        for (int s = 1; s < *count && !isnan(x); s++) {
            strata[r] += x >= sorted[known * (size_t)s / (size_t)*count];
        }
    }
    stk_mem_free(sorted);
    return STK_OK;
}

/* ---- classes ---- */

/* The class of a row: the text of its cell, or the name of the column that has the 1. */
static const char *class_of(const stk_csv *csv, const stk_ask *ask, size_t row) {
    if (!ask->one_hot) {
        return stk_csv_cell(csv, row, ask->labels[0]);
    }
    for (size_t i = 0; i + 1 < ask->count; i++) {
        double x;
        if (stk_cell_number(stk_csv_cell(csv, row, ask->labels[i]), &x) && x == 1) {
            return csv->header[ask->labels[i]];
        }
    }
    return csv->header[ask->labels[ask->count - 1]];
}

stk_status stk_records_read(stk_records *records, stk_listing *listing, const stk_csv *csv,
                            const stk_ask *ask, const bool *wanted, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    const stk_targets *targets = &dataset->targets;
    stk_status status = STK_OK;
    *records = (stk_records){.strata = stk_mem_new(csv->rows, sizeof *records->strata)};
    if (records->strata == NULL) {
        return fail_memory(err);
    }
    if (stk_task_has_classes(ask->task)) {
        for (size_t row = 0; status == STK_OK && row < csv->rows; row++) {
            if (wanted[row]) {
                const char *name = class_of(csv, ask, row);
                status = stk_listing_class(listing, name, &records->strata[row], err);
            }
        }
        return status;
    }
    bool labels = ask->task == STK_TASK_MULTILABEL;
    status = labels ? read_labels(listing, csv, ask, err) : read_numbers(listing, csv, ask, err);
    STK_THEN(status, stk_targets_finish(&dataset->targets, err));
    STK_THEN(status,
             labels ? stratify_labels(targets, records->strata, &dataset->target_strata, err)
                    : stratify_numbers(targets, records->strata, &dataset->target_strata, err));
    return status;
}

void stk_records_free(stk_records *records) {
    stk_mem_free(records->strata);
    memset(records, 0, sizeof *records);
}
