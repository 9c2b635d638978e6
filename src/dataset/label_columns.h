/*
 * label_columns.h - only for this room: what several label columns hold together.
 *
 * Columns of 0 and 1 are classes where each row has one 1, and labels otherwise; other columns are
 * numbers. Threads: any.
 */
#ifndef STK_DATASET_LABEL_COLUMNS_H
#define STK_DATASET_LABEL_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

#include "base/text/csv.h"

typedef struct stk_label_columns {
    bool flags;      /* all hold 0 and 1 */
    bool numbers;    /* all hold numbers or nothing */
    bool one_hot;    /* each row has one 1 */
    const char *odd; /* a column without numbers, the table's; NULL: there is none */
} stk_label_columns;

STK_CHECKED stk_status stk_label_columns_look(stk_label_columns *found, const stk_csv *csv,
                                              const size_t *columns, size_t count, stk_error *err);

/* Cells of a row in these columns that are numbers; *ones: those that are 1. */
size_t stk_label_columns_numbers(const stk_csv *csv, size_t row, const size_t *columns,
                                 size_t count, size_t *ones);

#endif
