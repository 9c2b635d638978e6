/*
 * kaggle.c - a table of ids and labels beside pictures.
 *
 * label_table.c finds the table and its pictures, ask_columns.c and ask_task.c what is asked for,
 * labelled_rows.c checks rows against pictures, testset.c lists the test rows.
 */
#include "dataset/ask.h"
#include "dataset/given_sets.h"
#include "dataset/label_table.h"
#include "dataset/labelled_rows.h"
#include "dataset/name_lists.h"
#include "dataset/records.h"
#include "dataset/train_rows.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* All tables of a location being matched with its pictures. */
typedef struct kaggle_table {
    stk_label_table train;
    stk_label_table test;
    bool own_test; /* `test` has rows of the training table's file, which have labels */
    stk_given_sets given;
    stk_sample_file sample;
    stk_survey survey;
    stk_hints hints;
    stk_ask ask;
    stk_records records;
    stk_csv clean;          /* owned: rows that train, without those that are left out */
    stk_csv all;            /* owned: rows that train and, behind them, rows that validate */
    stk_labelled_rows rows; /* of `train`, `clean` or `all` */
    stk_train_rows made_of; /* which of them are one row of the submission */
    size_t key;             /* the test table's column of ids */
    size_t sample_id;       /* the sample submission's column of ids */
} kaggle_table;

/* ---- which columns, which pictures ---- */

/* The column that names the pictures. Where none does, the one that was probably meant. */
static stk_status choose_id(const stk_listing *listing, kaggle_table *t, stk_error *err) {
    const stk_dataset_options *options = listing->options;
    if (options->id_column != NULL) {
        return stk_table_column(t->rows.csv, t->rows.where, "--id-column", options->id_column,
                                &t->rows.id, err);
    }
    if (t->train.match.column != SIZE_MAX) {
        t->rows.id = t->train.match.column;
        return STK_OK;
    }
    size_t usual = SIZE_MAX;
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < t->rows.csv->columns; i++) {
        if (stk_table_is_named(t->rows.csv, options->label_column, i)) {
            continue;
        }
        usual = stk_table_is_id_name(t->rows.csv->header[i]) && usual == SIZE_MAX ? i : usual;
        if (first == SIZE_MAX && !stk_table_is_label_name(t->rows.csv->header[i])) {
            first = i;
        }
    }
    t->rows.id = usual != SIZE_MAX ? usual : first != SIZE_MAX ? first : 0;
    return STK_OK;
}

/* The column that divides the samples: the one that was named, or the one that has to. */
static stk_status choose_part(stk_listing *listing, kaggle_table *t, stk_error *err) {
    const char *flag;
    const char *name = stk_division_column(listing->options, &flag);
    t->rows.part = SIZE_MAX;
    return name != NULL
               ? stk_table_column(t->rows.csv, t->rows.where, flag, name, &t->rows.part, err)
               : STK_OK;
}

/* Finds which training rows would be one row of the submission. */
static stk_status find_rows(kaggle_table *t, stk_error *err) {
    bool leads =
        t->test.file != NULL && stk_match_fits(&t->test.match) && t->test.match.column != t->key;
    return leads ? stk_train_rows_find(&t->made_of, t->rows.csv, &t->test.csv, t->key, err)
                 : STK_OK;
}

/* Leaves out rows that are of no use. A row repeats another one only where it leads the picture to
 * the same label, the same part and the same row of the submission. */
static stk_status clean_rows(const stk_listing *listing, kaggle_table *t, stk_error *err) {
    bool *alike = stk_mem_new(t->rows.csv->columns, sizeof *alike);
    if (alike == NULL) {
        return STK_FAIL_MEMORY(err, t->rows.where);
    }
    for (size_t i = 0; i < t->ask.count; i++) {
        alike[t->ask.labels[i]] = true;
    }
    for (size_t i = 0; i < t->made_of.count; i++) {
        alike[t->made_of.columns[i]] = true;
    }
    if (t->rows.part != SIZE_MAX) {
        alike[t->rows.part] = true;
    }
    stk_status status = stk_labelled_rows_clean(&t->rows, listing, &t->ask, alike, &t->clean, err);
    stk_mem_free(alike);
    return status;
}

