/* arena.c - first fit: the largest buffer first, at the lowest free offset. */
#include "engine/arena.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"

static int by_size(const void *a, const void *b) {
    const stk_arena_item *x = *(const stk_arena_item *const *)a;
    const stk_arena_item *y = *(const stk_arena_item *const *)b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return x < y ? -1 : x > y; /* the same places on every machine */
}

/*
 * Puts an item at the lowest offset that no placed item with an overlapping life covers. `placed`
 * is in the order of offsets and takes the new one in.
 */
static void put(stk_arena_item *item, stk_arena_item **placed, size_t count) {
    size_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        const stk_arena_item *other = placed[i];
        if (other->birth > item->death || item->birth > other->death) {
            continue;
        }
        if (other->offset >= offset + item->bytes) {
            break;
        }
        size_t end = other->offset + other->bytes;
        offset = end > offset ? end : offset;
    }
    size_t at = count;
    while (at > 0 && placed[at - 1]->offset > offset) {
        placed[at] = placed[at - 1];
        at--;
    }
    item->offset = offset;
    placed[at] = item;
}

stk_status stk_arena_place(stk_arena_item *items, size_t count, size_t align, size_t *bytes,
                           stk_error *err) {
    stk_arena_item **order = stk_mem_raw(count, sizeof(stk_arena_item *));
    stk_arena_item **placed = stk_mem_raw(count, sizeof(stk_arena_item *));
    *bytes = 0;
    if (order == NULL || placed == NULL) {
        stk_mem_free(order);
        stk_mem_free(placed);
        return STK_FAIL_MEMORY(err, "the memory layout");
    }
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++) {
        items[i].bytes = (items[i].bytes + align - 1) / align * align;
        if (items[i].bytes > 0) {
            order[wanted++] = &items[i];
        }
    }
    qsort(order, wanted, sizeof(stk_arena_item *), by_size);
    for (size_t i = 0; i < wanted; i++) {
        put(order[i], placed, i);
        size_t end = order[i]->offset + order[i]->bytes;
        *bytes = end > *bytes ? end : *bytes;
    }
    stk_mem_free(order);
    stk_mem_free(placed);
    return STK_OK;
}
