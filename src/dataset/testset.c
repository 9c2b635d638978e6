/*
 * testset.c - the rows that a submission needs: those of sample_submission.csv in its order and
 * spelling, else the files of the test folder.
 */
#include "dataset/ask.h"
#include "dataset/survey.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* How the id of a test picture is spelled when no table spells it. */
typedef enum id_style { ID_BASE, ID_STEM, ID_PATH } id_style;

stk_status stk_testset_exists(stk_listing *listing, bool *exists, stk_error *err) {
    const char *file;
    stk_status status = stk_template_find(listing, &file, err);
    *exists = file != NULL || listing->sets[STK_SET_TEST].name != NULL;
    return status;
}

/* The rows of a submission while they are listed. */
typedef struct listing_rows {
    stk_listing *listing;
    const stk_test_source *source;
    const char *file; /* the file that has the rows */
    bool by_class;    /* a folder below the test folder tells the label */
    bool may_repeat;  /* an id that comes again adds no row: its pictures belong to the first */
    stk_map keys;     /* owned: from an id to its first row in source->table */
    size_t *next;     /* owned: the next row with the same id; SIZE_MAX ends */
} listing_rows;

static stk_status open_rows(listing_rows *r, stk_error *err) {
    const stk_csv *table = r->source->table;
    if (table == NULL) {
        return STK_OK;
    }
    size_t *last = stk_mem_new(table->rows, sizeof *last); /* of a first row: the last so far */
    r->next = stk_mem_new(table->rows, sizeof *r->next);
    bool ok = r->next != NULL && last != NULL;
    for (size_t row = 0; ok && row < table->rows; row++) {
        const char *key = stk_csv_cell(table, row, r->source->key);
        size_t first = row;
        bool added;
        r->next[row] = SIZE_MAX;
        ok = stk_map_add(&r->keys, key, row, &added);
        if (ok && !added && stk_map_find(&r->keys, key, &first)) {
            r->next[last[first]] = row;
        }
        if (ok) {
            last[first] = row;
        }
    }
    stk_mem_free(last);
    return ok ? STK_OK : STK_FAIL_MEMORY(err, r->file);
}

static void close_rows(listing_rows *r) {
    stk_map_free(&r->keys);
    stk_mem_free(r->next);
}

/* The first row of the test table with this id; SIZE_MAX: there is none. */
static size_t first_row(const listing_rows *r, const char *id) {
    size_t row;
    return r->source->table != NULL && stk_map_find(&r->keys, id, &row) ? row : SIZE_MAX;
}

/* The class whose name the first folder of the path below the test folder has; -1: none. A folder
 * with the name of a test set is passed through: test/test/cat. */
static int label_by_folder(const stk_listing *listing, const char *below) {
    char name[256]; /* a file name has at most 255 bytes */
    size_t label;
    for (size_t length; below[length = strcspn(below, "/")] != '\0'; below += length + 1) {
        if (length >= sizeof name) {
            return -1;
        }
        memcpy(name, below, length);
        name[length] = '\0';
        if (stk_map_find(&listing->class_labels, name, &label)) {
            return (int)label;
        }
        if (stk_set_of(name) != STK_SET_TEST) {
            return -1;
        }
    }
    return -1;
}

static const char *styled_id(const stk_pictures *pictures, size_t i, id_style style) {
    switch (style) {
    case ID_BASE:
        return stk_path_base(pictures->stems[i]);
    case ID_STEM:
        return pictures->stems[i];
    default:
        return stk_pictures_below(pictures, i);
    }
}

/* Whether a style gives every picture an id of its own. */
static stk_status is_unique(const stk_pictures *pictures, id_style style, bool *unique,
                            stk_error *err) {
    stk_map seen = {0};
    stk_status status = STK_OK;
    *unique = true;
    for (size_t i = 0; status == STK_OK && *unique && i < pictures->count; i++) {
        if (!stk_map_add(&seen, styled_id(pictures, i, style), i, unique)) {
            status = STK_FAIL_MEMORY(err, "the test set");
        }
    }
    stk_map_free(&seen);
    return status;
}

stk_status stk_testset_from_files(stk_listing *listing, stk_pictures *pictures, bool by_class,
                                  stk_error *err) {
    bool unique = false;
    id_style style = ID_BASE;
    stk_status status = stk_pictures_index(listing, pictures, err);
    while (status == STK_OK && style < ID_PATH) {
        status = is_unique(pictures, style, &unique, err);
        if (status != STK_OK || unique) {
            break;
        }
        style++;
    }
    for (size_t i = 0; status == STK_OK && i < pictures->count; i++) {
        stk_sample sample = {
            .path = pictures->paths[i],
            .id = styled_id(pictures, i, style),
            .label = by_class ? label_by_folder(listing, stk_pictures_below(pictures, i)) : -1,
            .record = -1};
        status = stk_listing_add(&listing->dataset->test, &listing->test_capacity, sample, err);
    }
    return status;
}