/* Pictures of one row are alike: where nothing else divides, the first of its columns does. */
static void divide_by_rows(stk_listing *listing, kaggle_table *t) {
    size_t column = t->made_of.columns[0];
    bool filled = true;
    for (size_t row = 0; row < t->rows.csv->rows; row++) {
        filled = filled && stk_csv_cell(t->rows.csv, row, column)[0] != '\0';
    }
    if (filled && column != t->rows.id) {
        char what[160];
        t->rows.part = column;
        listing->found_group = t->rows.csv->header[column];
        snprintf(what, sizeof what, "rows with the same %.80s validate together",
                 listing->found_group);
        stk_events_decision(listing->events, what, "a row of the submission has several of them");
    }
}

static stk_status find_groups(stk_listing *listing, kaggle_table *t, stk_error *err) {
    const stk_csv *test = t->test.file != NULL ? &t->test.csv : NULL;
    if (t->rows.part != SIZE_MAX || listing->options->val_per_class > 0 ||
        stk_division_is_free(listing->options)) {
        return STK_OK;
    }
    bool *taken = stk_mem_new(t->rows.csv->columns, sizeof *taken);
    if (taken == NULL) {
        return STK_FAIL_MEMORY(err, t->rows.where);
    }
    taken[t->rows.id] = true;
    if (t->given.column != SIZE_MAX) {
        taken[t->given.column] = true;
    }
    for (size_t i = 0; i < t->ask.count; i++) {
        taken[t->ask.labels[i]] = true;
    }
    stk_status status = stk_groups_find(t->rows.csv, test, taken, &t->rows.part, err);
    if (status == STK_OK && t->rows.part != SIZE_MAX) {
        char what[160];
        const char *name = t->rows.csv->header[t->rows.part];
        listing->found_group = name;
        snprintf(what, sizeof what, "rows with the same %.80s validate together", name);
        stk_events_decision(listing->events, what,
                            test != NULL && stk_csv_column(test, name) != SIZE_MAX
                                ? "the test rows have other values of it"
                                : "the name of the column says that they belong together");
    }
    stk_mem_free(taken);
    if (status == STK_OK && t->rows.part == SIZE_MAX && t->made_of.count > 0) {
        divide_by_rows(listing, t);
    }
    return status;
}

/* ---- samples ---- */

static int compare_ids(const void *a, const void *b) {
    const stk_sample *x = a;
    const stk_sample *y = b;
    int order = strcmp(x->id, y->id);
    return order != 0 ? order : strcmp(x->path, y->path);
}

/* Adds the pictures of one row. */
static stk_status add_row(stk_listing *listing, kaggle_table *t, size_t row, stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    bool validates = row >= t->rows.count;
    const stk_pictures *pictures = validates ? &t->given.val.match.view : t->rows.pictures;
    const char *id = stk_labelled_rows_id(&t->rows, row);
    stk_sample sample = {.id = stk_listing_keep(listing, id, strlen(id)),
                         .label = t->records.strata[row],
                         .record = (int64_t)row,
                         .row = t->train.match.whole ? (int64_t)row + 1 : 0};
    stk_status status = sample.id != NULL ? STK_OK : STK_FAIL_MEMORY(err, t->rows.where);
    if (t->made_of.count > 0) {
        STK_THEN(status, stk_train_rows_number(&t->made_of, t->rows.csv, row, &sample.row, err));
    }
    const char *part = t->rows.part != SIZE_MAX ? stk_csv_cell(t->rows.csv, row, t->rows.part)
                       : t->train.match.whole   ? id
                                                : NULL;
    if (status == STK_OK && part != NULL && !validates) {
        status = stk_division_add(listing, part, &sample.part, err);
    }
    for (size_t i = 0; status == STK_OK && i < t->rows.places[row].count; i++) {
        sample.path = pictures->paths[t->rows.places[row].first + i];
        status = validates
                     ? stk_listing_add(&dataset->val, &listing->val_capacity, sample, err)
                     : stk_listing_add(&dataset->train, &listing->train_capacity, sample, err);
    }
    return status;
}

