/* bson_index.c - the pictures of a BSON file as members of an index. */
#include <string.h>

#include "base/error.h"
#include "base/files/path.h"
#include "base/map.h"
#include "base/str.h"
#include "storage/tar/bson_scan.h"

static stk_status check_ids(const stk_bson_scan *scan, const char *object, size_t column,
                            stk_error *err) {
    stk_map seen = {0};
    stk_status status = STK_OK;
    for (size_t row = 0; status == STK_OK && row < scan->csv.rows; row++) {
        bool added = true;
        const char *id = stk_csv_cell(&scan->csv, row, column);
        if (!stk_path_is_name(id)) {
            status = STK_FAIL(err, STK_ERR_DATA,
                              "%s: the _id \"%.100s\" of document %zu cannot name its pictures; "
                              "numbers and short words can",
                              object, id, row + 1);
        } else if (!stk_map_add(&seen, id, 0, &added)) {
            status = STK_FAIL_MEMORY(err, object);
        } else if (!added) {
            status = STK_FAIL(err, STK_ERR_DATA,
                              "%s: two documents have the _id \"%.100s\"; remove one of them",
                              object, id);
        }
    }
    stk_map_free(&seen);
    return status;
}

stk_status stk_bson_index(const stk_bson_scan *scan, const char *object, const char *folder,
                          stk_shard_index *index, stk_error *err) {
    stk_str path = {0};
    uint32_t shard = 0;
    size_t k = 0; /* of the picture in its document */
    size_t column = stk_csv_column(&scan->csv, "_id");
    if (column == SIZE_MAX) {
        return STK_FAIL(err, STK_ERR_DATA, "%s: its documents have no _id", object);
    }
    stk_status status = check_ids(scan, object, column, err);
    STK_THEN(status, stk_shard_index_add_shard(index, object, scan->is_whole ? scan->bytes : 0,
                                               &shard, err));
    for (size_t i = 0; status == STK_OK && i < scan->picture_count; i++) {
        const stk_bson_picture *picture = &scan->pictures[i];
        k = i > 0 && picture->row == scan->pictures[i - 1].row ? k + 1 : 0;
        stk_str_clear(&path);
        stk_str_appendf(&path, "%s%s%s/%zu.jpg", folder, folder[0] != '\0' ? "/" : "",
                        stk_csv_cell(&scan->csv, picture->row, column), k);
        stk_index_member member = {.path = stk_str_text(&path),
                                   .offset = picture->offset,
                                   .size = picture->bytes,
                                   .shard = shard};
        status = stk_str_ok(&path) ? stk_shard_index_add(index, &member, err)
                                   : STK_FAIL_MEMORY(err, object);
    }
    stk_str_free(&path);
    return status;
}
