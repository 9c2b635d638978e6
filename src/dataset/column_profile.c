/* column_profile.c - counts what the cells of a column hold. */
#include "dataset/column_profile.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

bool stk_cell_number(const char *text, double *value) {
    return text[0] != '\0' && text[strspn(text, "+-.0123456789eE")] == '\0' &&
           stk_parse_double(text, value) && isfinite(*value);
}

static bool note_text(stk_column_profile *p, const char *text) {
    size_t place;
    bool added;
    if (stk_map_find(&p->places, text, &place)) {
        p->texts[place].rows++;
        return true;
    }
    if (!STK_RESERVE(p->texts, p->capacity, p->count + 1) ||
        !stk_map_add(&p->places, text, p->count, &added)) {
        return false;
    }
    p->texts[p->count++] = (stk_column_text){text, 1};
    return true;
}

/* Each text is read as a number once, whatever the number of its rows. */
static void note_numbers(stk_column_profile *p) {
    p->least = INFINITY;
    p->most = -INFINITY;
    for (size_t i = 0; i < p->count; i++) {
        double value;
        if (!stk_cell_number(p->texts[i].text, &value)) {
            continue;
        }
        p->numbers += p->texts[i].rows;
        p->fractions = p->fractions || value != floor(value);
        if (value < p->least) {
            p->least = value;
            p->least_text = p->texts[i].text;
        }
        if (value > p->most) {
            p->most = value;
            p->most_text = p->texts[i].text;
        }
    }
}

stk_status stk_column_profile_make(stk_column_profile *p, const stk_csv *csv, size_t column,
                                   stk_error *err) {
    memset(p, 0, sizeof *p);
    p->rows = csv->rows;
    for (size_t row = 0; row < csv->rows; row++) {
        const char *cell = stk_csv_cell(csv, row, column);
        if (cell[0] == '\0') {
            continue;
        }
        p->filled++;
        if (!note_text(p, cell)) {
            stk_column_profile_free(p);
            return STK_FAIL_MEMORY(err, csv->header[column]);
        }
    }
    note_numbers(p);
    return STK_OK;
}

void stk_column_profile_free(stk_column_profile *p) {
    stk_map_free(&p->places);
    stk_mem_free(p->texts);
    memset(p, 0, sizeof *p);
}

bool stk_column_is_numeric(const stk_column_profile *p) {
    return p->filled > 0 && p->numbers == p->filled;
}

bool stk_column_is_flags(const stk_column_profile *p) {
    return stk_column_is_numeric(p) && p->filled == p->rows && p->count > 1 && !p->fractions &&
           p->least == 0 && p->most == 1;
}
