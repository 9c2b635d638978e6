/*
 * shard_index.h - where the members of tar shards are, in memory and as a file.
 *
 * `stoker stage` puts such a file beside the shards that it writes (STK_SHARD_INDEX_NAME), and what
 * was learned from the headers of others' tars is remembered in one. The file has a version, and a
 * checksum at its end, and holds the members sorted by path; numbers in it are little-endian.
 * 1,200,000 members take about 0.1 s to load. One thread at a time.
 */
#ifndef STK_STORAGE_TAR_SHARD_INDEX_H
#define STK_STORAGE_TAR_SHARD_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/files/file.h"

typedef struct stk_index_shard {
    const char *name; /* the tar's path below the location */
    uint64_t size;    /* bytes of the tar; 0: not known */
} stk_index_shard;

typedef struct stk_index_member {
    const char *path;  /* as it is shown: below the location, no slash in front */
    const char *text;  /* what it holds, when it is a small text that is kept; or NULL */
    uint64_t offset;   /* of its first byte in the tar */
    uint64_t size;     /* bytes */
    uint64_t checksum; /* stk_checksum of its bytes, when has_checksum */
    uint32_t shard;    /* its tar's number in shards */
    bool has_checksum;
} stk_index_member;

typedef struct stk_shard_index {
    stk_index_shard *shards;
    size_t shard_count;
    size_t shard_capacity;
    stk_index_member *members;
    size_t member_count;
    size_t member_capacity;
    const char *origin;             /* what was given when it was saved; NULL before */
    struct stk_index_block *blocks; /* all texts above */
} stk_shard_index;                  /* starts zeroed */

void stk_shard_index_free(stk_shard_index *index);

/* Copies a text into the index; NULL without memory. */
const char *stk_shard_index_keep(stk_shard_index *index, const char *text);

/* Adds a tar; its name is copied. *number is what members say in `shard`. */
STK_CHECKED stk_status stk_shard_index_add_shard(stk_shard_index *index, const char *name,
                                                 uint64_t size, uint32_t *number, stk_error *err);

/* Adds a member; its path and text are copied. */
STK_CHECKED stk_status stk_shard_index_add(stk_shard_index *index, const stk_index_member *member,
                                           stk_error *err);

/* Moves all that `from` has to the end of `into`; from is then empty. */
STK_CHECKED stk_status stk_shard_index_merge(stk_shard_index *into, stk_shard_index *from,
                                             stk_error *err);

/*
 * Sorts the members by path and writes the file, which appears whole or not at all. The same
 * members give the same file in whatever order they were added. `origin` is any text that tells
 * later what the index was made from ("" for one that stands beside its shards).
 */
STK_CHECKED stk_status stk_shard_index_save(stk_shard_index *index, const char *origin,
                                            const char *file, stk_error *err);

/*
 * Reads what save wrote; takes the bytes, also when it fails. Anything that is not whole and right
 * is STK_ERR_DATA with `name` in it.
 */
STK_CHECKED stk_status stk_shard_index_load(stk_shard_index *index, const char *name,
                                            stk_bytes *bytes, stk_error *err);

#endif
