/*
 * kind.h - inside the cache: what the kinds of cache share, and the functions in which they differ.
 *
 * There are two kinds: in memory (ram.c) and in a folder (disk.c). A kind has its own struct, which
 * begins with a stk_cache, and one table of functions.
 */
#ifndef STK_STORAGE_CACHE_KIND_H
#define STK_STORAGE_CACHE_KIND_H

#include <pthread.h>
#include <stdatomic.h>

#include "storage/cache/table.h"

typedef struct stk_cache_kind {
    /* Allocates the kind's struct and calls stk_cache_begin() on it. */
    stk_status (*open)(stk_cache **cache, const stk_cache_config *config, stk_error *err);
    /* Ends the kind's threads, in bounded time. */
    void (*close)(stk_cache *cache);
    /* Frees the struct; called after the last user has left. */
    void (*free)(stk_cache *cache);
    /* Copies the bytes of an entry; false: they are damaged. Called without the lock. */
    bool (*fetch)(stk_cache *cache, const stk_cache_entry *entry, uint8_t *bytes);
    void (*put)(stk_cache *cache, stk_cache_key key, const void *data, size_t size);
    void (*flush)(stk_cache *cache);
    /* Called under the lock after a miss. */
    void (*missed)(stk_cache *cache);
} stk_cache_kind;

struct stk_cache {
    const stk_cache_kind *kind;
    atomic_int users;            /* the owner, the kind's threads, and reads under way */
    pthread_mutex_t lock;        /* never held during a wait for a disk */
    stk_cache_table table;       /* lock */
    stk_cache_counters counters; /* lock; `entries` is filled in on request */
    bool has_notice;             /* lock; the notice was not taken yet */
    char notice[640];            /* lock */
};

extern const stk_cache_kind stk_cache_on_disk;
extern const stk_cache_kind stk_cache_in_memory;

void stk_cache_begin(stk_cache *cache, const stk_cache_kind *kind, uint64_t most_bytes);

/*
 * Takes and drops a reference; the last drop frees the cache. A read or write that hangs with its
 * disk may end long after the cache was closed.
 */
void stk_cache_hold(stk_cache *cache);
void stk_cache_drop(stk_cache *cache);

/* Frees the table and what stk_cache_begin() made, but not the struct. */
void stk_cache_end(stk_cache *cache);

/* Under the lock: whether an object can be read. */
bool stk_cache_knows(const stk_cache *cache, stk_cache_key key);

/* Under the lock: whether the cache adds no more objects. */
bool stk_cache_has_ended(const stk_cache *cache);

/* Under the lock: stores the sentence why caching ended; only the first one stays. */
void stk_cache_note(stk_cache *cache, const char *format, ...) STK_PRINTF(2, 3);

#endif
