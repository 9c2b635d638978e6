/*
 * storage.h - where bytes come from.
 *
 * A root names a place (a folder now; buckets and shards are further sources) and a path one object
 * in it. Nothing here knows what the bytes are. Errors name the object. Threads: safe.
 */
#ifndef STK_STORAGE_STORAGE_H
#define STK_STORAGE_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/file.h"

/* Objects with more bytes are refused: no picture has them, a wrong path might. */
#define STK_STORAGE_MAX_BYTES ((size_t)256 * 1024 * 1024)

typedef struct stk_storage_source {
    const char *name;                  /* "local" */
    bool (*matches)(const char *root); /* whether this source serves the root, by its spelling */
    stk_status (*read)(const char *root, const char *path, stk_bytes *bytes, stk_error *err);
} stk_storage_source;

/* Reads one whole object into a block that may be used again and again. */
STK_CHECKED stk_status stk_storage_read(const char *root, const char *path, stk_bytes *bytes,
                                        stk_error *err);

/* The sources, one file each. */
extern const stk_storage_source stk_storage_local;

#endif
