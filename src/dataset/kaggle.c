/*
 * kaggle.c - a table of ids and labels beside pictures.
 *
 * label_table.c finds the table and its pictures, ask_columns.c and ask_task.c what is asked for,
 * testset.c lists the test rows. Rows and pictures without a partner are an error with counts and
 * examples: a label that is lost in silence costs accuracy.
 */
#include "dataset/ask.h"
#include "dataset/label_table.h"
#include "dataset/records.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* A row's pictures: a range of the view. */
typedef struct row_pictures {
    size_t first;
    size_t count; /* 0: there is none */
} row_pictures;

/* All tables of a location being matched with its pictures. */
typedef struct kaggle_table {
    stk_label_table train;
    stk_label_table test;
    stk_sample_file sample;
    stk_survey survey;
    stk_hints hints;
    stk_ask ask;
    stk_records records;
    const stk_csv *csv;     /* of `train` */
    stk_pictures *pictures; /* of `train` */
    char *where;            /* owned: the training table's path, for errors */
    char *pictures_folder;  /* owned: its path, for errors */
    size_t id;              /* column */
    size_t part;            /* column that divides the samples; SIZE_MAX: none */
    size_t key;             /* the test table's column of ids */
    size_t sample_id;       /* the sample submission's column of ids */
    row_pictures *rows;     /* owned */
    size_t found;           /* rows that have a picture */
} kaggle_table;

static const char *id_of(const kaggle_table *t, size_t row) {
    return stk_csv_cell(t->csv, row, t->id);
}

static size_t line_of(const kaggle_table *t, size_t row) {
    return stk_csv_line(t->csv, row);
}

/* ---- which columns, which pictures ---- */

/* The column that names the pictures. Where none does, the one that was probably meant. */
static stk_status choose_id(const stk_listing *listing, kaggle_table *t, stk_error *err) {
    const stk_dataset_options *options = listing->options;
    size_t taken = SIZE_MAX; /* the label's column, when it was given */
    if (options->id_column != NULL) {
        return stk_table_column(t->csv, t->where, "--id-column", options->id_column, &t->id, err);
    }
    if (t->train.match.column != SIZE_MAX) {
        t->id = t->train.match.column;
        return STK_OK;
    }
    if (options->label_column != NULL) {
        taken = stk_csv_column(t->csv, options->label_column);
    }
    size_t usual = SIZE_MAX;
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < t->csv->columns; i++) {
        if (i == taken) {
            continue;
        }
        usual = stk_table_is_id_name(t->csv->header[i]) && usual == SIZE_MAX ? i : usual;
        if (first == SIZE_MAX && !stk_table_is_label_name(t->csv->header[i])) {
            first = i;
        }
    }
    t->id = usual != SIZE_MAX ? usual : first != SIZE_MAX ? first : 0;
    return STK_OK;
}

/* Finds the pictures of every row. */
static stk_status match_rows(const stk_listing *listing, kaggle_table *t, stk_error *err) {
    t->rows = stk_mem_new(t->csv->rows, sizeof *t->rows);
    if (t->rows == NULL) {
        return STK_FAIL_MEMORY(err, t->where);
    }
    for (size_t row = 0; row < t->csv->rows; row++) {
        size_t first = 0;
        size_t count = 0;
        size_t other = 0;
        stk_found found =
            stk_match_find(listing, &t->train.match, id_of(t, row), &first, &count, &other);
        if (found == STK_FOUND_SEVERAL) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s, line %zu: '%s' fits both %s and %s; write the whole name into the "
                            "table, or pass --image-ext to say which kind counts",
                            t->where, line_of(t, row), id_of(t, row), t->pictures->paths[first],
                            t->pictures->paths[other]);
        }
        t->rows[row] = (row_pictures){first, found == STK_FOUND_ONE ? count : 0};
        t->found += found == STK_FOUND_ONE;
    }
    return STK_OK;
}

