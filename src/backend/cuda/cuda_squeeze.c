/* cuda_squeeze.c - squeeze and excite: which launches, and how pixels are divided among blocks. */
#include "backend/cuda/cuda_emit.h"
#include "backend/cuda/cuda_grid.h"

#define THREADS 256u /* of a block of the small layers, about so many elsewhere */
#define MOST_SPAN 64
#define BACK_SUMS 5 /* as in the kernel */
#define ROUND 1024  /* channels at a time, as in the kernel */
#define WAYS 16     /* channels of a block of squeeze_back_weights */

/* How a pass over pixels is divided. */
typedef struct spread {
    int wide;        /* channels of a thread */
    int span, lines; /* threads across channels and across pixels */
    int tiles;       /* blocks across channels */
    int chunks;      /* and across pixels */
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

static spread spread_of(const cuda_program *p, cuda_plane plane) {
    spread s = {.wide = cuda_wide(plane.channels)};
    int groups = plane.channels / s.wide;
    s.span = span_of(groups);
    s.lines = (int)THREADS / s.span;
    s.tiles = (int)cuda_ceil((size_t)groups, (size_t)s.span);
    int wanted = (int)cuda_ceil((size_t)p->multiprocessors * 8, (size_t)(plane.batch * s.tiles));
    int most = plane.pixels / (s.lines * 8);
    s.chunks = wanted < most ? wanted : most;
    s.chunks = s.chunks < 1 ? 1 : s.chunks;
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
    stk_cuda_define(l, "C", block->plane.channels);
    stk_cuda_define(l, "PIXELS", block->plane.pixels);
    stk_cuda_define(l, "WIDE", s->wide);
    stk_cuda_define(l, "SPAN", s->span);
    stk_cuda_define(l, "LINES", s->lines);
    stk_cuda_define(l, "ACT", stk_cuda_act_code(block->act));
    return l;
}

/* One of the small layers. */
static cuda_launch *layer(cuda_program *p, const cuda_squeeze *block, const char *name,
                          unsigned grid_x, unsigned grid_y, unsigned threads, size_t floats) {
    cuda_launch *l =
        stk_cuda_launch(p, "squeeze", name, grid_x, grid_y, threads, (unsigned)floats * 4);
    stk_cuda_define(l, "C", block->plane.channels);
    stk_cuda_define(l, "PIXELS", block->plane.pixels);
    stk_cuda_define(l, "REDUCED", block->reduced);
    stk_cuda_define(l, "HACT", stk_cuda_act_code(block->hidden_act));
    return l;
}

/* The sums of a pass, (N, chunks, sums, C). */
static cuda_ref partial_of(cuda_program *p, const cuda_squeeze *block, const spread *s, int sums) {
    size_t rows = (size_t)block->plane.batch * (size_t)s->chunks * (size_t)sums;
    return stk_cuda_buffer(p, rows * (size_t)block->plane.channels * sizeof(float));
}

void stk_cuda_squeeze(cuda_program *p, const cuda_squeeze *block, cuda_ref out) {
    int batch = block->plane.batch, channels = block->plane.channels, reduced = block->reduced;
    spread s = spread_of(p, block->plane);
    cuda_ref partial = partial_of(p, block, &s, 1);

    cuda_launch *l = pass(p, block, &s, "squeeze_sum", true);
    stk_cuda_arg(l, block->x);
    stk_cuda_arg(l, block->norm->coefs);
    stk_cuda_arg(l, partial);
    stk_cuda_arg_int(l, s.chunks);

    l = layer(p, block, "squeeze_hidden", ceil_to(reduced, 8), ceil_to(batch, 4), THREADS,
              (size_t)(channels < ROUND ? channels : ROUND) * 4);
    stk_cuda_arg(l, partial);
    stk_cuda_arg(l, block->w1);
    stk_cuda_arg(l, block->b1);
    stk_cuda_arg(l, block->squeezed);
    stk_cuda_arg(l, block->hidden);
    stk_cuda_arg_int(l, batch);
    stk_cuda_arg_int(l, s.chunks);

    l = layer(p, block, "squeeze_gate", ceil_to(channels, 64), ceil_to(batch, 16), THREADS,
              (size_t)reduced * 16 + (size_t)(reduced + 1) * 64);
    stk_cuda_arg(l, block->hidden);
    stk_cuda_arg(l, block->w2);
    stk_cuda_arg(l, block->b2);
    stk_cuda_arg(l, block->gate);
    stk_cuda_arg_int(l, batch);

    l = pass(p, block, &s, "squeeze_apply", false);
    stk_cuda_arg(l, block->x);
    stk_cuda_arg(l, block->norm->coefs);
    stk_cuda_arg(l, block->gate);
    stk_cuda_arg(l, out);
    stk_cuda_arg_int(l, s.chunks);
}

/* The gradients of both layers, dsqueezed, and what follows for the norm. */
static void emit_weights(cuda_program *p, const cuda_squeeze *block, const spread *s,
                         cuda_ref partial, cuda_ref dgate, cuda_ref dhidden, cuda_ref dsqueezed) {
    size_t row = ceil_to(block->reduced, 4) * 4u;
    size_t part = row <= 128 ? 64 : row <= 256 ? 32 : 16;
    size_t floats = 2 * part * row + row * WAYS + 2 * part * WAYS;
    size_t least = (size_t)2 * WAYS * WAYS * 2; /* of the norm's sums, float64 */
    cuda_launch *l = layer(p, block, "squeeze_back_weights", ceil_to(block->plane.channels, WAYS),
                           1, WAYS * WAYS, floats > least ? floats : least);
    stk_cuda_define(l, "PART", (long)part);
    stk_cuda_arg(l, partial);
    stk_cuda_arg(l, block->gate);
    stk_cuda_arg(l, block->squeezed);
    stk_cuda_arg(l, block->hidden);
    stk_cuda_arg(l, dgate);
    stk_cuda_arg(l, dhidden);
    stk_cuda_arg(l, block->w1);
    stk_cuda_arg(l, block->dw1);
    stk_cuda_arg(l, block->db1);
    stk_cuda_arg(l, block->dw2);
    stk_cuda_arg(l, block->db2);
    stk_cuda_arg(l, dsqueezed);
    stk_cuda_arg_int(l, block->plane.batch);
    stk_cuda_arg_int(l, s->chunks);
    stk_cuda_arg(l, block->norm->coefs);
    stk_cuda_arg(l, block->norm->weight);
    stk_cuda_arg(l, block->norm->weight_grad);
    stk_cuda_arg(l, block->norm->bias_grad);
    stk_cuda_arg(l, block->norm->back);
}

void stk_cuda_squeeze_reduce(cuda_program *p, const cuda_squeeze *block, cuda_ref dp,
                             cuda_ref again, cuda_ref dsqueezed) {
    int batch = block->plane.batch, channels = block->plane.channels, reduced = block->reduced;
    spread s = spread_of(p, block->plane);
    cuda_ref partial = partial_of(p, block, &s, BACK_SUMS);
    cuda_ref dgate = stk_cuda_buffer(p, (size_t)batch * (size_t)channels * sizeof(float));
    cuda_ref dhidden = stk_cuda_buffer(p, (size_t)batch * (size_t)reduced * sizeof(float));

    cuda_launch *l = pass(p, block, &s, "squeeze_back_sum", true);
    stk_cuda_define(l, "AGAIN", cuda_is_something(again));
    stk_cuda_arg(l, block->x);
    stk_cuda_arg(l, dp);
    stk_cuda_arg(l, block->norm->coefs);
    stk_cuda_arg(l, block->gate);
    stk_cuda_arg(l, again);
    stk_cuda_arg(l, partial);
    stk_cuda_arg_int(l, s.chunks);

    size_t round = (size_t)(channels < ROUND ? channels : ROUND) * 4;
    size_t least = (size_t)THREADS * 2 * 4;
    l = layer(p, block, "squeeze_back_hidden", ceil_to(reduced, 32), ceil_to(batch, 4), 2 * THREADS,
              round > least ? round : least);
    stk_cuda_arg(l, partial);
    stk_cuda_arg(l, block->gate);
    stk_cuda_arg(l, block->w2);
    stk_cuda_arg(l, block->hidden);
    stk_cuda_arg(l, dgate);
    stk_cuda_arg(l, dhidden);
    stk_cuda_arg_int(l, batch);
    stk_cuda_arg_int(l, s.chunks);

    emit_weights(p, block, &s, partial, dgate, dhidden, dsqueezed);
}

void stk_cuda_squeeze_backward(cuda_program *p, const cuda_squeeze *block, cuda_ref dp,
                               cuda_ref dsqueezed, cuda_ref dx) {
    spread s = spread_of(p, block->plane);
    cuda_launch *l = pass(p, block, &s, "squeeze_back_apply", false);
    stk_cuda_arg(l, block->x);
    stk_cuda_arg(l, dp);
    stk_cuda_arg(l, block->norm->coefs);
    stk_cuda_arg(l, block->gate);
    stk_cuda_arg(l, dsqueezed);
    stk_cuda_arg(l, block->norm->back);
    stk_cuda_arg(l, dx);
    stk_cuda_arg_int(l, s.chunks);
}
