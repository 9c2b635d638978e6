/*
 * memory_layout.c - first the lifetime of every buffer, then its offset.
 *
 * Time is counted in executions of pieces: the forward of piece i at i, its backward at 2n-1-i.
 * Each buffer lives over an interval of that time; arena.c finds the offsets.
 */
#include "engine/memory_layout.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "engine/arena.h"

typedef struct layout_work {
    const stk_graph *graph;
    const stk_pieces *pieces;
    stk_memory_layout *layout;
    stk_arena_item
        *buffers; /* values, then gradients, then saved memory; absent ones have 0 bytes */
    size_t count;
} layout_work;

static size_t rounded(size_t bytes) {
    return (bytes + STK_MEMORY_LAYOUT_ALIGN - 1) / STK_MEMORY_LAYOUT_ALIGN *
           STK_MEMORY_LAYOUT_ALIGN;
}

static int backward_time(const layout_work *p, int piece) {
    return 2 * p->pieces->count - 1 - piece;
}

/*
 * A piece may write over its input when nobody else reads the input: no other piece, and not the
 * backward of the piece that made it (`maker`).
 */
static bool runs_in_place(const layout_work *p, const stk_piece *piece, const stk_piece *maker) {
    if (!piece->in_place || p->graph->values[piece->inputs[0]].uses != 1 || maker == NULL) {
        return false;
    }
    return piece->inputs[0] != p->graph->input && !(maker->live && maker->backward_reads_output);
}

/*
 * Which values share memory. A chain without a backward does not need its convolution's output
 * after the norm, so the chain's output is written over it.
 */
static void find_aliases(layout_work *p, const stk_piece **makers) {
    for (int v = 0; v < p->graph->value_count; v++) {
        p->layout->alias[v] = v;
    }
    for (int i = 0; i < p->pieces->count; i++) {
        const stk_piece *piece = &p->pieces->items[i];
        makers[piece->output] = piece;
        if (piece->inner != STK_NO_VALUE && !piece->live) {
            p->layout->alias[piece->inner] = piece->output;
        } else if (piece->input_count > 0 && runs_in_place(p, piece, makers[piece->inputs[0]])) {
            p->layout->alias[piece->output] = p->layout->alias[piece->inputs[0]];
        }
    }
}

static void extend(stk_arena_item *b, int time) {
    b->birth = time < b->birth ? time : b->birth;
    b->death = time > b->death ? time : b->death;
}

static bool is_skipped(const layout_work *p, int piece) {
    int node = p->pieces->items[piece].node;
    return !p->pieces->config.train && node != STK_NO_NODE &&
           p->graph->nodes[node].op == STK_OP_LOSS;
}

static size_t value_bytes(const layout_work *p, int value) {
    return rounded(stk_shape_count(p->graph->values[value].shape) * sizeof(float) *
                   p->layout->batch);
}

/* The life of every activation: from its making to its last reader, forward or backward. */
static void find_value_lives(layout_work *p) {
    for (int i = 0; i < p->pieces->count; i++) {
        const stk_piece *piece = &p->pieces->items[i];
        if (is_skipped(p, i)) {
            continue;
        }
        stk_arena_item *out = &p->buffers[p->layout->alias[piece->output]];
        out->bytes = value_bytes(p, piece->output);
        extend(out, i);
        if (piece->live && piece->backward_reads_output) {
            extend(out, backward_time(p, i));
        }
        if (piece->inner != STK_NO_VALUE && piece->live) {
            stk_arena_item *inner = &p->buffers[piece->inner];
            inner->bytes = value_bytes(p, piece->inner);
            extend(inner, i);
            extend(inner, backward_time(p, i));
        }
        for (int k = 0; k < piece->input_count; k++) {
            stk_arena_item *in = &p->buffers[p->layout->alias[piece->inputs[k]]];
            extend(in, i);
            if (piece->live && piece->backward_reads_input[k]) {
                extend(in, backward_time(p, i));
            }
        }
    }
    /* The logits are what inference gives back: they outlive the last piece. */
    extend(&p->buffers[p->layout->alias[p->graph->logits]], p->pieces->count - 1);
}

/*
 * The life of every gradient: from the backward of its last reader to that of its maker. The
 * gradient of a chain's inner value shares the memory of its output's gradient.
 */
static void find_gradient_lives(layout_work *p) {
    stk_arena_item *grads = p->buffers + p->graph->value_count;
    for (int i = 0; i < p->pieces->count; i++) {
        int value = p->pieces->items[i].output;
        if (!p->pieces->needs_grad[value] || p->pieces->last_reader[value] < 0) {
            continue;
        }
        stk_arena_item *grad = &grads[p->layout->alias[value]];
        grad->bytes = value_bytes(p, value);
        extend(grad, backward_time(p, p->pieces->last_reader[value]));
        extend(grad, backward_time(p, i));
    }
}

