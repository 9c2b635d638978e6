/* lowering.h - inside cuda_lower*.c: a lowering while it goes on. */
#ifndef STK_BACKEND_CUDA_LOWERING_LOWERING_H
#define STK_BACKEND_CUDA_LOWERING_LOWERING_H

#include "backend/cuda/lowering/lower.h"

/* Where a value is. */
typedef struct lower_value {
    cuda_ref data; /* T; nothing before it is made, or when it is never stored */
    cuda_ref
        plain;     /* the pictures only: with their three channels, made when somebody wants them */
    cuda_ref grad; /* T; nothing before the first reader's backward */
    int maker;     /* piece */
    int reader;    /* the only piece that reads it; -1: none or several */
    bool again;    /* not kept for backward: computed again there */
    /* What it is the norm and ReLU of, and scale and shift of these, of T (2, channels); nothing: a
     * convolution cannot compute it as it loads. */
    cuda_ref raw, in_norm;
    int normed_by; /* the question by whose answer its only reader does in forward; 0: it is stored
                    */
    /* The weight gradient that waits until the value has been computed again. */
    bool waits;
    int waiting; /* node */
    cuda_ref waiting_dy;
    /* There is none that waits, but there could have been: see chain_back.c. */
    bool spared;
    /* Where the last of its gradients comes from a convolution that could do more than that: what,
     * and whether it does. `partial` is nothing where there is no such convolution, and elsewhere
     * lives until the maker's norm has been settled, in either way. See chain_join_back.c. */
    cuda_join_back join;
    bool joins;
} lower_value;

/* How a piece is computed. */
typedef enum lower_kind {
    LOWER_NODE,     /* a single node */
    LOWER_CHAIN,    /* a chain */
    LOWER_ABSORBED, /* a part of a squeeze-and-excite block */
    LOWER_SQUEEZE   /* its last piece, which computes all of it */
} lower_kind;

/* Who computes the norm and the activation of a chain. */
typedef enum lower_by {
    LOWER_BY_ITSELF,
    LOWER_BY_DEPTHWISE, /* the reader, while it loads */
    LOWER_BY_POOL,
    LOWER_BY_SQUEEZE,
    LOWER_BY_SUM /* the chain that adds it */
} lower_by;

typedef struct lower_piece {
    lower_kind kind;
    lower_by by;
    cuda_norm norm;
    cuda_ref inner;  /* what the norm reads */
    cuda_ref dinner; /* its gradient, once known */
    cuda_ref stats;  /* what its statistics are computed in; nothing: they need no place */
    bool begun;      /* norm, inner and stats have their places */
    bool joined;     /* inner and statistics were computed by the chain before it */
    bool done;       /* LOWER_BY_SUM: its backward was that of the chain that adds it */
    cuda_ref mask;
    cuda_ref where;       /* of a maximum pool */
    int pool;             /* LOWER_BY_POOL: the piece that does it */
    cuda_squeeze squeeze; /* LOWER_SQUEEZE */
    int source;           /* LOWER_SQUEEZE: the chain that it reads */
} lower_piece;

/* The second pass backward of a chain's norm, as stk_cuda_norm_backward() takes it. */
typedef struct lower_pass {
    cuda_ref g;
    cuda_tail tail;
    cuda_added added;
    cuda_ref mask;
    cuda_ref dx;
} lower_pass;

typedef struct lowering {
    cuda_program *p;
    const stk_graph *graph;
    const stk_pieces *pieces;
    const cuda_layout *layout;
    cuda_choices *choices;
    int batch;
    bool train;
    cuda_stem stem; /* how pictures are read as blocks; side 0: they are not */
    lower_value *values;
    lower_piece *items;
} lowering;

static inline const stk_node *lower_node(const lowering *l, int node) {
    return &l->graph->nodes[node];
}

static inline stk_shape lower_shape(const lowering *l, int value) {
    return l->graph->values[value].shape;
}

static inline cuda_plane lower_plane(const lowering *l, int value) {
    stk_shape shape = lower_shape(l, value);
    return (cuda_plane){l->batch, shape.height * shape.width, shape.channels};
}

static inline size_t lower_count(const lowering *l, int value) {
    return stk_shape_count(lower_shape(l, value)) * (size_t)l->batch;
}

/* The chain that makes a value and leaves its norm and activation to others; -1: none. */
static inline int lower_left(const lowering *l, int value, lower_by by) {
    int maker = l->values[value].maker;
    bool left = maker >= 0 && l->items[maker].kind == LOWER_CHAIN && l->items[maker].by == by;
    return left ? maker : -1;
}

