/* labelled_rows.c - finds the pictures of labelled rows, and checks rows against pictures. */
#include "dataset/labelled_rows.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

/* The share of rows without a picture, and of pictures without a row, that is left out with a
 * warning. More of them mean that something else is wrong. */
#define MOST_LEFT_OUT 0.01

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

stk_status stk_labelled_rows_check_cells(const stk_labelled_rows *r, const stk_ask *ask,
                                         stk_error *err) {
    bool may_be_empty = ask->task == STK_TASK_MULTILABEL || ask->count > 1;
    size_t label = ask->labels[0];
    for (size_t row = 0; row < r->count; row++) {
        if (r->part != SIZE_MAX && stk_csv_cell(r->csv, row, r->part)[0] == '\0') {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s, line %zu: column %s is empty; fill it in for every row", r->where,
                            line_of(r, row), r->csv->header[r->part]);
        }
        bool no_id = id_of(r, row)[0] == '\0';
        if (no_id || (!may_be_empty && stk_csv_cell(r->csv, row, label)[0] == '\0')) {
            return STK_FAIL(err, STK_ERR_DATA,
                            "%s, line %zu: the %s (column %s) is empty; fill it in or remove the "
                            "row",
                            r->where, line_of(r, row), no_id ? "id" : "label",
                            r->csv->header[no_id ? r->id : label]);
        }
    }
    return STK_OK;
}

static stk_status fail_twice(const stk_labelled_rows *r, size_t first, size_t second,
                             stk_error *err) {
    if (stk_str_equal(id_of(r, first), id_of(r, second))) {
        return STK_FAIL(err, STK_ERR_DATA,
                        "%s has the id '%s' twice, on lines %zu and %zu; remove one row, since a "
                        "picture has one label",
                        r->where, id_of(r, first), line_of(r, first), line_of(r, second));
    }
    return STK_FAIL(err, STK_ERR_DATA,
                    "%s labels %s twice, on lines %zu ('%s') and %zu ('%s'); remove one row, since "
                    "a picture has one label",
                    r->where, r->pictures->paths[r->places[first].first], line_of(r, first),
                    id_of(r, first), line_of(r, second), id_of(r, second));
}

stk_status stk_labelled_rows_check_twice(stk_labelled_rows *r, stk_error *err) {
    stk_map seen = {0};
    stk_status status = STK_OK;
    size_t *owners = stk_mem_new(r->pictures->count, sizeof *owners); /* row + 1; 0: none yet */
    if (owners == NULL) {
        return STK_FAIL_MEMORY(err, r->where);
    }
    for (size_t row = 0; status == STK_OK && row < r->count; row++) {
        bool added = true;
        size_t first = 0;
        stk_row_pictures its = r->places[row];
        if (!stk_map_add(&seen, id_of(r, row), row, &added)) {
            status = STK_FAIL_MEMORY(err, r->where);
        } else if (!added && stk_map_find(&seen, id_of(r, row), &first)) {
            status = fail_twice(r, first, row, err);
        } else if (its.count > 0 && owners[its.first] != 0) {
            status = fail_twice(r, owners[its.first] - 1, row, err);
        } else if (its.count > 0) {
            owners[its.first] = row + 1;
            memset(r->pictures->used + its.first, true, its.count);
        }
    }
    stk_map_free(&seen);
    stk_mem_free(owners);
    return status;
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
