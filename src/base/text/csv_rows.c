/*
 * csv_rows.c - collects cells row by row. A row is put in order when it ends, so that finished rows
 * are already what a stk_csv holds; only rows from before a later column was found lack cells.
 */
#include "base/text/csv_rows.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* A table may have so many empty cells for each one that is not, and so many in any case. */
#define EMPTY_MOST 64
#define EMPTY_ALLOWED ((uint64_t)1 << 20)

/* A column more than this is a table of another kind: names that are values. */
#define COLUMNS_MOST ((size_t)20000)

static const char *name_of(const stk_csv_rows *rows) {
    return rows->name != NULL ? rows->name : "a table";
}

void stk_csv_rows_free(stk_csv_rows *rows) {
    stk_map_free(&rows->by_name);
    stk_text_blocks_free(&rows->names);
    stk_mem_free(rows->columns);
    stk_mem_free(rows->row);
    stk_mem_free(rows->cells);
    stk_mem_free(rows->lines);
    stk_mem_free(rows->widths);
    memset(rows, 0, sizeof *rows);
}

static bool is_named(const stk_csv_rows_column *column, const char *name, size_t length) {
    return column->name_length == length && memcmp(column->name, name, length) == 0;
}

stk_status stk_csv_rows_column_of(stk_csv_rows *rows, const char *name, size_t length,
                                  size_t *column, stk_error *err) {
    if (rows->likely < rows->column_count && is_named(&rows->columns[rows->likely], name, length)) {
        *column = rows->likely++;
        return STK_OK;
    }
    size_t number = rows->column_count;
    bool added = true;
    if (!stk_map_find(&rows->by_name, name, &number)) {
        if (number == COLUMNS_MOST) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s: the records have more than %zu different fields, more than Stoker "
                            "reads as columns (one is \"%.80s\"); is it a table?",
                            name_of(rows), COLUMNS_MOST, name);
        }
        const char *copy = stk_text_blocks_keep(&rows->names, name, length);
        if (copy == NULL || !STK_RESERVE(rows->columns, rows->column_capacity, number + 1) ||
            !stk_map_add(&rows->by_name, copy, number, &added)) {
            return STK_FAIL_MEMORY(err, name_of(rows));
        }
        rows->columns[rows->column_count++] =
            (stk_csv_rows_column){.name = copy, .name_length = length};
    }
    rows->likely = number + 1;
    *column = number;
    return STK_OK;
}

stk_status stk_csv_rows_begin(stk_csv_rows *rows, uint64_t line, stk_error *err) {
    if (rows->rows == STK_CSV_ROWS_MAX) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s, line %llu: the table has more than %zu rows, more than Stoker reads; "
                        "if it is the right file, divide it",
                        name_of(rows), (unsigned long long)line, STK_CSV_ROWS_MAX);
    }
    if (!STK_RESERVE(rows->lines, rows->lines_capacity, rows->rows + 1)) {
        return STK_FAIL_MEMORY(err, name_of(rows));
    }
    rows->lines[rows->rows] = line < UINT32_MAX ? (uint32_t)line : UINT32_MAX;
    rows->row_used = 0;
    rows->likely = 0;
    rows->begun++;
    return STK_OK;
}

bool stk_csv_rows_has(const stk_csv_rows *rows, size_t column) {
    return rows->columns[column].filled == rows->begun;
}

stk_status stk_csv_rows_put(stk_csv_rows *rows, size_t column, const char *text, size_t length,
                            stk_error *err) {
    stk_csv_rows_column *c = &rows->columns[column];
    c->at = rows->row_used;
    c->length = 0;
    c->filled = rows->begun;
    if (!STK_RESERVE(rows->row, rows->row_capacity, rows->row_used + length + 1)) {
        return STK_FAIL_MEMORY(err, name_of(rows));
    }
    memcpy(rows->row + rows->row_used, text, length);
    rows->row_used += length;
    c->length = length;
    return STK_OK;
}

stk_status stk_csv_rows_join(stk_csv_rows *rows, size_t column, const char *text, size_t length,
                             stk_error *err) {
    stk_csv_rows_column *c = &rows->columns[column];
    if (!STK_RESERVE(rows->row, rows->row_capacity, rows->row_used + length + 1)) {
        return STK_FAIL_MEMORY(err, name_of(rows));
    }
    rows->row[rows->row_used] = ' ';
    memcpy(rows->row + rows->row_used + 1, text, length);
    rows->row_used += length + 1;
    c->length += length + 1;
    return STK_OK;
}

