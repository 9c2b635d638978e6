/*
 * kind.h - what the kinds of cache share, and what makes them different.
 *
 * A kind has its own struct, which begins with a stk_cache, and one table of functions. For files
 * of the cache only.
 */
#ifndef STK_STORAGE_CACHE_KIND_H
#define STK_STORAGE_CACHE_KIND_H

#include <pthread.h>
#include <stdatomic.h>

#include "storage/cache/table.h"

typedef struct stk_cache_kind {
    /* Makes the whole struct, with *cache set up by stk_cache_begin. */
    stk_status (*open)(stk_cache **cache, const stk_cache_config *config, stk_error *err);
    /* Ends what the kind has under way, in bounded time. */
    void (*close)(stk_cache *cache);
    /* Frees the struct, once nobody uses it any more. */
    void (*free)(stk_cache *cache);
    /* Copies the bytes of an entry; false when they are not what they were. Without the lock. */
    bool (*fetch)(stk_cache *cache, const stk_cache_entry *entry, uint8_t *bytes);
    void (*put)(stk_cache *cache, stk_cache_key key, const void *data, size_t size);
    void (*flush)(stk_cache *cache);
    /* Somebody asked for what is not there. Under the lock. */
    void (*missed)(stk_cache *cache);
} stk_cache_kind;

struct stk_cache {
    const stk_cache_kind *kind;
    atomic_int users;            /* the owner, threads of the kind, reads under way */
    pthread_mutex_t lock;        /* never held while a disk is waited for */
    stk_cache_table table;       /* lock */
    stk_cache_counters counters; /* lock; `entries` is counted when asked for */
    bool has_notice;             /* lock; not taken yet */
    char notice[640];            /* lock */
};

extern const stk_cache_kind stk_cache_on_disk;
extern const stk_cache_kind stk_cache_in_memory;

void stk_cache_begin(stk_cache *cache, const stk_cache_kind *kind, uint64_t most_bytes);

/*
 * One who uses the cache begins or ends to. The last one frees it: a read or a write that hangs
 * with its disk may come to an end long after the cache was closed.
 */
void stk_cache_hold(stk_cache *cache);
void stk_cache_drop(stk_cache *cache);

/* Frees what stk_cache_begin made and the table; not the struct. */
void stk_cache_end(stk_cache *cache);

/* Under the lock: whether an object can be read, so that it need not be put. */
bool stk_cache_knows(const stk_cache *cache, stk_cache_key key);

/* Under the lock: whether caching has ended by itself. */
bool stk_cache_has_ended(const stk_cache *cache);

/* Under the lock: the sentence that tells why caching ended; the first one stays. */
void stk_cache_note(stk_cache *cache, const char *format, ...) STK_PRINTF(2, 3);

#endif
