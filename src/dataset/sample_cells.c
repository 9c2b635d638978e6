/* sample_cells.c - looks at the answers that a sample submission has. */
#include "dataset/sample_cells.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dataset/column_profile.h"
#include "dataset/label_cells.h"
#include "dataset/label_lists.h"

/* A sum of 1 with rounding: three times 0.333. */
#define SUM_OF_ONE 0.0011

/* Whether a cell is a class and its probability: "18381 0.0", "red fox 0.5". */
static bool is_sure(const char *cell) {
    const char *blank = strrchr(cell, ' ');
    double x;
    return blank != NULL && strchr(blank, '.') != NULL && stk_cell_number(blank + 1, &x) &&
           x >= 0 && x <= 1 && strchr(cell, '.') > blank;
}

static void note_bracket(stk_sample_cells *s, const char *cell) {
    char bracket = stk_cell_bracket(cell);
    const char *at = cell + 1;
    size_t length;
    s->bracket = s->bracket != '\0' ? s->bracket : bracket;
    while (bracket != '\0' && stk_cell_item(&at, &length, &s->quote) != NULL) {
    }
}

/* Whether a word of a list is a text of the label column. */
static bool has_known(const char *cell, const stk_map *known) {
    char name[200];
    size_t length;
    for (const char *word; (word = stk_label_list_next(&cell, ' ', &length)) != NULL;) {
        if (length < sizeof name) {
            memcpy(name, word, length);
            name[length] = '\0';
            if (stk_map_find(known, name, NULL)) {
                return true;
            }
        }
    }
    return false;
}

static char clearest_divider(const char *cell) {
    return (char)(strchr(cell, '|') != NULL   ? '|'
                  : strchr(cell, ';') != NULL ? ';'
                  : strchr(cell, ',') != NULL ? ','
                                              : ' ');
}

/* `known` are the texts of the label column: a cell that is one of them is no list. */
static void note_cell(stk_sample_cells *s, const char *cell, const stk_map *known) {
    double x;
    bool is_known = stk_map_find(known, cell, NULL);
    bool sure = !is_known && is_sure(cell);
    size_t words = is_known || sure ? 1 : stk_label_list_count(cell, ' ');
    if (s->cells == 0) {
        snprintf(s->first, sizeof s->first, "%.30s", cell);
        s->constant = true;
    }
    s->constant = s->constant && strncmp(cell, s->first, 30) == 0;
    s->cells++;
    s->lists += words > 1;
    s->sure += sure;
    s->known += words > 1 && has_known(cell, known);
    s->divider = s->divider == ' ' || s->divider == '\0' ? clearest_divider(cell) : s->divider;
    note_bracket(s, cell);
    s->words = words > s->words ? words : s->words;
    if (stk_cell_number(cell, &x)) {
        s->numbers++;
        s->fractions += x != floor(x);
        s->spread = s->spread || (x != 0 && x != 1);
    }
}

stk_sample_cells stk_sample_cells_read(const stk_csv *csv, size_t id, size_t kept,
                                       const stk_map *known) {
    stk_sample_cells s = {.one = csv != NULL && csv->rows > 0};
    for (size_t row = 0; csv != NULL && row < csv->rows; row++) {
        const char *cell = stk_csv_cell(csv, row, 0);
        double sum = 0;
        for (size_t c = 0; c < csv->columns; c++) {
            double x;
            if (c != id && c != kept) {
                note_cell(&s, cell, known);
                sum += stk_cell_number(cell, &x) ? x : NAN;
            }
            cell = c + 1 < csv->columns ? stk_csv_next(cell) : cell;
        }
        s.one = s.one && fabs(sum - 1) <= SUM_OF_ONE;
    }
    return s;
}
