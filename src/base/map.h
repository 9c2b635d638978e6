/*
 * map.h - a hash table from text to a number. Keys are borrowed and must outlive the map. Threads:
 * one writer at a time.
 */
#ifndef STK_BASE_MAP_H
#define STK_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct stk_map_slot {
    const char *key; /* NULL: free */
    size_t value;
} stk_map_slot;

typedef struct stk_map {
    stk_map_slot *slots; /* owned; open addressing, at most half full */
    size_t capacity;     /* a power of two */
    size_t count;
} stk_map; /* starts zeroed */

/* Adds a key. If the key exists already, its value stays and *added is false. False: no memory. */
bool stk_map_add(stk_map *map, const char *key, size_t value, bool *added);

/* True when the key exists; its value goes to *value (which may be NULL). */
bool stk_map_find(const stk_map *map, const char *key, size_t *value);

void stk_map_free(stk_map *map);

#endif
