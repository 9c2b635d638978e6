/*
 * given_sets.c - rows that validate or are predicted because a column or the name of a table says
 * so.
 *
 * A column is known by its cells alone: all of them are names of sets. Rows that validate must
 * never be trained on, so one whose picture is also that of a training row is left out.
 */
#include "dataset/given_sets.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text/text_blocks.h"
#include "dataset/label_columns.h"
#include "dataset/label_lists.h"

/* ---- by a column ---- */

/* The set that a cell names. */
static stk_set_kind set_in(const char *cell) {
    bool weak;
    return stk_set_word(cell, &weak);
}

/* Counts the rows of each set; false: some cell names none, or none is another set's than those
 * that train. */
static bool count_sets(const stk_csv *csv, size_t column, size_t counts[STK_SET_KINDS]) {
    memset(counts, 0, STK_SET_KINDS * sizeof *counts);
    for (size_t row = 0; row < csv->rows; row++) {
        stk_set_kind set = set_in(stk_csv_cell(csv, row, column));
        if (set == STK_SET_NONE) {
            return false;
        }
        counts[set]++;
    }
    return counts[STK_SET_TRAIN] > 0 && counts[STK_SET_TRAIN] < csv->rows;
}

/* Whether an option or its name says that the column is something else. */
static bool is_taken(const stk_listing *listing, const stk_csv *csv, size_t column) {
    const stk_dataset_options *o = listing->options;
    const char *name = csv->header[column];
    return (o->fold_column != NULL && stk_str_equal_nocase(o->fold_column, name)) ||
           (o->group_column != NULL && stk_str_equal_nocase(o->group_column, name)) ||
           stk_table_is_named(csv, o->label_column, column) || stk_table_is_label_name(name);
}

/* Makes a table of the rows of one set. */
static stk_status pick_rows(const stk_label_table *from, size_t column, stk_set_kind set,
                            stk_csv *csv, stk_error *err) {
    bool *rows = stk_mem_new(from->csv.rows, sizeof *rows);
    if (rows == NULL) {
        return STK_FAIL_MEMORY(err, from->file);
    }
    for (size_t row = 0; row < from->csv.rows; row++) {
        rows[row] = set_in(stk_csv_cell(&from->csv, row, column)) == set;
    }
    stk_status status = stk_csv_join(from->file, &(stk_csv_part){&from->csv, rows}, 1, csv, err);
    stk_mem_free(rows);
    return status;
}

/* Makes the table of one set, with its pictures: they may lie in a folder of their own. */
static stk_status pick_table(stk_label_table *t, stk_listing *listing, const stk_survey *survey,
                             const stk_label_table *from, size_t column, stk_set_kind set,
                             size_t id, stk_error *err) {
    memset(t, 0, sizeof *t);
    stk_status status = pick_rows(from, column, set, &t->csv, err);
    STK_THEN(status, stk_label_table_match(t, listing, survey, set, id, err));
    if (status == STK_OK) {
        t->file = from->file;
    } else {
        stk_csv_free(&t->csv);
    }
    return status;
}

static void tell_column(const stk_listing *listing, const stk_label_table *train,
                        const char *column, const size_t counts[STK_SET_KINDS]) {
    char what[160];
    char why[300];
    snprintf(what, sizeof what, "%zu rows train, %zu validate, %zu are test rows",
             counts[STK_SET_TRAIN], counts[STK_SET_VAL], counts[STK_SET_TEST]);
    snprintf(why, sizeof why, "column %.80s of %.160s says so", column, train->file);
    stk_events_decision(listing->events, what, why);
}

/* Replaces the training table by its rows that train; the file's other properties stay. */
static stk_status keep_training(stk_given_sets *given, stk_listing *listing,
                                const stk_survey *survey, stk_label_table *train, size_t id,
                                stk_error *err) {
    stk_label_table rest;
    stk_status status =
        pick_table(&rest, listing, survey, train, given->column, STK_SET_TRAIN, id, err);
    if (status == STK_OK) {
        stk_csv_free(&train->csv);
        stk_match_free(&train->match);
        train->csv = rest.csv;
        train->match = rest.match;
    }
    return status;
}