/* The column that divides the samples: the one that was named, or the one that has to. */
static stk_status choose_part(stk_listing *listing, kaggle_table *t, stk_error *err) {
    const char *flag;
    const char *name = stk_division_column(listing->options, &flag);
    t->part = SIZE_MAX;
    return name != NULL ? stk_table_column(t->csv, t->where, flag, name, &t->part, err) : STK_OK;
}

static stk_status find_groups(stk_listing *listing, kaggle_table *t, stk_error *err) {
    const stk_csv *test = t->test.file != NULL ? &t->test.csv : NULL;
    if (t->part != SIZE_MAX || listing->options->val_per_class > 0) {
        return STK_OK;
    }
    bool *taken = stk_mem_new(t->csv->columns, sizeof *taken);
    if (taken == NULL) {
        return STK_FAIL_MEMORY(err, t->where);
    }
    taken[t->id] = true;
    for (size_t i = 0; i < t->ask.count; i++) {
        taken[t->ask.labels[i]] = true;
    }
    stk_status status = stk_groups_find(t->csv, test, taken, &t->part, err);
    if (status == STK_OK && t->part != SIZE_MAX) {
        char what[160];
        const char *name = t->csv->header[t->part];
        listing->found_group = name;
        snprintf(what, sizeof what, "rows with the same %.80s validate together", name);
        stk_events_decision(listing->events, what,
                            test != NULL && stk_csv_column(test, name) != SIZE_MAX
                                ? "the test rows have other values of it"
                                : "the name of the column says that they belong together");
    }
    stk_mem_free(taken);
    return status;
}

/* A row needs an id, and a label where rows without any mean nothing. */
static stk_status check_cells(const kaggle_table *t, stk_error *err) {
    bool may_be_empty = t->ask.task == STK_TASK_MULTILABEL || t->ask.count > 1;
    size_t label = t->ask.labels[0];
    for (size_t row = 0; row < t->csv->rows; row++) {
        if (t->part != SIZE_MAX && stk_csv_cell(t->csv, row, t->part)[0] == '\0') {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s, line %zu: column %s is empty; fill it in for every row", t->where,
                            line_of(t, row), t->csv->header[t->part]);
        }
        bool no_id = id_of(t, row)[0] == '\0';
        if (no_id || (!may_be_empty && stk_csv_cell(t->csv, row, label)[0] == '\0')) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s, line %zu: the %s (column %s) is empty; fill it in or remove the "
                            "row",
                            t->where, line_of(t, row), no_id ? "id" : "label",
                            t->csv->header[no_id ? t->id : label]);
        }
    }
    return STK_OK;
}

static stk_status fail_twice(const kaggle_table *t, size_t first, size_t second, stk_error *err) {
    if (stk_str_equal(id_of(t, first), id_of(t, second))) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s has the id '%s' twice, on lines %zu and %zu; remove one row, since a "
                        "picture has one label",
                        t->where, id_of(t, first), line_of(t, first), line_of(t, second));
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s labels %s twice, on lines %zu ('%s') and %zu ('%s'); remove one row, since "
                    "a picture has one label",
                    t->where, t->pictures->paths[t->rows[first].first], line_of(t, first),
                    id_of(t, first), line_of(t, second), id_of(t, second));
}

/* Refuses two rows with one id, and two ids that mean one picture; marks the pictures used. */
static stk_status check_twice(kaggle_table *t, stk_error *err) {
    stk_map seen = {0};
    stk_status status = STK_OK;
    size_t *owners = stk_mem_new(t->pictures->count, sizeof *owners); /* row + 1; 0: none yet */
    if (owners == NULL) {
        return STK_FAIL_MEMORY(err, t->where);
    }
    for (size_t row = 0; status == STK_OK && row < t->csv->rows; row++) {
        bool added = true;
        size_t first = 0;
        row_pictures its = t->rows[row];
        if (!stk_map_add(&seen, id_of(t, row), row, &added)) {
            status = STK_FAIL_MEMORY(err, t->where);
        } else if (!added && stk_map_find(&seen, id_of(t, row), &first)) {
            status = fail_twice(t, first, row, err);
        } else if (its.count > 0 && owners[its.first] != 0) {
            status = fail_twice(t, owners[its.first] - 1, row, err);
        } else if (its.count > 0) {
            owners[its.first] = row + 1;
            memset(t->pictures->used + its.first, true, its.count);
        }
    }
    stk_map_free(&seen);
    stk_mem_free(owners);
    return status;
}

