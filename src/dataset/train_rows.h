/*
 * train_rows.h - only for this room: which training pictures make one row, as the submission has
 * rows.
 *
 * A test table may give several pictures the same id of the sample submission. Where the training
 * table has that column, or the columns that the id is written of ("10008_L": patient and side),
 * its pictures are grouped in the same way, so that a validation can rate rows. Threads: one.
 */
#ifndef STK_DATASET_TRAIN_ROWS_H
#define STK_DATASET_TRAIN_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/map.h"
#include "base/text/csv.h"
#include "base/text/text_blocks.h"

/* An id is written of so many columns at most. */
#define STK_ROW_COLUMNS 4

typedef struct stk_train_rows {
    size_t columns[STK_ROW_COLUMNS]; /* of the training table */
    size_t count;                    /* 0: no columns name its rows */
    stk_map numbers;                 /* owned: from the cells to the number of a row */
    stk_text_blocks texts;           /* owned: the cells */
} stk_train_rows;                    /* starts zeroed */

/* Finds the columns whose cells together are the ids in the column `key` of the test table; none
 * where each id has one picture. */
STK_CHECKED stk_status stk_train_rows_find(stk_train_rows *rows, const stk_csv *train,
                                           const stk_csv *test, size_t key, stk_error *err);

/* The number, above 0, of the row that a line of the training table belongs to; 0: it is a row
 * alone. */
STK_CHECKED stk_status stk_train_rows_number(stk_train_rows *rows, const stk_csv *train,
                                             size_t line, int64_t *number, stk_error *err);
void stk_train_rows_free(stk_train_rows *rows);

#endif
