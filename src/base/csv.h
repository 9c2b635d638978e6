/*
 * csv.h - tables of text as RFC 4180 has them: quotes, doubled quotes, line breaks inside quotes,
 * LF or CRLF, a UTF-8 byte order mark, no line break at the end. Blank lines are passed over.
 */
#ifndef STK_BASE_CSV_H
#define STK_BASE_CSV_H

#include <stddef.h>

#include <stoker/status.h>

#include "base/str.h"

typedef struct stk_csv {
    char *buffer;       /* owned: all fields, NUL-terminated, in place */
    const char **cells; /* owned array: rows x columns, pointing into buffer */
    size_t *lines;      /* owned: the line of the file on which each row starts, from 1 */
    size_t rows;        /* the header not counted */
    size_t columns;
    const char **header; /* columns names; the first `columns` cells */
} stk_csv;

/*
 * Reads a file whose first row is the header. A row with another number of fields, a quote that
 * does not close or a NUL byte is STK_ERR_DATA and names the line. An empty file is one too. After
 * a failure *csv is empty and may be freed or not.
 */
STK_CHECKED stk_status stk_csv_read(const char *path, stk_csv *csv, stk_error *err);
STK_CHECKED stk_status stk_csv_parse(const char *name, const char *text, size_t size, stk_csv *csv,
                                     stk_error *err);
void stk_csv_free(stk_csv *csv);

/* Field `column` of data row `row`. */
const char *stk_csv_cell(const stk_csv *csv, size_t row, size_t column);

/* The column of that name, case aside when no exact one exists; SIZE_MAX when there is none. */
size_t stk_csv_column(const stk_csv *csv, const char *name);

/*
 * Appends one field, quoted where it must be. An empty field is written as nothing, which a reader
 * passes over as a blank line when it is a row of its own: a table of one column must not have any.
 */
void stk_csv_append(stk_str *out, const char *field);

#endif