static stk_status check_missing(const stk_listing *listing, const kaggle_table *t, stk_error *err) {
    stk_first_names missing = {0};
    char names[300];
    char note[64];
    for (size_t row = 0; row < t->csv->rows; row++) {
        if (t->rows[row].count == 0) {
            stk_first_names_add(&missing, id_of(t, row));
        }
    }
    if (missing.count == 0) {
        return STK_OK;
    }
    stk_first_names_text(&missing, names, sizeof names);
    stk_listing_ext_note(listing, note, sizeof note);
    if (t->found == 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "no picture in %s is named in column %s of %s%s: the ids are like '%s', "
                        "the files like '%s'; name the right column with --id-column or how the "
                        "files end with --image-ext",
                        t->pictures_folder, t->csv->header[t->id], t->where, note, missing.first[0],
                        stk_pictures_below(t->pictures, 0));
    }
    if (listing->options->mismatch == STK_MISMATCH_SKIP) {
        stk_events_warning(listing->events, "left out %zu row%s of %s without a picture: %s",
                           missing.count, stk_plural(missing.count), t->train.file, names);
        return STK_OK;
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s has labels for %zu picture%s that %s not in %s%s: %s; restore the files, "
                    "say how they end with --image-ext, or pass --mismatch skip to leave the rows "
                    "out",
                    t->where, missing.count, stk_plural(missing.count),
                    missing.count == 1 ? "is" : "are", t->pictures_folder, note, names);
}

static stk_status check_unlabelled(const stk_listing *listing, const kaggle_table *t,
                                   stk_error *err) {
    stk_first_names unlabelled = {0};
    char names[300];
    for (size_t i = 0; i < t->pictures->count; i++) {
        if (!t->pictures->used[i]) {
            stk_first_names_add(&unlabelled, stk_pictures_below(t->pictures, i));
        }
    }
    if (unlabelled.count == 0) {
        return STK_OK;
    }
    stk_first_names_text(&unlabelled, names, sizeof names);
    if (listing->options->mismatch == STK_MISMATCH_SKIP) {
        stk_events_warning(listing->events, "left out %zu picture%s without a label in %s: %s",
                           unlabelled.count, stk_plural(unlabelled.count), t->train.file, names);
        return STK_OK;
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s has %zu picture%s without a label in %s: %s; add the labels, say with "
                    "--image-ext which kind of files counts, or pass --mismatch skip to leave the "
                    "pictures out",
                    t->pictures_folder, unlabelled.count, stk_plural(unlabelled.count), t->where,
                    names);
}

/* ---- samples ---- */

static int compare_ids(const void *a, const void *b) {
    const stk_sample *x = a;
    const stk_sample *y = b;
    int order = strcmp(x->id, y->id);
    return order != 0 ? order : strcmp(x->path, y->path);
}

/* Adds the pictures of one row. */
static stk_status add_row(stk_listing *listing, const kaggle_table *t, size_t row, stk_error *err) {
    const char *id = id_of(t, row);
    stk_sample sample = {.id = stk_listing_keep(listing, id, strlen(id)),
                         .label = t->records.strata[row],
                         .record = (int64_t)row};
    stk_status status = sample.id != NULL ? STK_OK : STK_FAIL_MEMORY(err, t->where);
    const char *part = t->part != SIZE_MAX    ? stk_csv_cell(t->csv, row, t->part)
                       : t->train.match.whole ? id
                                              : NULL;
    if (status == STK_OK && part != NULL) {
        status = stk_division_add(listing, part, &sample.part, err);
    }
    for (size_t i = 0; status == STK_OK && i < t->rows[row].count; i++) {
        sample.path = t->pictures->paths[t->rows[row].first + i];
        status = stk_listing_add(&listing->dataset->train, &listing->train_capacity, sample, err);
    }
    return status;
}

