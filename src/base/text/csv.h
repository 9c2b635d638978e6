/*
 * csv.h - tables of text as RFC 4180 has them: quotes, doubled quotes, line breaks inside quotes,
 * LF or CRLF, a UTF-8 byte order mark, no line break at the end. Blank lines are skipped. A column
 * may have no name, as the row numbers that pandas writes in front.
 *
 * A table takes as many bytes as its file and eight for each row, however many cells it has: the
 * cells of a row lie one after another, and a cell is found by going over those before it.
 */
#ifndef STK_BASE_TEXT_CSV_H
#define STK_BASE_TEXT_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/files/file.h"
#include "base/str.h"

/* Larger tables are refused: such a file is a mistake. */
#define STK_CSV_COLUMNS_MAX ((size_t)100000)
#define STK_CSV_ROWS_MAX ((size_t)50000000)

typedef struct stk_csv {
    char *buffer;     /* owned: all fields, row by row, each with a NUL after it */
    uint32_t *starts; /* owned: where in the buffer each row begins; the header is the first */
    uint32_t *lines;  /* owned: the line of the file on which each row starts, from 1 */
    size_t rows;      /* the header not counted */
    size_t columns;
    const char **header; /* owned array: the names of the columns, pointing into buffer */
    char separator;      /* of the cells in the file; 0: it was made of others */
} stk_csv;

/*
 * Reads a file whose first row is the header. A row with another number of fields, a quote that
 * does not close or a NUL byte is STK_ERR_DATA, and the message names the line. So is an empty
 * file, a file with more columns or rows than the limits above, and a file of 4 GiB or more. After
 * a failure *csv is empty and need not be freed.
 */
STK_CHECKED stk_status stk_csv_read(const char *path, stk_csv *csv, stk_error *err);
STK_CHECKED stk_status stk_csv_parse(const char *name, const char *text, size_t size, stk_csv *csv,
                                     stk_error *err);

/* The same with a block that the table keeps: afterwards, failed or not, *bytes is empty. */
STK_CHECKED stk_status stk_csv_take(const char *name, stk_bytes *bytes, stk_csv *csv,
                                    stk_error *err);

/*
 * The same for a table whose cells are separated by commas, tabs, semicolons or bars. The first
 * line tells: without a comma outside of quotes, the one other separator in it counts. Where two
 * of them stand in it the comma separates.
 */
STK_CHECKED stk_status stk_csv_take_any(const char *name, stk_bytes *bytes, stk_csv *csv,
                                        stk_error *err);
void stk_csv_free(stk_csv *csv);

/* Rows of a table: those that are true; NULL: all. */
typedef struct stk_csv_part {
    const stk_csv *csv;
    const bool *rows;
} stk_csv_part;

/*
 * Makes a table of rows of others, part by part. Its columns are those of the first one; the others
 * have them under the same names, or the cells are empty. Rows keep their lines. `name` is for
 * errors.
 */
STK_CHECKED stk_status stk_csv_join(const char *name, const stk_csv_part *parts, size_t count,
                                    stk_csv *csv, stk_error *err);

/* Field `column` of data row `row`; goes over the fields before it. */
const char *stk_csv_cell(const stk_csv *csv, size_t row, size_t column);

/* The line of the file on which data row `row` starts, from 1. */
size_t stk_csv_line(const stk_csv *csv, size_t row);

/* The field that follows `cell`, which must not be the last of its row. */
const char *stk_csv_next(const char *cell);

/* Cuts blanks off both ends of every name and field. */
void stk_csv_trim(stk_csv *csv);

/* Writes every field of a column anew, in place; none may become longer. Later fields move. */
void stk_csv_shorten(stk_csv *csv, size_t column, void (*shorten)(char *field, void *user),
                     void *user);

/* Cuts a text off the end of all fields of a column that end with it. Later fields move. */
void stk_csv_cut(stk_csv *csv, size_t column, const char *suffix);

/* The column of that name, case aside when no exact one exists; SIZE_MAX when there is none. */
size_t stk_csv_column(const stk_csv *csv, const char *name);

/*
 * Appends one field, quoted where needed. An empty field is written as nothing. In a table of one
 * column that would be a blank line, which readers skip: such a table must not have empty fields.
 */
void stk_csv_append(stk_str *out, const char *field);

/* Appends a whole table with its header. */
void stk_csv_format(const stk_csv *csv, stk_str *out);

#endif
