/*
 * object_store.h - buckets of the test server: folders whose files are objects.
 *
 * A key is a path below the folder. Symbolic links are followed. An ETag is the MD5 of the file, as
 * for an object that came in one piece, and is made once for each size and time of a file; large
 * files have one with a number of parts behind it, which is not an MD5 of the bytes, as after a
 * multipart upload.
 */
#ifndef OBJECT_STORE_H
#define OBJECT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "object_text.h"

/* The keys of a bucket in order of their bytes, as of the last look. */
typedef struct os_keys {
    char **keys;
    size_t count, room;
    struct os_seen_folder *folders; /* all folders and when they changed last */
    size_t folder_count, folder_room;
    bool is_fresh; /* a change since the look would show in the folders' times */
} os_keys;

typedef struct os_bucket {
    char *name;
    char *folder;
    os_keys keys;
} os_bucket;

typedef struct os_store {
    os_bucket *buckets;
    size_t bucket_count;
    os_table files;           /* by path: ETags */
    uint64_t multipart_bytes; /* files larger than this have an ETag of parts */
    bool folder_markers;      /* every folder is also an empty object whose key ends with a slash */
} os_store;

/* An object that was found. */
typedef struct os_object {
    int fd; /* owned by the caller; -1 when it was only looked at, and for a folder marker */
    uint64_t size;
    time_t modified;
    char etag[48]; /* without quotes */
} os_object;

void os_store_start(os_store *store);
void os_store_free(os_store *store);
void os_store_add(os_store *store, const char *name, const char *folder);

/* The bucket of a name of `size` bytes, or NULL. */
os_bucket *os_store_bucket(os_store *store, const char *name, size_t size);

/* Looks an object up, and with `open` opens its file. False when there is none. */
bool os_store_find(os_store *store, const os_bucket *bucket, const char *key, bool open,
                   os_object *object);

/* The keys of a bucket as they are now; the folder is read again when it changed. */
const os_keys *os_store_keys(os_store *store, os_bucket *bucket);

/* Makes all ETags, so that the first GET of each object is as fast as the next. */
void os_store_warm(os_store *store);

#endif
