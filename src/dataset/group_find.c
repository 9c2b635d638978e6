/*
 * group_find.c - finds the column whose values must not be divided between training and validation.
 *
 * Pictures of one patient, camera or sequence are alike. Where the test set has other patients than
 * the training set, a validation with the same patients on both sides promises too much. A column
 * shows this when its values repeat in the training table and none of them occurs in the test
 * table. Where the test table lacks the column, its name must say what it is.
 */
#include "dataset/column_profile.h"
#include "dataset/listing.h"

#include <stdint.h>

#include "base/str.h"

/* Fewer groups cannot be divided well. */
#define FEWEST_GROUPS 5

/* Rows for each value, at least: values that hardly repeat divide nothing. */
#define LEAST_ROWS_EACH 1.1

/* Whether no value of the profile occurs in the column of the test table. */
static bool never_crosses(const stk_column_profile *p, const stk_csv *test, size_t column) {
    bool filled = false;
    for (size_t row = 0; row < test->rows; row++) {
        const char *cell = stk_csv_cell(test, row, column);
        filled = filled || cell[0] != '\0';
        if (cell[0] != '\0' && stk_map_find(&p->places, cell, NULL)) {
            return false;
        }
    }
    return filled;
}

static bool is_group(const stk_column_profile *p, const stk_csv *test, const char *name) {
    if (stk_table_is_measure_name(name) || p->filled < p->rows || p->count < FEWEST_GROUPS ||
        (p->numbers > 0 && p->fractions) || (double)p->rows < LEAST_ROWS_EACH * (double)p->count) {
        return false;
    }
    size_t column = test != NULL ? stk_csv_column(test, name) : SIZE_MAX;
    return column != SIZE_MAX ? never_crosses(p, test, column) : stk_table_is_group_name(name);
}

/* The first word of a name that says who or where; "": there is none. */
static void group_word(const char *name, char word[STK_WORD_MOST]) {
    while (stk_next_word(&name, word)) {
        if (stk_table_is_group_name(word)) {
            return;
        }
    }
    word[0] = '\0';
}

/* Of a camera and its sequences the camera keeps more together. Of two columns about the same, such
 * as a patient, the one with an id says who it is. */
static bool is_better(const char *name, size_t count, const char *best, size_t fewest) {
    static const char *const ids[] = {"id", "ids", NULL};
    char word[STK_WORD_MOST];
    char other[STK_WORD_MOST];
    if (best == NULL) {
        return true;
    }
    group_word(name, word);
    group_word(best, other);
    bool id = stk_has_word_of(name, ids);
    bool same = word[0] != '\0' && stk_str_equal(word, other);
    return same && id != stk_has_word_of(best, ids) ? id : count < fewest;
}

stk_status stk_groups_find(const stk_csv *train, const stk_csv *test, const bool *taken,
                           size_t *column, stk_error *err) {
    stk_status status = STK_OK;
    size_t fewest = SIZE_MAX;
    *column = SIZE_MAX;
    for (size_t c = 0; status == STK_OK && c < train->columns; c++) {
        stk_column_profile p;
        if (taken[c] || train->header[c][0] == '\0') {
            continue;
        }
        status = stk_column_profile_make(&p, train, c, err);
        if (status == STK_OK) {
            const char *best = *column != SIZE_MAX ? train->header[*column] : NULL;
            if (is_group(&p, test, train->header[c]) &&
                is_better(train->header[c], p.count, best, fewest)) {
                fewest = p.count;
                *column = c;
            }
            stk_column_profile_free(&p);
        }
    }
    return status;
}
