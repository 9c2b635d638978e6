/*
 * memory_layout.h - where every activation, every gradient and the workspace lie in one arena.
 *
 * The layout is arithmetic on the graph, the batch size and the needs that the backend states for
 * each piece. It takes less than a millisecond for any batch, allocates no arena, and its size is
 * exact. Two buffers share memory when one is dead before the other is born.
 */
#ifndef STK_ENGINE_MEMORY_LAYOUT_H
#define STK_ENGINE_MEMORY_LAYOUT_H

#include "engine/pieces.h"

#define STK_MEMORY_LAYOUT_ALIGN 64 /* bytes; every offset is a multiple */

/* Memory that one piece needs beside its values; the backend says how much. */
typedef struct stk_piece_needs {
    size_t saved_bytes;     /* written by its forward, read by its backward */
    size_t workspace_bytes; /* scratch of its forward or its backward */
} stk_piece_needs;

typedef stk_piece_needs stk_piece_needs_fn(void *context, const stk_pieces *pieces, int piece,
                                           size_t batch);

typedef struct stk_memory_layout {
    size_t batch;
    size_t *values;   /* offset of each value's activation; SIZE_MAX: it has none */
    size_t *grads;    /* offset of each value's gradient; SIZE_MAX: none */
    size_t *saved;    /* offset of each piece's saved memory; SIZE_MAX: none */
    size_t workspace; /* offset of the one workspace that all pieces share */
    size_t workspace_bytes;
    size_t arena_bytes; /* size of the arena, workspace included */
    int *alias;         /* per value: the value whose memory it shares; its own number: none */
} stk_memory_layout;

/* Computes the layout; stk_memory_layout_free frees it, also after an error. A layout for inference
 * has no gradients. `pieces` is borrowed for the call. */
STK_CHECKED stk_status stk_memory_layout_make(stk_memory_layout *layout, const stk_pieces *pieces,
                                              size_t batch, stk_piece_needs_fn *needs,
                                              void *context, stk_error *err);
void stk_memory_layout_free(stk_memory_layout *layout);

#endif
