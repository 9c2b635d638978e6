/*
 * results_csv.h - inside the report room: results.csv, one row per epoch, written and read.
 *
 * Writer and reader share one table of columns. Unknown numbers are empty cells. Threads: safe,
 * nothing is stored.
 */
#ifndef STK_REPORT_TEXT_RESULTS_CSV_H
#define STK_REPORT_TEXT_RESULTS_CSV_H

#include <stoker/events.h>

#include "base/str.h"

/* The columns after fold and epoch. TensorBoard's curves have the same names. */
#define STK_RESULTS_COLUMNS 9
typedef struct stk_results_column {
    const char *name;
    size_t offset; /* of a double in stk_event_epoch */
    char form;     /* 'g': `digits` significant digits, 'f': `digits` decimals */
    int digits;
} stk_results_column;

extern const stk_results_column stk_results_columns[STK_RESULTS_COLUMNS];

/* The value of a column; NaN: not known. */
double stk_results_value(const stk_results_column *column, const stk_event_epoch *row);

/* The metric of a run for which the table of columns has none: it gets the column val/<metric> at
 * the end. NULL: there is none; `start` may be NULL. */
const char *stk_results_metric(const stk_event_start *start);

/* Appends the whole file: the header and the rows. `metric` as above. */
void stk_results_csv_put(stk_str *out, const stk_event_epoch *rows, size_t count,
                         const char *metric);

/*
 * Reads all rows; free them with stk_mem_free. A missing file counts as empty. Rows without a valid
 * fold and epoch are left out. The fields that the file does not have (epochs, best, times) are
 * zero; val_metric is NaN where no column has it.
 */
STK_CHECKED stk_status stk_results_csv_read(const char *path, stk_event_epoch **rows, size_t *count,
                                            stk_error *err);

#endif