stk_status stk_csv_rows_end(stk_csv_rows *rows, stk_error *err) {
    size_t need = rows->cells_used + rows->row_used + rows->column_count;
    if (!STK_RESERVE(rows->cells, rows->cells_capacity, need + 1) ||
        !STK_RESERVE(rows->widths, rows->widths_capacity, rows->rows + 1)) {
        return STK_FAIL_MEMORY(err, name_of(rows));
    }
    char *out = rows->cells + rows->cells_used;
    for (size_t i = 0; i < rows->column_count; i++) {
        const stk_csv_rows_column *c = &rows->columns[i];
        if (stk_csv_rows_has(rows, i) && c->length > 0) {
            memcpy(out, rows->row + c->at, c->length);
            out += c->length;
            rows->filled++;
        }
        *out++ = '\0';
    }
    rows->cells_used = (size_t)(out - rows->cells);
    rows->widths[rows->rows++] = (uint32_t)rows->column_count;
    uint64_t all = (uint64_t)rows->rows * rows->column_count;
    if (all - rows->filled > EMPTY_ALLOWED && (all - rows->filled) / EMPTY_MOST > rows->filled) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s: the first %zu records have %zu different fields and hardly one in "
                        "common, so they are no table",
                        name_of(rows), rows->rows, rows->column_count);
    }
    return STK_OK;
}

/* Writes header and rows into the table's buffer, which is large enough. */
static void write_all(const stk_csv_rows *rows, stk_csv *csv) {
    char *out = csv->buffer;
    const char *from = rows->cells;
    for (size_t i = 0; i < rows->column_count; i++) {
        csv->header[i] = out;
        memcpy(out, rows->columns[i].name, rows->columns[i].name_length + 1);
        out += rows->columns[i].name_length + 1;
    }
    csv->starts[0] = 0;
    csv->lines[0] = 1;
    for (size_t row = 0; row < rows->rows; row++) {
        const char *end = from;
        for (uint32_t i = 0; i < rows->widths[row]; i++) {
            end = stk_csv_next(end);
        }
        csv->starts[row + 1] = (uint32_t)(out - csv->buffer);
        csv->lines[row + 1] = rows->lines[row];
        memcpy(out, from, (size_t)(end - from));
        out += end - from;
        memset(out, 0, rows->column_count - rows->widths[row]);
        out += rows->column_count - rows->widths[row];
        from = end;
    }
}

/* Bytes of the table's buffer. */
static uint64_t count_bytes(const stk_csv_rows *rows) {
    uint64_t bytes = rows->cells_used;
    for (size_t i = 0; i < rows->column_count; i++) {
        bytes += rows->columns[i].name_length + 1;
    }
    for (size_t row = 0; row < rows->rows; row++) {
        bytes += rows->column_count - rows->widths[row];
    }
    return bytes;
}

stk_status stk_csv_rows_finish(stk_csv_rows *rows, stk_csv *csv, stk_error *err) {
    const char *name = name_of(rows);
    memset(csv, 0, sizeof *csv);
    uint64_t bytes = count_bytes(rows);
    stk_status status = STK_OK;
    if (rows->column_count == 0) {
        status = STK_FAIL(err, STK_ERR_DATA, "%s holds no records with fields in them", name);
    } else if (bytes >= UINT32_MAX) {
        status =
            STK_FAIL(err, STK_ERR_DATA,
                     "the table in %s has 4 GiB of text or more, more than Stoker reads; leave "
                     "out the fields that are not needed",
                     name);
    } else {
        csv->buffer = stk_mem_raw((size_t)bytes, 1);
        csv->header = stk_mem_raw(rows->column_count, sizeof *csv->header);
        csv->starts = stk_mem_raw(rows->rows + 1, sizeof *csv->starts);
        csv->lines = stk_mem_raw(rows->rows + 1, sizeof *csv->lines);
        bool has =
            csv->buffer != NULL && csv->header != NULL && csv->starts != NULL && csv->lines != NULL;
        status = has ? STK_OK : STK_FAIL_MEMORY(err, name);
    }
    if (status == STK_OK) {
        csv->rows = rows->rows;
        csv->columns = rows->column_count;
        write_all(rows, csv);
    } else {
        stk_csv_free(csv);
    }
    stk_csv_rows_free(rows);
    return status;
}
