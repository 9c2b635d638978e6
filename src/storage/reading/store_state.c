/*
 * store_state.c - what an opened store knows without asking its location: sizes, texts, keys of the
 * cache, counters, and whether the location is lost.
 */
#include "storage/reading/store_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/files/disk.h"
#include "base/files/path.h"
#include "base/mem.h"

char *stk_store_real_name(const stk_store *store, const char *object) {
    char *name = stk_path_join(store->name, object);
    bool local = name != NULL && strstr(store->name, "://") == NULL;
    char *real = local ? stk_disk_resolve(name) : NULL;
    if (real == NULL) { /* no folder of this machine, or one that does not answer */
        return name;
    }
    stk_mem_free(name);
    return real;
}

uint64_t stk_store_cache_memory(const stk_store *s) {
    return s->cache_memory;
}

const char *stk_store_root(const stk_store *s) {
    return s->root;
}

bool stk_store_caches_decoded(const stk_store *s) {
    return s->caches_decoded;
}

void stk_store_keep(stk_store *s, const stk_read *read, const void *data, size_t size) {
    if (read->keep && s->cache != NULL) {
        stk_cache_put(s->cache, read->key, data, size);
    }
}

bool stk_store_has_archives(const stk_store *s) {
    return s->mounts != NULL;
}

bool stk_store_has_shards(const stk_store *s) {
    return s->shards != NULL;
}

bool stk_store_is_remote(const stk_store *s) {
    return s->source->remote;
}

const stk_tree_object *stk_store_known(const stk_store *s, const char *path) {
    const stk_tree_object *object =
        s->mounts != NULL ? stk_tree_find(stk_shards_tree(s->mounts), path) : NULL;
    return object != NULL || s->tree == NULL ? object : stk_tree_find(s->tree, path);
}

bool stk_store_find_member(const stk_store *s, const char *path, stk_extent *extent) {
    return (s->mounts != NULL && stk_shards_find(s->mounts, path, extent)) ||
           (s->shards != NULL && stk_shards_find(s->shards, path, extent));
}

void stk_store_place_part(const stk_store *s, stk_extent *part) {
    stk_extent whole;
    if (s->mounts == NULL || !stk_shards_find(s->mounts, part->object, &whole) || whole.zipped) {
        return;
    }
    uint64_t start = part->offset < whole.length ? part->offset : whole.length;
    uint64_t left = whole.length - start;
    *part = (stk_extent){.object = whole.object,
                         .offset = whole.offset + start,
                         .length = part->length < left ? part->length : left,
                         .unpacked = whole.unpacked};
}

uint64_t stk_store_size(const stk_store *s, const char *path) {
    const stk_tree_object *object = stk_store_known(s, path);
    return object != NULL ? object->size : 0;
}

const char *stk_store_text(const stk_store *s, const char *path) {
    return s->shards != NULL ? stk_shards_text(s->shards, path) : NULL;
}

/* The key has a member's place in its tar, which is known before the path it is shown under. */
static stk_cache_key member_key(const stk_store *s, const char *object, const char *version,
                                uint64_t offset, uint64_t size) {
    char where[64];
    snprintf(where, sizeof where, "%" PRIu64 "+%" PRIu64, offset, size);
    const char *const parts[] = {s->name, object, version, where};
    return stk_cache_key_make(parts, sizeof parts / sizeof *parts);
}

bool stk_store_key(const stk_store *s, const char *path, const char *version, stk_cache_key *key) {
    const stk_tree_object *object = stk_store_known(s, path);
    if (object == NULL && version == NULL) {
        return false;
    }
    stk_extent extent;
    if (object != NULL && stk_store_find_member(s, path, &extent)) {
        *key = member_key(s, extent.object, object->version, extent.offset, extent.length);
        return true;
    }
    char size[24] = "";
    if (object != NULL) {
        version = object->version;
        snprintf(size, sizeof size, "%" PRIu64, object->size);
    }
    const char *const parts[] = {s->name, path, version, size};
    *key = stk_cache_key_make(parts, sizeof parts / sizeof *parts);
    return true;
}

void stk_store_put_member(stk_store *s, const char *object, const char *version, uint64_t offset,
                          const void *data, size_t size) {
    if (s->cache != NULL && !s->caches_decoded) {
        stk_cache_put(s->cache, member_key(s, object, version, offset, size), data, size);
    }
}

void stk_store_flush_cache(stk_store *s) {
    if (s->cache != NULL) {
        stk_cache_flush(s->cache);
    }
}

void stk_store_stats(const stk_store *s, stk_store_counters *counters) {
    *counters = (stk_store_counters){.retries = atomic_load(&s->retries),
                                     .hedges = atomic_load(&s->hedges),
                                     .timeouts = atomic_load(&s->timeouts)};
    if (s->cache != NULL) {
        stk_cache_counters cache;
        stk_cache_stats(s->cache, &cache);
        counters->cache_hits = cache.hits;
        counters->cache_misses = cache.misses;
    }
}

bool stk_store_take_notice(stk_store *s, char *buf, size_t size) {
    return (s->cache != NULL && stk_cache_take_notice(s->cache, buf, size)) ||
           (s->source->notice != NULL && s->source->notice(s->location, buf, size)) ||
           stk_outage_notice(&s->outage, s->root, stk_clock_ns(), buf, size);
}

void stk_store_bound(stk_store *s, uint64_t bytes) {
    if (s->source->bound != NULL) {
        s->source->bound(s->location, bytes);
    }
}

bool stk_store_tells(const stk_store *s) {
    return s->options.events != NULL && s->outage.most_ns > 0;
}

void stk_store_tell_outage(stk_store *s) {
    char text[600];
    if (stk_store_tells(s) &&
        stk_outage_notice(&s->outage, s->root, stk_clock_ns(), text, sizeof text)) {
        stk_events_warning(s->options.events, "%s", text);
    }
}

void stk_store_hurry(stk_store *s) {
    if (s->source->hurry != NULL) {
        s->source->hurry(s->location);
    }
    if (s->unpacked != NULL) {
        stk_storage_local.hurry(s->unpacked);
    }
    if (s->cache_io_threads != NULL) {
        stk_io_threads_grow(s->cache_io_threads);
    }
}

int stk_store_threads(const stk_store *s) {
    int cached = s->cache_io_threads != NULL ? stk_io_threads_count(s->cache_io_threads) : 0;
    int unpacked = s->unpacked != NULL ? stk_storage_local.threads(s->unpacked) : 0;
    return s->source->threads(s->location) + cached + unpacked;
}

/* ---- a location that is gone ---- */

void stk_store_lose(stk_store *s, const stk_error *why) {
    pthread_mutex_lock(&s->lost_lock);
    if (!atomic_load(&s->is_lost)) {
        s->lost = *why;
        atomic_store(&s->is_lost, true);
    }
    pthread_mutex_unlock(&s->lost_lock);
}

bool stk_store_is_lost(stk_store *s, stk_error *why) {
    if (!atomic_load(&s->is_lost)) {
        return false;
    }
    pthread_mutex_lock(&s->lost_lock);
    *why = s->lost;
    pthread_mutex_unlock(&s->lost_lock);
    return true;
}