stk_status stk_given_sets_divide(stk_given_sets *given, stk_listing *listing,
                                 const stk_survey *survey, stk_label_table *train, size_t id,
                                 stk_error *err) {
    size_t counts[STK_SET_KINDS] = {0};
    const stk_csv *csv = &train->csv;
    stk_status status = STK_OK;
    given->column = SIZE_MAX;
    for (size_t c = 0; given->column == SIZE_MAX && c < csv->columns; c++) {
        if (c != id && !is_taken(listing, csv, c) && count_sets(csv, c, counts)) {
            given->column = c;
        }
    }
    if (given->column == SIZE_MAX) {
        return STK_OK;
    }
    tell_column(listing, train, csv->header[given->column], counts);
    if (counts[STK_SET_VAL] > 0) {
        status =
            pick_table(&given->val, listing, survey, train, given->column, STK_SET_VAL, id, err);
    }
    if (status == STK_OK && counts[STK_SET_TEST] > 0) {
        status =
            pick_table(&given->test, listing, survey, train, given->column, STK_SET_TEST, id, err);
    }
    return status == STK_OK ? keep_training(given, listing, survey, train, id, err) : status;
}

/* ---- by a table ---- */

stk_status stk_given_sets_find(stk_given_sets *given, stk_listing *listing,
                               const stk_survey *survey, const char *id_name, stk_error *err) {
    return given->val.file == NULL
               ? stk_label_table_find_val(&given->val, listing, survey, id_name, err)
               : STK_OK;
}

/* ---- rows that validate ---- */

/* Why rows are left out. */
typedef struct left_out {
    size_t missing; /* without a picture */
    size_t trained; /* with a picture of a training row */
    size_t unclear; /* without a label, or with a picture of another such row */
    size_t strange; /* with a class or label that no training row has */
} left_out;

/* What is needed to judge a row. */
typedef struct judge {
    const stk_listing *listing;
    const stk_ask *ask;
    stk_given_sets *given;
    const stk_map *trained;
    stk_map pictures; /* owned: of rows that are taken */
    stk_map known;    /* owned: classes or labels that training rows have */
    stk_texts texts;  /* owned: labels, for `known` */
    size_t id;
    size_t *labels; /* owned: columns, in the order of `ask` */
    left_out out;
} judge;

typedef enum verdict { FITS, UNCLEAR, STRANGE } verdict;

/* Whether labels are texts: of columns of 0 and 1 the names of the columns are. */
static bool has_texts(const stk_ask *ask) {
    return ask->task != STK_TASK_REGRESSION && ask->count == 1;
}

/* Notes the labels that a training cell lists. */
static bool note_list(judge *j, const char *cell) {
    const char *word;
    size_t length;
    bool ok = true;
    while (ok && (word = stk_label_list_next(&cell, j->ask->answer.divider, &length)) != NULL) {
        bool added = false;
        char *name = stk_mem_strndup(word, length);
        ok = name != NULL && stk_map_add(&j->known, name, 0, &added);
        if (ok && added) {
            ok = stk_texts_take(&j->texts, name);
        } else {
            stk_mem_free(name);
        }
    }
    return ok;
}

static stk_status note_known(judge *j, const stk_csv *train, stk_error *err) {
    bool ok = true;
    bool added;
    for (size_t row = 0; ok && has_texts(j->ask) && row < train->rows; row++) {
        const char *cell = stk_csv_cell(train, row, j->ask->labels[0]);
        ok = j->ask->task == STK_TASK_MULTILABEL ? note_list(j, cell)
                                                 : stk_map_add(&j->known, cell, row, &added);
    }
    return ok ? STK_OK : STK_FAIL_MEMORY(err, j->given->val.file);
}