static void sort_samples(const stk_sample_list *list) {
    if (list->count > 1) {
        qsort(list->items, list->count, sizeof *list->items, compare_ids);
    }
}

static stk_status add_samples(stk_listing *listing, kaggle_table *t, stk_error *err) {
    stk_status status = STK_OK;
    if (t->rows.part == SIZE_MAX && t->train.match.whole) {
        listing->found_group = t->rows.csv->header[t->rows.id];
    }
    for (size_t row = 0; status == STK_OK && row < t->rows.csv->rows; row++) {
        if (t->rows.places[row].count > 0) {
            status = add_row(listing, t, row, err);
        }
    }
    sort_samples(&listing->dataset->train);
    sort_samples(&listing->dataset->val);
    return status;
}

static stk_status read_records(stk_listing *listing, kaggle_table *t, stk_error *err) {
    bool *wanted = stk_mem_new(t->rows.csv->rows, sizeof *wanted);
    if (wanted == NULL) {
        return STK_FAIL_MEMORY(err, t->rows.where);
    }
    for (size_t row = 0; row < t->rows.csv->rows; row++) {
        wanted[row] = t->rows.places[row].count > 0;
    }
    stk_status status = stk_records_read(&t->records, listing, t->rows.csv, &t->ask, wanted, err);
    stk_mem_free(wanted);
    return status;
}

static stk_status keep_names(stk_listing *listing, const kaggle_table *t, stk_error *err) {
    const char *id = t->rows.csv->header[t->rows.id];
    const char *label = t->ask.count > 1 ? "label" : t->rows.csv->header[t->ask.labels[0]];
    stk_dataset *dataset = listing->dataset;
    dataset->id_name = stk_listing_keep(listing, id, strlen(id));
    dataset->label_name = stk_listing_keep(listing, label, strlen(label));
    return dataset->id_name != NULL && dataset->label_name != NULL
               ? STK_OK
               : STK_FAIL_MEMORY(err, t->rows.where);
}

/* Further columns become inputs beside the picture. Test rows of the training table's file have
 * whatever tells the label, too, such as a second name of it: then no column is an input. */
static stk_status read_features(stk_listing *listing, const kaggle_table *t, stk_error *err) {
    stk_features *features = &listing->dataset->features;
    if (!listing->options->columns || t->test.file == NULL || t->own_test) {
        return STK_OK;
    }
    bool *wanted = stk_mem_new(t->rows.csv->columns, sizeof *wanted);
    if (wanted == NULL) {
        return STK_FAIL_MEMORY(err, t->rows.where);
    }
    for (size_t c = 0; c < t->rows.csv->columns; c++) {
        wanted[c] = c != t->rows.id && c != t->rows.part && c != t->given.column &&
                    t->rows.csv->header[c][0] != '\0' &&
                    stk_csv_column(&t->test.csv, t->rows.csv->header[c]) != t->key;
    }
    for (size_t i = 0; i < t->ask.count; i++) {
        wanted[t->ask.labels[i]] = false;
    }
    stk_status status = stk_features_make(features, t->rows.csv, &t->test.csv, wanted, err);
    if (status == STK_OK && features->code.left_out > 0) {
        stk_events_warning(listing->events,
                           "%zu further column%s of %s %s left out: names and texts of the others "
                           "fill what a model keeps of columns",
                           features->code.left_out, stk_plural(features->code.left_out),
                           t->train.file, features->code.left_out == 1 ? "is" : "are");
    }
    stk_mem_free(wanted);
    return status;
}

/* Leaves the test table to the data set, where it is wanted. */
static void keep_test_table(const stk_listing *listing, kaggle_table *t) {
    if (listing->options->keep_test_table && t->test.file != NULL) {
        listing->dataset->test_table = t->test.csv;
        listing->dataset->test_record = t->rows.csv != NULL ? t->rows.csv->rows : 0;
        t->test.csv = (stk_csv){0};
    }
}

/* ---- test rows ---- */

/* The pictures of the test rows: those that the test table leads to, or those that the ids of the
 * sample submission name. */