/* Which column of the sample submission is the id. */
static size_t template_id(const stk_listing *listing, const stk_csv *csv, const char *id_name) {
    size_t column = SIZE_MAX;
    if (listing->options->id_column != NULL) {
        column = stk_csv_column(csv, listing->options->id_column);
    }
    if (column == SIZE_MAX && id_name != NULL) {
        column = stk_csv_column(csv, id_name);
    }
    for (size_t i = 0; column == SIZE_MAX && i < csv->columns; i++) {
        column = stk_table_is_id_name(csv->header[i]) ? i : SIZE_MAX;
    }
    return column != SIZE_MAX ? column : 0;
}

/* What the cells of the only column for answers are. */
static void note_cells(stk_dataset *dataset, const stk_csv *csv) {
    size_t answer = 0;
    size_t numbers = 0;
    bool fractions = false;
    double x;
    while (answer < csv->columns &&
           ((int)answer == dataset->template_id || (int)answer == dataset->template_kept)) {
        answer++;
    }
    if (csv->rows == 0 || csv->columns != 2 + (size_t)(dataset->template_kept >= 0)) {
        return;
    }
    for (size_t row = 0; row < csv->rows; row++) {
        bool number = stk_cell_number(stk_csv_cell(csv, row, answer), &x);
        numbers += number;
        fractions = fractions || (number && x != floor(x));
    }
    dataset->template_texts = numbers == 0;
    dataset->template_fractions = numbers == csv->rows && fractions;
}

static stk_status keep_header(stk_listing *listing, const stk_sample_file *sample, size_t id_column,
                              stk_error *err) {
    stk_dataset *dataset = listing->dataset;
    const stk_csv *csv = &sample->csv;
    const char *file = sample->file;
    stk_map seen = {0};
    stk_status status = STK_OK;
    if (csv->columns < 2) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s/%s has one column only, %s; it needs an id column and one for the "
                        "label or one per class, divided by commas",
                        dataset->root, file, csv->header[0]);
    }
    const char **header = stk_mem_new(csv->columns, sizeof *header);
    if (header == NULL) {
        return STK_FAIL_MEMORY(err, file);
    }
    dataset->texts->header = header;
    for (size_t i = 0; status == STK_OK && i < csv->columns; i++) {
        bool added = true;
        header[i] = stk_listing_keep(listing, csv->header[i], strlen(csv->header[i]));
        if (header[i] == NULL || !stk_map_add(&seen, header[i], i, &added)) {
            status = STK_FAIL_MEMORY(err, file);
        } else if (!added) {
            status = STK_FAIL(err, STK_ERR_DATA,
                              "%s/%s has two columns called '%s'; rename or remove one",
                              dataset->root, file, header[i]);
        }
    }
    stk_map_free(&seen);
    dataset->template_file = stk_listing_keep(listing, file, strlen(file));
    if (status == STK_OK && dataset->template_file == NULL) {
        status = STK_FAIL_MEMORY(err, file);
    }
    dataset->template_header = header;
    dataset->template_columns = (int)csv->columns;
    dataset->template_separator = csv->separator;
    dataset->template_id = (int)id_column;
    dataset->template_kept = stk_template_kept(sample, id_column);
    dataset->id_name = header[id_column];
    note_cells(dataset, csv);
    return status;
}

/* Lists the pictures of one row: those of each of its ids. A picture that is missing leaves a test
 * sample without a path, and its id goes into `missing`. */
