/*
 * lowering.h - inside lowering/: the state of one call of stk_cuda_lower(), and its files.
 *
 * The state belongs to that call. Files are listed in their order: each uses only those before it.
 */
#ifndef STK_BACKEND_CUDA_LOWERING_LOWERING_H
#define STK_BACKEND_CUDA_LOWERING_LOWERING_H

#include "backend/cuda/lowering/lower.h"
#include "backend/cuda/tuning/tuning.h"

/*
 * A weight gradient that cannot be computed before the norm in front of its convolution has
 * computed the convolution's input again.
 */
typedef struct lower_late_weight {
    int node;    /* the convolution; -1: there is none */
    cuda_ref dy; /* T: gradient of its output */
    bool done;   /* a fused layer has computed the gradient without that input */
} lower_late_weight;

/* A value of the graph: where it lies, and who makes and reads it. */
typedef struct lower_value {
    cuda_ref data; /* T; nothing before it is made, or where it is never stored */
    /* Pictures only: without padding channels, made for the first reader that wants that. */
    cuda_ref unpadded;
    cuda_ref grad; /* T; nothing before the first reader's backward */
    int maker;     /* piece; -1: none */
    int reader;    /* the only piece that reads it; -1: none or several */
    bool again;    /* not kept for backward, which computes it again */
    /* CUDA_FUSE_NORM_CONV: the value is norm and ReLU of `raw`, whose scale and shift are in_norm,
     * T (2, channels). Nothing: a convolution cannot compute it as it loads. */
    cuda_ref raw, in_norm;
    int norm_variant;  /* of CUDA_FUSE_NORM_CONV in forward */
    int norm_decision; /* its number in the program */
    lower_late_weight late;
    /* CUDA_FUSE_JOIN_BACK: set when the data gradient that arrives last is appended. */
    bool may_join_back;
    int join_back_variant;
    cuda_site join_back;
} lower_value;

/* How a piece is computed. */
typedef enum lower_kind {
    LOWER_NODE,     /* a single node */
    LOWER_CHAIN,    /* a chain */
    LOWER_ABSORBED, /* inside a squeeze-and-excite block: the block's last piece does it */
    LOWER_SQUEEZE   /* the last piece of such a block, which computes all of it */
} lower_kind;

/* Who computes the norm and the activation of a chain. */
typedef enum lower_by {
    LOWER_BY_ITSELF,
    LOWER_BY_DEPTHWISE, /* the reader, a depthwise convolution, as it loads */
    LOWER_BY_POOL,      /* the reader, a maximum pool */
    LOWER_BY_SQUEEZE,   /* the squeeze-and-excite block that follows */
    LOWER_BY_SUM        /* the chain that adds this chain's output */
} lower_by;

/* A piece: how it is lowered, and the buffers that its forward leaves for its backward. */
typedef struct lowered_piece {
    lower_kind kind;
    lower_by by;
    cuda_norm norm;
    cuda_ref inner; /* T: what the norm reads */
    /* T: the gradient of `inner`, where the piece that applies this chain's norm computes it
     * (LOWER_BY_SUM, LOWER_BY_SQUEEZE). */
    cuda_ref dinner;
    cuda_ref stats_scratch; /* scratch for the norm's statistics; nothing: none is needed */
    bool begun;             /* norm, inner and stats_scratch have buffers */
    bool may_join;          /* CUDA_FUSE_JOIN applies to the convolution and the chain in front */
    int join_variant;       /* of CUDA_FUSE_JOIN; fused: the chain in front computes `inner` and
                               its statistics */
    bool done;              /* LOWER_BY_SUM: the backward of this chain was lowered together with
                               the chain that adds its output */
    cuda_ref mask;          /* one bit per element of the output: where ReLU passes gradients */
    cuda_ref where;         /* maximum pool: where each maximum is within its window */
    int pool;               /* LOWER_BY_POOL: the pool's piece */
    cuda_squeeze squeeze;   /* LOWER_SQUEEZE */
    int source;             /* LOWER_SQUEEZE: the chain that it reads */
} lowered_piece;

typedef struct lowering {
    cuda_program *p;
    const stk_graph *graph;
    const stk_pieces *pieces;
    const cuda_parameter_layout *layout;
    cuda_tuning_results *results; /* NULL: always the plain variants */
    int batch;
    bool train;
    cuda_stem stem;       /* how pictures are read as blocks; side 0: they are not */
    lower_value *values;  /* owned, per value of the graph */
    lowered_piece *items; /* owned, per piece */
} lowering;

static inline const stk_node *graph_node_of(const lowering *l, int node) {
    return &l->graph->nodes[node];
}

static inline const stk_piece *piece_of(const lowering *l, int piece) {
    return &l->pieces->items[piece];
}

static inline stk_shape value_shape(const lowering *l, int value) {
    return l->graph->values[value].shape;
}

static inline cuda_plane lower_plane(const lowering *l, int value) {
    stk_shape shape = value_shape(l, value);
    return (cuda_plane){l->batch, shape.height * shape.width, shape.channels};
}

static inline size_t lower_count(const lowering *l, int value) {
    return stk_shape_count(value_shape(l, value)) * (size_t)l->batch;
}

/* A buffer of T for a value. */
static inline cuda_ref lower_buffer(const lowering *l, int value) {
    return stk_cuda_buffer(l->p, lower_count(l, value) * cuda_type_bytes(l->p->type));
}

/* The activation at the end of a chain; STK_OP_COUNT: none, also for chain -1. */
static inline stk_op lower_act(const lowering *l, int chain) {
    int act = chain >= 0 ? piece_of(l, chain)->act : STK_NO_NODE;
    return act != STK_NO_NODE ? graph_node_of(l, act)->op : STK_OP_COUNT;
}