static stk_status list_test(stk_listing *listing, kaggle_table *t, stk_error *err) {
    stk_match own = {0};
    stk_test_source source = {.first_record = t->rows.csv != NULL ? t->rows.csv->rows : 0};
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
                                  NULL, &own, err);
        source.match = &own;
        source.column = t->key;
    } else {
        source.match = &t->test.match;
        source.column = t->key;
    }
    bool keyed = source.table != NULL && source.column != source.key;
    if (status == STK_OK && (keyed || source.match->whole)) {
        const char *by = keyed                    ? source.table->header[source.key]
                         : t->rows.csv != NULL    ? t->rows.csv->header[t->rows.id]
                         : t->sample.file != NULL ? t->sample.csv.header[t->sample_id]
                                                  : t->test.csv.header[t->key];
        listing->dataset->grouped_by = stk_listing_keep(listing, by, strlen(by));
        listing->dataset->train_has_rows = keyed ? t->made_of.count > 0 : t->train.match.whole;
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

/* Notes the pictures of rows that are set apart, whether they are of use or not. */
static bool note_given(const stk_listing *listing, const stk_label_table *given,
                       const char *id_name, stk_map *paths) {
    size_t column = given->file != NULL ? stk_csv_column(&given->csv, id_name) : SIZE_MAX;
    bool added;
    bool ok = true;
    for (size_t row = 0; ok && column != SIZE_MAX && row < given->csv.rows; row++) {
        size_t first;
        size_t count;
        size_t other;
        const char *id = stk_csv_cell(&given->csv, row, column);
        if (stk_match_find(listing, &given->match, id, &first, &count, &other) == STK_FOUND_ONE) {
            for (size_t i = first; ok && i < first + count; i++) {
                ok = stk_map_add(paths, given->match.view.paths[i], row, &added);
            }
        }
    }
    return ok;
}

/* Pictures of test rows, and of rows that are set apart, may lie in the same folder as the training
 * pictures: they need no label there. */
static stk_status mark_others(const stk_listing *listing, kaggle_table *t, stk_error *err) {
    const stk_sample_list *test = &listing->dataset->test;
    const char *id_name = t->rows.csv->header[t->rows.id];
    stk_map paths = {0};
    bool added;
    bool ok = note_given(listing, &t->given.val, id_name, &paths) &&
              note_given(listing, &t->given.test, id_name, &paths);
    for (size_t i = 0; ok && i < test->count; i++) {
        ok = test->items[i].path == NULL || stk_map_add(&paths, test->items[i].path, i, &added);
    }
    for (size_t i = 0; ok && i < t->rows.pictures->count; i++) {
        t->rows.pictures->used[i] =
            t->rows.pictures->used[i] || stk_map_find(&paths, t->rows.pictures->paths[i], NULL);
    }
    stk_map_free(&paths);
    return ok ? STK_OK : STK_FAIL_MEMORY(err, t->rows.where);
}

/* ---- rows that validate ---- */

/* Puts the rows that validate behind those that train. */
static stk_status join_val(const stk_listing *listing, kaggle_table *t, stk_error *err) {
    stk_map trained = {0};
    bool added;
    bool ok = true;
    for (size_t row = 0; ok && t->given.val.file != NULL && row < t->rows.count; row++) {
        for (size_t i = 0; ok && i < t->rows.places[row].count; i++) {
            ok = stk_map_add(&trained, t->rows.pictures->paths[t->rows.places[row].first + i], row,
                             &added);
        }
    }
    stk_status status = ok ? stk_given_sets_join(&t->given, listing, t->rows.csv, t->rows.id,
                                                 &t->ask, &trained, &t->all, err)
                           : STK_FAIL_MEMORY(err, t->rows.where);
    stk_map_free(&trained);
    if (status != STK_OK || t->all.rows == 0) {
        return status;
    }
    stk_row_pictures *rows = stk_mem_new(t->all.rows, sizeof *rows);
    if (rows == NULL) {
        return STK_FAIL_MEMORY(err, t->rows.where);
    }
    memcpy(rows, t->rows.places, t->rows.count * sizeof *rows);
    memcpy(rows + t->rows.count, t->given.places, (t->all.rows - t->rows.count) * sizeof *rows);
    stk_mem_free(t->rows.places);
    t->rows.places = rows;
    t->rows.csv = &t->all;
    return STK_OK;
}

/* ---- the whole ---- */

/* Finds the tables and the pictures of their rows. */
static stk_status open_tables(stk_listing *listing, kaggle_table *t, stk_error *err) {
    stk_status status = stk_survey_make(&t->survey, listing, err);
    t->rows.part = SIZE_MAX;
    STK_THEN(status, stk_label_table_find(&t->train, listing, &t->survey, err));
    if (status != STK_OK || t->train.file == NULL) {
        return status;
    }
    t->rows.csv = &t->train.csv;
    t->rows.file = t->train.file;
    t->rows.where = stk_listing_full(listing, t->train.file);
    status =
        t->rows.where != NULL ? choose_part(listing, t, err) : STK_FAIL_MEMORY(err, t->train.file);
    STK_THEN(status, choose_id(listing, t, err));
    STK_THEN(status, stk_name_lists_add(&t->train, listing, t->rows.id, err));
    STK_THEN(status,
             stk_given_sets_divide(&t->given, listing, &t->survey, &t->train, t->rows.id, err));
    if (status != STK_OK) {
        return status;
    }
    return stk_labelled_rows_match(&t->rows, listing, &t->train.match, err);
}

/* Finds what the test rows come from. */
static stk_status find_test(stk_listing *listing, kaggle_table *t, const char *id_name,
                            stk_error *err) {
    stk_status status = stk_testset_open_sample(listing, &t->sample, err);
    bool has_sample = status == STK_OK && t->sample.file != NULL;
    if (has_sample) {
        t->sample_id = stk_testset_sample_id(listing, &t->sample.csv, id_name);
    }
    STK_THEN(status, stk_label_table_find_test(&t->test, listing, &t->survey,
                                               has_sample ? &t->sample.csv : NULL, t->sample_id,
                                               id_name, &t->key, err));
    if (status == STK_OK && !has_sample && t->test.file == NULL && t->given.test.file != NULL &&
        t->given.test.match.hits > 0) {
        t->test = t->given.test;
        t->given.test = (stk_label_table){0};
        t->own_test = true;
        t->key = t->rows.id;
    }
    return status;
}

/* Finds out what is asked for. */
static stk_status ask(stk_listing *listing, kaggle_table *t, stk_error *err) {
    bool has_sample = t->sample.file != NULL;
    if (has_sample) {
        stk_sample_find_further(&t->sample, t->sample_id, t->rows.csv, listing->events);
    }
    int kept = has_sample ? stk_template_kept(&t->sample, t->sample_id) : -1;
    stk_ask_tables tables = {.train = t->rows.csv,
                             .where = t->rows.where,
                             .file = t->train.file,
                             .id = t->rows.id,
                             .part = t->rows.part,
                             .split = t->given.column,
                             .test = t->test.file != NULL && !t->own_test ? &t->test.csv : NULL,
                             .sample = has_sample ? &t->sample.csv : NULL,
                             .sample_id = t->sample_id,
                             .sample_kept = kept >= 0 ? (size_t)kept : SIZE_MAX};
    stk_status status = stk_hints_read(&t->hints, listing, err);
    STK_THEN(status, stk_ask_refuse(listing, &tables, &t->hints, err));
    if (status == STK_OK) {
        status = stk_ask_columns(&t->ask, listing, &tables, err);
        status = stk_labelled_rows_explain(&t->rows, listing, has_sample, status, err);
    }
    STK_THEN(status, stk_ask_refuse_cells(&t->ask, listing, &tables, &t->hints, err));
    if (status == STK_OK) {
        stk_ask_plain_cells(&t->ask, listing, &t->train.csv, &tables);
    }
    bool whole = status == STK_OK && stk_ask_whole_labels(&t->ask, &t->train.csv, &tables);
    STK_THEN(status, stk_ask_task(&t->ask, listing, &tables, &t->hints, err));
    if (status == STK_OK && whole && t->ask.task != STK_TASK_REGRESSION) {
        char what[160];
        snprintf(what, sizeof what, "labels of %.80s without '.0'",
                 t->rows.csv->header[t->ask.labels[0]]);
        stk_events_decision(listing->events, what,
                            has_sample ? "all are whole numbers, and the sample has none with it"
                                       : "all are whole numbers");
    }
    STK_THEN(status, keep_names(listing, t, err));
    return status;
}

static stk_status check_contents(stk_listing *listing, const kaggle_table *t, stk_error *err) {
    char note[64];
    if (t->rows.csv->rows == 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s has a header but no rows; it needs one row per training picture",
                        t->rows.where);
    }
    if (t->rows.pictures->count == 0) {
        char others[500];
        return STK_FAIL(err, STK_ERR_DATA,
                        "no pictures in %s for the labels of %s%s; put them (files that end "
                        "with " STK_PICTURE_EXTENSIONS
                        ") into a folder train, train_images or images beside the table%s",
                        t->rows.pictures_folder, t->rows.where,
                        stk_listing_ext_note(listing, note, sizeof note),
                        stk_listing_other_kinds(listing, others, sizeof others));
    }
    return STK_OK;
}

