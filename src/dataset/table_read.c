/*
 * table_read.c - reads a table of the location, whatever its format: CSV and its relatives, or
 * JSON.
 *
 * The ending tells JSON from the rest; what separates the cells of the rest, the first line tells.
 */
#include "dataset/listing.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/object_ranges.h"

bool stk_table_is_json(const char *path) {
    return stk_str_ends_with_nocase(path, ".json") || stk_str_ends_with_nocase(path, ".jsonl") ||
           stk_str_ends_with_nocase(path, ".ndjson");
}

/* The table that was kept when the pictures in a JSON file were made; NULL: none were. */
static const char *kept_table(const stk_listing *listing, const char *path) {
    for (size_t i = 0; i < listing->unfolded_count; i++) {
        if (stk_str_equal(listing->unfolded[i].path, path)) {
            return listing->unfolded[i].table;
        }
    }
    return NULL;
}

static stk_status read_text(const stk_listing *listing, const char *path, const char *name,
                            stk_csv *csv, stk_error *err) {
    stk_bytes bytes = {0};
    const char *kept = kept_table(listing, path);
    stk_status status = kept != NULL ? stk_file_read_into(kept, 0, &bytes, err)
                                     : stk_store_read(listing->dataset->store, path, &bytes, err);
    STK_THEN(status, stk_csv_take_any(name, &bytes, csv, err));
    stk_bytes_free(&bytes);
    return status;
}

static stk_status read_json(const stk_listing *listing, const char *path, stk_csv *csv,
                            stk_json_table_info *info, stk_error *err) {
    stk_object_ranges ranges = {0};
    stk_range_source source;
    stk_status status =
        stk_object_ranges_open(&ranges, listing->dataset->store, path, &source, err);
    if (status == STK_OK) {
        status = stk_json_table_read(&source, csv, info, err);
        stk_object_ranges_close(&ranges);
    }
    return status;
}

stk_status stk_listing_table(const stk_listing *listing, const char *path, stk_csv *csv,
                             stk_json_table_info *info, stk_error *err) {
    stk_json_table_info unused = {0};
    stk_status status;
    memset(csv, 0, sizeof *csv);
    if (info != NULL) {
        memset(info, 0, sizeof *info);
    }
    if (stk_table_is_json(path) && kept_table(listing, path) == NULL) {
        status = read_json(listing, path, csv, info != NULL ? info : &unused, err);
    } else {
        char *name = stk_listing_full(listing, path);
        status =
            name != NULL ? read_text(listing, path, name, csv, err) : STK_FAIL_MEMORY(err, path);
        stk_mem_free(name);
    }
    stk_json_table_info_free(&unused);
    return status;
}
