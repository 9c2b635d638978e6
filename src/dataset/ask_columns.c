/* ask_columns.c - finds the columns of a table that are labels. */
#include "dataset/ask.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* The sample's columns are classes when so many of them are texts of the column. */
#define CLASSES_IN_HEADER 0.5

static size_t count_asked(const stk_ask_tables *t) {
    size_t count = 0;
    for (size_t i = 0; t->sample != NULL && i < t->sample->columns; i++) {
        count += stk_ask_is_answer(t, i);
    }
    return count;
}

static bool is_free(const stk_ask_tables *t, size_t column) {
    return column != t->id && column != t->part && column != t->split;
}

/* A column that only the training table has; without a test table every column may be one. */
static bool is_candidate(const stk_ask_tables *t, size_t column) {
    return is_free(t, column) && t->train->header[column][0] != '\0' &&
           (t->test == NULL || stk_csv_column(t->test, t->train->header[column]) == SIZE_MAX);
}

static void take(stk_ask *ask, size_t column) {
    ask->labels[ask->count++] = column;
}

/* ---- by --label-column ---- */

static stk_status take_named(stk_ask *ask, const stk_ask_tables *t, const char *wanted,
                             stk_error *err) {
    char names[400];
    stk_status status =
        stk_table_label_columns(t->train, t->where, wanted, ask->labels, &ask->count, err);
    for (size_t i = 0; status == STK_OK && i < ask->count; i++) {
        if (ask->labels[i] == t->id) {
            status = STK_FAIL(err, STK_ERR_USAGE,
                              "--label-column %s: %s is the id column of %s, whose columns are %s; "
                              "name another one, or the ids' with --id-column",
                              wanted, t->train->header[t->id], t->where,
                              stk_table_names(t->train, names, sizeof names));
        }
    }
    return status;
}

/* ---- by the sample submission ---- */

/* Columns of the training table with the names of the sample's. Most of the sample's must be there:
 * otherwise they are classes. */
static void take_same_names(stk_ask *ask, const stk_ask_tables *t) {
    for (size_t i = 0; t->sample != NULL && i < t->sample->columns; i++) {
        if (!stk_ask_is_answer(t, i)) {
            continue;
        }
        size_t column = stk_csv_column(t->train, t->sample->header[i]);
        if (column != SIZE_MAX && is_free(t, column)) {
            take(ask, column);
        }
    }
    if (2 * ask->count < count_asked(t)) {
        ask->count = 0;
    }
}

/* Whether a column of the sample is called like a text of the table; 3 like 3.0, too. */
static bool is_text(const stk_map *texts, const char *name) {
    char pointed[32];
    return stk_map_find(texts, name, NULL) ||
           (stk_is_whole_number(name, "") && strlen(name) + 2 < sizeof pointed &&
            snprintf(pointed, sizeof pointed, "%s.0", name) > 0 &&
            stk_map_find(texts, pointed, NULL));
}

/* How many of the sample's columns are texts of the column. */
static stk_status count_classes(const stk_ask_tables *t, size_t column, size_t *matches,
                                stk_error *err) {
    stk_map texts = {0};
    bool added;
    bool ok = true;
    *matches = 0;
    for (size_t row = 0; ok && row < t->train->rows; row++) {
        ok = stk_map_add(&texts, stk_csv_cell(t->train, row, column), row, &added);
    }
    for (size_t i = 0; ok && i < t->sample->columns; i++) {
        *matches += stk_ask_is_answer(t, i) && is_text(&texts, t->sample->header[i]);
    }
    stk_map_free(&texts);
    return ok ? STK_OK : STK_FAIL_MEMORY(err, t->where);
}

