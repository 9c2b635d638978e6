/* cache.c - the calls of cache.h: makes keys, looks objects up, counts hits; the kind of cache does
 * the rest. */
#include "storage/cache/cache.h"

#include <stdio.h>
#include <string.h>

#include "base/numbers/checksum.h"
#include "storage/cache/kind.h"

/* Seeds of the two halves of a key: any two different numbers. */
#define SEED_HIGH 0x7374302D68696768ull
#define SEED_LOW 0x7374312D6C6F7721ull

/* Each part's checksum includes its length, so ("ab","c") and ("a","bc") give different keys. */
stk_cache_key stk_cache_key_make(const char *const *parts, size_t count) {
    stk_cache_key key = {SEED_HIGH, SEED_LOW};
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(parts[i]);
        key.high = stk_checksum_seeded(parts[i], length, key.high);
        key.low = stk_checksum_seeded(parts[i], length, key.low);
    }
    return key;
}

stk_status stk_cache_open(stk_cache **cache, const stk_cache_config *config, stk_error *err) {
    const stk_cache_kind *kind = config->folder != NULL ? &stk_cache_on_disk : &stk_cache_in_memory;
    return kind->open(cache, config, err);
}

void stk_cache_close(stk_cache *cache) {
    if (cache != NULL) {
        cache->kind->close(cache);
        stk_cache_drop(cache);
    }
}

static void count_miss(stk_cache *cache) {
    cache->counters.misses++;
    cache->kind->missed(cache);
}

bool stk_cache_has(stk_cache *cache, stk_cache_key key) {
    pthread_mutex_lock(&cache->lock);
    bool known = stk_cache_knows(cache, key);
    if (!known) {
        count_miss(cache);
    }
    pthread_mutex_unlock(&cache->lock);
    return known;
}

/* Turns a counted hit into a miss; a damaged object is not offered again. */
static void take_back(stk_cache *cache, const stk_cache_entry *read, bool damaged) {
    pthread_mutex_lock(&cache->lock);
    cache->counters.hits--;
    cache->counters.misses++;
    if (damaged) {
        cache->counters.damaged++;
        stk_cache_entry *entry = stk_cache_table_find(&cache->table, read->key);
        /* Another copy, which came meanwhile, stays in the table. */
        if (entry != NULL && entry->pack == read->pack && entry->at == read->at) {
            stk_cache_table_forget(&cache->table, entry);
        }
    }
    pthread_mutex_unlock(&cache->lock);
}

bool stk_cache_read(stk_cache *cache, stk_cache_key key, stk_bytes *bytes) {
    stk_cache_entry read;
    bytes->size = 0;
    pthread_mutex_lock(&cache->lock);
    const stk_cache_entry *entry = stk_cache_table_find(&cache->table, key);
    bool known = entry != NULL && !entry->gone;
    if (known) {
        read = *entry;
        cache->counters.hits++;
        stk_cache_hold(cache);
    } else {
        count_miss(cache);
    }
    pthread_mutex_unlock(&cache->lock);
    if (!known) {
        return false;
    }
    bool room = stk_bytes_reserve(bytes, (size_t)read.length + 1);
    bool right = room && cache->kind->fetch(cache, &read, bytes->data);
    if (right) {
        bytes->size = read.length;
        bytes->data[read.length] = '\0';
    } else {
        take_back(cache, &read, room);
    }
    stk_cache_drop(cache);
    return right;
}

void stk_cache_put(stk_cache *cache, stk_cache_key key, const void *data, size_t size) {
    cache->kind->put(cache, key, data, size);
}

void stk_cache_flush(stk_cache *cache) {
    cache->kind->flush(cache);
}

void stk_cache_stats(stk_cache *cache, stk_cache_counters *counters) {
    pthread_mutex_lock(&cache->lock);
    *counters = cache->counters;
    counters->entries = cache->table.count - cache->table.gone;
    pthread_mutex_unlock(&cache->lock);
}

bool stk_cache_take_notice(stk_cache *cache, char *buf, size_t size) {
    pthread_mutex_lock(&cache->lock);
    bool taken = cache->has_notice;
    if (taken) {
        snprintf(buf, size, "%s", cache->notice);
    }
    cache->has_notice = false;
    pthread_mutex_unlock(&cache->lock);
    return taken;
}