/* Whether training rows have all labels that a cell lists. */
static stk_status judge_list(const judge *j, const char *cell, verdict *v, stk_error *err) {
    const char *word;
    size_t length;
    while (*v == FITS &&
           (word = stk_label_list_next(&cell, j->ask->answer.divider, &length)) != NULL) {
        char *name = stk_mem_strndup(word, length);
        if (name == NULL) {
            return STK_FAIL_MEMORY(err, j->given->val.file);
        }
        *v = stk_map_find(&j->known, name, NULL) ? FITS : STRANGE;
        stk_mem_free(name);
    }
    return STK_OK;
}

/* Whether a row says something that a training row could say. */
static stk_status judge_label(const judge *j, size_t row, verdict *v, stk_error *err) {
    const stk_csv *csv = &j->given->val.csv;
    const char *first = stk_csv_cell(csv, row, j->labels[0]);
    size_t ones;
    size_t numbers = stk_label_columns_numbers(csv, row, j->labels, j->ask->count, &ones);
    *v = FITS;
    if (j->ask->one_hot) {
        *v = ones == 1 ? FITS : UNCLEAR;
    } else if (j->ask->task == STK_TASK_REGRESSION) {
        *v = numbers > 0 ? FITS : UNCLEAR;
    } else if (has_texts(j->ask) && j->ask->task == STK_TASK_MULTILABEL) {
        return judge_list(j, first, v, err);
    } else if (has_texts(j->ask)) {
        *v = first[0] == '\0' ? UNCLEAR : stk_map_find(&j->known, first, NULL) ? FITS : STRANGE;
    }
    return STK_OK;
}

/* Whether a row validates; notes its pictures. */
static stk_status judge_row(judge *j, size_t row, bool *taken, stk_error *err) {
    const stk_label_table *val = &j->given->val;
    stk_row_pictures *its = &j->given->places[row];
    size_t other;
    bool added = true;
    verdict v;
    *taken = false;
    if (stk_match_find(j->listing, &val->match, stk_csv_cell(&val->csv, row, j->id), &its->first,
                       &its->count, &other) != STK_FOUND_ONE) {
        j->out.missing++;
        return STK_OK;
    }
    const char *path = val->match.view.paths[its->first];
    if (stk_map_find(j->trained, path, NULL)) {
        j->out.trained++;
        return STK_OK;
    }
    stk_status status = judge_label(j, row, &v, err);
    if (status == STK_OK && v == FITS && !stk_map_add(&j->pictures, path, row, &added)) {
        status = STK_FAIL_MEMORY(err, val->file);
    }
    if (status == STK_OK) {
        *taken = v == FITS && added;
        j->out.strange += v == STRANGE;
        j->out.unclear += v == UNCLEAR || !added;
    }
    return status;
}

/* The text of one reason, behind those before. */
static void add_reason(char *text, size_t size, size_t count, const char *reason) {
    size_t length = strlen(text);
    if (count > 0) {
        snprintf(text + length, size - length, "%s%zu %s", length > 0 ? ", " : "", count, reason);
    }
}

static void tell_rows(const judge *j, size_t taken) {
    const stk_label_table *val = &j->given->val;
    const left_out *out = &j->out;
    char left[200] = "";
    char what[300];
    char why[300];
    add_reason(left, sizeof left, out->missing, "without a picture");
    add_reason(left, sizeof left, out->trained, "with a training picture");
    add_reason(left, sizeof left, out->unclear, "without a label or with a picture twice");
    add_reason(left, sizeof left, out->strange,
               j->ask->task == STK_TASK_MULTILABEL ? "with a label that no training row has"
                                                   : "with a class that no training row has");
    if (taken == 0) {
        snprintf(what, sizeof what, "the validation rows of %.200s are left out", val->file);
        snprintf(why, sizeof why, "all are of no use: %s", left);
        stk_events_decision(j->listing->events, what, why);
    } else if (left[0] != '\0' || j->given->column == SIZE_MAX) {
        snprintf(what, sizeof what, "%zu rows of %.200s validate", taken, val->file);
        snprintf(why, sizeof why, "%s%s%s",
                 j->given->column == SIZE_MAX ? "the name of the table says so"
                                              : "the column says so",
                 left[0] != '\0' ? "; left out are rows: " : "", left);
        stk_events_decision(j->listing->events, what, why);
    }
}