static void find_saved_lives(layout_work *p, stk_piece_needs_fn *needs, void *context) {
    stk_arena_item *saved = p->buffers + 2 * p->graph->value_count;
    for (int i = 0; i < p->pieces->count; i++) {
        if (is_skipped(p, i)) {
            continue;
        }
        stk_piece_needs need = needs(context, p->pieces, i, p->layout->batch);
        saved[i].bytes = rounded(need.saved_bytes);
        extend(&saved[i], i);
        if (p->pieces->items[i].live) {
            extend(&saved[i], backward_time(p, i));
        }
        size_t workspace = rounded(need.workspace_bytes);
        if (workspace > p->layout->workspace_bytes) {
            p->layout->workspace_bytes = workspace;
        }
    }
}

static stk_status place(layout_work *p, stk_error *err) {
    size_t end;
    stk_status status = stk_arena_place(p->buffers, p->count, STK_MEMORY_LAYOUT_ALIGN, &end, err);
    size_t values = (size_t)p->graph->value_count;
    for (size_t i = 0; i < p->count && status == STK_OK; i++) {
        if (p->buffers[i].bytes > 0) {
            size_t *answer = i < values       ? &p->layout->values[i]
                             : i < 2 * values ? &p->layout->grads[i - values]
                                              : &p->layout->saved[i - 2 * values];
            *answer = p->buffers[i].offset;
        }
    }
    p->layout->workspace = end;
    p->layout->arena_bytes = end + p->layout->workspace_bytes;
    return status;
}

/* Values that share the memory of others take over their offsets, gradients likewise. */
static void follow_aliases(layout_work *p) {
    const stk_pieces *pieces = p->pieces;
    for (int i = 0; i < pieces->count; i++) {
        const stk_piece *piece = &pieces->items[i];
        int value = piece->output;
        int root = p->layout->alias[value];
        p->layout->values[value] = p->layout->values[root];
        if (pieces->needs_grad[value] && pieces->last_reader[value] >= 0) {
            p->layout->grads[value] = p->layout->grads[root];
        }
        if (piece->inner != STK_NO_VALUE) {
            int inner = p->layout->alias[piece->inner];
            p->layout->values[piece->inner] = p->layout->values[inner];
            p->layout->grads[piece->inner] = p->layout->grads[value];
        }
    }
}

static stk_status begin_layout(layout_work *p, stk_error *err) {
    size_t values = (size_t)p->graph->value_count;
    size_t pieces = (size_t)p->pieces->count;
    p->count = 2 * values + pieces;
    p->buffers = stk_mem_new(p->count, sizeof *p->buffers);
    p->layout->values = stk_mem_raw(values, sizeof *p->layout->values);
    p->layout->grads = stk_mem_raw(values, sizeof *p->layout->grads);
    p->layout->saved = stk_mem_raw(pieces, sizeof *p->layout->saved);
    p->layout->alias = stk_mem_new(values, sizeof *p->layout->alias);
    const stk_piece **makers = stk_mem_new(values, sizeof *makers);
    if (p->buffers == NULL || p->layout->values == NULL || p->layout->grads == NULL ||
        p->layout->saved == NULL || p->layout->alias == NULL || makers == NULL) {
        stk_mem_free(makers);
        return STK_FAIL_MEMORY(err, "the memory layout");
    }
    memset(p->layout->values, 0xFF, values * sizeof *p->layout->values);
    memset(p->layout->grads, 0xFF, values * sizeof *p->layout->grads);
    memset(p->layout->saved, 0xFF, pieces * sizeof *p->layout->saved);
    for (size_t i = 0; i < p->count; i++) {
        p->buffers[i].birth = 2 * p->pieces->count;
        p->buffers[i].death = -1;
    }
    find_aliases(p, makers);
    stk_mem_free(makers);
    return STK_OK;
}

stk_status stk_memory_layout_make(stk_memory_layout *layout, const stk_pieces *pieces, size_t batch,
                                  stk_piece_needs_fn *needs, void *context, stk_error *err) {
    memset(layout, 0, sizeof *layout);
    layout->batch = batch;
    layout_work p = {.graph = pieces->graph, .pieces = pieces, .layout = layout};
    stk_status status = begin_layout(&p, err);
    if (status == STK_OK) {
        find_value_lives(&p);
        find_gradient_lives(&p);
        find_saved_lives(&p, needs, context);
        status = place(&p, err);
    }
    if (status == STK_OK) {
        follow_aliases(&p);
    } else {
        stk_memory_layout_free(layout);
    }
    stk_mem_free(p.buffers);
    return status;
}

void stk_memory_layout_free(stk_memory_layout *layout) {
    stk_mem_free(layout->values);
    stk_mem_free(layout->grads);
    stk_mem_free(layout->saved);
    stk_mem_free(layout->alias);
    memset(layout, 0, sizeof *layout);
}
