/*
 * squeeze.c - launches of kernels/squeeze.cu and squeeze_layers.cu: squeeze and excite, and how
 * pixels are divided among blocks.
 */
#include "backend/cuda/emit/emit.h"
#include "backend/cuda/program/grid.h"

#define THREADS 256u /* of a block of the forward layers, about so many elsewhere */
#define MOST_SPAN 64
#define FORWARD_BLOCKS 4 /* of a pass on a multiprocessor, as registers allow */
#define BACKWARD_BLOCKS 2
#define BACK_SUMS 5 /* this and the numbers below are as in the kernels */
#define ROUND 3072  /* channels at a time */
#define HIDDEN_THREADS 512
#define WAYS 32                 /* threads of a channel of squeeze_back_weights */
#define MOST_PART 128           /* samples that it has in shared memory at a time */
#define STAGE_FLOATS 24576      /* floats of these samples at most */
#define MOST_PART_CHANNELS 8192 /* of a part of squeeze_back_hidden */

/* How a pass over pixels is divided. */
typedef struct spread {
    int wide;        /* channels of a thread */
    int span, lines; /* threads across channels and across pixels */
    int tiles;       /* blocks across channels */
    int chunks;      /* blocks across pixels */
    int resident;    /* blocks that a multiprocessor should hold */
} spread;

/* A divisor that leaves no thread idle, if one is large enough. */
static int span_of(int groups) {
    if (groups <= MOST_SPAN) {
        return groups;
    }
    for (int span = MOST_SPAN; span >= MOST_SPAN / 2; span--) {
        if (groups % span == 0) {
            return span;
        }
    }
    return MOST_SPAN;
}

/*
 * As few parts of the pixels as keep nearly all multiprocessors busy until the end, when each holds
 * `resident` blocks at a time, and leave a thread 8 pixels.
 */
static int chunks_of(const cuda_program *p, cuda_plane plane, const spread *s, int resident) {
    size_t slots = (size_t)p->multiprocessors * (size_t)resident;
    int most = plane.pixels / (s->lines * 8);
    int best = 1;
    double filled = 0;
    for (int chunks = 1; chunks <= most && filled < 0.9; chunks++) {
        size_t blocks = (size_t)plane.batch * (size_t)s->tiles * (size_t)chunks;
        double share = (double)blocks / (double)(cuda_ceil(blocks, slots) * slots);
        if (share > filled) {
            best = chunks;
            filled = share;
        }
    }
    return best;
}

static spread spread_of(const cuda_program *p, cuda_plane plane, int resident) {
    spread s = {.wide = cuda_wide(plane.channels), .resident = resident};
    int groups = plane.channels / s.wide;
    s.span = span_of(groups);
    s.lines = (int)THREADS / s.span;
    s.tiles = (int)cuda_ceil((size_t)groups, (size_t)s.span);
    s.chunks = chunks_of(p, plane, &s, resident);
    return s;
}

static unsigned ceil_to(int value, int step) {
    return (unsigned)cuda_ceil((size_t)value, (size_t)step);
}

/* A pass over all pixels; the caller adds its arguments. */
static cuda_launch *pass(cuda_program *p, const cuda_squeeze *block, const spread *s,
                         const char *name, bool sums) {
    unsigned threads = (unsigned)(s->span * s->lines);
    cuda_launch *l = stk_cuda_launch(p, "squeeze", name, (unsigned)(s->tiles * s->chunks),
                                     (unsigned)block->plane.batch, threads,
                                     sums ? threads * (unsigned)s->wide * 4 : 0);
    CUDA_DEFINES(l, {"C", block->plane.channels}, {"PIXELS", block->plane.pixels},
                 {"WIDE", s->wide}, {"SPAN", s->span}, {"LINES", s->lines},
                 {"RESIDENT", s->resident}, {"ACT", stk_cuda_act_code(block->act)});
    return l;
}

