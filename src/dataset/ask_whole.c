/*
 * ask_whole.c - labels 0, 1, 2 that a table has as 0.0, 1.0, 2.0.
 *
 * A submission with 2.0 is refused where the sample has 0. So the labels lose the ".0" before
 * anything is found out about them, and so do those of rows that validate.
 */
#include "dataset/ask.h"

#include <string.h>

#include "base/str.h"
#include "dataset/label_lists.h"

#define POINT_ZERO ".0"

bool stk_is_whole_number(const char *text, const char *behind) {
    const char *digits = text + (*text == '-');
    size_t count = strspn(digits, "0123456789");
    return count > 0 && stk_str_equal(digits + count, behind);
}

/* Whether a cell has such a number; in a ranked list it may be any of them. */
static bool has_point(const char *cell) {
    size_t length;
    for (const char *word; (word = stk_label_list_next(&cell, ' ', &length)) != NULL;) {
        char text[32];
        if (length < sizeof text) {
            memcpy(text, word, length);
            text[length] = '\0';
            if (stk_is_whole_number(text, POINT_ZERO)) {
                return true;
            }
        }
    }
    return false;
}

/* Whether the sample has such labels: in the cells of its only column, or as names of columns. */
static bool sample_has_point(const stk_ask_tables *t) {
    const stk_csv *sample = t->sample;
    size_t asked = 0;
    size_t last = 0;
    bool found = false;
    for (size_t c = 0; sample != NULL && c < sample->columns; c++) {
        if (stk_ask_is_answer(t, c)) {
            asked++;
            last = c;
            found = found || stk_is_whole_number(sample->header[c], POINT_ZERO);
        }
    }
    for (size_t row = 0; asked == 1 && !found && row < sample->rows; row++) {
        found = has_point(stk_csv_cell(sample, row, last));
    }
    return found;
}

/* Whether all filled cells of a column are whole numbers with this behind them, and some is filled.
 */
static bool all_whole(const stk_csv *csv, size_t column, const char *behind) {
    bool all = true;
    size_t filled = 0;
    for (size_t row = 0; all && row < csv->rows; row++) {
        const char *cell = stk_csv_cell(csv, row, column);
        filled += cell[0] != '\0';
        all = cell[0] == '\0' || stk_is_whole_number(cell, behind);
    }
    return all && filled > 0;
}

bool stk_ask_whole_labels(const stk_ask *ask, stk_csv *train, const stk_ask_tables *tables) {
    if (ask->count > 1 || !all_whole(train, ask->labels[0], POINT_ZERO) ||
        sample_has_point(tables)) {
        return false;
    }
    stk_csv_cut(train, ask->labels[0], POINT_ZERO);
    return true;
}

void stk_ask_whole_like(const stk_csv *train, size_t label, stk_csv *other, size_t column) {
    if (all_whole(train, label, "")) {
        stk_csv_cut(other, column, POINT_ZERO);
    }
}
