/* map.c - open addressing with FNV-1a. */
#include "base/map.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"

static size_t hash(const char *key) {
    uint64_t h = 0xCBF29CE484222325ull;
    for (const unsigned char *p = (const unsigned char *)key; *p != '\0'; p++) {
        h = (h ^ *p) * 0x100000001B3ull;
    }
    return (size_t)(h ^ (h >> 32));
}

/* The slot that holds the key, or the free one where it would go. capacity > 0. */
static stk_map_slot *probe(const stk_map *map, const char *key) {
    size_t i = hash(key) & (map->capacity - 1);
    while (map->slots[i].key != NULL && strcmp(map->slots[i].key, key) != 0) {
        i = (i + 1) & (map->capacity - 1);
    }
    return &map->slots[i];
}

static bool widen(stk_map *map) {
    stk_map wider = {.capacity = map->capacity > 0 ? map->capacity * 2 : 64, .count = map->count};
    wider.slots = stk_mem_new(wider.capacity, sizeof *wider.slots);
    if (wider.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].key != NULL) {
            *probe(&wider, map->slots[i].key) = map->slots[i];
        }
    }
    stk_mem_free(map->slots);
    *map = wider;
    return true;
}

bool stk_map_add(stk_map *map, const char *key, size_t value, bool *added) {
    if (map->count * 2 >= map->capacity && !widen(map)) {
        return false;
    }
    stk_map_slot *slot = probe(map, key);
    *added = slot->key == NULL;
    if (*added) {
        *slot = (stk_map_slot){key, value};
        map->count++;
    }
    return true;
}

bool stk_map_find(const stk_map *map, const char *key, size_t *value) {
    if (map->count == 0) {
        return false;
    }
    const stk_map_slot *slot = probe(map, key);
    if (slot->key != NULL && value != NULL) {
        *value = slot->value;
    }
    return slot->key != NULL;
}

void stk_map_free(stk_map *map) {
    stk_mem_free(map->slots);
    memset(map, 0, sizeof *map);
}