/* One of the small layers. */
static cuda_launch *layer(cuda_program *p, const cuda_squeeze *block, const char *name,
                          unsigned grid_x, unsigned grid_y, unsigned threads, size_t floats) {
    cuda_launch *l =
        stk_cuda_launch(p, "squeeze_layers", name, grid_x, grid_y, threads, (unsigned)floats * 4);
    CUDA_DEFINES(l, {"C", block->plane.channels}, {"PIXELS", block->plane.pixels},
                 {"REDUCED", block->reduced}, {"HACT", stk_cuda_act_code(block->hidden_act)});
    return l;
}

/* The sums of a pass, (N, chunks, sums, C). */
static cuda_ref partial_of(cuda_program *p, const cuda_squeeze *block, const spread *s, int sums) {
    size_t rows = (size_t)block->plane.batch * (size_t)s->chunks * (size_t)sums;
    return stk_cuda_buffer(p, rows * (size_t)block->plane.channels * sizeof(float));
}

void stk_cuda_squeeze(cuda_program *p, const cuda_squeeze *block, cuda_ref out) {
    int batch = block->plane.batch, channels = block->plane.channels, reduced = block->reduced;
    spread s = spread_of(p, block->plane, FORWARD_BLOCKS);
    cuda_ref partial = partial_of(p, block, &s, 1);

    cuda_launch *l = pass(p, block, &s, "squeeze_sum", true);
    CUDA_ARGS(l, block->x, block->norm->coefs, partial, cuda_int(s.chunks));

    int each = reduced > 64 ? 2 : 1; /* hidden channels of a warp */
    l = layer(p, block, "squeeze_hidden", ceil_to(reduced, 8 * each), ceil_to(batch, 4), THREADS,
              (size_t)(channels < ROUND ? channels : ROUND) * 4);
    stk_cuda_define(l, "EACH", each);
    CUDA_ARGS(l, partial, block->w1, block->b1, block->squeezed, block->hidden, cuda_int(batch),
              cuda_int(s.chunks));

    l = layer(p, block, "squeeze_gate", ceil_to(channels, 64), ceil_to(batch, 16), THREADS,
              (size_t)reduced * 16 + (size_t)(reduced + 1) * 64);
    CUDA_ARGS(l, block->hidden, block->w2, block->b2, block->gate, cuda_int(batch));

    l = pass(p, block, &s, "squeeze_apply", false);
    CUDA_ARGS(l, block->x, block->norm->coefs, block->gate, out, cuda_int(s.chunks));
}

/* Buffers between the kernels of backward. */
typedef struct between {
    int parts;        /* of the channels, that dhidden is added up in */
    cuda_ref dgate;   /* (N, C) */
    cuda_ref totals;  /* (N, BACK_SUMS - 1, C): sums of all chunks */
    cuda_ref dhidden; /* (parts, N, R) */
} between;

static between between_of(cuda_program *p, const cuda_squeeze *block) {
    size_t batch = (size_t)block->plane.batch, channels = (size_t)block->plane.channels;
    unsigned parts = ceil_to(block->plane.channels, MOST_PART_CHANNELS);
    parts = parts < 2 ? 2 : parts;
    size_t hidden = parts * batch * (size_t)block->reduced;
    return (between){.parts = (int)parts,
                     .dgate = stk_cuda_buffer(p, batch * channels * sizeof(float)),
                     .totals =
                         stk_cuda_buffer(p, batch * (BACK_SUMS - 1) * channels * sizeof(float)),
                     .dhidden = stk_cuda_buffer(p, hidden * sizeof(float))};
}

