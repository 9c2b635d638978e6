/*
 * csv_rows.h - makes a stk_csv of rows whose fields come with their names, in any order: records of
 * JSON, documents of BSON.
 *
 * Columns are in the order in which their names first came. A field that a row lacks is an empty
 * cell. Takes the bytes of all cells and eight for each row; stk_csv_rows_finish() needs as much
 * again for a moment. Names and cells must not hold NUL bytes. Threads: one.
 */
#ifndef STK_BASE_TEXT_CSV_ROWS_H
#define STK_BASE_TEXT_CSV_ROWS_H

#include "base/map.h"
#include "base/text/csv.h"
#include "base/text/text_blocks.h"

/* A column and its cell in the row that is being made. */
typedef struct stk_csv_rows_column {
    const char *name;
    size_t name_length;
    size_t at;       /* where in `row` the cell begins */
    size_t length;   /* bytes */
    uint64_t filled; /* number of the last row begun that has the cell, from 1 */
} stk_csv_rows_column;

typedef struct stk_csv_rows {
    const char *name;             /* borrowed: what errors call the table; set by the caller */
    stk_csv_rows_column *columns; /* owned */
    size_t column_count;
    size_t column_capacity;
    size_t likely;         /* the column that the last row had at this place */
    stk_map by_name;       /* number of a column */
    stk_text_blocks names; /* memory of the names */
    char *row;             /* owned: cells of the row that is being made */
    size_t row_used;
    size_t row_capacity;
    char *cells; /* owned: finished rows, each cell with a NUL after it */
    size_t cells_used;
    size_t cells_capacity;
    uint32_t *lines; /* owned: of each finished row and of the one being made */
    size_t lines_capacity;
    uint32_t *widths; /* owned: how many columns there were when a row was finished */
    size_t widths_capacity;
    uint64_t begun;  /* rows begun so far */
    size_t rows;     /* finished */
    uint64_t filled; /* cells with a text in them, of the finished rows */
} stk_csv_rows;      /* starts zeroed */

void stk_csv_rows_free(stk_csv_rows *rows);

/* The column of that name, which is added if there is none. A NUL follows the `length` bytes. */
STK_CHECKED stk_status stk_csv_rows_column_of(stk_csv_rows *rows, const char *name, size_t length,
                                              size_t *column, stk_error *err);

/* Begins a row; `line` is where it stands in its file. A row that was begun before is dropped. */
STK_CHECKED stk_status stk_csv_rows_begin(stk_csv_rows *rows, uint64_t line, stk_error *err);

/* Whether the row has the cell already. */
bool stk_csv_rows_has(const stk_csv_rows *rows, size_t column);

/* Sets a cell of the row, once. The bytes are copied. */
STK_CHECKED stk_status stk_csv_rows_put(stk_csv_rows *rows, size_t column, const char *text,
                                        size_t length, stk_error *err);

/* Appends to the cell that was set last, with a blank between: a list in one cell. */
STK_CHECKED stk_status stk_csv_rows_join(stk_csv_rows *rows, size_t column, const char *text,
                                         size_t length, stk_error *err);

/* Ends the row, which becomes the next one of the table. */
STK_CHECKED stk_status stk_csv_rows_end(stk_csv_rows *rows, stk_error *err);

/*
 * Makes the table; `rows` is empty afterwards, also when it fails. No column, rows that have hardly
 * a column in common, and the limits of csv.h are STK_ERR_DATA.
 */
STK_CHECKED stk_status stk_csv_rows_finish(stk_csv_rows *rows, stk_csv *csv, stk_error *err);

#endif
