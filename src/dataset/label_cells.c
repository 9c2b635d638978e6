/*
 * label_cells.c - brackets, decimal commas and words for missing numbers in label columns.
 *
 * The cells are written anew before anything is found out about them: ['a', 'b'] becomes a|b, 0,95
 * becomes 0.95, and nan among numbers becomes an empty cell. The plain form is never longer.
 */
#include "dataset/label_cells.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "dataset/column_profile.h"

#define BLANKS " \t\r\n"
#define BETWEEN_ITEMS BLANKS ","
#define DIGITS "0123456789"

/* Words for a missing number may be so many of its cells: more of them are a class of their own. */
#define MOST_MISSING 0.5

static const char *const missing_words[] = {"nan",  "na",      "n/a", "#n/a", "<na>",    "null",
                                            "none", "unknown", "?",   "-",    "missing", "nil"};

bool stk_cell_is_missing(const char *text) {
    bool found = text[0] == '\0';
    for (size_t i = 0; !found && i < STK_COUNT(missing_words); i++) {
        found = stk_str_equal_nocase(text, missing_words[i]);
    }
    return found;
}

char stk_cell_bracket(const char *text) {
    static const char pairs[][2] = {{'[', ']'}, {'(', ')'}, {'{', '}'}};
    size_t length = strlen(text);
    for (size_t i = 0; length >= 2 && i < STK_COUNT(pairs); i++) {
        if (text[0] == pairs[i][0] && text[length - 1] == pairs[i][1]) {
            return pairs[i][0];
        }
    }
    return '\0';
}

const char *stk_cell_item(const char **at, size_t *length, char *quote) {
    const char *start = *at + strspn(*at, BETWEEN_ITEMS);
    if (*start == '\0' || start[1] == '\0') { /* the last character is the closing bracket */
        return NULL;
    }
    if (*start == '\'' || *start == '"') {
        const char *end = strchr(start + 1, *start);
        if (end != NULL) {
            *quote = *start;
            *length = (size_t)(end - start - 1);
            *at = end + 1;
            return start + 1;
        }
    }
    size_t size = strcspn(start, ",");
    size -= start[size] == '\0';
    *at = start + size;
    while (size > 0 && strchr(BLANKS, start[size - 1]) != NULL) {
        size--;
    }
    *length = size;
    return size > 0 ? start : NULL;
}

/* ---- numbers with decimal commas ---- */

/* The decimals of a whole text such as -12,05; "" where it is a whole number; NULL: neither. */
static const char *decimals_of(const char *text) {
    const char *digits = text + (*text == '-' || *text == '+');
    size_t whole = strspn(digits, DIGITS);
    const char *comma = digits + whole;
    if (whole == 0 || (*comma != ',' && *comma != '\0')) {
        return NULL;
    }
    const char *decimals = *comma == ',' ? comma + 1 : comma;
    bool good = decimals[strspn(decimals, DIGITS)] == '\0' && (*comma == '\0' || *decimals != '\0');
    return good ? decimals : NULL;
}

/* What the cells of a column are. */
typedef struct cell_look {
    size_t filled;
    size_t bracketed;
    size_t numbers;
    size_t missing;
    size_t commas;  /* numbers, some with a decimal comma */
    size_t decimal; /* of these, those that have one */
    size_t telling; /* of these, those that are no list of two labels: decimals such as 05 */
} cell_look;

static void look_at(cell_look *look, const char *cell) {
    double x;
    const char *decimals = decimals_of(cell);
    if (cell[0] == '\0') {
        return;
    }
    look->filled++;
    bool record = cell[0] == '{' && strchr(cell, ':') != NULL; /* names and values */
    look->bracketed += stk_cell_bracket(cell) != '\0' && !record;
    look->numbers += stk_cell_number(cell, &x);
    look->missing += stk_cell_is_missing(cell);
    look->commas += decimals != NULL;
    look->decimal += decimals != NULL && *decimals != '\0';
    look->telling += decimals != NULL && decimals[0] == '0' && decimals[1] != '\0';
}

/* Whether the sample has this kind of text in its cells: then it is an answer. */
static bool sample_has(const stk_csv *sample, size_t answer, bool (*fits)(const char *text)) {
    bool found = false;
    for (size_t row = 0; sample != NULL && !found && row < sample->rows; row++) {
        const char *cell = stk_csv_cell(sample, row, answer);
        found = cell[0] != '\0' && fits(cell);
    }
    return found;
}

/* Whether a text has commas that are no decimal comma. */
static bool has_list_comma(const char *text) {
    return strchr(text, ',') != NULL && decimals_of(text) == NULL;
}

