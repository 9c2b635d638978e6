/*
 * shard_index.h - the file that stores where the members of tar shards are, and its contents in
 * memory. members.h has the look-ups. Members of other archives are in such a list, too, and are
 * called members of shards here; those of zips are never stored in a file.
 *
 * `stoker stage` writes such a file beside its shards (STK_SHARD_INDEX_NAME). For tars of other
 * origin, Stoker stores what it read from their headers in such a file. The file has a
 * version, a checksum at its end, and the members sorted by path; numbers are little-endian.
 * 1,200,000 members load in about 0.1 s. Threads: one at a time.
 */
#ifndef STK_STORAGE_TAR_SHARD_INDEX_H
#define STK_STORAGE_TAR_SHARD_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/files/file.h"
#include "base/text/text_blocks.h"

typedef struct stk_index_shard {
    const char *name; /* the tar's path below the location */
    uint64_t size;    /* bytes of the tar; 0: unknown */
    bool unpacked;    /* in memory only: the object is not of the location but of the folder of
                         unpacked archives */
} stk_index_shard;

typedef struct stk_index_member {
    const char *path;  /* as shown to users: below the location, no slash in front */
    const char *text;  /* contents of a small text member, if kept; or NULL */
    uint64_t offset;   /* of its first byte in the tar */
    uint64_t size;     /* bytes */
    uint64_t checksum; /* stk_checksum() of its bytes, if has_checksum */
    uint32_t shard;    /* number of its tar in `shards` */
    bool has_checksum;
    /* In memory only, for members of a zip: what is read is packed and begins with a header. */
    uint64_t span;   /* bytes to read from `offset` on; 0: the member lies there as it is */
    uint32_t crc32;  /* of the member's bytes */
    uint16_t method; /* how it is packed (zip_directory.h) */
} stk_index_member;

typedef struct stk_shard_index {
    stk_index_shard *shards;
    size_t shard_count;
    size_t shard_capacity;
    stk_index_member *members;
    size_t member_count;
    size_t member_capacity;
    const char *origin;    /* the text given to stk_shard_index_save(); NULL before */
    stk_text_blocks texts; /* memory of all texts */
} stk_shard_index;         /* starts zeroed */

void stk_shard_index_free(stk_shard_index *index);

/* Adds a tar and copies its name. *number is the value for stk_index_member.shard. */
STK_CHECKED stk_status stk_shard_index_add_shard(stk_shard_index *index, const char *name,
                                                 uint64_t size, uint32_t *number, stk_error *err);

/* Adds a member; its path and text are copied. */
STK_CHECKED stk_status stk_shard_index_add(stk_shard_index *index, const stk_index_member *member,
                                           stk_error *err);

/* Moves everything from `from` to the end of `into`; leaves `from` empty. */
STK_CHECKED stk_status stk_shard_index_merge(stk_shard_index *into, stk_shard_index *from,
                                             stk_error *err);

/*
 * Sorts the members by path and writes the file, completely or not at all. The same members give
 * the same file, in whatever order they were added. `origin` is any text that identifies what the
 * index was made from ("" for an index beside its shards).
 */
STK_CHECKED stk_status stk_shard_index_save(stk_shard_index *index, const char *origin,
                                            const char *file, stk_error *err);

/*
 * Reads a file of stk_shard_index_save(); takes the bytes over, also when it fails. An incomplete
 * or damaged file is STK_ERR_DATA; the message has `name`.
 */
STK_CHECKED stk_status stk_shard_index_load(stk_shard_index *index, const char *name,
                                            stk_bytes *bytes, stk_error *err);

#endif
