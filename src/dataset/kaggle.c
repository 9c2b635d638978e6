/*
 * kaggle.c - a table of ids and labels beside a folder of pictures.
 *
 * Competitions name columns and files in many ways. So the id column is the one with a usual name
 * that finds pictures, and ids are looked up loosely (pictures.c). Rows and pictures without a
 * partner are an error with counts and examples: a label that is lost in silence costs accuracy.
 */
#include "dataset/listing.h"
#include "storage/data_folders.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* Rows that are tried to see whether a column names pictures. */
#define PROBE_ROWS 50

static const char *const table_names[] = {"train.csv", "labels.csv", "train_labels.csv",
                                          "trainLabels.csv", NULL};
static const char *const folder_names[] = {"train", "train_images", "images", NULL};

/* One table being matched with the pictures. */
typedef struct kaggle_table {
    const char *file;      /* borrowed: its name */
    char *where;           /* owned: its path, for errors */
    char *pictures_folder; /* owned: its path, for errors */
    stk_csv csv;           /* cells trimmed */
    stk_pictures pictures;
    size_t id;     /* column */
    size_t label;  /* column */
    size_t part;   /* column that divides the samples; SIZE_MAX: none */
    size_t *files; /* owned: per row the picture, SIZE_MAX when there is none */
    size_t found;  /* rows that have a picture */
} kaggle_table;

const char *stk_kaggle_table(const stk_listing *listing) {
    return stk_listing_entry(listing, table_names, false);
}

static const char *id_of(const kaggle_table *t, size_t row) {
    return stk_csv_cell(&t->csv, row, t->id);
}

static size_t line_of(const kaggle_table *t, size_t row) {
    return stk_csv_line(&t->csv, row);
}

/* How many of the first rows name a picture in this column. */
static size_t probe_column(const stk_listing *listing, const kaggle_table *t, size_t column) {
    size_t hits = 0;
    size_t file;
    size_t other;
    for (size_t row = 0; row < t->csv.rows && row < PROBE_ROWS; row++) {
        const char *id = stk_csv_cell(&t->csv, row, column);
        hits += stk_pictures_find(listing, &t->pictures, id, &file, &other) != STK_FOUND_NONE;
    }
    return hits;
}

static stk_status choose_id(const stk_listing *listing, kaggle_table *t, stk_error *err) {
    const stk_dataset_options *options = listing->options;
    size_t taken = SIZE_MAX; /* the label's column, when it was given */
    if (options->label_column != NULL) {
        taken = stk_csv_column(&t->csv, options->label_column);
    }
    if (options->id_column != NULL) {
        return stk_table_column(&t->csv, t->where, "--id-column", options->id_column, &t->id, err);
    }
    size_t usual = SIZE_MAX;
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < t->csv.columns; i++) {
        bool is_usual = stk_table_is_id_name(t->csv.header[i]);
        if (i == taken) {
            continue;
        }
        if (is_usual && probe_column(listing, t, i) > 0) {
            t->id = i;
            return STK_OK;
        }
        usual = is_usual && usual == SIZE_MAX ? i : usual;
        if (first == SIZE_MAX && !stk_table_is_label_name(t->csv.header[i])) {
            first = i;
        }
    }
    t->id = usual != SIZE_MAX ? usual : first != SIZE_MAX ? first : 0;
    return STK_OK;
}

static stk_status choose_label(const stk_listing *listing, kaggle_table *t, stk_error *err) {
    const char *wanted = listing->options->label_column;
    char names[400];
    stk_table_names(&t->csv, names, sizeof names);
    if (wanted != NULL) {
        stk_status status =
            stk_table_column(&t->csv, t->where, "--label-column", wanted, &t->label, err);
        if (status == STK_OK && t->label == t->id) {
            status = STK_FAIL(err, STK_ERR_USAGE,
                              "--label-column %s: this is the id column of %s, whose columns are "
                              "%s; name another one, or the ids' with --id-column",
                              wanted, t->where, names);
        }
        return status;
    }
    if (t->csv.columns < 2) {
        return STK_FAIL(
            err, STK_ERR_DATA,
            "%s has one column only, %s; it needs an id and a label column, divided by commas",
            t->where, names);
    }
    size_t usual = 0;
    size_t others = 0; /* columns that are neither id nor divide the samples */
    size_t other = 0;
    for (size_t i = 0; i < t->csv.columns; i++) {
        bool unknown = i != t->id && i != t->part;
        if (unknown && stk_table_is_label_name(t->csv.header[i])) {
            t->label = i;
            usual++;
        }
        others += unknown;
        other = unknown ? i : other;
    }
    if (usual == 1) {
        return STK_OK;
    }
    if (usual == 0 && others == 1) {
        t->label = other;
        return STK_OK;
    }
    stk_status status = stk_labels_check_columns(&t->csv, t->where, t->id, t->part, err);
    if (status == STK_OK) {
        status = STK_FAIL(err, STK_ERR_USAGE,
                          "cannot tell which column of %s is the label: its columns are %s; name "
                          "it with --label-column (and the ids', if it is not %s, with "
                          "--id-column)",
                          t->where, names, t->csv.header[t->id]);
    }
    return status;
}