/* Adds the sums of all chunks; then the backward of the second layer. */
static void emit_back_hidden(cuda_program *p, const cuda_squeeze *block, const spread *s,
                             cuda_ref partial, const between *b) {
    int wide = block->plane.channels % 4 == 0 ? 4 : 1;
    int wide_inner = block->reduced % 4 == 0 ? 4 : 1;
    size_t piece = ceil_to(block->plane.channels / wide, b->parts) * (size_t)wide;
    int groups = block->reduced / wide_inner;
    int across = groups < HIDDEN_THREADS ? groups : HIDDEN_THREADS;
    size_t apart = (size_t)(HIDDEN_THREADS / across * 2 * across * wide_inner);
    cuda_launch *l =
        layer(p, block, "squeeze_back_hidden", (unsigned)b->parts, ceil_to(block->plane.batch, 2),
              HIDDEN_THREADS, cuda_ceil(2 * piece, 4) * 4 + apart);
    stk_cuda_define(l, "PARTS", b->parts);
    CUDA_ARGS(l, partial, block->gate, block->w2, b->dgate, b->totals, b->dhidden,
              cuda_int(block->plane.batch), cuda_int(s->chunks));
}

/* The gradients of both layers, dsqueezed, and the sums for the norm. */
static void emit_weights(cuda_program *p, const cuda_squeeze *block, const between *b,
                         cuda_ref dsqueezed) {
    int channels = block->plane.channels;
    size_t row = ceil_to(block->reduced, 4) * 4u;
    bool many = (int)ceil_to(channels, 16) * 3 >= p->multiprocessors * 2;
    size_t ch = many ? 16 : 8, threads = WAYS * ch, part = MOST_PART;
    size_t room = cuda_block_shared(p) / sizeof(float);
    room = room < STAGE_FLOATS ? room : STAGE_FLOATS;
    while (part > 1 && 2 * part * (row + ch) + row * ch > room) {
        part /= 2;
    }
    size_t floats = 2 * part * (row + ch) + row * ch;
    size_t fours = row / 4 < 2 * WAYS ? row / 4 : 2 * WAYS;
    size_t products = 2 * (threads / (ch / 2 * fours)) * ch * row;
    size_t least = 3 * threads * 2; /* of the norm's sums, float64 */
    floats = floats > products ? floats : products;
    cuda_launch *l = layer(p, block, "squeeze_back_weights", ceil_to(channels, (int)ch), 1,
                           (unsigned)threads, floats > least ? floats : least);
    CUDA_DEFINES(l, {"CH", (long)ch}, {"PART", (long)part}, {"PARTS", b->parts});
    stk_cuda_define_stats(p, l);
    CUDA_ARGS(l, b->totals, block->gate, block->squeezed, block->hidden, b->dgate, b->dhidden,
              block->w1, block->dw1, block->db1, block->dw2, block->db2, dsqueezed,
              cuda_int(block->plane.batch), block->norm->coefs, block->norm->weight,
              block->norm->weight_grad, block->norm->bias_grad, block->norm->back);
}

void stk_cuda_squeeze_reduce(cuda_program *p, const cuda_squeeze *block, cuda_ref dp,
                             cuda_ref again, cuda_ref dsqueezed) {
    spread s = spread_of(p, block->plane, BACKWARD_BLOCKS);
    cuda_ref partial = partial_of(p, block, &s, BACK_SUMS);
    between b = between_of(p, block);

    cuda_launch *l = pass(p, block, &s, "squeeze_back_sum", true);
    stk_cuda_define(l, "AGAIN", cuda_is_something(again));
    CUDA_ARGS(l, block->x, dp, block->norm->coefs, block->gate, again, partial, cuda_int(s.chunks));

    emit_back_hidden(p, block, &s, partial, &b);
    emit_weights(p, block, &b, dsqueezed);
}

void stk_cuda_squeeze_backward(cuda_program *p, const cuda_squeeze *block, cuda_ref dp,
                               cuda_ref dsqueezed, cuda_ref dx) {
    spread s = spread_of(p, block->plane, BACKWARD_BLOCKS);
    cuda_launch *l = pass(p, block, &s, "squeeze_back_apply", false);
    CUDA_ARGS(l, block->x, dp, block->norm->coefs, block->gate, dsqueezed, block->norm->back, dx,
              cuda_int(s.chunks));
}
