/* json_columns.c - keeps the lists as they come; only their end tells what they are. */
#include "dataset/json_columns.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "dataset/listing.h"

static const char what[] = "the columns of a JSON file";

void stk_json_columns_free(stk_json_columns *columns) {
    stk_mem_free(columns->items);
    stk_mem_free(columns->texts);
    memset(columns, 0, sizeof *columns);
}

static stk_status keep(stk_json_columns *columns, const char *text, size_t length, stk_error *err) {
    if (!STK_RESERVE(columns->texts, columns->texts_capacity, columns->used + length + 1)) {
        return STK_FAIL_MEMORY(err, what);
    }
    memcpy(columns->texts + columns->used, text, length);
    columns->texts[columns->used + length] = '\0';
    columns->used += length + 1;
    return STK_OK;
}

static stk_status begin(stk_json_columns *columns, const stk_json_stream *stream, const char *name,
                        stk_error *err) {
    if (!STK_RESERVE(columns->items, columns->capacity, columns->count + 1)) {
        return STK_FAIL_MEMORY(err, what);
    }
    stk_json_column *column = &columns->items[columns->count++];
    *column = (stk_json_column){.name = columns->used, .line = stk_json_stream_line(stream)};
    stk_status status = keep(columns, name, strlen(name), err);
    column->cells = columns->used;
    return status;
}

stk_status stk_json_columns_list(stk_json_columns *columns, stk_json_stream *stream,
                                 const char *name, stk_json_token *token, bool *mixed,
                                 stk_error *err) {
    stk_status status = begin(columns, stream, name, err);
    while (status == STK_OK && token->kind != STK_JSON_TOKEN_ARRAY_END) {
        if (token->kind >= STK_JSON_TOKEN_STRING) {
            status = keep(columns, token->text, token->length, err);
            columns->items[columns->count - 1].count++;
        } else {
            *mixed = true;
            status = stk_json_stream_skip(stream, err);
        }
        STK_THEN(status, stk_json_stream_next(stream, token, err));
    }
    return status;
}

stk_status stk_json_columns_numbered(stk_json_columns *columns, stk_json_stream *stream,
                                     const char *name, stk_json_token *token, stk_error *err) {
    stk_status status = begin(columns, stream, name, err);
    while (status == STK_OK && token->kind != STK_JSON_TOKEN_OBJECT_END) {
        char number[24];
        if (token->kind < STK_JSON_TOKEN_STRING) {
            return stk_json_stream_fail(stream, "a list or an object stands between plain values",
                                        err);
        }
        status = keep(columns, token->text, token->length, err);
        size_t count = ++columns->items[columns->count - 1].count;
        STK_THEN(status, stk_json_stream_next(stream, token, err));
        if (status == STK_OK && token->kind == STK_JSON_TOKEN_KEY) {
            snprintf(number, sizeof number, "%zu", count);
            if (!stk_str_equal(token->text, number)) {
                return stk_json_stream_fail(
                    stream,
                    "the keys are no row numbers 0, 1, 2 and so on; write the table as a "
                    "list of records",
                    err);
            }
            status = stk_json_stream_next(stream, token, err);
        }
    }
    return status;
}

bool stk_json_columns_are_even(const stk_json_columns *columns) {
    bool named = false; /* a name is that of a column */
    for (size_t i = 0; i < columns->count; i++) {
        const char *name = columns->texts + columns->items[i].name;
        named = named || stk_table_is_id_name(name) || stk_table_is_label_name(name);
        if (columns->items[i].count != columns->items[0].count) {
            return false;
        }
    }
    return columns->count > 0 && columns->items[0].count > 0 &&
           (named || columns->items[0].count >= columns->count);
}

/* Row by row over all columns; each column's `cells` moves along. */
static stk_status put_columns(stk_json_columns *columns, stk_csv_rows *rows, stk_error *err) {
    stk_status status = STK_OK;
    for (size_t row = 0; status == STK_OK && row < columns->items[0].count; row++) {
        status = stk_csv_rows_begin(rows, columns->items[0].line, err);
        for (size_t i = 0; status == STK_OK && i < columns->count; i++) {
            stk_json_column *column = &columns->items[i];
            const char *cell = columns->texts + column->cells;
            const char *name = columns->texts + column->name;
            size_t number = 0;
            size_t length = strlen(cell);
            column->cells += length + 1;
            status = stk_csv_rows_column_of(rows, name, strlen(name), &number, err);
            if (status == STK_OK && stk_csv_rows_has(rows, number)) {
                status = STK_FAIL(err, STK_ERR_DATA,
                                  "%s: the column \"%.100s\" stands twice; remove one", rows->name,
                                  name);
            }
            STK_THEN(status, stk_csv_rows_put(rows, number, cell, length, err));
        }
        STK_THEN(status, stk_csv_rows_end(rows, err));
    }
    return status;
}

static stk_status put_lists(const stk_json_columns *columns, stk_csv_rows *rows, stk_error *err) {
    size_t id = 0;
    size_t label = 0;
    stk_status status = stk_csv_rows_column_of(rows, "id", 2, &id, err);
    STK_THEN(status, stk_csv_rows_column_of(rows, "label", 5, &label, err));
    for (size_t i = 0; status == STK_OK && i < columns->count; i++) {
        const stk_json_column *column = &columns->items[i];
        const char *name = columns->texts + column->name;
        const char *cell = columns->texts + column->cells;
        status = stk_csv_rows_begin(rows, column->line, err);
        STK_THEN(status, stk_csv_rows_put(rows, id, name, strlen(name), err));
        STK_THEN(status, stk_csv_rows_put(rows, label, "", 0, err));
        for (size_t k = 0; status == STK_OK && k < column->count; k++) {
            size_t length = strlen(cell);
            status = k == 0 ? stk_csv_rows_put(rows, label, cell, length, err)
                            : stk_csv_rows_join(rows, label, cell, length, err);
            cell += length + 1;
        }
        STK_THEN(status, stk_csv_rows_end(rows, err));
    }
    return status;
}

stk_status stk_json_columns_finish(stk_json_columns *columns, const char *name, stk_csv *csv,
                                   stk_error *err) {
    stk_csv_rows rows = {.name = name};
    memset(csv, 0, sizeof *csv);
    stk_status status = stk_json_columns_are_even(columns) ? put_columns(columns, &rows, err)
                                                           : put_lists(columns, &rows, err);
    stk_json_columns_free(columns);
    STK_THEN(status, stk_csv_rows_finish(&rows, csv, err));
    stk_csv_rows_free(&rows);
    return status;
}
