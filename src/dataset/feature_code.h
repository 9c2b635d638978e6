/*
 * feature_code.h - how columns beside the pictures become numbers.
 *
 * The code is made from the training table once. Whatever is predicted later is coded in the same
 * way, also from other tables: means, deviations and known texts are those of training. A
 * checkpoint keeps the code, so it is small: few texts, and short ones. Threads: read-only once
 * made; any thread may read.
 */
#ifndef STK_DATASET_FEATURE_CODE_H
#define STK_DATASET_FEATURE_CODE_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

#include "base/map.h"
#include "base/text/csv.h"
#include "base/text/text_blocks.h"

/* A column with more different texts is no property of the picture, nor is a longer text. */
#define STK_CODED_TEXTS 32
#define STK_CODED_TEXT_BYTES 256

/* The names and texts of all columns take no more than this, where each column and each text counts
 * as so many bytes more. */
#define STK_FEATURE_CODE_BYTES ((size_t)1 << 20)
#define STK_CODED_COLUMN_BYTES 128
#define STK_CODED_TEXT_EXTRA 16

/* A column: a number for its value, a number that says whether it is missing, and a 0 or 1 for each
 * text. It has them in this order, each only where it is needed. */
typedef struct stk_coded_column {
    const char *name;
    bool amount;                        /* the value is a number: (value - mean) / scale */
    bool gaps;                          /* the number may be missing; only of amounts */
    double mean;                        /* of the training table */
    double scale;                       /* its deviation, above 0 */
    const char *texts[STK_CODED_TEXTS]; /* in the order of their numbers */
    size_t text_count;
    stk_map places; /* from text to index */
} stk_coded_column;

typedef struct stk_feature_code {
    stk_coded_column *columns; /* owned */
    size_t count;
    size_t capacity;
    int numbers;          /* of a record */
    size_t bytes;         /* of STK_FEATURE_CODE_BYTES */
    size_t left_out;      /* columns that there was no room for */
    stk_text_blocks kept; /* all names and texts */
} stk_feature_code;       /* starts zeroed */

/*
 * Makes the code of the training table's columns with wanted[column] that the test table has under
 * the same name and that say something: not always the same in either table, not different in
 * every row unless they are numbers, no count of the rows, and mostly with values in the test table
 * that the training table has, too, unless they are measured.
 */
STK_CHECKED stk_status stk_feature_code_make(stk_feature_code *code, const stk_csv *train,
                                             const stk_csv *test, const bool *wanted,
                                             stk_error *err);
void stk_feature_code_free(stk_feature_code *code);

/*
 * Adds a column: its name and its texts are copied, its map is made. *fits is false, and nothing is
 * added, where there is no room for it, or where it makes no number.
 */
STK_CHECKED stk_status stk_feature_code_add(stk_feature_code *code, const stk_coded_column *column,
                                            bool *fits, stk_error *err);

/* What of a code a table lacks. */
typedef struct stk_features_absent {
    size_t columns;
    const char *name; /* of the first one; the code's */
} stk_features_absent;

/*
 * Codes all rows of a table into `values`, (rows, code->numbers) zeros. A column is found by its
 * name; a column that is not there counts as empty in each row, and so does a text that is not
 * known. 3.0 is known where 3 is. *absent: columns that are not there; *absent_name: the first of
 * them.
 */
STK_CHECKED stk_status stk_feature_code_apply(const stk_feature_code *code, const stk_csv *csv,
                                              float *values, stk_features_absent *absent,
                                              stk_error *err);

/* Codes a row whose cells are all empty into code->numbers zeros. */
void stk_feature_code_missing(const stk_feature_code *code, float *values);

#endif
