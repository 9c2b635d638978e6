/*
 * ram.c - the cache in memory: one block per object, copied when it is put.
 *
 * Blocks do not move until the cache is closed, so they are read without the lock.
 */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/cache/kind.h"

/* Memory that an object takes besides its bytes: entry, slot, overhead of the block. */
#define OBJECT_COST_BYTES 80

static stk_status open_memory(stk_cache **cache, const stk_cache_config *config, stk_error *err) {
    stk_cache *made = stk_mem_new(1, sizeof *made);
    if (made == NULL) {
        return STK_FAIL_MEMORY(err, "the cache in memory");
    }
    stk_cache_begin(made, &stk_cache_in_memory, config->most_bytes);
    *cache = made;
    return STK_OK;
}

static void *block_of(const stk_cache_entry *entry) {
    return (void *)(uintptr_t)entry->at;
}

static void close_memory(stk_cache *cache) {
    (void)cache;
}

static void free_memory(stk_cache *cache) {
    for (size_t i = 0; i < cache->table.count; i++) {
        stk_mem_free(block_of(stk_cache_table_at(&cache->table, i)));
    }
    stk_cache_end(cache);
    stk_mem_free(cache);
}

static bool fetch(stk_cache *cache, const stk_cache_entry *entry, uint8_t *bytes) {
    (void)cache;
    memcpy(bytes, block_of(entry), entry->length);
    return true;
}

/* Under the lock: reserves memory for an object; ends caching if there is too little. */
static bool claim(stk_cache *cache, uint64_t cost) {
    stk_cache_counters *counters = &cache->counters;
    char size[32];
    if (cost <= counters->most_bytes - counters->bytes) {
        counters->bytes += cost;
        return true;
    }
    if (cost > counters->most_bytes) {
        counters->dropped++;
        return false;
    }
    counters->full = true;
    stk_cache_note(cache,
                   "the cache in memory is full (%s): it keeps what it has, and what is not in it "
                   "is read anew each time; a larger --cache-size holds more",
                   stk_format_bytes(size, sizeof size, counters->most_bytes));
    return false;
}

static void put(stk_cache *cache, stk_cache_key key, const void *data, size_t size) {
    uint64_t cost = (uint64_t)size + OBJECT_COST_BYTES;
    if (size > STK_CACHE_OBJECT_MOST_BYTES) {
        return;
    }
    pthread_mutex_lock(&cache->lock);
    bool wanted = !stk_cache_has_ended(cache) && !stk_cache_knows(cache, key) && claim(cache, cost);
    pthread_mutex_unlock(&cache->lock);
    if (!wanted) {
        return;
    }
    void *block = stk_mem_raw(size, 1);
    if (block != NULL && size > 0) {
        memcpy(block, data, size);
    }
    stk_cache_entry entry = {.key = key, .at = (uintptr_t)block, .length = (uint32_t)size};
    pthread_mutex_lock(&cache->lock);
    /* Another thread may have put the same object meanwhile. */
    bool known = stk_cache_knows(cache, key);
    bool added = block != NULL && !known && stk_cache_table_add(&cache->table, &entry);
    cache->counters.written += added;
    cache->counters.dropped += !added && !known;
    cache->counters.bytes -= added ? 0 : cost;
    pthread_mutex_unlock(&cache->lock);
    if (!added) {
        stk_mem_free(block);
    }
}

static void flush(stk_cache *cache) {
    (void)cache;
}

static void missed(stk_cache *cache) {
    (void)cache;
}

const stk_cache_kind stk_cache_in_memory = {
    .open = open_memory,
    .close = close_memory,
    .free = free_memory,
    .fetch = fetch,
    .put = put,
    .flush = flush,
    .missed = missed,
};
