/* object_ranges.c - each range is a read of a part of the object, with the policy of all reads. */
#include "storage/object_ranges.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

static stk_status read_part(void *user, uint64_t offset, void *into, size_t size, size_t *got,
                            stk_error *err) {
    const stk_object_ranges *ranges = user;
    stk_bytes part = {0};
    *got = 0;
    if (size == 0) { /* a length of 0 would mean all of it */
        return STK_OK;
    }
    stk_status status = stk_store_read_part(ranges->store, ranges->path, offset, size, &part, err);
    if (status == STK_OK && part.size > 0) {
        *got = part.size < size ? part.size : size;
        memcpy(into, part.data, *got);
    }
    stk_bytes_free(&part);
    return status;
}

stk_status stk_object_ranges_open(stk_object_ranges *ranges, stk_store *store, const char *path,
                                  stk_range_source *source, stk_error *err) {
    stk_bytes first = {0};
    stk_error why = {0};
    *ranges = (stk_object_ranges){.store = store,
                                  .path = stk_mem_strdup(path),
                                  .name = stk_path_join(stk_store_root(store), path)};
    if (ranges->path == NULL || ranges->name == NULL) {
        stk_object_ranges_close(ranges);
        return STK_FAIL_MEMORY(err, path);
    }
    stk_status status = stk_store_read_part(store, path, 0, 1, &first, &why);
    if (status != STK_OK && stk_store_has_shards(store)) {
        ranges->is_member = true;
        status = stk_store_read(store, path, &ranges->whole, err);
    } else if (status != STK_OK) {
        status = stk_error_pass(&why, err);
    }
    stk_bytes_free(&first);
    if (status != STK_OK) {
        stk_object_ranges_close(ranges);
        return status;
    }
    *source = ranges->is_member
                  ? stk_range_of_block(ranges->name, &ranges->whole)
                  : (stk_range_source){.name = ranges->name, .user = ranges, .read = read_part};
    return STK_OK;
}

void stk_object_ranges_close(stk_object_ranges *ranges) {
    stk_bytes_free(&ranges->whole);
    stk_mem_free(ranges->path);
    stk_mem_free(ranges->name);
    memset(ranges, 0, sizeof *ranges);
}
