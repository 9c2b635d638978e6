/*
 * unfold.c - pictures that a data set has as numbers in JSON files alone.
 *
 * Where no file is a picture, the JSON files are looked at. Those whose records hold pictures are
 * converted once; the pictures of train.json are then shown as train/ID.npy, and reading the table
 * train.json gives its other fields. So all that follows finds pictures and tables as usual.
 */
#include "dataset/listing.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "dataset/json_pictures.h"
#include "storage/object_ranges.h"

/* The name of a file without its folders and its ending; NULL without memory; stk_mem_free. */
static char *stem_of(const char *path) {
    const char *name = stk_path_base(path);
    const char *dot = strrchr(name, '.');
    return stk_mem_strndup(name, dot != NULL ? (size_t)(dot - name) : strlen(name));
}

/* The folder at the top that the pictures are shown in: the file's stem, unless that is taken. */
static char *free_name(const stk_listing *listing, const char *stem) {
    for (size_t i = 0; i < listing->top.count; i++) {
        if (stk_str_equal(listing->top.entries[i].name, stem)) {
            return stk_str_format("%s-pictures", stem);
        }
    }
    return stk_mem_strdup(stem);
}

static stk_status note(stk_listing *listing, const char *path, const char *folder, stk_error *err) {
    char *table = stk_str_format("%s.csv", folder);
    const char *kept = table != NULL ? stk_listing_keep(listing, table, strlen(table)) : NULL;
    stk_mem_free(table);
    if (kept == NULL ||
        !STK_RESERVE(listing->unfolded, listing->unfolded_capacity, listing->unfolded_count + 1)) {
        return STK_FAIL_MEMORY(err, path);
    }
    listing->unfolded[listing->unfolded_count++] = (stk_unfolded){.path = path, .table = kept};
    return STK_OK;
}

/* Shows the pictures of one file, if it has any. */
static stk_status unfold(stk_listing *listing, const char *path, const stk_range_source *source,
                         const char *stem, stk_error *err) {
    stk_store *store = listing->dataset->store;
    char version[STK_STORE_VERSION_BYTES];
    stk_json_pictures pictures = {0};
    stk_error why = {0};
    char *folder = stk_store_made_folder(store, path);
    char *shown = free_name(listing, stem);
    stk_status status = shown != NULL ? STK_OK : STK_FAIL_MEMORY(err, path);
    if (status == STK_OK && folder == NULL) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "there is no folder for the pictures that may be in %s; name one with "
                          "--cache",
                          source->name);
    }
    STK_THEN(status, stk_store_version(store, path, version, sizeof version, err));
    if (status == STK_OK) {
        status = stk_json_pictures_convert(source, version, folder, stem, listing->events,
                                           &pictures, &why);
        if (status == STK_OK) {
            status = stk_store_show(store, pictures.folder, shown, version, err);
            STK_THEN(status, note(listing, path, pictures.folder, err));
        } else {
            status = pictures.none ? STK_OK : stk_error_pass(&why, err);
        }
    }
    stk_json_pictures_free(&pictures);
    stk_mem_free(folder);
    stk_mem_free(shown);
    return status;
}

static stk_status unfold_file(stk_listing *listing, const char *path, stk_error *err) {
    stk_object_ranges ranges = {0};
    stk_range_source source;
    char *stem = stem_of(path);
    stk_status status =
        stem != NULL ? stk_object_ranges_open(&ranges, listing->dataset->store, path, &source, err)
                     : STK_FAIL_MEMORY(err, path);
    if (status == STK_OK) {
        status = unfold(listing, path, &source, stem, err);
        stk_object_ranges_close(&ranges);
    }
    stk_mem_free(stem);
    return status;
}

stk_status stk_listing_unfold(stk_listing *listing, stk_error *err) {
    stk_pictures none = {0};
    stk_status status = stk_pictures_look(listing, &none, err);
    for (size_t i = 0; status == STK_OK && none.count == 0 && i < none.table_count; i++) {
        if (stk_table_is_json(none.tables[i])) {
            status = unfold_file(listing, none.tables[i], err);
        }
    }
    stk_pictures_free(&none);
    return status;
}