/* A buffer of T for a value. */
static inline cuda_ref lower_buffer(const lowering *l, int value) {
    return stk_cuda_buffer(l->p, lower_count(l, value) * cuda_type_bytes(l->p->type));
}

/* analysis.c: fills in the stem; kind, by, source, squeeze's nodes of pieces; reader and
 * again of values. */
void stk_cuda_lower_find(lowering *l);

/* conv_nodes.c: nodes that multiply with weights, of any kind but depthwise. */
cuda_conv_shape stk_cuda_lower_shape(const lowering *l, int node, cuda_conv_kind kind);
/* A convolution of 1 by 1 that reads every pixel of a value. */
bool stk_cuda_lower_is_pointwise(const lowering *l, int node);
cuda_ref stk_cuda_lower_filter(lowering *l, int node);
cuda_ref stk_cuda_lower_pictures(lowering *l, int value);
/* True: the sums of y and of its squares are in `stats` then, which may be nothing. */
bool stk_cuda_lower_conv(lowering *l, int node, cuda_ref y, cuda_ref stats);
void stk_cuda_lower_conv_back(lowering *l, int node, cuda_ref dy);
/* Its parts: of the weights, now or when the input has been computed again; and of the input. */
bool stk_cuda_lower_learns(const lowering *l, int node);
void stk_cuda_lower_conv_weight(lowering *l, int node, cuda_ref dy);
void stk_cuda_lower_conv_data(lowering *l, int node, cuda_ref dy, cuda_ref dx, bool accumulate);
/* normed_by as in lower_value, in backward: `data` is not written then. */
void stk_cuda_lower_waiting(lowering *l, int value, cuda_ref data, int normed_by);

/* chain.c: chains and squeeze-and-excite blocks. */
void stk_cuda_lower_chain(lowering *l, int piece);
void stk_cuda_lower_chain_back(lowering *l, int piece);
void stk_cuda_lower_squeeze(lowering *l, int piece);
void stk_cuda_lower_squeeze_back(lowering *l, int piece);
cuda_norm stk_cuda_lower_norm(const lowering *l, int node);
/* Places for a chain's norm, for what it reads and for its statistics, of at least so many bytes;
 * once. */
void stk_cuda_lower_begin(lowering *l, int piece, size_t stats_bytes);

/*
 * chain_join.c: what a chain makes of its norm and of what is added, with or without the
 * convolution that reads it; false: nothing was done, since there is no such convolution. And that
 * convolution, where it has been computed.
 */
bool stk_cuda_lower_join(lowering *l, int piece, const cuda_tail *tail, const cuda_added *added);
void stk_cuda_lower_joined(lowering *l, int piece);

/*
 * chain_back.c: the norm's second pass and the convolution's backward, in one kernel or in
 * three; false: nothing was done, since only three can. `other` is what `pass` would be had a
 * question been answered otherwise, for the sake of the memory plan; NULL: there was none.
 */
bool stk_cuda_lower_layer_back(lowering *l, int piece, const lower_pass *pass,
                               const lower_pass *other);

/*
 * chain_join_back.c: asks, once for a convolution, whether its gradient of the input is
 * computed together with what the norm in front needs: lower_value.join and .joins of the input.
 */
void stk_cuda_lower_join_back_ask(lowering *l, int node, bool accumulate);
/* Behind the first pass of the norm that has made a value: if that was not needed, since sums are
 * there already, they are made of these. */
void stk_cuda_lower_join_back_settle(lowering *l, int value);
/* What becomes of the second pass then. */
lower_pass stk_cuda_lower_join_back_pass(const lower_pass *pass);

/* nodes.c: everything else, node by node. */
void stk_cuda_lower_node(lowering *l, int piece);
void stk_cuda_lower_node_back(lowering *l, int piece);
/*
 * LOWER_BY_POOL: backward of the maximum and of the chain's norm together; returns the gradient of
 * what the norm read.
 */
cuda_ref stk_cuda_lower_pool_back(lowering *l, int chain);
/* A depthwise convolution that reads x as it is. */
cuda_depthwise stk_cuda_lower_depthwise(const lowering *l, int node, cuda_ref x);
/* Both gradients of a depthwise convolution, or that of its weights alone where no other is wanted.
 */
void stk_cuda_lower_depthwise_back(lowering *l, const cuda_depthwise *conv, int input, cuda_ref dy);

/*
 * The gradient of a value for a piece that is going to write it: *accumulate says whether another
 * one has written it before. Nothing when it needs none.
 */
cuda_ref stk_cuda_lower_grad(lowering *l, int value, bool *accumulate);

#endif