/* Finds the picture of every row. */
static stk_status match_rows(const stk_listing *listing, kaggle_table *t, stk_error *err) {
    t->files = stk_mem_new(t->csv.rows, sizeof *t->files);
    if (t->files == NULL) {
        return STK_FAIL_MEMORY(err, t->where);
    }
    for (size_t row = 0; row < t->csv.rows; row++) {
        size_t file = 0;
        size_t other = 0;
        stk_found found = stk_pictures_find(listing, &t->pictures, id_of(t, row), &file, &other);
        if (found == STK_FOUND_SEVERAL) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s, line %zu: '%s' fits both %s and %s; write the whole name into the "
                            "table, or pass --image-ext to say which kind counts",
                            t->where, line_of(t, row), id_of(t, row), t->pictures.paths[file],
                            t->pictures.paths[other]);
        }
        t->files[row] = found == STK_FOUND_ONE ? file : SIZE_MAX;
        t->found += found == STK_FOUND_ONE;
    }
    return STK_OK;
}

static stk_status choose_part(const stk_listing *listing, kaggle_table *t, stk_error *err) {
    const char *flag;
    const char *name = stk_division_column(listing->options, &flag);
    t->part = SIZE_MAX;
    return name != NULL ? stk_table_column(&t->csv, t->where, flag, name, &t->part, err) : STK_OK;
}

static stk_status check_cells(const kaggle_table *t, stk_error *err) {
    for (size_t row = 0; row < t->csv.rows; row++) {
        if (t->part != SIZE_MAX && stk_csv_cell(&t->csv, row, t->part)[0] == '\0') {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s, line %zu: column %s is empty; fill it in for every row", t->where,
                            line_of(t, row), t->csv.header[t->part]);
        }
        bool no_id = id_of(t, row)[0] == '\0';
        if (no_id || stk_csv_cell(&t->csv, row, t->label)[0] == '\0') {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s, line %zu: the %s (column %s) is empty; fill it in or remove the "
                            "row",
                            t->where, line_of(t, row), no_id ? "id" : "label",
                            t->csv.header[no_id ? t->id : t->label]);
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
                    t->where, t->pictures.paths[t->files[first]], line_of(t, first),
                    id_of(t, first), line_of(t, second), id_of(t, second));
}

