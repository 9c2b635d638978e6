/*
 * pack.h - one pack of the cache on disk: its two files and who may write to them.
 *
 * FOLDER/pack-0000.data holds the bytes of many objects, one after another, and
 * FOLDER/pack-0000.index says where each lies. Both files only grow. Numbers are little-endian.
 *
 *   Head of both files, 64 bytes: "STKPACK" and 'D' or 'I'; u32 version 1; u32 64; u64 the pack's
 *   id, a random number; zeros; at 56 the checksum of all before it.
 *
 *   An entry of the index, 64 bytes: u64 high and u64 low of the key; u64 where the bytes begin in
 *   the data; u32 their length; u32 generation; u64 their checksum; zeros; at 56 the checksum of
 *   all before it, with the pack's id as its seed.
 *
 * A writer writes the bytes first, then the entry. So whenever it is killed, an entry implies its
 * bytes; bytes without an entry are unused. Nothing is synced: a kill loses nothing that the system
 * has accepted, and the checksums find what a power cut tears, which costs a miss.
 *
 * Whoever holds the lock (flock) of an index may append to the pack; if that process ends, another
 * may take the pack over. The lock only keeps writers from damaging each other's work: where a file
 * system grants it twice, the checksums still tell right bytes from wrong ones. Files with an
 * unknown head are left alone.
 *
 * Threads: a pack belongs to one thread, but all threads may call stk_pack_read().
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
#define STK_PACKS_MOST 4096                       /* pack numbers are below this */
#define STK_PACK_MOST_ENTRIES ((uint64_t)1 << 22) /* an index with more entries is not ours */
#define STK_PACK_BATCH 512                        /* most entries read or added in one call */

typedef struct stk_pack {
    int number;           /* in the names of its files */
    int data_fd;          /* owned; for reading, open until the cache is closed; -1: unusable */
    int write_fd;         /* owned; for appending data while this process holds the lock; else -1 */
    int index_fd;         /* owned; the locked index; else -1 */
    uint64_t id;          /* of both heads */
    uint64_t known_bytes; /* how far the index was read */
    uint64_t tried_bytes; /* size of the index when it was found unusable */
    uint64_t index_bytes; /* sizes of the files at the last look; exact while the lock is held */
    uint64_t data_bytes;
} stk_pack;

/* Result of an attempt to get a pack to write to. */
typedef enum stk_pack_result {
    STK_PACK_OURS,
    STK_PACK_TAKEN, /* another writer has it, or it is not usable: try the next number */
    STK_PACK_FAILED /* errno says why */
} stk_pack_result;

/* Initialises the struct with no file open. */
void stk_pack_clear(stk_pack *pack, int number);

/* Whether the name is a pack's file; sets its number and whether it is the index. */
bool stk_pack_parse_name(const char *name, int *number, bool *is_index);

/* Opens the data of a pack for reading and checks both heads. */
bool stk_pack_open(stk_pack *pack, int folder_fd);

/* Opens the index for reading; -1: the file is no longer that of this pack. */
int stk_pack_open_index(const stk_pack *pack, int folder_fd);

/*
 * Reads the next entries of a pack, STK_PACK_BATCH at most, and sets *count. Skips damaged entries;
 * those at the very end may be incomplete and are read again next time. Marks entries that point
 * outside of the data as gone. True: there may be more. Moves known_bytes on.
 */
bool stk_pack_read_entries(stk_pack *pack, int index_fd, stk_cache_entry *entries, size_t *count);

/* Reads from the data; fewer bytes at its end or after an error. Any thread. */
size_t stk_pack_read(const stk_pack *pack, uint8_t *bytes, size_t size, uint64_t at);

/* Locks a pack that is open for reading, so that this process can append to it. */
stk_pack_result stk_pack_take(stk_pack *pack, int folder_fd);

/* Creates the files of a new pack, or of one whose creation was interrupted. */
stk_pack_result stk_pack_make(stk_pack *pack, int folder_fd);

/*
 * Appends up to STK_PACK_BATCH pieces to the data; changes the list of pieces. False: errno says
 * why, and data_bytes how much was written.
 */
bool stk_pack_append_bytes(stk_pack *pack, struct iovec *pieces, size_t count);

/* Appends up to STK_PACK_BATCH entries, whose bytes were appended before. False: errno says why. */
bool stk_pack_append_entries(stk_pack *pack, const stk_cache_entry *entries, size_t count);

/* Cuts the data to this size, to remove bytes without entries. */
void stk_pack_cut(stk_pack *pack, uint64_t data_bytes);

/* Whether somebody removed the files that this process appends to. */
bool stk_pack_is_removed(const stk_pack *pack);

/* Unlocks the pack; it can still be read. */
void stk_pack_release(stk_pack *pack);

void stk_pack_close(stk_pack *pack);

#endif
