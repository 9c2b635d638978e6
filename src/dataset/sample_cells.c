/* sample_cells.c - looks at the answers that a sample submission has. */
#include "dataset/sample_cells.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dataset/column_profile.h"
#include "dataset/label_lists.h"

/* `known` are the texts of the label column: a cell that is one of them is no list. */
static void note_cell(stk_sample_cells *s, const char *cell, const stk_map *known) {
    double x;
    size_t words = stk_map_find(known, cell, NULL) ? 1 : stk_label_list_count(cell, ' ');
    if (s->cells == 0) {
        snprintf(s->first, sizeof s->first, "%.30s", cell);
        s->constant = true;
    }
    s->constant = s->constant && strncmp(cell, s->first, 30) == 0;
    s->cells++;
    s->lists += words > 1;
    s->words = words > s->words ? words : s->words;
    if (stk_cell_number(cell, &x)) {
        s->numbers++;
        s->fractions += x != floor(x);
        s->spread = s->spread || (x != 0 && x != 1);
    }
}

stk_sample_cells stk_sample_cells_read(const stk_csv *csv, size_t id, size_t kept,
                                       const stk_map *known) {
    stk_sample_cells s = {0};
    for (size_t row = 0; csv != NULL && row < csv->rows; row++) {
        const char *cell = stk_csv_cell(csv, row, 0);
        for (size_t c = 0; c < csv->columns; c++) {
            if (c != id && c != kept) {
                note_cell(&s, cell, known);
            }
            cell = c + 1 < csv->columns ? stk_csv_next(cell) : cell;
        }
    }
    return s;
}
