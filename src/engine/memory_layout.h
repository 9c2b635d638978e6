/*
 * memory_layout.h - where every activation, gradient and piece of workspace lies in one arena.
 *
 * The plan is arithmetic on the graph, the batch and what the backend says each piece needs: it can
 * be made for any batch in well under a millisecond, without allocating the arena, and its size is
 * exact. Two things share memory when one is dead before the other is born.
 */
#ifndef STK_ENGINE_MEMORY_LAYOUT_H
#define STK_ENGINE_MEMORY_LAYOUT_H

#include "engine/pieces.h"

#define STK_MEMORY_LAYOUT_ALIGN 64 /* bytes; every offset is a multiple */

/* What one piece needs beyond its values; the backend fills it in. */
typedef struct stk_piece_needs {
    size_t saved_bytes;     /* from its forward to its backward */
    size_t workspace_bytes; /* during its forward and during its backward */
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
    size_t arena_bytes; /* all of it */
    int *alias;         /* per value: the value whose memory it lies on; its own number: none */
} stk_memory_layout;

/* Inference has no gradients and no loss. The pieces are not kept. */
STK_CHECKED stk_status stk_memory_layout_make(stk_memory_layout *plan, const stk_pieces *pieces,
                                              size_t batch, stk_piece_needs_fn *needs,
                                              void *context, stk_error *err);
void stk_memory_layout_free(stk_memory_layout *plan);

#endif