static stk_status add_samples(stk_listing *listing, const kaggle_table *t, stk_error *err) {
    stk_sample_list *train = &listing->dataset->train;
    stk_status status = STK_OK;
    if (t->part == SIZE_MAX && t->train.match.whole) {
        listing->found_group = t->csv->header[t->id];
    }
    for (size_t row = 0; status == STK_OK && row < t->csv->rows; row++) {
        if (t->rows[row].count > 0) {
            status = add_row(listing, t, row, err);
        }
    }
    if (train->count > 1) {
        qsort(train->items, train->count, sizeof *train->items, compare_ids);
    }
    return status;
}

static stk_status read_records(stk_listing *listing, kaggle_table *t, stk_error *err) {
    bool *wanted = stk_mem_new(t->csv->rows, sizeof *wanted);
    if (wanted == NULL) {
        return STK_FAIL_MEMORY(err, t->where);
    }
    for (size_t row = 0; row < t->csv->rows; row++) {
        wanted[row] = t->rows[row].count > 0;
    }
    stk_status status = stk_records_read(&t->records, listing, t->csv, &t->ask, wanted, err);
    stk_mem_free(wanted);
    return status;
}

static stk_status keep_names(stk_listing *listing, const kaggle_table *t, stk_error *err) {
    const char *id = t->csv->header[t->id];
    const char *label = t->csv->header[t->ask.labels[0]];
    stk_dataset *dataset = listing->dataset;
    dataset->id_name = stk_listing_keep(listing, id, strlen(id));
    dataset->label_name = stk_listing_keep(listing, label, strlen(label));
    return dataset->id_name != NULL && dataset->label_name != NULL ? STK_OK
                                                                   : STK_FAIL_MEMORY(err, t->where);
}

/* Further columns become inputs beside the picture. */
static stk_status read_features(stk_listing *listing, const kaggle_table *t, stk_error *err) {
    stk_features *features = &listing->dataset->features;
    if (!listing->options->columns || t->test.file == NULL) {
        return STK_OK;
    }
    bool *wanted = stk_mem_new(t->csv->columns, sizeof *wanted);
    if (wanted == NULL) {
        return STK_FAIL_MEMORY(err, t->where);
    }
    for (size_t c = 0; c < t->csv->columns; c++) {
        wanted[c] = c != t->id && c != t->part && t->csv->header[c][0] != '\0' &&
                    stk_csv_column(&t->test.csv, t->csv->header[c]) != t->key;
    }
    for (size_t i = 0; i < t->ask.count; i++) {
        wanted[t->ask.labels[i]] = false;
    }
    stk_status status = stk_features_make(features, t->csv, &t->test.csv, wanted, err);
    stk_mem_free(wanted);
    return status;
}

/* ---- test rows ---- */

/* The pictures of the test rows: those that the test table leads to, or those that the ids of the
 * sample submission name. */
static stk_status list_test(stk_listing *listing, kaggle_table *t, stk_error *err) {
    stk_match own = {0};
    stk_test_source source = {.first_record = t->csv->rows};
    stk_status status = STK_OK;
    if (t->sample.file == NULL && t->test.file == NULL) {
        return stk_testset_list(listing, &t->sample, false, err);
    }
    if (t->test.file != NULL) {
        source.table = &t->test.csv;
        source.key = t->key;
    }
    if (t->test.file != NULL && stk_match_fits(&t->test.match)) {
        source.match = &t->test.match;
        source.column = t->test.match.column;
    } else if (t->sample.file != NULL) {
        /* The table has the columns beside the pictures, but the ids name the pictures. */
        status = stk_survey_match(&t->survey, listing, &t->sample.csv, STK_SET_TEST, t->sample_id,
                                  SIZE_MAX, &own, err);
        source.match = &own;
        source.column = t->key;
    } else {
        source.match = &t->test.match;
        source.column = t->key;
    }
    if (status == STK_OK && source.table != NULL && source.column != source.key) {
        const char *by = source.table->header[source.key];
        listing->dataset->grouped_by = stk_listing_keep(listing, by, strlen(by));
    }
    if (status == STK_OK) {
        status =
            t->sample.file != NULL
                ? stk_testset_from_sample(listing, &t->sample, t->sample_id, &source, false, err)
                : stk_testset_from_table(listing, t->test.file, &source, err);
    }
    stk_match_free(&own);
    return status;
}

