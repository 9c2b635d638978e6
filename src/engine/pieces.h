/*
 * pieces.h - a graph divided into pieces, the units that a backend computes.
 *
 * A piece is one node, or a chain of nodes that a backend computes together: a batch norm, perhaps
 * with a convolution before it and with stochastic depth, an addition and an activation after it.
 * Only a chain's output and, where it has a convolution, the convolution's output (`inner`, which
 * the norm's backward reads) are ever stored. Pieces are listed in an order in which they can be
 * computed; backward goes the other way.
 */
#ifndef STK_ENGINE_PIECES_H
#define STK_ENGINE_PIECES_H

#include "engine/backend.h"
#include "engine/graph.h"

#define STK_NO_NODE (-1)

typedef struct stk_piece {
    /* A piece of one node has it in `node`. A chain has its nodes in the fields below, STK_NO_NODE
     * for those it lacks; it always has a `norm`. */
    int node;
    int conv; /* STK_OP_CONV or STK_OP_DEPTHWISE */
    int norm;
    int drop; /* STK_OP_DROP_PATH */
    int add;
    int act; /* STK_OP_RELU, RELU6 or SILU */

    int inputs[2]; /* values; of a chain: the first node's input, then the value that is added */
    int input_count;
    int inner; /* value between conv and norm; STK_NO_VALUE without a conv */
    int output;
    bool backward_reads_input[2];
    bool backward_reads_output;
    bool in_place; /* the output may share memory with inputs[0], and so may their gradients */
    bool training; /* norms use the batch's statistics unless they are kept, dropout is active */
    bool live;     /* has a backward pass */
} stk_piece;

typedef struct stk_pieces_config {
    bool train;
    bool frozen;     /* only the head learns; all layers before it behave as in inference */
    bool kept_stats; /* training: norms use their running statistics, which stay as they are */
    bool fuse;       /* make chains */
} stk_pieces_config;

/* How an executable is cut into pieces. */
static inline stk_pieces_config stk_pieces_config_of(const stk_compile_config *config) {
    return (stk_pieces_config){.train = config->train,
                               .frozen = config->frozen,
                               .kept_stats = config->kept_stats,
                               .fuse = !config->plain};
}

typedef struct stk_pieces {
    const stk_graph *graph; /* borrowed */
    stk_pieces_config config;
    stk_piece *items; /* owned */
    int count;
    bool *needs_grad; /* per value, owned: it depends on a parameter that learns */
    int *last_reader; /* per value, owned: the last piece that reads it, and so the first one that
                         writes its gradient; -1: none */
} stk_pieces;

STK_CHECKED stk_status stk_pieces_make(stk_pieces *pieces, const stk_graph *graph,
                                       const stk_pieces_config *config, stk_error *err);
void stk_pieces_free(stk_pieces *pieces);

#endif