/* Refuses two rows with one id, and two ids that mean one picture; marks the pictures used. */
static stk_status check_twice(kaggle_table *t, stk_error *err) {
    stk_map seen = {0};
    stk_status status = STK_OK;
    size_t *owners = stk_mem_new(t->pictures.count, sizeof *owners); /* row + 1; 0: none yet */
    if (owners == NULL) {
        return STK_FAIL_MEMORY(err, t->where);
    }
    for (size_t row = 0; status == STK_OK && row < t->csv.rows; row++) {
        bool added = true;
        size_t first = 0;
        size_t file = t->files[row];
        if (!stk_map_add(&seen, id_of(t, row), row, &added)) {
            status = STK_FAIL_MEMORY(err, t->where);
        } else if (!added && stk_map_find(&seen, id_of(t, row), &first)) {
            status = fail_twice(t, first, row, err);
        } else if (file != SIZE_MAX && owners[file] != 0) {
            status = fail_twice(t, owners[file] - 1, row, err);
        } else if (file != SIZE_MAX) {
            owners[file] = row + 1;
            t->pictures.used[file] = true;
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
    for (size_t row = 0; row < t->csv.rows; row++) {
        if (t->files[row] == SIZE_MAX) {
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
                        t->pictures_folder, t->csv.header[t->id], t->where, note, missing.first[0],
                        stk_pictures_below(&t->pictures, 0));
    }
    if (listing->options->mismatch == STK_MISMATCH_SKIP) {
        stk_events_warning(listing->events, "left out %zu row%s of %s without a picture: %s",
                           missing.count, stk_plural(missing.count), t->file, names);
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
    for (size_t i = 0; i < t->pictures.count; i++) {
        if (!t->pictures.used[i]) {
            stk_first_names_add(&unlabelled, stk_pictures_below(&t->pictures, i));
        }
    }
    if (unlabelled.count == 0) {
        return STK_OK;
    }
    stk_first_names_text(&unlabelled, names, sizeof names);
    if (listing->options->mismatch == STK_MISMATCH_SKIP) {
        stk_events_warning(listing->events, "left out %zu picture%s without a label in %s: %s",
                           unlabelled.count, stk_plural(unlabelled.count), t->file, names);
        return STK_OK;
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s has %zu picture%s without a label in %s: %s; add the labels, say with "
                    "--image-ext which kind of files counts, or pass --mismatch skip to leave the "
                    "pictures out",
                    t->pictures_folder, unlabelled.count, stk_plural(unlabelled.count), t->where,
                    names);
}

static int compare_ids(const void *a, const void *b) {
    return strcmp(((const stk_sample *)a)->id, ((const stk_sample *)b)->id);
}

static stk_status add_samples(stk_listing *listing, const kaggle_table *t, stk_error *err) {
    stk_sample_list *train = &listing->dataset->train;
    stk_status status = STK_OK;
    for (size_t row = 0; status == STK_OK && row < t->csv.rows; row++) {
        if (t->files[row] == SIZE_MAX) {
            continue;
        }
        const char *id = id_of(t, row);
        stk_sample sample = {.path = t->pictures.paths[t->files[row]],
                             .id = stk_listing_keep(listing, id, strlen(id))};
        status = sample.id != NULL
                     ? stk_listing_class(listing, stk_csv_cell(&t->csv, row, t->label),
                                         &sample.label, err)
                     : STK_FAIL_MEMORY(err, t->where);
        if (status == STK_OK && t->part != SIZE_MAX) {
            status =
                stk_division_add(listing, stk_csv_cell(&t->csv, row, t->part), &sample.part, err);
        }
        STK_THEN(status, stk_listing_add(train, &listing->train_capacity, sample, err));
    }
    if (train->count > 1) {
        qsort(train->items, train->count, sizeof *train->items, compare_ids);
    }
    return status;
}

static stk_status keep_names(stk_listing *listing, const kaggle_table *t, stk_error *err) {
    const char *id = t->csv.header[t->id];
    const char *label = t->csv.header[t->label];
    listing->dataset->id_name = stk_listing_keep(listing, id, strlen(id));
    listing->dataset->label_name = stk_listing_keep(listing, label, strlen(label));
    return listing->dataset->id_name != NULL && listing->dataset->label_name != NULL
               ? STK_OK
               : STK_FAIL_MEMORY(err, t->where);
}

/* Reads the table, lists the pictures, and finds the picture of each row. */
static stk_status open_table(stk_listing *listing, kaggle_table *t, stk_error *err) {
    const char *folder = stk_listing_entry(listing, folder_names, true);
    const char *test = stk_listing_set(listing, STK_SET_TEST);
    folder = folder != NULL ? folder : stk_listing_set(listing, STK_SET_TRAIN);
    folder = folder != NULL ? folder : "";
    t->file = stk_kaggle_table(listing);
    t->where = stk_listing_full(listing, t->file);
    t->pictures_folder = stk_listing_full(listing, folder);
    if (t->where == NULL || t->pictures_folder == NULL) {
        return STK_FAIL_MEMORY(err, t->file);
    }
    stk_status status = stk_listing_csv(listing, t->file, &t->csv, err);
    if (status != STK_OK) {
        return status;
    }
    stk_csv_trim(&t->csv);
    status = stk_pictures_scan(listing, folder, folder[0] == '\0' ? test : NULL, &t->pictures, err);
    STK_THEN(status, stk_pictures_index(listing, &t->pictures, err));
    STK_THEN(status, choose_part(listing, t, err));
    STK_THEN(status, choose_id(listing, t, err));
    return status == STK_OK ? match_rows(listing, t, err) : status;
}

static stk_status check_contents(const stk_listing *listing, const kaggle_table *t,
                                 stk_error *err) {
    char note[64];
    if (t->csv.rows == 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s has a header but no rows; it needs one row per training picture",
                        t->where);
    }
    if (t->pictures.count == 0) {
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
    return t->found == 0 && t->pictures.by_base.count > 0 && options->id_column == NULL &&
           options->label_column == NULL && t->part == SIZE_MAX;
}

stk_status stk_kaggle_list(stk_listing *listing, bool *fits, stk_error *err) {
    kaggle_table t = {0};
    *fits = true;
    stk_status status = open_table(listing, &t, err);
    if (status == STK_OK && yields(listing, &t)) {
        *fits = false;
        goto done;
    }
    STK_THEN(status, check_contents(listing, &t, err));
    STK_THEN(status, choose_label(listing, &t, err));
    STK_THEN(status, keep_names(listing, &t, err));
    STK_THEN(status, check_cells(&t, err));
    STK_THEN(status, stk_labels_check(listing, &t.csv, t.where, t.file, t.label, err));
    STK_THEN(status, check_twice(&t, err));
    STK_THEN(status, check_missing(listing, &t, err));
    if (status == STK_OK) {
        /* Before looking for pictures without labels: test rows may lie in the same folder. */
        status = stk_testset_list(listing, &t.pictures, false, listing->dataset->id_name, err);
    }
    STK_THEN(status, check_unlabelled(listing, &t, err));
    STK_THEN(status, add_samples(listing, &t, err));
done:
    stk_pictures_free(&t.pictures);
    stk_csv_free(&t.csv);
    stk_mem_free(t.files);
    stk_mem_free(t.where);
    stk_mem_free(t.pictures_folder);
    return status;
}
