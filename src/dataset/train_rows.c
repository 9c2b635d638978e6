/* train_rows.c - the columns of a training table that the ids of test rows are written of. */
#include "dataset/train_rows.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* Characters between the parts of an id. */
static const char dividers[] = "_-/ .:|";

/* Columns of both tables that may be parts of ids, while these are found. */
typedef struct id_parts {
    const stk_csv *test;
    size_t key;
    const size_t *train_of; /* of each column of the test table: that of the training table */
    size_t columns[STK_ROW_COLUMNS]; /* of the test table */
    size_t count;
} id_parts;

/* What is left of an id after the parts so far and a divider. NULL: it does not begin with them. */
static const char *rest_of(const id_parts *p, size_t row) {
    const char *at = stk_csv_cell(p->test, row, p->key);
    for (size_t i = 0; i < p->count; i++) {
        const char *cell = stk_csv_cell(p->test, row, p->columns[i]);
        size_t length = strlen(cell);
        at += i > 0 && *at != '\0' && strchr(dividers, *at) != NULL;
        if (length == 0 || strncmp(at, cell, length) != 0) {
            return NULL;
        }
        at += length;
    }
    return at;
}

/* Whether all ids begin with the parts. *whole: and have nothing else. */
static bool all_begin(const id_parts *p, bool *whole) {
    *whole = true;
    for (size_t row = 0; row < p->test->rows; row++) {
        const char *rest = rest_of(p, row);
        if (rest == NULL) {
            return false;
        }
        *whole = *whole && *rest == '\0';
    }
    return true;
}

/* Whether the column is no part yet, and the training table has it. */
static bool is_free(const id_parts *p, size_t column) {
    bool taken = column == p->key || p->train_of[column] == SIZE_MAX;
    for (size_t i = 0; i < p->count; i++) {
        taken = taken || p->columns[i] == column;
    }
    return !taken;
}

/* Adds parts until the ids have nothing else, and goes back where the rest fits no column. */
static bool find_parts(id_parts *p) {
    for (size_t column = 0; column < p->test->columns; column++) {
        bool whole = false;
        if (!is_free(p, column)) {
            continue;
        }
        p->columns[p->count++] = column;
        if (all_begin(p, &whole) && (whole || (p->count < STK_ROW_COLUMNS && find_parts(p)))) {
            return true;
        }
        p->count--;
    }
    return false;
}

/* Whether an id comes twice: otherwise each has one picture. */
static stk_status repeats(const stk_csv *test, size_t key, bool *is_repeated, stk_error *err) {
    stk_map seen = {0};
    bool ok = true;
    *is_repeated = false;
    for (size_t row = 0; ok && row < test->rows && !*is_repeated; row++) {
        bool added = true;
        ok = stk_map_add(&seen, stk_csv_cell(test, row, key), row, &added);
        *is_repeated = ok && !added;
    }
    stk_map_free(&seen);
    return ok ? STK_OK : STK_FAIL_MEMORY(err, "the test table");
}

stk_status stk_train_rows_find(stk_train_rows *rows, const stk_csv *train, const stk_csv *test,
                               size_t key, stk_error *err) {
    size_t *train_of = stk_mem_new(test->columns, sizeof *train_of);
    id_parts p = {.test = test, .key = key, .train_of = train_of};
    if (train_of == NULL) {
        return STK_FAIL_MEMORY(err, "the training table");
    }
    for (size_t c = 0; c < test->columns; c++) {
        train_of[c] =
            test->header[c][0] != '\0' ? stk_csv_column(train, test->header[c]) : SIZE_MAX;
    }
    bool has_rows;
    rows->count = 0;
    stk_status status = repeats(test, key, &has_rows, err);
    if (status == STK_OK && has_rows && train_of[key] != SIZE_MAX) {
        rows->columns[rows->count++] = train_of[key];
    } else if (status == STK_OK && has_rows && find_parts(&p)) {
        for (size_t i = 0; i < p.count; i++) {
            rows->columns[rows->count++] = train_of[p.columns[i]];
        }
    }
    stk_mem_free(train_of);
    return status;
}

stk_status stk_train_rows_number(stk_train_rows *rows, const stk_csv *train, size_t line,
                                 int64_t *number, stk_error *err) {
    stk_str cells = {0};
    size_t found = rows->numbers.count + 1;
    bool added = false;
    bool filled = rows->count > 0;
    for (size_t i = 0; i < rows->count; i++) {
        const char *cell = stk_csv_cell(train, line, rows->columns[i]);
        filled = filled && cell[0] != '\0';
        stk_str_appendf(&cells, "%zu:%s", strlen(cell), cell);
    }
    bool ok = stk_str_ok(&cells);
    if (ok && filled && !stk_map_find(&rows->numbers, stk_str_text(&cells), &found)) {
        const char *kept = stk_text_blocks_keep(&rows->texts, stk_str_text(&cells), cells.length);
        ok = kept != NULL && stk_map_add(&rows->numbers, kept, found, &added);
    }
    stk_str_free(&cells);
    *number = filled ? (int64_t)found : 0;
    return ok ? STK_OK : STK_FAIL_MEMORY(err, "the training table");
}

void stk_train_rows_free(stk_train_rows *rows) {
    stk_map_free(&rows->numbers);
    stk_text_blocks_free(&rows->texts);
    rows->count = 0;
}