/* The chain that makes a value and leaves its norm and activation to `by`; -1: none. */
static inline int lower_left(const lowering *l, int value, lower_by by) {
    int maker = l->values[value].maker;
    bool left = maker >= 0 && l->items[maker].kind == LOWER_CHAIN && l->items[maker].by == by;
    return left ? maker : -1;
}

static inline cuda_pool lower_pool(const lowering *l, const stk_node *n) {
    return (cuda_pool){.batch = l->batch,
                       .in = value_shape(l, n->inputs[0]),
                       .out = value_shape(l, n->output),
                       .kernel = n->kernel,
                       .stride = n->stride,
                       .pad = n->pad};
}

/* ---- analysis.c ---- */

/* Fills in the stem; the fields kind, by, pool, source and squeeze of all pieces; and the fields
 * maker, reader and again of all values. */
void stk_cuda_lower_analyse(lowering *l);

/* ---- places.c: buffers of values, norms and gradients ---- */

/*
 * The gradient of a value for a piece that is going to write it: *accumulate says that another
 * piece has written it before. Nothing where the value needs no gradient.
 */
cuda_ref stk_cuda_lower_grad(lowering *l, int value, bool *accumulate);
/* A value as it is read by nodes other than convolutions: pictures have no padding channels then.
 */
cuda_ref stk_cuda_lower_data(lowering *l, int value);
/* A norm's parameters, and a new buffer for its coefficients. */
cuda_norm stk_cuda_lower_norm(const lowering *l, int node);
/* A new buffer for cuda_norm.back of a chain's norm. */
cuda_ref stk_cuda_lower_norm_back(const lowering *l, int chain);
/* Buffers for a chain's norm, its `inner`, and at least so many bytes for its statistics. A second
 * call does nothing. */
void stk_cuda_lower_begin(lowering *l, int chain, size_t stats_bytes);

/* ---- conv_ops.c: convolutions and linear layers as operations ---- */

/* The shape of a convolution or linear layer as the program has it. */
cuda_conv_shape stk_cuda_lower_conv_shape(const lowering *l, int node, cuda_conv_kind kind);
/* Whether a node is a 1x1 convolution that reads every pixel of a value. */
bool stk_cuda_lower_is_pointwise(const lowering *l, int node);
/* Whether a node's weights are trained. */
bool stk_cuda_lower_learns(const lowering *l, int node);
/* The weights that a node is computed with. Appends the operations that make them from the weights
 * of the state. */
cuda_ref stk_cuda_lower_filter(lowering *l, int node);
cuda_conv_op stk_cuda_lower_forward_op(lowering *l, int node, cuda_ref y);
/* The operation for the gradient of the input, into dx. */
cuda_conv_op stk_cuda_lower_data_op(const lowering *l, int node, cuda_ref dy, cuda_ref dx,
                                    bool accumulate);
/* The operation for the gradient of the weights, from the input x. Not for a node that reads
 * pictures. */
cuda_conv_op stk_cuda_lower_weight_op(const lowering *l, int node, cuda_ref x, cuda_ref dy);
/* Appends the gradient of the weights, of any node. */
void stk_cuda_lower_weight(lowering *l, int node, cuda_ref x, cuda_ref dy);
/* The buffer that a convolution or linear layer reads. */
cuda_ref stk_cuda_lower_input(lowering *l, int node);
/* A depthwise convolution that reads x as it is; and its gradients: of weights and input, or of the
 * weights alone where the input needs none. */
cuda_depthwise stk_cuda_lower_depthwise(const lowering *l, int node, cuda_ref x);
void stk_cuda_lower_depthwise_back(lowering *l, const cuda_depthwise *conv, int input, cuda_ref dy);

/* ---- chain_join_back.c: CUDA_FUSE_JOIN_BACK ---- */

/*
 * Decides, for the data gradient of a convolution, about CUDA_FUSE_JOIN_BACK of its input. Returns
 * false where that does not apply; otherwise join_back and join_back_variant of the value are set.
 */
bool stk_cuda_lower_join_back(lowering *l, int node, cuda_ref dy, cuda_ref dx, bool accumulate);

/* ---- conv_back.c ---- */

/* Appends the weight gradient, or leaves it to the norm in front, which computes the input again.
 */
void stk_cuda_lower_conv_weight(lowering *l, int node, cuda_ref dy);
/* Appends all gradients of a convolution or linear layer. */
void stk_cuda_lower_conv_back(lowering *l, int node, cuda_ref dy);

/* ---- chain_layer_back.c: CUDA_FUSE_LAYER_BACK ---- */

/*
 * Appends a norm's second pass and the gradients of the 1x1 convolution in front of it, plainly or
 * fused. Returns false where the fusion does not apply, and appends nothing then. `back` is the
 * plain second pass.
 */
bool stk_cuda_lower_layer_back(lowering *l, int chain, const cuda_norm_back *back);

/* ---- chain_join.c: CUDA_FUSE_JOIN ---- */

/*
 * Appends the end of a chain, with or without the convolution that reads it. Returns false where
 * the fusion does not apply, and appends nothing then. `site` has all but the convolution.
 */
bool stk_cuda_lower_join(lowering *l, int chain, cuda_site *site);

/* ---- chain.c: chains and squeeze-and-excite blocks ---- */

void stk_cuda_lower_chain(lowering *l, int piece);
void stk_cuda_lower_chain_back(lowering *l, int piece);
void stk_cuda_lower_squeeze(lowering *l, int piece);
void stk_cuda_lower_squeeze_back(lowering *l, int piece);

/* ---- nodes.c: single nodes ---- */

void stk_cuda_append_node(lowering *l, int piece);
void stk_cuda_append_node_back(lowering *l, int piece);

#endif
