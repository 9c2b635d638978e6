/*
 * arena.h - offsets in one arena for buffers that each live for a part of a step.
 *
 * Two buffers share memory when one is dead before the other is born. The largest are placed first,
 * each at the lowest offset that is free during its whole life; with the nested lives of training
 * this comes within a few per cent of the least possible.
 */
#ifndef STK_ENGINE_ARENA_H
#define STK_ENGINE_ARENA_H

#include <stddef.h>

#include <stoker/status.h>

typedef struct stk_arena_item {
    size_t bytes;  /* 0: the buffer needs no memory */
    int birth;     /* first time of use */
    int death;     /* last time of use, included */
    size_t offset; /* the answer; a multiple of the alignment */
} stk_arena_item;

/* Finds all offsets. Sizes are rounded up to `align`, a power of two; *bytes is the arena's size.
 */
STK_CHECKED stk_status stk_arena_place(stk_arena_item *items, size_t count, size_t align,
                                       size_t *bytes, stk_error *err);

#endif