/* The column whose texts are the sample's columns. */
static stk_status take_classes_in_header(stk_ask *ask, const stk_ask_tables *t, stk_error *err) {
    stk_status status = STK_OK;
    size_t asked = count_asked(t);
    size_t most = 0;
    for (size_t c = 0; asked > 1 && status == STK_OK && c < t->train->columns; c++) {
        size_t matches;
        if (!is_candidate(t, c)) {
            continue;
        }
        status = count_classes(t, c, &matches, err);
        if (status == STK_OK && matches > most &&
            (double)matches >= CLASSES_IN_HEADER * (double)asked) {
            most = matches;
            ask->count = 0;
            take(ask, c);
            ask->values = true;
        }
    }
    return status;
}

/* ---- by the table alone ---- */

/* Takes the only column of which `fits` is true; returns how many there are. */
static size_t take_only(stk_ask *ask, const stk_ask_tables *t, bool (*fits)(const char *name)) {
    size_t found = 0;
    size_t last = 0;
    for (size_t c = 0; c < t->train->columns; c++) {
        if (is_candidate(t, c) && (fits == NULL || fits(t->train->header[c]))) {
            found++;
            last = c;
        }
    }
    if (found == 1) {
        take(ask, last);
    }
    return found;
}

/* All candidates, where each holds 0 and 1: a column for each label. `most`: nearly all do. */
static stk_status take_flags(stk_ask *ask, const stk_ask_tables *t, stk_error *err) {
    stk_status status = STK_OK;
    size_t others = 0;
    for (size_t c = 0; status == STK_OK && c < t->train->columns; c++) {
        stk_column_profile profile;
        if (!is_candidate(t, c)) {
            continue;
        }
        status = stk_column_profile_make(&profile, t->train, c, err);
        if (status == STK_OK && stk_column_is_flags(&profile)) {
            take(ask, c);
        } else {
            others++;
        }
        if (status == STK_OK) {
            stk_column_profile_free(&profile);
        }
    }
    if (ask->count < 2 || (ask->count < 3 && ask->count < others)) {
        ask->count = 0;
    }
    return status;
}

static stk_status fail_unclear(const stk_ask_tables *t, stk_error *err) {
    char names[400];
    stk_table_names(t->train, names, sizeof names);
    if (t->train->columns < 2) {
        return STK_FAIL(
            err, STK_ERR_DATA,
            "%s has one column only, %s; it needs an id and a label column, divided by commas",
            t->where, names);
    }
    return STK_FAIL(err, STK_ERR_USAGE,
                    "cannot tell which column of %s is the label: its columns are %s; name it with "
                    "--label-column (and the ids', if it is not %s, with --id-column)",
                    t->where, names, t->train->header[t->id]);
}

stk_status stk_ask_columns(stk_ask *ask, const stk_listing *listing, const stk_ask_tables *t,
                           stk_error *err) {
    *ask = (stk_ask){.metric = STK_METRIC_AUTO};
    ask->labels = stk_mem_new(t->train->columns, sizeof *ask->labels);
    if (ask->labels == NULL) {
        return STK_FAIL_MEMORY(err, t->where);
    }
    if (listing->options->label_column != NULL) {
        return take_named(ask, t, listing->options->label_column, err);
    }
    stk_status status = STK_OK;
    take_same_names(ask, t);
    if (ask->count == 0) {
        status = take_classes_in_header(ask, t, err);
    }
    if (status == STK_OK && ask->count == 0) {
        size_t column;
        status = stk_ask_column_by_cells(t, &column, err);
        if (status == STK_OK && column != SIZE_MAX) {
            take(ask, column);
        }
    }
    if (status == STK_OK && ask->count == 0) {
        bool found = take_only(ask, t, stk_table_is_label_name) > 0 ||
                     take_only(ask, t, NULL) == 1 ||
                     take_only(ask, t, stk_table_has_label_word) > 0;
        status = found ? STK_OK : take_flags(ask, t, err);
    }
    return status == STK_OK && ask->count == 0 ? fail_unclear(t, err) : status;
}

void stk_ask_free(stk_ask *ask) {
    stk_mem_free(ask->labels);
    memset(ask, 0, sizeof *ask);
}