static bool takes_numbers(stk_task task) {
    return task == STK_TASK_AUTO || task == STK_TASK_REGRESSION || task == STK_TASK_ORDINAL;
}

/* "0,95" may be two labels, too: several decimals begin with 0, and the sample has no commas. */
static bool is_decimal(const cell_look *look, stk_task task, const stk_csv *sample, size_t answer) {
    bool all = look->commas + look->missing == look->filled && 2 * look->decimal > look->filled;
    bool telling = look->telling > 1 && !sample_has(sample, answer, has_list_comma);
    return all && takes_numbers(task) && (telling || task == STK_TASK_REGRESSION);
}

/* ---- lists with brackets ---- */

/* A divider that no label has. */
static char free_divider(const stk_csv *csv, size_t column) {
    static const char dividers[] = "|;,";
    for (const char *divider = dividers; *divider != '\0'; divider++) {
        bool used = false;
        for (size_t row = 0; !used && row < csv->rows; row++) {
            size_t length;
            char quote = '\0';
            const char *at = stk_csv_cell(csv, row, column);
            at += *at != '\0';
            for (const char *item; !used && (item = stk_cell_item(&at, &length, &quote)) != NULL;) {
                used = memchr(item, *divider, length) != NULL;
            }
        }
        if (!used) {
            return *divider;
        }
    }
    return '\t';
}

/* Brackets alone may be a part of names: "(red)". Lists have quotes, or several labels somewhere,
 * or none. */
static void find_lists(stk_cell_form *form, const stk_csv *csv, size_t column) {
    bool lists = false;
    form->divider = free_divider(csv, column);
    for (size_t row = 0; row < csv->rows; row++) {
        const char *cell = stk_csv_cell(csv, row, column);
        const char *at = cell + 1;
        size_t length;
        size_t items = 0;
        if (cell[0] == '\0') {
            continue;
        }
        form->bracket = form->bracket != '\0' ? form->bracket : cell[0];
        while (stk_cell_item(&at, &length, &form->quote) != NULL) {
            items++;
        }
        lists = lists || items != 1 || form->quote != '\0';
        if (form->example[0] == '\0' || (items > 1 && strchr(form->example, ',') == NULL)) {
            snprintf(form->example, sizeof form->example, "%s", cell);
        }
    }
    if (!lists) {
        *form = (stk_cell_form){0};
    }
}

void stk_cell_form_find(stk_cell_form *form, const stk_csv *csv, size_t column, stk_task task,
                        const stk_csv *sample, size_t answer) {
    cell_look look = {0};
    memset(form, 0, sizeof *form);
    for (size_t row = 0; row < csv->rows; row++) {
        look_at(&look, stk_csv_cell(csv, row, column));
    }
    if (look.filled == 0) {
        return;
    }
    bool lists = task == STK_TASK_AUTO || task == STK_TASK_MULTILABEL;
    if (lists && look.bracketed == look.filled) {
        find_lists(form, csv, column);
        return;
    }
    form->commas = is_decimal(&look, task, sample, answer);
    size_t numbers = form->commas ? look.commas : look.numbers;
    bool some = look.missing > 0 && numbers > 0 && numbers + look.missing == look.filled &&
                (double)look.missing <= MOST_MISSING * (double)look.filled;
    if (some && takes_numbers(task) && !sample_has(sample, answer, stk_cell_is_missing)) {
        form->missing = look.missing;
    }
}

/* ---- the plain form ---- */

static void shorten_list(const stk_cell_form *form, char *cell) {
    char *to = cell;
    const char *at = cell + 1;
    size_t length;
    char quote;
    for (const char *item; (item = stk_cell_item(&at, &length, &quote)) != NULL;) {
        if (to > cell) {
            *to++ = form->divider;
        }
        memmove(to, item, length);
        to += length;
    }
    *to = '\0';
}

static void shorten(char *cell, void *user) {
    const stk_cell_form *form = user;
    char *comma = strchr(cell, ',');
    if (form->bracket != '\0' && stk_cell_bracket(cell) != '\0') {
        shorten_list(form, cell);
    } else if (form->missing > 0 && stk_cell_is_missing(cell)) {
        cell[0] = '\0';
    } else if (form->commas && comma != NULL && decimals_of(cell) != NULL) {
        *comma = '.';
    }
}

void stk_cell_form_apply(const stk_cell_form *form, stk_csv *csv, size_t column) {
    stk_cell_form copy = *form;
    if (form->bracket != '\0' || form->commas || form->missing > 0) {
        stk_csv_shorten(csv, column, shorten, &copy);
    }
}
