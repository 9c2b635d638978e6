/* labelled_rows.c - finds the pictures of labelled rows, and checks rows against pictures. */
#include "dataset/labelled_rows.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* The share of rows without a picture or a label, and of pictures without a row, that is left out
 * with a warning. More of them mean that something else is wrong. */
#define MOST_LEFT_OUT 0.01

/* So many ids with several rows are meant so. */
#define MANY_SEVERAL 0.1
#define FEWEST_SEVERAL 3

static const char *id_of(const stk_labelled_rows *r, size_t row) {
    return stk_csv_cell(r->csv, row, r->id);
}

static size_t line_of(const stk_labelled_rows *r, size_t row) {
    return stk_csv_line(r->csv, row);
}

const char *stk_labelled_rows_id(const stk_labelled_rows *r, size_t row) {
    return id_of(r, row);
}

stk_status stk_labelled_rows_match(stk_labelled_rows *r, const stk_listing *listing,
                                   stk_match *match, stk_error *err) {
    r->match = match;
    r->pictures = &match->view;
    r->pictures_folder = stk_listing_full(listing, r->pictures->folder);
    r->places = stk_mem_new(r->csv->rows, sizeof *r->places);
    if (r->pictures_folder == NULL || r->places == NULL) {
        return STK_FAIL_MEMORY(err, r->where);
    }
    r->count = r->csv->rows;
    for (size_t row = 0; row < r->count; row++) {
        size_t first = 0;
        size_t count = 0;
        size_t other = 0;
        stk_found found = stk_match_find(listing, r->match, id_of(r, row), &first, &count, &other);
        if (found == STK_FOUND_SEVERAL &&
            stk_places_are_masks(r->pictures->paths[first], r->pictures->paths[other])) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s, line %zu: '%s' fits both %s and %s: these are masks "
                            "(segmentation), which are not trained; Stoker trains classes, labels "
                            "and numbers of whole pictures, and where the table has them move the "
                            "folder of the masks away",
                            r->where, line_of(r, row), id_of(r, row), r->pictures->paths[first],
                            r->pictures->paths[other]);
        }
        if (found == STK_FOUND_SEVERAL) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s, line %zu: '%s' fits both %s and %s; write the whole name into the "
                            "table, or pass --image-ext to say which kind counts",
                            r->where, line_of(r, row), id_of(r, row), r->pictures->paths[first],
                            r->pictures->paths[other]);
        }
        r->places[row] = (stk_row_pictures){first, found == STK_FOUND_ONE ? count : 0};
        r->found += found == STK_FOUND_ONE;
    }
    return STK_OK;
}

/* Whether so many rows or pictures of `all` that do not match are left out. */
static bool may_leave_out(const stk_listing *listing, size_t count, size_t all) {
    int mismatch = listing->options->mismatch;
    return mismatch == STK_MISMATCH_SKIP ||
           (mismatch == STK_MISMATCH_AUTO && (double)count <= MOST_LEFT_OUT * (double)all);
}

/* ---- rows that are left out ---- */

/* Whether an empty cell says something: no label of a list, or nothing in one of several columns.
 */
static bool may_be_empty(const stk_ask *ask) {
    return ask->task == STK_TASK_MULTILABEL || ask->count > 1;
}

/* Leaves out rows in which every cell is empty: spreadsheets write them behind the others. */
static void drop_blank(const stk_labelled_rows *r, bool *keep) {
    for (size_t row = 0; row < r->count; row++) {
        const char *cell = stk_csv_cell(r->csv, row, 0);
        keep[row] = false;
        for (size_t c = 0; !keep[row] && c < r->csv->columns; c++) {
            keep[row] = cell[0] != '\0';
            cell = c + 1 < r->csv->columns ? stk_csv_next(cell) : cell;
        }
    }
}

/* Leaves out rows with an id and without a label if they are few. Their pictures need no label
 * then. */