static stk_status add_row(listing_rows *r, const char *id, size_t line, stk_first_names *missing,
                          stk_error *err) {
    stk_listing *listing = r->listing;
    stk_dataset *dataset = listing->dataset;
    size_t before = dataset->test.count;
    const char *name = stk_listing_keep(listing, id, strlen(id));
    stk_status status = name != NULL ? STK_OK : STK_FAIL_MEMORY(err, r->file);
    size_t table_row = first_row(r, id);
    do {
        size_t first = 0;
        size_t count = 0;
        size_t other = 0;
        const char *spelled = table_row != SIZE_MAX
                                  ? stk_csv_cell(r->source->table, table_row, r->source->column)
                                  : id;
        stk_found found =
            stk_match_find(listing, r->source->match, spelled, &first, &count, &other);
        if (status == STK_OK && found == STK_FOUND_SEVERAL) {
            const char *const *paths = r->source->match->view.paths;
            status = STK_FAIL(err, STK_ERR_DATA,
                              "%s/%s, line %zu: '%s' fits both %s and %s; remove one of them, or "
                              "pass --image-ext to say which kind counts",
                              dataset->root, r->file, line, id, paths[first], paths[other]);
        }
        int64_t record =
            table_row != SIZE_MAX ? (int64_t)(r->source->first_record + table_row) : -1;
        for (size_t i = 0; status == STK_OK && found == STK_FOUND_ONE && i < count; i++) {
            const char *path = r->source->match->view.paths[first + i];
            int label =
                r->by_class
                    ? label_by_folder(listing, stk_pictures_below(&r->source->match->view, first))
                    : -1;
            stk_sample sample = {.path = path, .id = name, .label = label, .record = record};
            status = stk_listing_add(&dataset->test, &listing->test_capacity, sample, err);
        }
        table_row = table_row != SIZE_MAX ? r->next[table_row] : SIZE_MAX;
    } while (status == STK_OK && table_row != SIZE_MAX);
    if (status == STK_OK && dataset->test.count == before) {
        table_row = first_row(r, id);
        stk_sample sample = {
            .id = name,
            .label = -1,
            .record = table_row != SIZE_MAX ? (int64_t)(r->source->first_record + table_row) : -1};
        stk_first_names_add(missing, name);
        status = stk_listing_add(&dataset->test, &listing->test_capacity, sample, err);
    }
    stk_row row = {.id = name, .first = before, .count = dataset->test.count - before};
    return status == STK_OK ? stk_listing_add_row(listing, row, err) : status;
}

/* The error for a sample file none of whose rows has a picture: training would be in vain. */
static stk_status fail_nowhere(const stk_listing *listing, const stk_pictures *pictures,
                               size_t rows, const char *column, const char *file, const char *first,
                               stk_error *err) {
    const stk_dataset *dataset = listing->dataset;
    char note[64];
    char like[200] = "";
    if (pictures->count > 0) {
        snprintf(like, sizeof like, " (%zu pictures, like '%.100s')", pictures->count,
                 stk_pictures_below(pictures, 0));
    } else {
        snprintf(like, sizeof like, " (no pictures)");
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s/%s asks for rows that cannot be predicted: none of the %zu ids in its "
                    "column %s (like '%.100s') is the name of a picture in %s%s%s%s, with or "
                    "without its ending and its folder%s; put the test pictures there, name the "
                    "column with --id-column, or pass --sample-submission none to train without it",
                    dataset->root, file, rows, column, first, dataset->root,
                    pictures->folder[0] != '\0' ? "/" : "", pictures->folder, like,
                    stk_listing_ext_note(listing, note, sizeof note));
}

/* The rows of a table's column, in order; each id once. `kept` is a column whose cells are copied,
 * or -1. */
static stk_status add_rows(listing_rows *r, const stk_csv *csv, size_t id_column, int kept,
                           stk_error *err) {
    stk_dataset *dataset = r->listing->dataset;
    const stk_pictures *pictures = &r->source->match->view;
    stk_first_names missing = {0};
    stk_map seen = {0};
    stk_status status = open_rows(r, err);
    for (size_t row = 0; status == STK_OK && row < csv->rows; row++) {
        const char *id = stk_csv_cell(csv, row, id_column);
        size_t line = stk_csv_line(csv, row);
        bool added = true;
        size_t first = 0;
        if (id[strspn(id, " \t")] == '\0') {
            status = STK_FAIL(err, STK_ERR_DATA,
                              "%s/%s, line %zu: the id is empty; fill it in or remove the row",
                              dataset->root, r->file, line);
        } else if (!stk_map_add(&seen, id, row, &added)) {
            status = STK_FAIL_MEMORY(err, r->file);
        } else if (!added && r->may_repeat) {
            continue;
        } else if (!added && stk_map_find(&seen, id, &first)) {
            status = STK_FAIL(err, STK_ERR_DATA,
                              "%s/%s has the id '%s' twice, on lines %zu and %zu; remove one row",
                              dataset->root, r->file, id, stk_csv_line(csv, first), line);
        } else {
            status = add_row(r, id, line, &missing, err);
        }
        if (status == STK_OK && kept >= 0) {
            const char *cell = stk_csv_cell(csv, row, (size_t)kept);
            stk_row *made = &dataset->rows[dataset->row_count - 1];
            made->kept = stk_listing_keep(r->listing, cell, strlen(cell));
            status = made->kept != NULL ? STK_OK : STK_FAIL_MEMORY(err, r->file);
        }
    }
    stk_map_free(&seen);
    close_rows(r);
    size_t rows = dataset->row_count;
    if (status == STK_OK && missing.count == rows) {
        status = fail_nowhere(r->listing, pictures, rows, csv->header[id_column], r->file,
                              missing.first[0], err);
    } else if (status == STK_OK && missing.count > 0) {
        stk_events_warning(r->listing->events,
                           "%zu of %zu pictures that %s asks for are not in %s%s%s (first: %s); "
                           "their rows get class priors",
                           missing.count, rows, r->file, dataset->root,
                           pictures->folder[0] != '\0' ? "/" : "", pictures->folder,
                           missing.first[0]);
    }
    return status;
}

