/*
 * table.h - from the key of an object to the position of its bytes; kept in memory.
 *
 * Entries lie in chunks that never move, and a table with open addressing points to them: 40 bytes
 * per entry and 11 to 21 for its share of the table. Entries are never removed; an entry whose
 * bytes were found damaged is marked as gone, and the next copy of the object fills it again.
 *
 * Threads: one at a time; the caller holds the lock.
 */
#ifndef STK_STORAGE_CACHE_TABLE_H
#define STK_STORAGE_CACHE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/cache/cache.h"

typedef struct stk_cache_entry {
    stk_cache_key key;
    uint64_t checksum; /* of the bytes; unused in memory */
    uint64_t at; /* where the bytes begin in the pack's data; in memory the address of the block */
    uint32_t length;    /* in bytes */
    uint16_t pack;      /* the pack's number; unused in memory */
    uint8_t generation; /* how often the object was rewritten because it was damaged */
    bool gone;          /* damaged: must not be read */
} stk_cache_entry;

typedef struct stk_cache_table {
    uint64_t *slots; /* owned; 0 is free, else 32 bits of the key and the entry's number plus 1 */
    size_t capacity; /* of slots: a power of two, or 0 */
    stk_cache_entry **chunks; /* owned, as are the chunks */
    size_t chunk_capacity;    /* of the list of chunks */
    size_t count;             /* entries, including those that are gone */
    size_t gone;              /* entries that are gone */
} stk_cache_table;

/* Makes slots for `more` further entries, so that adding them need not grow the table. */
STK_CHECKED bool stk_cache_table_reserve(stk_cache_table *table, size_t more);

/* The entry of a key, even if it is gone, or NULL. Valid until the table is freed. */
stk_cache_entry *stk_cache_table_find(const stk_cache_table *table, stk_cache_key key);

/* Entry number i below table->count, in the order of adding. */
stk_cache_entry *stk_cache_table_at(const stk_cache_table *table, size_t i);

/*
 * Adds an entry. Of two readable copies of one object, the later generation stays, or the first one
 * if the generations are equal. An entry that is gone is added too, so that a new copy gets a later
 * generation. False: no memory.
 */
STK_CHECKED bool stk_cache_table_add(stk_cache_table *table, const stk_cache_entry *entry);

/* Marks an entry of the table as damaged. */
void stk_cache_table_forget(stk_cache_table *table, stk_cache_entry *entry);

void stk_cache_table_free(stk_cache_table *table);

#endif
