/*
 * object_ranges.h - an object of a location as a source of ranges, for readers of large tables and
 * files of pictures: they read gigabytes in pieces, from folders and buckets alike.
 *
 * A member of a shard cannot be read in pieces by its own path; it is read as a whole, with the
 * limit of whole objects. Threads: as for any source.
 */
#ifndef STK_STORAGE_OBJECT_RANGES_H
#define STK_STORAGE_OBJECT_RANGES_H

#include "base/files/range_source.h"
#include "storage/storage.h"

typedef struct stk_object_ranges {
    stk_store *store; /* borrowed */
    char *path;       /* owned; below the location */
    char *name;       /* owned; for errors: with the location */
    stk_bytes whole;  /* owned: the bytes of a member */
    bool is_member;
} stk_object_ranges; /* freed with stk_object_ranges_close */

/*
 * Opens an object. The source is valid until stk_object_ranges_close(). An object that cannot be
 * read is an error here.
 */
STK_CHECKED stk_status stk_object_ranges_open(stk_object_ranges *ranges, stk_store *store,
                                              const char *path, stk_range_source *source,
                                              stk_error *err);
void stk_object_ranges_close(stk_object_ranges *ranges);

#endif
