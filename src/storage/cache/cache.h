/*
 * cache.h - a read-through cache of encoded bytes: from a key to the bytes of one object.
 *
 * On disk it is a folder that outlives the run and that several processes fill at the same time:
 * large packs, to which bytes are only ever appended, with an index beside each (pack.h has
 * the layout). What is read is checked against its checksum, so that a kill, a power cut or a bad
 * disk costs a miss and never gives a wrong byte. Once full it keeps what it has: with a random
 * order over more than fits, putting out one object for another only destroys hits. A cache never
 * makes a run fail: where nothing can be written any more, it goes on serving what it has and says
 * so once (stk_cache_take_notice).
 *
 * It can also live in memory, with the same calls, without checksums, and for this process only.
 *
 * Paths and other names do not go into it, only keys. Files are made for their owner only.
 *
 * Memory: about 60 bytes per object that is in the cache (72 MB for 1.2 million), one descriptor
 * per pack, and what waits to be written. Threads: all calls are safe from many threads at once;
 * none may begin once close has been called. A process that forks must not use the cache in the
 * child.
 */
#ifndef STK_STORAGE_CACHE_CACHE_H
#define STK_STORAGE_CACHE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/files/file.h"

/* Larger objects are not cached. */
#define STK_CACHE_OBJECT_MOST_BYTES ((uint64_t)UINT32_MAX)

typedef struct stk_cache stk_cache;

/* Made from what names one state of one object: its location, its path and its version. */
typedef struct stk_cache_key {
    uint64_t high;
    uint64_t low;
} stk_cache_key;

typedef struct stk_cache_config {
    const char *folder;       /* made when missing; NULL: in memory */
    uint64_t most_bytes;      /* that the folder, with what others put there, or the memory holds */
    uint64_t keep_free_bytes; /* of the file system, for others; 0 for memory */
    uint64_t queue_bytes;     /* most that may wait to be written; 0: 64 MiB; unused for memory */
} stk_cache_config;

typedef struct stk_cache_counters {
    uint64_t entries;    /* objects that can be read now */
    uint64_t bytes;      /* of all packs in the folder, those of others too, or in memory */
    uint64_t most_bytes; /* as configured */
    uint64_t hits;       /* reads that were served */
    uint64_t misses;     /* times that `has` or `read` answered no */
    uint64_t damaged;    /* of the misses: the object was there, but its bytes were not right */
    uint64_t dropped;    /* objects not cached because the queue was full or memory was short */
    uint64_t written;    /* objects that this cache has added */
    bool full;           /* ended because most_bytes or keep_free_bytes was reached */
    bool failed;         /* ended because writing failed */
} stk_cache_counters;

/* The same parts in the same order give the same key on every machine; ("ab","c") is not
 * ("a","bc"). */
stk_cache_key stk_cache_key_make(const char *const *parts, size_t count);

/*
 * Opens a cache and reads its indexes: what other runs have put there can be read at once. Fails
 * when the folder can be neither made nor listed, and without memory. A folder that can only be
 * read is fine.
 */
STK_CHECKED stk_status stk_cache_open(stk_cache **cache, const stk_cache_config *config,
                                      stk_error *err);

/*
 * Writes what still waits, for some seconds at most, and frees the cache. Reads may be under way,
 * hanging with their disk perhaps: they go on, and the last one frees it. NULL is fine.
 */
void stk_cache_close(stk_cache *cache);

/* Whether a read would probably succeed. Looks into memory only: never waits for a disk. */
bool stk_cache_has(stk_cache *cache, stk_cache_key key);

/*
 * Reads an object into a block, with one NUL behind it. False when it is not there, and when it is
 * damaged: then it is forgotten, so that it can be fetched and put again. May wait for the disk.
 */
bool stk_cache_read(stk_cache *cache, stk_cache_key key, stk_bytes *bytes);

/*
 * Adds an object; one that is there already stays. Never waits: the bytes are copied into a queue
 * that a thread writes to disk, and only then are they there. What does not fit into the queue is
 * not cached this time. In memory an object is there at once.
 */
void stk_cache_put(stk_cache *cache, stk_cache_key key, const void *data, size_t size);

/*
 * Waits until all that was put before is written or given up, for some seconds at most. Where the
 * disk hangs, it waits no more until something is written again.
 */
void stk_cache_flush(stk_cache *cache);

void stk_cache_stats(stk_cache *cache, stk_cache_counters *counters);

/*
 * True once, when caching ended by itself: full, no space on the disk, cannot write. Then buf holds
 * one sentence for people. What is cached is still served.
 */
bool stk_cache_take_notice(stk_cache *cache, char *buf, size_t size);

#endif