size_t stk_testset_sample_id(const stk_listing *listing, const stk_csv *csv, const char *id_name) {
    return template_id(listing, csv, id_name);
}

stk_status stk_testset_from_sample(stk_listing *listing, const stk_sample_file *sample,
                                   size_t id_column, const stk_test_source *source, bool by_class,
                                   stk_error *err) {
    listing_rows r = {
        .listing = listing, .source = source, .file = sample->file, .by_class = by_class};
    stk_status status = keep_header(listing, sample, id_column, err);
    if (status == STK_OK && sample->csv.rows == 0) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "%s/%s has a header but no rows; a submission needs one row per picture, "
                          "so fill it or remove the file",
                          listing->dataset->root, sample->file);
    }
    STK_THEN(status, add_rows(&r, &sample->csv, id_column, listing->dataset->template_kept, err));
    return status;
}

stk_status stk_testset_from_table(stk_listing *listing, const char *file,
                                  const stk_test_source *source, stk_error *err) {
    listing_rows r = {.listing = listing, .source = source, .file = file, .may_repeat = true};
    return add_rows(&r, source->table, source->key, -1, err);
}

stk_status stk_testset_header(stk_listing *listing, const char *id_name, stk_error *err) {
    stk_sample_file sample;
    stk_status status = stk_testset_open_sample(listing, &sample, err);
    if (status == STK_OK && sample.file != NULL) {
        status = keep_header(listing, &sample, template_id(listing, &sample.csv, id_name), err);
    }
    stk_testset_close_sample(&sample);
    return status;
}

stk_status stk_testset_list(stk_listing *listing, const stk_sample_file *sample, bool by_class,
                            stk_error *err) {
    const char *folder = stk_listing_set(listing, STK_SET_TEST);
    stk_match match = {0};
    stk_test_source source = {.match = &match};
    if (folder == NULL && sample->file == NULL) {
        return STK_OK;
    }
    stk_status status =
        stk_pictures_scan(listing, folder != NULL ? folder : "", NULL, &match.view, err);
    if (status == STK_OK && sample->file == NULL) {
        status = stk_testset_from_files(listing, &match.view, by_class, err);
    } else if (status == STK_OK) {
        match.column = template_id(listing, &sample->csv, NULL);
        status = stk_pictures_index(listing, &match.view, err);
        STK_THEN(status, stk_match_use_numbers(&match, listing, &sample->csv, match.column,
                                               STK_SET_TEST, err));
        if (status == STK_OK) {
            stk_match_tell(&match, listing, &sample->csv, sample->file);
        }
        STK_THEN(status, stk_testset_from_sample(listing, sample, match.column, &source,
                                                 by_class && folder != NULL, err));
    }
    stk_match_free(&match);
    return status;
}

stk_status stk_testset_of_classes(stk_listing *listing, bool by_class, stk_error *err) {
    const stk_dataset *dataset = listing->dataset;
    stk_sample_file sample;
    stk_hints hints = {0};
    stk_ask ask = {0};
    stk_status status = stk_testset_open_sample(listing, &sample, err);
    STK_THEN(status, stk_testset_list(listing, &sample, by_class, err));
    STK_THEN(status, stk_versions_find(listing, &sample, (size_t)dataset->template_id, err));
    STK_THEN(status, stk_hints_read(&hints, listing, err));
    const char *positive = listing->positive; /* of versions */
    bool asks = sample.file != NULL || listing->options->task != STK_TASK_AUTO ||
                hints.metric != STK_METRIC_AUTO;
    if (status == STK_OK && asks) {
        status = stk_ask_classes(&ask, listing, sample.file != NULL ? &sample.csv : NULL,
                                 (size_t)dataset->template_id, dataset->classes,
                                 (size_t)dataset->class_count, &hints, err);
        STK_THEN(status, stk_listing_set_ask(listing, &ask, err));
    }
    listing->positive = positive != NULL ? positive : listing->positive;
    stk_ask_free(&ask);
    stk_hints_free(&hints);
    stk_testset_close_sample(&sample);
    return status;
}
