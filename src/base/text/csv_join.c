/* csv_join.c - a table made of rows of others. The cells are counted first, then copied at once. */
#include "base/text/csv.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* A part while it is copied. */
typedef struct part_reader {
    const stk_csv *csv;
    const bool *rows;
    size_t *from;       /* owned: of each column of the new table; SIZE_MAX: the part lacks it */
    const char **cells; /* owned: of the row being read */
} part_reader;

static void close_reader(part_reader *r) {
    stk_mem_free(r->from);
    stk_mem_free(r->cells);
}

static bool open_reader(part_reader *r, const stk_csv_part *part, const stk_csv *shape) {
    *r = (part_reader){.csv = part->csv,
                       .rows = part->rows,
                       .from = stk_mem_new(shape->columns, sizeof *r->from),
                       .cells = stk_mem_new(part->csv->columns, sizeof *r->cells)};
    if (r->from == NULL || r->cells == NULL) {
        return false;
    }
    for (size_t c = 0; c < shape->columns; c++) {
        /* Names may stand twice in a table; its own columns are meant one by one. */
        r->from[c] = part->csv == shape ? c : stk_csv_column(part->csv, shape->header[c]);
    }
    return true;
}

/* Notes where the cells of a row begin; false: the row is left out. */
static bool read_row(const part_reader *r, size_t row) {
    if (r->rows != NULL && !r->rows[row]) {
        return false;
    }
    const char *cell = stk_csv_cell(r->csv, row, 0);
    for (size_t c = 0; c < r->csv->columns; c++) {
        r->cells[c] = cell;
        cell = stk_csv_next(cell);
    }
    return true;
}

static const char *cell_of(const part_reader *r, size_t column) {
    return r->from[column] != SIZE_MAX ? r->cells[r->from[column]] : "";
}

static void count_part(const part_reader *r, size_t columns, size_t *rows, size_t *bytes) {
    for (size_t row = 0; row < r->csv->rows; row++) {
        if (read_row(r, row)) {
            ++*rows;
            for (size_t c = 0; c < columns; c++) {
                *bytes += strlen(cell_of(r, c)) + 1;
            }
        }
    }
}

/* Appends a cell at *used. */
static void put_cell(stk_csv *csv, size_t *used, const char *cell) {
    size_t size = strlen(cell) + 1;
    memcpy(csv->buffer + *used, cell, size);
    *used += size;
}

static void copy_part(const part_reader *r, stk_csv *out, size_t *used) {
    for (size_t row = 0; row < r->csv->rows; row++) {
        if (read_row(r, row)) {
            out->rows++;
            out->starts[out->rows] = (uint32_t)*used;
            out->lines[out->rows] = r->csv->lines[row + 1];
            for (size_t c = 0; c < out->columns; c++) {
                put_cell(out, used, cell_of(r, c));
            }
        }
    }
}

static stk_status make_room(const char *name, stk_csv *out, size_t rows, size_t bytes,
                            stk_error *err) {
    if (bytes >= UINT32_MAX || rows > STK_CSV_ROWS_MAX) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s would be a table of %zu rows and %zu bytes, more than Stoker reads",
                        name, rows, bytes);
    }
    out->buffer = stk_mem_raw(bytes, 1);
    out->starts = stk_mem_raw(rows + 1, sizeof *out->starts);
    out->lines = stk_mem_raw(rows + 1, sizeof *out->lines);
    out->header = stk_mem_raw(out->columns, sizeof *out->header);
    return out->buffer != NULL && out->starts != NULL && out->lines != NULL && out->header != NULL
               ? STK_OK
               : STK_FAIL_MEMORY(err, name);
}

stk_status stk_csv_join(const char *name, const stk_csv_part *parts, size_t count, stk_csv *csv,
                        stk_error *err) {
    const stk_csv *shape = parts[0].csv;
    size_t rows = 0;
    size_t bytes = 0;
    size_t used = 0;
    memset(csv, 0, sizeof *csv);
    part_reader *readers = stk_mem_new(count, sizeof *readers);
    bool ok = readers != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        ok = open_reader(&readers[i], &parts[i], shape);
        if (ok) {
            count_part(&readers[i], shape->columns, &rows, &bytes);
        }
    }
    for (size_t c = 0; c < shape->columns; c++) {
        bytes += strlen(shape->header[c]) + 1;
    }
    csv->columns = shape->columns;
    stk_status status = ok ? make_room(name, csv, rows, bytes, err) : STK_FAIL_MEMORY(err, name);
    if (status == STK_OK) {
        csv->starts[0] = 0;
        csv->lines[0] = shape->lines[0];
    }
    for (size_t c = 0; status == STK_OK && c < shape->columns; c++) {
        csv->header[c] = csv->buffer + used;
        put_cell(csv, &used, shape->header[c]);
    }
    for (size_t i = 0; status == STK_OK && i < count; i++) {
        copy_part(&readers[i], csv, &used);
    }
    for (size_t i = 0; readers != NULL && i < count; i++) {
        close_reader(&readers[i]);
    }
    stk_mem_free(readers);
    if (status != STK_OK) {
        stk_csv_free(csv);
    }
    return status;
}
