/* confusion.c - counts the pairs of classes in validation.csv and finds the worst pictures. */
#include "report/page/confusion.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/names.h"

/* Where the columns of validation.csv are. */
typedef struct confusion_columns {
    size_t path, label, predicted, probability, fold;
} confusion_columns;

static stk_status find_columns(const stk_csv *table, const char *name, confusion_columns *at,
                               stk_error *err) {
    *at = (confusion_columns){.path = stk_csv_column(table, "path"),
                              .label = stk_csv_column(table, "label"),
                              .predicted = stk_csv_column(table, "predicted"),
                              .probability = stk_csv_column(table, "probability"),
                              .fold = stk_csv_column(table, "fold")};
    bool all = at->path != SIZE_MAX && at->label != SIZE_MAX && at->predicted != SIZE_MAX &&
               at->probability != SIZE_MAX && at->fold != SIZE_MAX;
    return all ? STK_OK
               : STK_FAIL(err, STK_ERR_DATA,
                          "%s: its columns are not path, label, predicted, probability and fold",
                          name);
}

/* ---- classes ---- */

/* Numbers the classes in the order of their first rows; `places` maps a name to its number. */
static stk_status meet(stk_confusion *c, stk_map *places, size_t *capacity, const char *name,
                       stk_error *err) {
    bool added = false;
    if (!stk_map_add(places, name, places->count, &added)) {
        return STK_FAIL_MEMORY(err, "the classes");
    }
    if (!added) {
        return STK_OK;
    }
    if (!STK_RESERVE(c->classes, *capacity, places->count)) {
        return STK_FAIL_MEMORY(err, "the classes");
    }
    c->classes[c->class_count++] = name;
    return STK_OK;
}

/* Sorts the names; sorted_place[places[name]] is the index of a name in the sorted list. */
static stk_status find_classes(stk_confusion *c, const confusion_columns *at, stk_map *places,
                               int **sorted_place, stk_error *err) {
    size_t capacity = 0;
    stk_status status = STK_OK;
    for (size_t row = 0; status == STK_OK && row < c->table.rows; row++) {
        status = meet(c, places, &capacity, stk_csv_cell(&c->table, row, at->label), err);
        STK_THEN(status,
                 meet(c, places, &capacity, stk_csv_cell(&c->table, row, at->predicted), err));
    }
    if (status == STK_OK) {
        *sorted_place = stk_mem_raw((size_t)c->class_count, sizeof **sorted_place);
        status = *sorted_place != NULL
                     ? stk_names_sort(c->classes, (size_t)c->class_count, *sorted_place, err)
                     : STK_FAIL_MEMORY(err, "the classes");
    }
    return status;
}

static int place_of(const stk_map *places, const int *sorted_place, const char *name) {
    size_t met = 0;
    (void)stk_map_find(places, name, &met);
    return sorted_place[met];
}

/* ---- pictures ---- */

static bool is_worse(const stk_confusion_miss *a, const stk_confusion_miss *b) {
    if (a->probability != b->probability) {
        return a->probability < b->probability;
    }
    return strcmp(a->path, b->path) < 0;
}

/* Adds a picture to the list of the worst, if it is one of them. */
static void add_miss(stk_confusion *c, stk_confusion_miss miss) {
    int at = c->worst_count;
    while (at > 0 && is_worse(&miss, &c->worst[at - 1])) {
        at--;
    }
    if (at == STK_CONFUSION_WORST) {
        return;
    }
    c->worst_count += c->worst_count < STK_CONFUSION_WORST;
    for (int i = c->worst_count - 1; i > at; i--) {
        c->worst[i] = c->worst[i - 1];
    }
    c->worst[at] = miss;
}

