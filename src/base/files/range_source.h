/*
 * range_source.h - bytes that are read in ranges, whatever they are: a block of memory, an object
 * of a location (storage/object_ranges.h). For readers of large files that hold only a part in
 * memory. Threads: any number may read from one source.
 */
#ifndef STK_BASE_FILES_RANGE_SOURCE_H
#define STK_BASE_FILES_RANGE_SOURCE_H

#include "base/files/file.h"

typedef struct stk_range_source {
    const char *name; /* borrowed: what errors call it */
    void *user;       /* borrowed: what `read` is given */
    /* Reads `size` bytes from `offset` on; *got is less only where the bytes end. */
    stk_status (*read)(void *user, uint64_t offset, void *into, size_t size, size_t *got,
                       stk_error *err);
} stk_range_source;

/* The bytes of a block, which are borrowed like the name. */
stk_range_source stk_range_of_block(const char *name, stk_bytes *block);

/* Reads exactly `size` bytes; where they end earlier, STK_ERR_DATA says that the file is cut. */
STK_CHECKED stk_status stk_range_read(const stk_range_source *source, uint64_t offset, void *into,
                                      size_t size, stk_error *err);

#endif
