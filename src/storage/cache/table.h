/*
 * table.h - from the key of an object to where its bytes lie, in memory.
 *
 * Entries stand one behind another in chunks that never move, and a table with open addressing
 * points at them: 40 bytes an entry and 11 to 21 for its share of the table. Entries are never
 * taken out; one whose bytes were found damaged is marked and filled again by the next copy.
 *
 * Threads: none of its own; whoever owns the table has the lock.
 */
#ifndef STK_STORAGE_CACHE_TABLE_H
#define STK_STORAGE_CACHE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/cache/cache.h"

typedef struct stk_cache_entry {
    stk_cache_key key;
    uint64_t checksum;  /* of the bytes; unused in memory */
    uint64_t at;        /* where they begin in the pack's data, or the address of the block */
    uint32_t length;    /* in bytes */
    uint16_t pack;      /* the pack's number; unused in memory */
    uint8_t generation; /* how often the object was written anew because it was damaged */
    bool gone;          /* damaged: not to be read */
} stk_cache_entry;

typedef struct stk_cache_table {
    uint64_t *slots; /* owned; 0 is free, else 32 bits of the key and the entry's number plus 1 */
    size_t capacity; /* of slots: a power of two, or 0 */
    stk_cache_entry **chunks; /* owned, as are the chunks */
    size_t chunk_capacity;    /* of the list of chunks */
    size_t count;             /* entries, those that are gone too */
    size_t gone;              /* of them */
} stk_cache_table;

/* Makes the slots for so many further entries, so that adding them does not stop to grow. */
STK_CHECKED bool stk_cache_table_reserve(stk_cache_table *table, size_t more);

/* The entry of a key, or NULL; gone ones too. Valid until the table is freed. */
stk_cache_entry *stk_cache_table_find(const stk_cache_table *table, stk_cache_key key);

/* Entry number i of table->count, in the order in which they came. */
stk_cache_entry *stk_cache_table_at(const stk_cache_table *table, size_t i);

/*
 * Adds an entry. Of two copies of one object that can be read the one of the later generation
 * stays, of the same generation the one that was there. An entry that is gone is added too, so that
 * a new copy gets a later generation. False without memory.
 */
STK_CHECKED bool stk_cache_table_add(stk_cache_table *table, const stk_cache_entry *entry);

/* Marks an entry of the table as damaged. */
void stk_cache_table_forget(stk_cache_table *table, stk_cache_entry *entry);

void stk_cache_table_free(stk_cache_table *table);

#endif