static stk_status add_row(stk_confusion *c, size_t row, const confusion_columns *at,
                          const char *name, stk_confusion_miss *seen, stk_error *err) {
    const stk_csv *table = &c->table;
    int64_t fold = 0;
    double probability = 0;
    bool good = stk_parse_int(stk_csv_cell(table, row, at->fold), &fold) && fold >= 0 &&
                fold <= INT32_MAX &&
                stk_parse_double(stk_csv_cell(table, row, at->probability), &probability) &&
                probability >= 0 && probability <= 1;
    if (!good) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s, line %zu: the probability or the fold is no valid number; let "
                        "`stoker train` write the file anew",
                        name, stk_csv_line(table, row));
    }
    seen->path = stk_csv_cell(table, row, at->path);
    seen->probability = probability;
    seen->fold = (int)fold;
    c->pictures++;
    if (seen->label == seen->predicted) {
        c->right++;
    } else {
        add_miss(c, *seen);
    }
    return STK_OK;
}

/* ---- cells ---- */

static int by_place(const void *a, const void *b) {
    const stk_confusion_cell *x = a;
    const stk_confusion_cell *y = b;
    return x->label != y->label ? (x->label < y->label ? -1 : 1)
                                : (x->predicted > y->predicted) - (x->predicted < y->predicted);
}

/* Merges cells of one picture each into one cell per pair of classes. */
static void join_cells(stk_confusion *c) {
    size_t kept = 0;
    if (c->cell_count > 1) {
        qsort(c->cells, c->cell_count, sizeof *c->cells, by_place);
    }
    for (size_t i = 0; i < c->cell_count; i++) {
        if (kept > 0 && by_place(&c->cells[kept - 1], &c->cells[i]) == 0) {
            c->cells[kept - 1].count++;
        } else {
            c->cells[kept++] = c->cells[i];
        }
    }
    c->cell_count = kept;
}

static stk_status count_rows(stk_confusion *c, const confusion_columns *at, const char *name,
                             const stk_map *places, const int *sorted_place, stk_error *err) {
    const stk_csv *table = &c->table;
    stk_status status = STK_OK;
    c->cells = stk_mem_raw(table->rows, sizeof *c->cells);
    if (c->cells == NULL) {
        return STK_FAIL_MEMORY(err, name);
    }
    for (size_t row = 0; status == STK_OK && row < table->rows; row++) {
        stk_confusion_miss seen = {
            .label = place_of(places, sorted_place, stk_csv_cell(table, row, at->label)),
            .predicted = place_of(places, sorted_place, stk_csv_cell(table, row, at->predicted))};
        status = add_row(c, row, at, name, &seen, err);
        c->cells[c->cell_count++] = (stk_confusion_cell){seen.label, seen.predicted, 1};
    }
    join_cells(c);
    return status;
}

/* ---- the header's functions ---- */

stk_status stk_confusion_make(stk_confusion *confusion, stk_csv *table, const char *name,
                              stk_error *err) {
    confusion_columns at;
    stk_map places = {0};
    int *sorted_place = NULL;
    *confusion = (stk_confusion){.table = *table};
    memset(table, 0, sizeof *table);
    stk_status status = find_columns(&confusion->table, name, &at, err);
    STK_THEN(status, find_classes(confusion, &at, &places, &sorted_place, err));
    STK_THEN(status, count_rows(confusion, &at, name, &places, sorted_place, err));
    stk_map_free(&places);
    stk_mem_free(sorted_place);
    if (status != STK_OK) {
        stk_confusion_free(confusion);
    }
    return status;
}

void stk_confusion_free(stk_confusion *confusion) {
    stk_mem_free(confusion->classes);
    stk_mem_free(confusion->cells);
    stk_csv_free(&confusion->table);
    memset(confusion, 0, sizeof *confusion);
}

size_t stk_confusion_pairs(const stk_confusion *confusion, stk_confusion_cell *pairs, size_t most) {
    size_t count = 0;
    for (size_t i = 0; i < confusion->cell_count; i++) {
        const stk_confusion_cell *cell = &confusion->cells[i];
        if (cell->label == cell->predicted) {
            continue;
        }
        size_t at = count < most ? count++ : most;
        for (; at > 0 && cell->count > pairs[at - 1].count; at--) {
            if (at < most) {
                pairs[at] = pairs[at - 1];
            }
        }
        if (at < most) {
            pairs[at] = *cell;
        }
    }
    return count;
}
