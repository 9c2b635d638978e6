/* val_table.c - writes validation.csv, and keeps its rows of earlier folds. */
#include "job/saved/val_table.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/csv.h"
#include "job/saved/saved_state.h"
#include "job/saved/true_answer.h"

#define FIRST_ROW_S 2e-6 /* seconds per row on a busy core, until measured */
#define FILE_S 0.02      /* seconds that a slow disk takes for any file */

static const char *const columns[] = {"path", "label", "predicted", "probability", "fold"};
#define COLUMNS STK_COUNT(columns)
#define FOLD_COLUMN 4

stk_status stk_val_table_open(stk_val_table *table, const stk_run_folder *folder, stk_error *err) {
    *table = (stk_val_table){.row_s = FIRST_ROW_S};
    table->path = stk_run_folder_file(folder, "validation.csv");
    table->kept = stk_run_folder_file(folder, STK_SAVED_STATE_VALIDATION);
    return table->path != NULL && table->kept != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a path");
}

void stk_val_table_free(stk_val_table *table) {
    stk_mem_free(table->path);
    stk_mem_free(table->kept);
    stk_sample_results_free(&table->now);
    stk_sample_results_free(&table->best);
    stk_str_free(&table->before);
    memset(table, 0, sizeof *table);
}

stk_status stk_val_table_begin(stk_val_table *table, const stk_dataset *dataset, int fold,
                               const stk_sample *samples, size_t count, stk_error *err) {
    stk_sample_results_free(&table->now);
    stk_sample_results_free(&table->best);
    stk_str_clear(&table->before);
    table->fold = fold;
    table->samples = samples;
    table->owed = false;
    table->others = false;
    for (size_t c = 0; c < COLUMNS; c++) {
        stk_str_append(&table->before, columns[c]);
        stk_str_append(&table->before, c + 1 < COLUMNS ? "," : "\n");
    }
    stk_task task = dataset->task;
    int outputs = dataset->class_count;
    stk_status status = stk_sample_results_open(&table->now, count, task, outputs, err);
    STK_THEN(status, stk_sample_results_open(&table->best, count, task, outputs, err));
    return status;
}

static bool has_our_columns(const stk_csv *csv) {
    bool ours = csv->columns == COLUMNS;
    for (size_t c = 0; ours && c < COLUMNS; c++) {
        ours = strcmp(csv->header[c], columns[c]) == 0;
    }
    return ours;
}

/* Keeps the rows of earlier folds. */
static void take_rows(stk_val_table *table, const stk_csv *csv) {
    for (size_t row = 0; row < csv->rows; row++) {
        int64_t fold = -1;
        if (!stk_parse_int(stk_csv_cell(csv, row, FOLD_COLUMN), &fold) || fold >= table->fold) {
            continue;
        }
        for (size_t c = 0; c < COLUMNS; c++) {
            stk_csv_append(&table->before, stk_csv_cell(csv, row, c));
            stk_str_append(&table->before, c + 1 < COLUMNS ? "," : "\n");
        }
        table->others = true;
    }
}

stk_status stk_val_table_take_earlier(stk_val_table *table, stk_error *err) {
    stk_csv csv = {0};
    if (table->fold == 0 || !stk_path_is_file(table->path)) {
        return STK_OK;
    }
    stk_status status = stk_csv_read(table->path, &csv, err);
    if (status == STK_OK && !has_our_columns(&csv)) {
        status = STK_FAIL(err, STK_ERR_DATA, "%s has other columns", table->path);
    }
    if (status == STK_OK) {
        take_rows(table, &csv);
    }
    stk_csv_free(&csv);
    return status;
}

void stk_val_table_take_best(stk_val_table *table) {
    stk_sample_results best = table->now;
    table->now = table->best;
    table->best = best;
    table->owed = true;
}

double stk_val_table_seconds(const stk_val_table *table) {
    return FILE_S + (double)table->best.count * table->row_s;
}

static void append_predicted(stk_str *text, const stk_dataset *dataset,
                             const stk_sample_results *results, const stk_sample_result *result) {
    if (results->labels != NULL) {
        stk_labels_append(text, dataset, stk_sample_results_labels(results, result),
                          (size_t)result->predicted);
    } else if (results->numbers != NULL) {
        stk_numbers_append(text, stk_sample_results_numbers(results, result),
                           (size_t)results->width);
    } else {
        stk_csv_append(text, dataset->classes[result->predicted]);
    }
}

static void append_row(stk_str *text, const stk_val_table *table, const stk_dataset *dataset,
                       const stk_sample_result *result) {
    const stk_sample *sample = &table->samples[result->sample];
    stk_csv_append(text, sample->path);
    stk_str_append(text, ",");
    stk_true_answer_append(text, dataset, sample);
    stk_str_append(text, ",");
    append_predicted(text, dataset, &table->best, result);
    stk_str_append(text, ",");
    if (!isnan(result->probability)) {
        stk_str_appendf(text, "%.6g", result->probability);
    }
    stk_str_appendf(text, ",%d\n", table->fold);
}

stk_status stk_val_table_write(stk_val_table *table, const stk_dataset *dataset, stk_error *err) {
    stk_sample_results *results = &table->best;
    int64_t start = stk_clock_ns();
    stk_str text = {0};
    stk_sample_results_sort(results);
    stk_str_append_bytes(&text, stk_str_text(&table->before), table->before.length);
    for (size_t i = 0; i < results->count; i++) {
        append_row(&text, table, dataset, &results->items[i]);
    }
    stk_status status = stk_str_ok(&text)
                            ? stk_file_write(table->path, stk_str_text(&text), text.length, err)
                            : STK_FAIL_MEMORY(err, table->path);
    table->owed = false;
    if (status == STK_OK && results->count > 0) {
        table->row_s = stk_clock_since_s(start) / (double)results->count;
    }
    stk_str_free(&text);
    return status;
}

stk_status stk_val_table_drop(stk_val_table *table, stk_error *err) {
    table->owed = false;
    if (!stk_path_is_file(table->path)) {
        return STK_OK;
    }
    if (table->others) {
        return stk_str_ok(&table->before)
                   ? stk_file_write(table->path, stk_str_text(&table->before), table->before.length,
                                    err)
                   : STK_FAIL_MEMORY(err, table->path);
    }
    return stk_disk_remove(table->path) == 0
               ? STK_OK
               : STK_FAIL(err, STK_ERR_STORAGE, "cannot remove %s: %s", table->path,
                          stk_disk_reason(errno));
}