/*
 * Whether class folders win over the table: no id names a picture, pictures lie in subfolders, and
 * no option says how to read the table.
 */
static bool yields(const stk_listing *listing, const kaggle_table *t) {
    const stk_dataset_options *options = listing->options;
    return t->rows.found == 0 && t->rows.pictures->by_base.count > 0 &&
           options->id_column == NULL && options->label_column == NULL && t->rows.part == SIZE_MAX;
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
    stk_given_sets_free(&t->given);
    stk_csv_free(&t->clean);
    stk_csv_free(&t->all);
    stk_testset_close_sample(&t->sample);
    stk_survey_free(&t->survey);
    stk_hints_free(&t->hints);
    stk_ask_free(&t->ask);
    stk_records_free(&t->records);
    stk_train_rows_free(&t->made_of);
    stk_labelled_rows_free(&t->rows);
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
    stk_match_tell(&t.train.match, listing, t.rows.csv, t.train.file);
    status = check_contents(listing, &t, err);
    STK_THEN(status, find_test(listing, &t, t.rows.csv->header[t.rows.id], err));
    STK_THEN(status, ask(listing, &t, err));
    STK_THEN(status, find_rows(&t, err));
    STK_THEN(status, clean_rows(listing, &t, err));
    STK_THEN(status,
             stk_given_sets_find(&t.given, listing, &t.survey, t.rows.csv->header[t.rows.id], err));
    STK_THEN(status, join_val(listing, &t, err));
    STK_THEN(status, find_groups(listing, &t, err));
    STK_THEN(status, stk_labelled_rows_check_cells(&t.rows, &t.ask, err));
    STK_THEN(status, stk_labelled_rows_check_pictures(&t.rows, err));
    STK_THEN(status, stk_labelled_rows_check_missing(&t.rows, listing, err));
    STK_THEN(status, list_test(listing, &t, err));
    STK_THEN(status, mark_others(listing, &t, err));
    STK_THEN(status, stk_labelled_rows_check_unlabelled(&t.rows, listing, err));
    STK_THEN(status, read_records(listing, &t, err));
    STK_THEN(status, read_features(listing, &t, err));
    STK_THEN(status, add_samples(listing, &t, err));
    STK_THEN(status, stk_listing_set_ask(listing, &t.ask, err));
    keep_test_table(listing, &t);
    close_tables(&t);
    return status;
}

stk_status stk_kaggle_list_test(stk_listing *listing, bool *fits, stk_error *err) {
    const char *id_name = listing->options->id_column;
    kaggle_table t = {0};
    stk_status status = stk_survey_make(&t.survey, listing, err);
    STK_THEN(status, find_test(listing, &t, id_name != NULL ? id_name : "id", err));
    *fits = status == STK_OK && t.test.file != NULL && t.key != SIZE_MAX &&
            (t.sample.file != NULL || stk_match_fits(&t.test.match));
    if (*fits) {
        status = list_test(listing, &t, err);
        keep_test_table(listing, &t);
    }
    close_tables(&t);
    return status;
}
