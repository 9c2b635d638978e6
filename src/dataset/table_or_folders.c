/*
 * table_or_folders.c - whether a table beside folders of pictures tells more than the folders do.
 *
 * Large sets come in parts: images_001, images_002, with a table that has the labels. Then the
 * folders are no classes. Where folders are classes, a table beside them mostly describes the
 * pictures. So a table wins that names nearly all training pictures, says something else than the
 * folders, and has a column called like a label, or folders that are only counted.
 */
#include "dataset/table_or_folders.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* The share of training pictures that must have a row, and of rows that must say what their folder
 * says. */
#define NEARLY_ALL 0.9
#define SAYS_THE_SAME 0.95

/* What is compared. */
typedef struct folder_comparison {
    const stk_label_table *table;
    stk_map folders;       /* owned: from the name of a folder to its number */
    stk_text_blocks texts; /* owned: these names */
    size_t *folder_of;     /* owned: the folder of each row's picture; SIZE_MAX: it has none */
    size_t found;          /* rows with a picture */
    bool parts;            /* the folders' names differ in numbers alone */
} folder_comparison;

/* Whether two names are the same but for their numbers, and have some. */
static bool differ_in_numbers(const char *a, const char *b) {
    bool numbered = false;
    while (*a != '\0' && *b != '\0') {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            numbered = true;
            a += strspn(a, "0123456789");
            b += strspn(b, "0123456789");
        } else if (*a++ != *b++) {
            return false;
        }
    }
    return numbered && *a == *b;
}

static bool note_row(folder_comparison *c, const stk_listing *listing, size_t row,
                     const char **first) {
    const stk_match *match = &c->table->match;
    const char *train = listing->sets[STK_SET_TRAIN].name;
    const char *id = stk_csv_cell(&c->table->csv, row, match->column);
    size_t file;
    size_t count;
    size_t other;
    bool added;
    c->folder_of[row] = SIZE_MAX;
    if (stk_match_find(listing, match, id, &file, &count, &other) != STK_FOUND_ONE) {
        return true;
    }
    const char *path = match->view.paths[file] + (train != NULL ? strlen(train) + 1 : 0);
    const char *name = stk_text_blocks_keep(&c->texts, path, strcspn(path, "/"));
    if (name == NULL || !stk_map_add(&c->folders, name, c->folders.count, &added)) {
        return false;
    }
    *first = *first != NULL ? *first : name;
    c->parts = c->parts && differ_in_numbers(*first, name);
    c->found++;
    return stk_map_find(&c->folders, name, &c->folder_of[row]);
}

/* Whether each text of a column stands for a folder, and each folder for a text. */
static stk_status says_the_same(const folder_comparison *c, size_t column, bool *same,
                                stk_error *err) {
    const stk_csv *csv = &c->table->csv;
    stk_map texts = {0};
    size_t agree = 0;
    size_t *first = stk_mem_new(c->folders.count, sizeof *first); /* row + 1 */
    bool ok = first != NULL;
    for (size_t row = 0; ok && row < csv->rows; row++) {
        size_t folder = c->folder_of[row];
        const char *cell = stk_csv_cell(csv, row, column);
        size_t its = folder;
        bool added = false;
        if (folder == SIZE_MAX) {
            continue;
        }
        ok = stk_map_add(&texts, cell, folder, &added);
        first[folder] = first[folder] != 0 ? first[folder] : row + 1;
        bool known = ok && (added || (stk_map_find(&texts, cell, &its) && its == folder));
        agree += known && stk_str_equal(stk_csv_cell(csv, first[folder] - 1, column), cell);
    }
    stk_map_free(&texts);
    stk_mem_free(first);
    *same = (double)agree >= SAYS_THE_SAME * (double)c->found;
    return ok ? STK_OK : STK_FAIL_MEMORY(err, c->table->file);
}

/* Whether a column is called like a label. */
static bool has_label(const stk_csv *csv, size_t id) {
    static const char *const words[] = {"label",   "labels",  "class",    "category",
                                        "target",  "finding", "findings", "diagnosis",
                                        "species", "breed",   NULL};
    for (size_t c = 0; c < csv->columns; c++) {
        if (c != id && stk_has_word_of(csv->header[c], words)) {
            return true;
        }
    }
    return false;
}

static stk_status compare(folder_comparison *c, const stk_listing *listing, bool *beats,
                          stk_error *err) {
    const stk_label_table *t = c->table;
    const char *first = NULL;
    bool ok = (c->folder_of = stk_mem_new(t->csv.rows, sizeof *c->folder_of)) != NULL;
    for (size_t row = 0; ok && row < t->csv.rows; row++) {
        ok = note_row(c, listing, row, &first);
    }
    if (!ok) {
        return STK_FAIL_MEMORY(err, t->file);
    }
    *beats = (double)c->found >= NEARLY_ALL * (double)t->match.view.count &&
             c->folders.count >= 2 && (c->parts || has_label(&t->csv, t->match.column));
    stk_status status = STK_OK;
    for (size_t column = 0; status == STK_OK && *beats && column < t->csv.columns; column++) {
        bool same = false;
        if (column != t->match.column) {
            status = says_the_same(c, column, &same, err);
        }
        *beats = !same;
    }
    return status;
}

stk_status stk_table_beats_folders(const stk_label_table *table, const stk_listing *listing,
                                   bool *beats, stk_error *err) {
    const char *train = listing->sets[STK_SET_TRAIN].name;
    folder_comparison c = {.table = table, .parts = true};
    *beats = false;
    if (!stk_str_equal(table->match.view.folder, train != NULL ? train : "") ||
        table->match.whole) {
        return STK_OK;
    }
    stk_status status = compare(&c, listing, beats, err);
    stk_map_free(&c.folders);
    stk_text_blocks_free(&c.texts);
    stk_mem_free(c.folder_of);
    if (status == STK_OK && *beats) {
        char what[300];
        snprintf(what, sizeof what, "labels from %.250s rather than from the folders", table->file);
        stk_events_decision(listing->events, what,
                            c.parts ? "it names nearly all pictures, and the folders are counted"
                                    : "it names nearly all pictures, and its labels differ");
    }
    return status;
}