/* Test rows may lie in the same folder as the training pictures: they need no label. */
static stk_status mark_test(const stk_listing *listing, kaggle_table *t, stk_error *err) {
    const stk_sample_list *test = &listing->dataset->test;
    stk_map paths = {0};
    bool added;
    bool ok = true;
    for (size_t i = 0; ok && i < test->count; i++) {
        ok = test->items[i].path == NULL || stk_map_add(&paths, test->items[i].path, i, &added);
    }
    for (size_t i = 0; ok && i < t->pictures->count; i++) {
        t->pictures->used[i] =
            t->pictures->used[i] || stk_map_find(&paths, t->pictures->paths[i], NULL);
    }
    stk_map_free(&paths);
    return ok ? STK_OK : STK_FAIL_MEMORY(err, t->where);
}

/* ---- the whole ---- */

/* Finds the tables and the pictures of their rows. */
static stk_status open_tables(stk_listing *listing, kaggle_table *t, stk_error *err) {
    stk_status status = stk_survey_make(&t->survey, listing, err);
    t->part = SIZE_MAX;
    STK_THEN(status, stk_label_table_find(&t->train, listing, &t->survey, err));
    if (status != STK_OK || t->train.file == NULL) {
        return status;
    }
    t->csv = &t->train.csv;
    t->pictures = &t->train.match.view;
    t->where = stk_listing_full(listing, t->train.file);
    t->pictures_folder = stk_listing_full(listing, t->pictures->folder);
    if (t->where == NULL || t->pictures_folder == NULL) {
        return STK_FAIL_MEMORY(err, t->train.file);
    }
    status = choose_part(listing, t, err);
    STK_THEN(status, choose_id(listing, t, err));
    return status == STK_OK ? match_rows(listing, t, err) : status;
}

/* Finds what the test rows come from. */
static stk_status open_test(stk_listing *listing, kaggle_table *t, stk_error *err) {
    const char *id_name = t->csv->header[t->id];
    stk_status status = stk_testset_open_sample(listing, &t->sample, err);
    bool has_sample = status == STK_OK && t->sample.file != NULL;
    if (has_sample) {
        t->sample_id = stk_testset_sample_id(listing, &t->sample.csv, id_name);
    }
    STK_THEN(status, stk_label_table_find_test(&t->test, listing, &t->survey,
                                               has_sample ? &t->sample.csv : NULL, t->sample_id,
                                               id_name, &t->key, err));
    return status;
}

/* Finds out what is asked for. */
static stk_status ask(stk_listing *listing, kaggle_table *t, stk_error *err) {
    bool has_sample = t->sample.file != NULL;
    int kept = has_sample ? stk_template_kept(&t->sample.csv, t->sample_id) : -1;
    stk_ask_tables tables = {.train = t->csv,
                             .where = t->where,
                             .file = t->train.file,
                             .id = t->id,
                             .part = t->part,
                             .test = t->test.file != NULL ? &t->test.csv : NULL,
                             .sample = has_sample ? &t->sample.csv : NULL,
                             .sample_id = t->sample_id,
                             .sample_kept = kept >= 0 ? (size_t)kept : SIZE_MAX};
    stk_status status = stk_hints_read(&t->hints, listing, err);
    STK_THEN(status, stk_ask_columns(&t->ask, listing, &tables, err));
    STK_THEN(status, stk_ask_task(&t->ask, listing, &tables, &t->hints, err));
    STK_THEN(status, keep_names(listing, t, err));
    return status;
}