static void drop_empty(stk_labelled_rows *r, const stk_listing *listing, const stk_ask *ask,
                       bool *keep) {
    stk_first_names empty = {0};
    char names[300];
    size_t label = ask->labels[0];
    for (size_t row = 0; !may_be_empty(ask) && row < r->count; row++) {
        if (stk_csv_cell(r->csv, row, label)[0] == '\0' && id_of(r, row)[0] != '\0') {
            keep[row] = false;
            stk_first_names_add(&empty, id_of(r, row));
        }
    }
    bool few = empty.count < r->count && may_leave_out(listing, empty.count, r->count);
    for (size_t row = 0; empty.count > 0 && row < r->count; row++) {
        if (!keep[row] && few && r->places[row].count > 0) {
            memset(r->pictures->used + r->places[row].first, true, r->places[row].count);
        }
        keep[row] = keep[row] || (!few && id_of(r, row)[0] != '\0');
    }
    if (empty.count > 0 && few) {
        stk_events_warning(listing->events, "left out %zu row%s of %s without a label: %s",
                           empty.count, stk_plural(empty.count), r->file,
                           stk_first_names_text(&empty, names, sizeof names));
    }
}

static bool is_alike(const stk_labelled_rows *r, size_t a, size_t b, const bool *alike) {
    bool same = true;
    const char *x = stk_csv_cell(r->csv, a, 0);
    const char *y = stk_csv_cell(r->csv, b, 0);
    for (size_t c = 0; same && c < r->csv->columns; c++) {
        same = !alike[c] || stk_str_equal(x, y);
        x = c + 1 < r->csv->columns ? stk_csv_next(x) : x;
        y = c + 1 < r->csv->columns ? stk_csv_next(y) : y;
    }
    return same;
}

/* An id of which a table has two rows that say different things. */
typedef struct twice {
    size_t first; /* rows */
    size_t second;
} twice;

/* Many pictures with several rows are no mistake of single rows. */
static stk_status fail_several(const stk_labelled_rows *r, twice t, size_t several, size_t ids,
                               stk_error *err) {
    if (several < FEWEST_SEVERAL || (double)several < MANY_SEVERAL * (double)ids) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s has the id '%s' twice, on lines %zu and %zu; remove one row, since a "
                        "picture has one label",
                        r->where, id_of(r, t.first), line_of(r, t.first), line_of(r, t.second));
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s has several rows for %zu of %zu ids (first '%s', lines %zu and %zu), and "
                    "Stoker takes one row a picture; several rows mostly are boxes or masks, which "
                    "are not trained: for labels of whole pictures make one row of each picture's",
                    r->where, several, ids, id_of(r, t.first), line_of(r, t.first),
                    line_of(r, t.second));
}

static stk_status check_several(const stk_labelled_rows *r, stk_error *err) {
    stk_map seen = {0};
    stk_map again = {0};
    twice t = {0};
    bool ok = true;
    bool added;
    for (size_t row = 0; ok && row < r->count; row++) {
        const char *id = id_of(r, row);
        ok = stk_map_add(&seen, id, row, &added);
        if (ok && !added) {
            ok = stk_map_add(&again, id, row, &added);
            if (again.count == 1 && added && stk_map_find(&seen, id, &t.first)) {
                t.second = row;
            }
        }
    }
    size_t several = again.count;
    size_t ids = seen.count;
    stk_map_free(&seen);
    stk_map_free(&again);
    return !ok ? STK_FAIL_MEMORY(err, r->where)
           : (double)several >= MANY_SEVERAL * (double)ids && several >= FEWEST_SEVERAL
               ? fail_several(r, t, several, ids, err)
               : STK_OK;
}

stk_status stk_labelled_rows_explain(const stk_labelled_rows *r, const stk_listing *listing,
                                     bool has_sample, stk_status status, stk_error *err) {
    const stk_dataset_options *o = listing->options;
    stk_error why = {0};
    bool asks = status == STK_ERR_USAGE || status == STK_ERR_DATA;
    if (!asks || o->label_column != NULL || err == NULL) {
        return status;
    }
    stk_status several = check_several(r, &why);
    if (several != STK_OK) {
        stk_error_clear(err); /* of two sentences the first one stays */
        return STK_FAIL(err, several, "%s", why.message);
    }
    if (!has_sample && o->sample_submission == NULL) {
        why = *err;
        stk_error_clear(err);
        return STK_FAIL(err, status,
                        "%s; or name the file that shows the columns of the submission with "
                        "--sample-submission",
                        why.message);
    }
    return status;
}

