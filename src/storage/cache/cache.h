/*
 * cache.h - a cache that the reader and the loader fill: from a key to an object's bytes, or to a
 * decoded picture (--cache decoded).
 *
 * On disk the cache is a folder that outlives the run and that several processes fill at the same
 * time. It holds large packs, which only grow, with an index beside each (pack.h has the layout).
 * Every read is checked against its checksum: a kill, a power cut or a bad disk costs a miss and
 * never gives a wrong byte. A full cache keeps what it has: with a random order over more objects
 * than fit, replacing one object by another only destroys hits. A cache never makes a run fail: if
 * writing becomes impossible, the cache serves what it has and says so once
 * (stk_cache_take_notice()).
 *
 * The cache can also live in memory, with the same calls, without checksums, for this process only.
 *
 * The cache stores keys, but no paths or other names. Only its owner may read its files.
 *
 * Memory: about 60 bytes per object (72 MB for 1.2 million), one descriptor per pack, and the
 * objects that wait to be written. Threads: many threads may call at once; no call may begin after
 * stk_cache_close(). After a fork the child must not use the cache.
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

/* Made from the strings that identify one state of one object: location, path and version. */
typedef struct stk_cache_key {
    uint64_t high;
    uint64_t low;
} stk_cache_key;

typedef struct stk_cache_config {
    const char *folder;       /* created if missing; NULL: the cache is in memory */
    uint64_t most_bytes;      /* limit of the folder (all processes together), or of the memory */
    uint64_t keep_free_bytes; /* left free on the file system; 0 for memory */
    uint64_t queue_bytes;     /* most bytes that wait to be written; 0: 64 MiB; unused for memory */
} stk_cache_config;

typedef struct stk_cache_counters {
    uint64_t entries;    /* objects that can be read now */
    uint64_t bytes;      /* of all packs in the folder, other processes' included, or in memory */
    uint64_t most_bytes; /* from the configuration */
    uint64_t hits;       /* reads that succeeded */
    uint64_t misses;     /* calls of stk_cache_has() or _read() that returned false */
    uint64_t damaged;    /* misses because the object's bytes were wrong */
    uint64_t dropped;    /* objects not cached because the queue was full or memory was short */
    uint64_t written;    /* objects that this cache has added */
    bool full;           /* nothing is added any more: most_bytes or keep_free_bytes was reached */
    bool failed;         /* nothing is added any more: writing failed */
} stk_cache_counters;

/* The same parts in the same order give the same key on every machine; ("ab","c") is not
 * ("a","bc"). */
stk_cache_key stk_cache_key_make(const char *const *parts, size_t count);

/*
 * Opens a cache and reads its indexes, so objects of earlier runs can be read at once. Fails if the
 * folder can be neither made nor listed, or for lack of memory. A read-only folder is fine.
 */
STK_CHECKED stk_status stk_cache_open(stk_cache **cache, const stk_cache_config *config,
                                      stk_error *err);

/*
 * Writes the waiting objects, for some seconds at most, and frees the cache. Reads that hang with
 * their disk may still be under way: the last one to end frees the cache. NULL is fine.
 */
void stk_cache_close(stk_cache *cache);

/* Whether a read would probably succeed. Looks into memory only: never waits for a disk. */
bool stk_cache_has(stk_cache *cache, stk_cache_key key);

/*
 * Reads an object into a block, with one NUL after it. False: the object is not cached, or it was
 * damaged and is now forgotten, so that it can be put again. May wait for the disk.
 */
bool stk_cache_read(stk_cache *cache, stk_cache_key key, stk_bytes *bytes);

/*
 * Adds an object, unless it is cached already. Never waits: copies the bytes into a queue that a
 * thread writes to disk; the object can be read once it is written. If the queue is full, the
 * object is dropped. In memory it can be read at once.
 */
void stk_cache_put(stk_cache *cache, stk_cache_key key, const void *data, size_t size);

/*
 * Waits until all objects put so far are written or dropped, for some seconds at most. If the disk
 * hangs, later calls do not wait until it writes again.
 */
void stk_cache_flush(stk_cache *cache);

void stk_cache_stats(stk_cache *cache, stk_cache_counters *counters);

/*
 * True once, after the cache stopped adding objects by itself: full, no space on the disk, or a
 * write failed. `buf` then holds one sentence for people. Cached objects are still served.
 */
bool stk_cache_take_notice(stk_cache *cache, char *buf, size_t size);

#endif