static stk_status check_contents(const stk_listing *listing, const kaggle_table *t,
                                 stk_error *err) {
    char note[64];
    if (t->csv->rows == 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s has a header but no rows; it needs one row per training picture",
                        t->where);
    }
    if (t->pictures->count == 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "no pictures in %s for the labels of %s%s; put them (files that end "
                        "with " STK_PICTURE_EXTENSIONS
                        ") into a folder train, train_images or images beside the table",
                        t->pictures_folder, t->where,
                        stk_listing_ext_note(listing, note, sizeof note));
    }
    return STK_OK;
}

/*
 * Whether class folders win over the table: no id names a picture, pictures lie in subfolders, and
 * no option says how to read the table.
 */
static bool yields(const stk_listing *listing, const kaggle_table *t) {
    const stk_dataset_options *options = listing->options;
    return t->found == 0 && t->pictures->by_base.count > 0 && options->id_column == NULL &&
           options->label_column == NULL && t->part == SIZE_MAX;
}

/* Says what a JSON file has that is not trained on. */
static void tell_left_out(const stk_listing *listing, const stk_label_table *table) {
    const stk_json_table_info *info = &table->info;
    if (info->strays > 0) {
        stk_events_warning(listing->events,
                           "left out %zu annotation%s of %s: the images that %s are not listed in "
                           "it",
                           info->strays, stk_plural(info->strays), table->file,
                           info->strays == 1 ? "it names" : "they name");
    }
    if (info->has_boxes || info->has_masks) {
        char why[300];
        snprintf(why, sizeof why,
                 "%.200s has %s, too; Stoker trains which labels are in a picture, not where",
                 table->file, info->has_masks ? "masks" : "boxes");
        stk_events_decision(listing->events, "the labels of whole pictures", why);
    }
}

static void close_tables(kaggle_table *t) {
    stk_label_table_free(&t->train);
    stk_label_table_free(&t->test);
    stk_testset_close_sample(&t->sample);
    stk_survey_free(&t->survey);
    stk_hints_free(&t->hints);
    stk_ask_free(&t->ask);
    stk_records_free(&t->records);
    stk_mem_free(t->rows);
    stk_mem_free(t->where);
    stk_mem_free(t->pictures_folder);
}

stk_status stk_kaggle_list(stk_listing *listing, bool *fits, stk_error *err) {
    kaggle_table t = {0};
    stk_status status = open_tables(listing, &t, err);
    *fits = status != STK_OK || (t.train.file != NULL && !yields(listing, &t));
    if (status != STK_OK || !*fits) {
        if (status == STK_OK && t.train.file != NULL) {
            char why[300];
            snprintf(why, sizeof why, "no id in %s is the name of a picture", t.train.file);
            stk_events_decision(listing->events, "labels from class folders", why);
        }
        close_tables(&t);
        return status;
    }
    tell_left_out(listing, &t.train);
    status = check_contents(listing, &t, err);
    STK_THEN(status, open_test(listing, &t, err));
    STK_THEN(status, ask(listing, &t, err));
    STK_THEN(status, find_groups(listing, &t, err));
    STK_THEN(status, check_cells(&t, err));
    STK_THEN(status, check_twice(&t, err));
    STK_THEN(status, check_missing(listing, &t, err));
    STK_THEN(status, list_test(listing, &t, err));
    STK_THEN(status, mark_test(listing, &t, err));
    STK_THEN(status, check_unlabelled(listing, &t, err));
    STK_THEN(status, read_records(listing, &t, err));
    STK_THEN(status, read_features(listing, &t, err));
    STK_THEN(status, add_samples(listing, &t, err));
    STK_THEN(status, stk_listing_set_ask(listing, &t.ask, err));
    close_tables(&t);
    return status;
}