/* Leaves out rows that repeat one before. */
static stk_status drop_repeated(const stk_labelled_rows *r, const stk_listing *listing,
                                const bool *alike, bool *keep, stk_error *err) {
    stk_map seen = {0};
    stk_first_names repeated = {0};
    char names[300];
    stk_status status = STK_OK;
    for (size_t row = 0; status == STK_OK && row < r->count; row++) {
        const char *id = id_of(r, row);
        bool added = true;
        size_t first = 0;
        if (!keep[row] || id[0] == '\0') {
            continue;
        }
        if (!stk_map_add(&seen, id, row, &added)) {
            status = STK_FAIL_MEMORY(err, r->where);
        } else if (!added && stk_map_find(&seen, id, &first)) {
            keep[row] = !is_alike(r, first, row, alike);
            if (keep[row]) {
                status = check_several(r, err);
                status =
                    status == STK_OK ? fail_several(r, (twice){first, row}, 0, 1, err) : status;
            } else {
                stk_first_names_add(&repeated, id);
            }
        }
    }
    if (status == STK_OK && repeated.count > 0) {
        stk_events_warning(listing->events,
                           "left out %zu row%s of %s that repeat%s the id and the label of another "
                           "row: %s",
                           repeated.count, stk_plural(repeated.count), r->file,
                           repeated.count == 1 ? "s" : "",
                           stk_first_names_text(&repeated, names, sizeof names));
    }
    stk_map_free(&seen);
    return status;
}

/* Keeps these rows alone. */
static stk_status keep_rows(stk_labelled_rows *r, const bool *keep, stk_csv *kept, stk_error *err) {
    stk_status status = stk_csv_join(r->where, &(stk_csv_part){r->csv, keep}, 1, kept, err);
    size_t count = 0;
    if (status != STK_OK) {
        return status;
    }
    r->found = 0;
    for (size_t row = 0; row < r->count; row++) {
        if (keep[row]) {
            r->places[count++] = r->places[row];
            r->found += r->places[row].count > 0;
        }
    }
    r->csv = kept;
    r->count = count;
    return STK_OK;
}

stk_status stk_labelled_rows_clean(stk_labelled_rows *r, const stk_listing *listing,
                                   const stk_ask *ask, const bool *alike, stk_csv *kept,
                                   stk_error *err) {
    bool all = true;
    bool *keep = stk_mem_raw(r->count, sizeof *keep);
    if (keep == NULL) {
        return STK_FAIL_MEMORY(err, r->where);
    }
    drop_blank(r, keep);
    drop_empty(r, listing, ask, keep);
    stk_status status = drop_repeated(r, listing, alike, keep, err);
    for (size_t row = 0; row < r->count; row++) {
        all = all && keep[row];
    }
    if (status == STK_OK && !all) {
        status = keep_rows(r, keep, kept, err);
    }
    stk_mem_free(keep);
    return status;
}

/* ---- checks ---- */

stk_status stk_labelled_rows_check_cells(const stk_labelled_rows *r, const stk_ask *ask,
                                         stk_error *err) {
    size_t label = ask->labels[0];
    for (size_t row = 0; row < r->count; row++) {
        if (r->part != SIZE_MAX && stk_csv_cell(r->csv, row, r->part)[0] == '\0') {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s, line %zu: column %s is empty; fill it in for every row", r->where,
                            line_of(r, row), r->csv->header[r->part]);
        }
        bool no_id = id_of(r, row)[0] == '\0';
        if (no_id || (!may_be_empty(ask) && stk_csv_cell(r->csv, row, label)[0] == '\0')) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s, line %zu: the %s (column %s) is empty%s; fill it in or remove the "
                            "row%s",
                            r->where, line_of(r, row), no_id ? "id" : "label",
                            r->csv->header[no_id ? r->id : label],
                            !no_id && ask->form.missing > 0 ? ", or says that there is none" : "",
                            no_id ? "" : ", or pass --mismatch skip to leave out such rows");
        }
    }
    return STK_OK;
}

stk_status stk_labelled_rows_check_pictures(stk_labelled_rows *r, stk_error *err) {
    stk_status status = STK_OK;
    size_t *owners = stk_mem_new(r->pictures->count, sizeof *owners); /* row + 1; 0: none yet */
    if (owners == NULL) {
        return STK_FAIL_MEMORY(err, r->where);
    }
    for (size_t row = 0; status == STK_OK && row < r->count; row++) {
        stk_row_pictures its = r->places[row];
        size_t first = its.count > 0 ? owners[its.first] : 0;
        if (first > 0) {
            status = STK_FAIL(err, STK_ERR_DATA,
                              "%s labels %s twice, on lines %zu ('%s') and %zu ('%s'); remove one "
                              "row, since a picture has one label",
                              r->where, r->pictures->paths[its.first], line_of(r, first - 1),
                              id_of(r, first - 1), line_of(r, row), id_of(r, row));
        } else if (its.count > 0) {
            owners[its.first] = row + 1;
            memset(r->pictures->used + its.first, true, its.count);
        }
    }
    stk_mem_free(owners);
    return status;
}