/* The columns of ids and labels must be there, under the same names. */
static bool has_columns(const stk_listing *listing, const stk_label_table *val,
                        const stk_csv *train, size_t id, const stk_ask *ask) {
    for (size_t i = 0; i <= ask->count; i++) {
        const char *name = train->header[i < ask->count ? ask->labels[i] : id];
        if (stk_csv_column(&val->csv, name) == SIZE_MAX) {
            char what[300];
            char why[120];
            snprintf(what, sizeof what, "the validation rows of %.200s are left out", val->file);
            snprintf(why, sizeof why, "it has no column %.80s", name);
            stk_events_decision(listing->events, what, why);
            return false;
        }
    }
    return true;
}

/* Decides on every row. */
static stk_status judge_rows(judge *j, bool *taken, size_t *count, stk_error *err) {
    stk_status status = STK_OK;
    *count = 0;
    for (size_t row = 0; status == STK_OK && row < j->given->val.csv.rows; row++) {
        status = judge_row(j, row, &taken[row], err);
        /* The rows that are taken stand one after another in the joined table. */
        if (status == STK_OK && taken[row]) {
            j->given->places[(*count)++] = j->given->places[row];
        }
    }
    return status;
}

/* Finds the columns of the labels, and what training rows say in them. */
static stk_status open_judge(judge *j, const stk_csv *train, stk_error *err) {
    const stk_ask *ask = j->ask;
    stk_csv *csv = &j->given->val.csv;
    j->labels = stk_mem_new(ask->count, sizeof *j->labels);
    if (j->labels == NULL) {
        return STK_FAIL_MEMORY(err, j->given->val.file);
    }
    for (size_t i = 0; i < ask->count; i++) {
        j->labels[i] = stk_csv_column(csv, train->header[ask->labels[i]]);
    }
    if (ask->count == 1) {
        stk_ask_whole_like(train, ask->labels[0], csv, j->labels[0]);
    }
    return note_known(j, train, err);
}

static void close_judge(judge *j) {
    stk_map_free(&j->pictures);
    stk_map_free(&j->known);
    stk_texts_free(&j->texts);
    stk_mem_free(j->labels);
}

stk_status stk_given_sets_join(stk_given_sets *given, const stk_listing *listing,
                               const stk_csv *train, size_t id, const stk_ask *ask,
                               const stk_map *trained, stk_csv *all, stk_error *err) {
    const stk_label_table *val = &given->val;
    size_t count = 0;
    memset(all, 0, sizeof *all);
    if (val->file == NULL || !has_columns(listing, val, train, id, ask)) {
        return STK_OK;
    }
    judge j = {.listing = listing,
               .ask = ask,
               .given = given,
               .trained = trained,
               .id = stk_csv_column(&val->csv, train->header[id])};
    bool *taken = stk_mem_new(val->csv.rows, sizeof *taken);
    given->places = stk_mem_new(val->csv.rows, sizeof *given->places);
    stk_status status =
        taken != NULL && given->places != NULL ? STK_OK : STK_FAIL_MEMORY(err, val->file);
    STK_THEN(status, open_judge(&j, train, err));
    STK_THEN(status, judge_rows(&j, taken, &count, err));
    if (status == STK_OK) {
        tell_rows(&j, count);
    }
    if (status == STK_OK && count > 0) {
        const stk_csv_part parts[] = {{train, NULL}, {&val->csv, taken}};
        status = stk_csv_join(val->file, parts, STK_COUNT(parts), all, err);
    }
    close_judge(&j);
    stk_mem_free(taken);
    return status;
}

void stk_given_sets_free(stk_given_sets *given) {
    stk_label_table_free(&given->val);
    stk_label_table_free(&given->test);
    stk_mem_free(given->places);
    memset(given, 0, sizeof *given);
}
