/*
 * ask_by_cells.c - finds the label column by the cells of the sample submission.
 *
 * A sample that names w_1287fbc asks for the column in which w_1287fbc occurs, whatever the columns
 * are called. Placeholders such as 0 and 0.5 occur in many columns by chance: then the name of the
 * column has to say that it is a label, too.
 */
#include "dataset/ask.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/text_blocks.h"
#include "dataset/label_cells.h"
#include "dataset/label_lists.h"

/* So many of the sample's different words must be texts of the column. */
#define NEARLY_ALL 0.95

/* Different words that are looked at: more of them say no more. */
#define MOST_WORDS 5000

/* Whole numbers of so many digits are no placeholders. */
#define TELLING_DIGITS 4

/* Words of this length with digits in them may be ids. */
#define LEAST_ID 6

/* The different words of the sample's only answer column. */
typedef struct sample_words {
    stk_texts texts; /* owned */
    stk_map seen;
    size_t count;
    size_t names;   /* no numbers */
    size_t telling; /* numbers that are no placeholders */
    bool whole;     /* cells are not divided */
} sample_words;

static bool add_word(sample_words *w, const char *start, size_t length) {
    double x;
    bool added = false;
    char *text = stk_mem_strndup(start, length);
    bool ok = text != NULL && stk_map_add(&w->seen, text, w->count, &added);
    if (!ok || !added) {
        stk_mem_free(text);
        return ok;
    }
    bool number = stk_cell_number(text, &x);
    w->count++;
    w->names += !number;
    w->telling += number && strchr(text, '.') == NULL &&
                  strspn(text + strcspn(text, "0123456789"), "0123456789") >= TELLING_DIGITS;
    return stk_texts_take(&w->texts, text);
}

/* Takes the words of a cell: those of a list, without the probability behind a class. */
static bool add_cell(sample_words *w, const char *cell) {
    bool bracket = stk_cell_bracket(cell) != '\0';
    const char *at = cell + bracket;
    size_t length;
    char quote;
    bool ok = true;
    bool first = true;
    if (w->whole) {
        return cell[0] == '\0' || add_word(w, cell, strlen(cell));
    }
    for (const char *word; ok && (word = bracket ? stk_cell_item(&at, &length, &quote)
                                                 : stk_label_list_next(&at, ' ', &length)) != NULL;
         first = false) {
        bool share =
            !first && memchr(word, '.', length) != NULL && strspn(word, "0123456789.") >= length;
        ok = share || add_word(w, word, length);
    }
    return ok;
}

static bool is_candidate(const stk_ask_tables *t, size_t column) {
    return column != t->id && column != t->part && column != t->split &&
           t->train->header[column][0] != '\0' &&
           (t->test == NULL || stk_csv_column(t->test, t->train->header[column]) == SIZE_MAX);
}

/* ---- columns ---- */

/* Counts the words that are texts of the column. */
static stk_status count_found(const sample_words *w, const stk_csv *csv, size_t column,
                              size_t *found, stk_error *err) {
    stk_map texts = {0};
    bool ok = true;
    bool added;
    *found = 0;
    for (size_t row = 0; ok && row < csv->rows; row++) {
        const char *cell = stk_csv_cell(csv, row, column);
        ok = stk_map_add(&texts, cell, row, &added);
        *found += ok && added && stk_map_find(&w->seen, cell, NULL);
    }
    stk_map_free(&texts);
    return ok ? STK_OK : STK_FAIL_MEMORY(err, csv->header[column]);
}

/* How an id is written: its length, and 1 for letters and 2 for digits in it; 0: it is none. */
static size_t form_of(const char *text) {
    size_t length = 0;
    size_t kinds = 0;
    for (; text[length] != '\0'; length++) {
        unsigned char c = (unsigned char)text[length];
        kinds |= isdigit(c) ? 2U : isalnum(c) ? 1U : 0U;
        if (!isalnum(c) && c != '_' && c != '-') {
            return 0;
        }
    }
    return length >= LEAST_ID && (kinds & 2U) != 0 ? 4 * length + 3 : 0;
}

/* Whether nearly all cells are ids of this form. */
static bool has_form(const stk_csv *csv, size_t column, size_t form) {
    size_t like = 0;
    for (size_t row = 0; row < csv->rows; row++) {
        like += form_of(stk_csv_cell(csv, row, column)) == form;
    }
    return (double)like >= NEARLY_ALL * (double)csv->rows;
}

/* The form of all words; 0: they have none in common. */
static size_t common_form(const sample_words *w, const stk_csv *sample, size_t answer) {
    size_t form = 0;
    for (size_t row = 0; row < sample->rows; row++) {
        const char *at = stk_csv_cell(sample, row, answer);
        size_t length;
        for (const char *word; (word = stk_label_list_next(&at, ' ', &length)) != NULL;) {
            char text[64];
            size_t kept = length < sizeof text ? length : sizeof text - 1;
            memcpy(text, word, kept);
            text[kept] = '\0';
            size_t own = form_of(text);
            if (own == 0 || (form != 0 && own != form)) {
                return 0;
            }
            form = own;
        }
    }
    return w->names > 0 ? form : 0;
}

/* The only column in which the words occur; SIZE_MAX: none, or several. */
static stk_status find_column(const sample_words *w, const stk_ask_tables *t, size_t form,
                              size_t *column, stk_error *err) {
    stk_status status = STK_OK;
    size_t fitting = 0;
    for (size_t c = 0; status == STK_OK && c < t->train->columns; c++) {
        size_t found = 0;
        if (!is_candidate(t, c)) {
            continue;
        }
        if (form != 0) {
            found = has_form(t->train, c, form) ? w->count : 0;
        } else {
            status = count_found(w, t->train, c, &found, err);
        }
        if (status == STK_OK && (double)found >= NEARLY_ALL * (double)w->count) {
            fitting++;
            *column = c;
        }
    }
    *column = fitting == 1 ? *column : SIZE_MAX;
    return status;
}

/* Reads the words, and finds their column. */
static stk_status try_words(const stk_ask_tables *t, size_t answer, bool whole, size_t *column,
                            stk_error *err) {
    sample_words w = {.whole = whole};
    bool ok = true;
    for (size_t row = 0; ok && row < t->sample->rows && w.count < MOST_WORDS; row++) {
        ok = add_cell(&w, stk_csv_cell(t->sample, row, answer));
    }
    stk_status status = ok ? STK_OK : STK_FAIL_MEMORY(err, t->where);
    if (status == STK_OK && w.count > 0) {
        status = find_column(&w, t, 0, column, err);
        size_t form = whole ? 0 : common_form(&w, t->sample, answer);
        if (status == STK_OK && *column == SIZE_MAX && form != 0) {
            status = find_column(&w, t, form, column, err);
        }
    }
    if (*column != SIZE_MAX && w.names == 0 && w.telling == 0 &&
        !stk_table_has_label_word(t->train->header[*column])) {
        *column = SIZE_MAX;
    }
    stk_map_free(&w.seen);
    stk_texts_free(&w.texts);
    return status;
}

stk_status stk_ask_column_by_cells(const stk_ask_tables *t, size_t *column, stk_error *err) {
    size_t answer = stk_ask_only_answer(t);
    *column = SIZE_MAX;
    if (answer == SIZE_MAX) {
        return STK_OK;
    }
    stk_status status = try_words(t, answer, true, column, err);
    return status == STK_OK && *column == SIZE_MAX ? try_words(t, answer, false, column, err)
                                                   : status;
}
