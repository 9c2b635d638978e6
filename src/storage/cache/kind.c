/* kind.c - what the kinds of cache share: reference count, lookup, notice. */
#include "storage/cache/kind.h"

#include <stdarg.h>
#include <stdio.h>

void stk_cache_begin(stk_cache *cache, const stk_cache_kind *kind, uint64_t most_bytes) {
    cache->kind = kind;
    atomic_init(&cache->users, 1);
    cache->counters.most_bytes = most_bytes;
    pthread_mutex_init(&cache->lock, NULL);
}

void stk_cache_hold(stk_cache *cache) {
    atomic_fetch_add(&cache->users, 1);
}

void stk_cache_drop(stk_cache *cache) {
    if (atomic_fetch_sub(&cache->users, 1) == 1) {
        cache->kind->free(cache);
    }
}

void stk_cache_end(stk_cache *cache) {
    stk_cache_table_free(&cache->table);
    pthread_mutex_destroy(&cache->lock);
}

bool stk_cache_knows(const stk_cache *cache, stk_cache_key key) {
    const stk_cache_entry *entry = stk_cache_table_find(&cache->table, key);
    return entry != NULL && !entry->gone;
}

bool stk_cache_has_ended(const stk_cache *cache) {
    return cache->counters.full || cache->counters.failed;
}

void stk_cache_note(stk_cache *cache, const char *format, ...) {
    if (cache->notice[0] == '\0') {
        va_list values;
        va_start(values, format);
        vsnprintf(cache->notice, sizeof cache->notice, format, values);
        va_end(values);
        cache->has_notice = true;
    }
}
