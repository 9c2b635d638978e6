/* results_csv.c - rows of epochs to text and back, by one table of columns. */
#include "report/text/results_csv.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/mem.h"
#include "base/text/csv.h"
#include "metrics/metric.h"

/* What the column of a metric begins with, and its significant digits. */
#define METRIC_PREFIX "val/"
#define METRIC_DIGITS 6

const stk_results_column stk_results_columns[STK_RESULTS_COLUMNS] = {
    {"train/loss", offsetof(stk_event_epoch, train_loss), 'g', 6},
    {"train/acc1", offsetof(stk_event_epoch, train_acc1), 'f', 3},
    {"val/loss", offsetof(stk_event_epoch, val_loss), 'g', 6},
    {"val/acc1", offsetof(stk_event_epoch, val_acc1), 'f', 3},
    {"val/acc5", offsetof(stk_event_epoch, val_acc5), 'f', 3},
    {"lr", offsetof(stk_event_epoch, lr), 'g', 6},
    {"images_per_second", offsetof(stk_event_epoch, images_per_second), 'f', 1},
    {"wait_fraction", offsetof(stk_event_epoch, wait_fraction), 'f', 4},
    {"seconds", offsetof(stk_event_epoch, seconds), 'f', 3},
};

double stk_results_value(const stk_results_column *column, const stk_event_epoch *row) {
    const double *value = (const void *)((const char *)row + column->offset);
    return *value;
}

const char *stk_results_metric(const stk_event_start *start) {
    return start != NULL ? stk_metric_column(start->metric) : NULL;
}

static void put_row(stk_str *out, const stk_event_epoch *row, const char *metric) {
    stk_str_appendf(out, "%d,%d", row->fold, row->epoch);
    for (size_t i = 0; i < STK_RESULTS_COLUMNS; i++) {
        const stk_results_column *column = &stk_results_columns[i];
        double value = stk_results_value(column, row);
        stk_str_append(out, ",");
        if (isfinite(value)) {
            stk_str_appendf(out, column->form == 'g' ? "%.*g" : "%.*f", column->digits, value);
        }
    }
    if (metric != NULL) {
        stk_str_append(out, ",");
        if (isfinite(row->val_metric)) {
            stk_str_appendf(out, "%.*g", METRIC_DIGITS, row->val_metric);
        }
    }
    stk_str_append(out, "\n");
}

void stk_results_csv_put(stk_str *out, const stk_event_epoch *rows, size_t count,
                         const char *metric) {
    stk_str_append(out, "fold,epoch");
    for (size_t i = 0; i < STK_RESULTS_COLUMNS; i++) {
        stk_str_appendf(out, ",%s", stk_results_columns[i].name);
    }
    if (metric != NULL) {
        stk_str_appendf(out, "," METRIC_PREFIX "%s", metric);
    }
    stk_str_append(out, "\n");
    for (size_t i = 0; i < count; i++) {
        put_row(out, &rows[i], metric);
    }
}

/* The column of a metric; SIZE_MAX: there is none. */
static size_t find_metric(const stk_csv *csv) {
    size_t found = SIZE_MAX;
    size_t prefix = strlen(METRIC_PREFIX);
    for (size_t i = 0; i < csv->columns && found == SIZE_MAX; i++) {
        const char *name = csv->header[i];
        bool validated = strncmp(name, METRIC_PREFIX, prefix) == 0;
        found = validated && stk_metric_column(name + prefix) != NULL ? i : found;
    }
    return found;
}

/* A cell as a number; NaN where it is empty, foreign text or missing. */
static double number_at(const stk_csv *csv, size_t row, size_t at) {
    double value = NAN;
    bool known = at != SIZE_MAX && stk_parse_double(stk_csv_cell(csv, row, at), &value);
    return known ? value : NAN;
}

static double cell(const stk_csv *csv, size_t row, const char *column) {
    return number_at(csv, row, stk_csv_column(csv, column));
}

/* False: somebody else wrote this row. */
static bool read_row(const stk_csv *csv, size_t at, size_t metric_at, stk_event_epoch *row) {
    double fold = cell(csv, at, "fold");
    double epoch = cell(csv, at, "epoch");
    if (!(fold >= 0 && fold < 1e6 && epoch >= 1 && epoch < 1e9)) {
        return false;
    }
    *row = (stk_event_epoch){.fold = (int)fold, .epoch = (int)epoch};
    for (size_t i = 0; i < STK_RESULTS_COLUMNS; i++) {
        double *value = (void *)((char *)row + stk_results_columns[i].offset);
        *value = cell(csv, at, stk_results_columns[i].name);
    }
    row->val_metric = number_at(csv, at, metric_at);
    return true;
}

stk_status stk_results_csv_read(const char *path, stk_event_epoch **rows, size_t *count,
                                stk_error *err) {
    stk_csv csv;
    *rows = NULL;
    *count = 0;
    if (!stk_path_is_file(path)) {
        return STK_OK;
    }
    stk_status status = stk_csv_read(path, &csv, err);
    if (status == STK_OK && csv.rows > 0) {
        *rows = stk_mem_new(csv.rows, sizeof **rows);
        status = *rows != NULL ? STK_OK : STK_FAIL_MEMORY(err, path);
    }
    size_t metric_at = status == STK_OK ? find_metric(&csv) : SIZE_MAX;
    for (size_t i = 0; status == STK_OK && i < csv.rows; i++) {
        *count += read_row(&csv, i, metric_at, &(*rows)[*count]);
    }
    stk_csv_free(&csv);
    return status;
}
