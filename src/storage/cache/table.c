/*
 * table.c - entries in chunks, and slots with open addressing that point to them.
 *
 * Keys are hashes already, so any of their bits can choose a slot. Each slot stores 32 bits of the
 * key: growing then needs only the slots, not the entries, and takes milliseconds for a million.
 */
#include "storage/cache/table.h"

#include <string.h>

#include "base/mem.h"

#define CHUNK_ENTRIES ((size_t)4096)
#define FEWEST_SLOTS ((size_t)1024)
#define MOST_ENTRIES ((size_t)UINT32_MAX - 1) /* limit of the entry number in half a slot */

static uint64_t tag_of(stk_cache_key key) {
    return key.low >> 32;
}

static bool same_key(stk_cache_key a, stk_cache_key b) {
    return a.high == b.high && a.low == b.low;
}

stk_cache_entry *stk_cache_table_at(const stk_cache_table *table, size_t i) {
    return &table->chunks[i / CHUNK_ENTRIES][i % CHUNK_ENTRIES];
}

static stk_cache_entry *entry_of(const stk_cache_table *table, uint64_t slot) {
    return stk_cache_table_at(table, (size_t)((slot & UINT32_MAX) - 1));
}

/* The slot of the key's entry, or the free slot where it would go. Needs capacity > 0. */
static uint64_t *probe(const stk_cache_table *table, stk_cache_key key) {
    uint64_t tag = tag_of(key);
    size_t i = (size_t)tag & (table->capacity - 1);
    while (table->slots[i] != 0 && (table->slots[i] >> 32 != tag ||
                                    !same_key(entry_of(table, table->slots[i])->key, key))) {
        i = (i + 1) & (table->capacity - 1);
    }
    return &table->slots[i];
}

bool stk_cache_table_reserve(stk_cache_table *table, size_t more) {
    if (more > MOST_ENTRIES - table->count) {
        return false;
    }
    /* At most three quarters of the slots are used. */
    size_t capacity = table->capacity > 0 ? table->capacity : FEWEST_SLOTS;
    while (capacity / 4 * 3 < table->count + more) {
        capacity *= 2;
    }
    if (capacity == table->capacity) {
        return true;
    }
    uint64_t *slots = stk_mem_new(capacity, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    for (size_t old = 0; old < table->capacity; old++) {
        if (table->slots[old] != 0) {
            size_t i = (size_t)(table->slots[old] >> 32) & (capacity - 1);
            while (slots[i] != 0) {
                i = (i + 1) & (capacity - 1);
            }
            slots[i] = table->slots[old];
        }
    }
    stk_mem_free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
    return true;
}

stk_cache_entry *stk_cache_table_find(const stk_cache_table *table, stk_cache_key key) {
    if (table->count == 0) {
        return NULL;
    }
    uint64_t slot = *probe(table, key);
    return slot != 0 ? entry_of(table, slot) : NULL;
}

/* Adds a chunk if there is no room for one more entry. */
static bool grow(stk_cache_table *table) {
    size_t chunk = table->count / CHUNK_ENTRIES;
    if (table->count % CHUNK_ENTRIES != 0) {
        return true;
    }
    if (!STK_RESERVE(table->chunks, table->chunk_capacity, chunk + 1)) {
        return false;
    }
    table->chunks[chunk] = stk_mem_raw(CHUNK_ENTRIES, sizeof **table->chunks);
    return table->chunks[chunk] != NULL;
}

bool stk_cache_table_add(stk_cache_table *table, const stk_cache_entry *entry) {
    stk_cache_entry *known = stk_cache_table_find(table, entry->key);
    if (known != NULL) {
        if (known->gone ? entry->generation >= known->generation
                        : !entry->gone && entry->generation > known->generation) {
            table->gone += (size_t)entry->gone - (size_t)known->gone;
            *known = *entry;
        }
        return true;
    }
    if (!stk_cache_table_reserve(table, 1) || !grow(table)) {
        return false;
    }
    *stk_cache_table_at(table, table->count) = *entry;
    table->gone += entry->gone;
    table->count++;
    *probe(table, entry->key) = tag_of(entry->key) << 32 | table->count;
    return true;
}

void stk_cache_table_forget(stk_cache_table *table, stk_cache_entry *entry) {
    table->gone += !entry->gone;
    entry->gone = true;
}

void stk_cache_table_free(stk_cache_table *table) {
    for (size_t i = 0; i < table->count; i += CHUNK_ENTRIES) {
        stk_mem_free(table->chunks[i / CHUNK_ENTRIES]);
    }
    stk_mem_free(table->chunks);
    stk_mem_free(table->slots);
    memset(table, 0, sizeof *table);
}