/* Fails where an id is the beginning of several files: ID_red.png, ID_green.png. */
static stk_status several_files(const stk_labelled_rows *r, const char *id, stk_error *err) {
    stk_first_names found = {0};
    char names[300];
    size_t length = strlen(id);
    for (size_t i = 0; length > 0 && i < r->pictures->count; i++) {
        const char *base = stk_path_base(r->pictures->paths[i]);
        if (strncmp(base, id, length) == 0 && (base[length] == '_' || base[length] == '-')) {
            stk_first_names_add(&found, base);
        }
    }
    return found.count < 2
               ? STK_OK
               : STK_FAIL(err, STK_ERR_DATA,
                          "the id '%s' of %s is no picture but %zu files: %s; several channels in "
                          "several files are not put together, so make one picture of them, or "
                          "write the names of the files into the table",
                          id, r->where, found.count,
                          stk_first_names_text(&found, names, sizeof names));
}

stk_status stk_labelled_rows_check_missing(const stk_labelled_rows *r, const stk_listing *listing,
                                           stk_error *err) {
    stk_first_names missing = {0};
    char names[300];
    char note[64];
    for (size_t row = 0; row < r->count; row++) {
        if (r->places[row].count == 0) {
            stk_first_names_add(&missing, id_of(r, row));
        }
    }
    if (missing.count == 0) {
        return STK_OK;
    }
    stk_first_names_text(&missing, names, sizeof names);
    stk_listing_ext_note(listing, note, sizeof note);
    if (r->found == 0 && several_files(r, missing.first[0], err) != STK_OK) {
        return STK_ERR_DATA;
    }
    if (r->found == 0) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "no picture in %s is named in column %s of %s%s: the ids are like '%s', "
                        "the files like '%s'; name the right column with --id-column or how the "
                        "files end with --image-ext",
                        r->pictures_folder, r->csv->header[r->id], r->where, note, missing.first[0],
                        stk_pictures_below(r->pictures, 0));
    }
    if (may_leave_out(listing, missing.count, r->count)) {
        stk_events_warning(listing->events, "left out %zu row%s of %s without a picture: %s",
                           missing.count, stk_plural(missing.count), r->file, names);
        return STK_OK;
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s has labels for %zu picture%s that %s not in %s%s: %s; restore the files, "
                    "say how they end with --image-ext, or pass --mismatch skip to leave the rows "
                    "out",
                    r->where, missing.count, stk_plural(missing.count),
                    missing.count == 1 ? "is" : "are", r->pictures_folder, note, names);
}

stk_status stk_labelled_rows_check_unlabelled(const stk_labelled_rows *r,
                                              const stk_listing *listing, stk_error *err) {
    stk_first_names unlabelled = {0};
    char names[300];
    for (size_t i = 0; i < r->pictures->count; i++) {
        if (!r->pictures->used[i]) {
            stk_first_names_add(&unlabelled, stk_pictures_below(r->pictures, i));
        }
    }
    if (unlabelled.count == 0) {
        return STK_OK;
    }
    stk_first_names_text(&unlabelled, names, sizeof names);
    if (may_leave_out(listing, unlabelled.count, r->pictures->count)) {
        stk_events_warning(listing->events, "left out %zu picture%s without a label in %s: %s",
                           unlabelled.count, stk_plural(unlabelled.count), r->file, names);
        return STK_OK;
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s has %zu picture%s without a label in %s: %s; add the labels, say with "
                    "--image-ext which kind of files counts, or pass --mismatch skip to leave the "
                    "pictures out",
                    r->pictures_folder, unlabelled.count, stk_plural(unlabelled.count), r->where,
                    names);
}

void stk_labelled_rows_free(stk_labelled_rows *r) {
    stk_mem_free(r->where);
    stk_mem_free(r->pictures_folder);
    stk_mem_free(r->places);
    memset(r, 0, sizeof *r);
}
