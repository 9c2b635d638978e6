/*
 * pack.h - one pack of the cache on disk: its two files and who may write to them.
 *
 * FOLDER/pack-0000.data holds the bytes of many objects, one behind another, and
 * FOLDER/pack-0000.index says where each lies. Both are only ever appended to. Every number is
 * little-endian.
 *
 *   Head of both files, 64 bytes: "STKPACK" and 'D' or 'I'; u32 version 1; u32 64; u64 the pack's
 *   id, a random number; zeros; at 56 the checksum of all before it.
 *
 *   An entry of the index, 64 bytes: u64 high and u64 low of the key; u64 where the bytes begin in
 *   the data; u32 their length; u32 generation; u64 their checksum; zeros; at 56 the checksum of
 *   all before it, with the pack's id as its seed.
 *
 * An entry is written once its bytes are, so that an entry implies its bytes, whenever a writer is
 * killed; what has no entry is unused. Nothing is synced: a kill does not lose what the system has
 * taken, and what a power cut tears is found by the checksums and costs a miss.
 *
 * Whoever holds the lock (flock) of an index may append to the pack; a pack whose writer has gone
 * is taken over by the next. The lock only keeps writers from spoiling each other's work: where a
 * file system lets two of them in, checksums still tell right bytes from wrong ones. Files with an
 * unknown head are left alone.
 *
 * Threads: a pack belongs to one thread, but data_fd may be read from by all.
 */
#ifndef STK_STORAGE_CACHE_PACK_H
#define STK_STORAGE_CACHE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "storage/cache/table.h"

#define STK_PACK_ENTRY_BYTES 64
#define STK_PACK_HEAD_BYTES 64
#define STK_PACKS_MOST 4096                       /* numbers are below this */
#define STK_PACK_MOST_ENTRIES ((uint64_t)1 << 22) /* a longer index is not ours */
#define STK_PACK_BATCH 512                        /* most entries that are read or added at once */

typedef struct stk_pack {
    int number;           /* in the names of its files */
    int data_fd;          /* owned; for reading, and open until the cache is closed; -1: unusable */
    int write_fd;         /* owned; the data, while this cache holds the lock; else -1 */
    int index_fd;         /* owned; the index with its lock; else -1 */
    uint64_t id;          /* of both heads */
    uint64_t known_bytes; /* of the index: the entries before this were looked at */
    uint64_t tried_bytes; /* the index's size when it was found unusable */
    uint64_t index_bytes; /* sizes of the files as last seen; exact while the lock is held */
    uint64_t data_bytes;
} stk_pack;

/* What came of trying to get a pack to write to. */
typedef enum stk_pack_result {
    STK_PACK_OURS,
    STK_PACK_TAKEN, /* by another writer, or it is not what it seemed: try another one */
    STK_PACK_FAILED /* errno says why */
} stk_pack_result;

/* Empties the struct: nothing is open. */
void stk_pack_clear(stk_pack *pack, int number);

/* Whether a file name is that of a pack: its number, and whether it is the index. */
bool stk_pack_parse_name(const char *name, int *number, bool *is_index);

/* Opens the data of a pack for reading and checks both heads. */
bool stk_pack_open(stk_pack *pack, int folder_fd);

/* A descriptor of the index for reading; -1 when it is no longer that of this pack. */
int stk_pack_open_index(const stk_pack *pack, int folder_fd);

/*
 * Reads further entries of a pack, STK_PACK_BATCH at most, and sets *count. Damaged ones are passed
 * over; at the very end they may be entries that are being written, which are looked at again next
 * time. Those that point outside of the data are marked as gone. True when there may be more;
 * known_bytes moves on.
 */
bool stk_pack_read_entries(stk_pack *pack, int index_fd, stk_cache_entry *entries, size_t *count);

/* Takes over a pack that is open for reading, so that it can be appended to. */
stk_pack_result stk_pack_take(stk_pack *pack, int folder_fd);

/* Makes the files of a new pack, or of one that nobody finished making. */
stk_pack_result stk_pack_make(stk_pack *pack, int folder_fd);

/*
 * Appends bytes, STK_PACK_BATCH pieces at most, to the data; the list of pieces is used up. False:
 * errno says why, and data_bytes how far it came.
 */
bool stk_pack_append_bytes(stk_pack *pack, struct iovec *pieces, size_t count);

/* Appends entries whose bytes are there, STK_PACK_BATCH at most. False: errno says why. */
bool stk_pack_append_entries(stk_pack *pack, const stk_cache_entry *entries, size_t count);

/* Cuts the data to this size: what has been appended behind it has no entries. */
void stk_pack_cut(stk_pack *pack, uint64_t data_bytes);

/* Whether the files that are appended to have been removed by somebody. */
bool stk_pack_is_removed(const stk_pack *pack);

/* Gives the lock back; the pack can still be read. */
void stk_pack_release(stk_pack *pack);

void stk_pack_close(stk_pack *pack);

#endif
