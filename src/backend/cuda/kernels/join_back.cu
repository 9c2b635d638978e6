/*
 * join_back.cu - where two gradients of a value join: that of a convolution of 1 by 1 is computed,
 * added to the other, taken through the ReLU in front, and summed for the norm in front of that.
 *
 * A value is rows of K channels, of which the convolution makes N. With few channels only
 * memory counts, and a convolution that adds, a pass that sums and one that masks read and write the
 * gradient again and again. Here, in one pass over all rows:
 *
 *     dz  = mask * (dy W + old)                    (rows, K), rounded to T
 *     sums of dz and of dz * (x - mean)            (K), where x is what the norm read
 *
 * With OTHER a second norm is added in front of the ReLU, and its sums are taken, too.
 *
 * A block has COLUMNS of the K channels (blockIdx.y) and takes tiles of ROWS rows by turns, the last
 * first, since the end of dy was written last and the beginning of dz is read next. What a tile needs
 * is copied to shared memory while those before it are computed: there are STAGES places.
 *
 * A warp has 32 columns of all rows of a tile. Their weights stay in its registers. Which column of
 * the product is which channel is free: they are dealt such that of a row in the result a lane has 8
 * channels that follow each other, a piece of 16 bytes. So old and x are copied by the thread that
 * will read them, and dz is stored as it is made, by whole pieces; the sums of 8 channels stay in
 * registers until the end, when they go to `partial`. join_back_finalise adds up those of all blocks,
 * in their order: the same bits every time.
 *
 * Defines: N, a multiple of 16; K; COLUMNS, also the number of threads: a divisor of K, a multiple of
 * 128; ROWS, a multiple of 16; STAGES, at least 2; BLOCKS that a multiprocessor should hold; OTHER: 0
 * or 1.
 */
#include "tiles.cuh"

#define SUMS (2 + OTHER) /* of a channel */

#ifdef K_join_back

#define THREADS COLUMNS
#define PIECES (N / LANES) /* of a row of dy */
#define STEPS (N / 16)
#define SHARES (ROWS / 8) /* pieces that a thread has of a tile */

/* Places of a tile, in pieces. */
#define OLD_AT (ROWS * APART(PIECES))
#define X_AT (OLD_AT + SHARES * THREADS)
#define MASK_AT (X_AT + (1 + OTHER) * SHARES * THREADS)
#define STAGE (MASK_AT + ROWS * COLUMNS / 128)

/* The thread's first channel, and its first row in a tile: every eighth is its own. */
DEVICE u32 own_channel(void) {
    return blockIdx.y * COLUMNS + threadIdx.x / 32 * 32 + threadIdx.x % 4 * LANES;
}

DEVICE u32 own_row(void) {
    return threadIdx.x % 32 / 4;
}

/*
 * Weights in the order of add_product(): column j of product i is the warp's channel 4 * j + i.
 * Rows are fetched by four channels, two rows are joined.
 */
DEVICE void take_weights(u32 b[STEPS][4][2], const T *w) {
    u32 lane = threadIdx.x % 32;
    w += blockIdx.y * COLUMNS + threadIdx.x / 32 * 32 + lane / 4 * 4;
    UNROLL
    for (int k = 0; k < 2 * STEPS; k++) {
        u32 row = (u32)k * 8 + lane % 4 * 2;
        uint2 even = *(const uint2 *)(w + row * K);
        uint2 odd = *(const uint2 *)(w + (row + 1) * K);
        b[k / 2][0][k % 2] = (even.x & 0xFFFF) | odd.x << 16;
        b[k / 2][1][k % 2] = even.x >> 16 | (odd.x & 0xFFFF0000);
        b[k / 2][2][k % 2] = (even.y & 0xFFFF) | odd.y << 16;
        b[k / 2][3][k % 2] = even.y >> 16 | (odd.y & 0xFFFF0000);
    }
}

typedef struct places {
    const T *dy, *old, *x, *other;
    const u8 *mask;
} places;

DEVICE void begin_tile(uint4 *stage, places p, u32 first, u32 rows) {
    copy_rows(stage, p.dy, N, PIECES, ROWS, THREADS, first, rows);
    uint4 *mine = stage + OLD_AT + threadIdx.x;
    UNROLL
    for (int k = 0; k < SHARES; k++) {
        u32 row = first + own_row() + (u32)k * 8;
        int bytes = row < rows ? 16 : 0;
        u64 at = (u64)(row < rows ? row : 0) * K + own_channel();
        copy_begin(mine + k * THREADS, p.old + at, bytes);
        copy_begin(mine + (SHARES + k) * THREADS, p.x + at, bytes);
        if (OTHER) {
            copy_begin(mine + (2 * SHARES + k) * THREADS, p.other + at, bytes);
        }
    }
    for (u32 i = threadIdx.x; i < ROWS * COLUMNS / 128; i += THREADS) {
        u32 row = first + i / (COLUMNS / 128);
        u64 at = (u64)(row < rows ? row : 0) * (K / 8) + blockIdx.y * (COLUMNS / 8) +
                 i % (COLUMNS / 128) * 16;
        copy_begin(stage + MASK_AT + i, p.mask + at, row < rows ? 16 : 0);
    }
}

#include "stages.cuh"

/* A piece that this thread copied. */
DEVICE lanes own_piece(const uint4 *p) {
    packed x;
    x.a = *p;
    return unpack(x);
}

typedef struct totals {
    lanes sum;
    lanes mean, product;
    lanes other_mean, other_product; /* with OTHER */
} totals;

DEVICE lanes zeros(void) {
    return unpack(fetch_nothing());
}

/* product += dz * (x - mean) */
DEVICE void add_products(lanes *product, lanes dz, const uint4 *x, const lanes *mean) {
    lanes at = own_piece(x);
    UNROLL
    for (int i = 0; i < LANES; i++) {
        product->v[i] = fmaf(dz.v[i], at.v[i] - mean->v[i], product->v[i]);
    }
}

/* One row of the result: through the mask, out, and into the sums. */
DEVICE void finish_row(totals *t, lanes v, u32 bits, const uint4 *x, T *dz, int wanted) {
    UNROLL
    for (int i = 0; i < LANES; i++) {
        v.v[i] = bits >> i & 1 ? v.v[i] : 0;
    }
    packed rounded = pack(v);
    if (wanted) {
        __stcg((uint4 *)dz, rounded.a);
    }
    v = unpack(rounded);
    UNROLL
    for (int i = 0; i < LANES; i++) {
        t->sum.v[i] += v.v[i];
    }
    add_products(&t->product, v, x, &t->mean);
    if (OTHER) {
        add_products(&t->other_product, v, x + SHARES * THREADS, &t->other_mean);
    }
}

/* 16 rows of a tile. Those that are not there are zeros. */
DEVICE void finish_rows(totals *t, const uint4 *stage, u32 b[STEPS][4][2], int top, T *dz,
                        u32 first, u32 rows) {
    u32 lane = threadIdx.x % 32;
    const uint4 *mine = stage + OLD_AT + threadIdx.x + top / 8 * THREADS;
    float c[4][4];
    UNROLL
    for (int half = 0; half < 2; half++) {
        lanes old = own_piece(mine + half * THREADS);
        UNROLL
        for (int i = 0; i < LANES; i++) {
            c[i % 4][2 * half + i / 4] = old.v[i];
        }
    }
    UNROLL
    for (int k = 0; k < STEPS; k++) {
        u32 a[4];
        matrices(a, stage + AT(top + (int)lane % 16, 2 * k + (int)lane / 16, PIECES));
        UNROLL
        for (int i = 0; i < 4; i++) {
            add_product(c[i], a, b[k][i]);
        }
    }
    UNROLL
    for (int half = 0; half < 2; half++) {
        u32 r = (u32)top + own_row() + (u32)half * 8;
        lanes v;
        UNROLL
        for (int i = 0; i < LANES; i++) {
            v.v[i] = c[i % 4][2 * half + i / 4];
        }
        u32 bits =
            ((const u8 *)(stage + MASK_AT))[r * (COLUMNS / 8) + threadIdx.x / 32 * 4 + lane % 4];
        finish_row(t, v, bits, mine + (SHARES + half) * THREADS,
                   dz + (u64)(first + r) * K + own_channel(), first + r < rows);
    }
}

/* What the eight threads of the same channels have, added up; the first of them writes it. */
DEVICE void put_sums(lanes sums, float *to) {
    UNROLL
    for (int i = 0; i < LANES; i++) {
        sums.v[i] = add_eight(sums.v[i]);
    }
    if (threadIdx.x % 32 < 4) {
        store_floats(to + own_channel(), sums);
    }
}

/* dz may lie on old. */
KERNEL __launch_bounds__(THREADS, BLOCKS)
    join_back(const T *dy /* (rows, N) */, const T *w /* (N, K) */, const T *old /* (rows, K) */,
              const u8 *mask, const T *x /* (rows, K) */, const float *coefs /* (4, K) */,
              const T *other /* (rows, K) */, const float *other_coefs /* (4, K) */,
              T *dz /* (rows, K) */, float *partial /* (blocks, SUMS, K) */, u32 rows) {
    SHARED(uint4, stages);
    places p = {dy, old, x, other, mask};
    u32 tiles = CEIL(rows, ROWS);
    begin_turns(stages, p, STAGES - 1, tiles, rows);
    u32 b[STEPS][4][2];
    take_weights(b, w);
    totals t;
    t.sum = t.product = zeros();
    t.mean = load_floats(coefs + own_channel());
    if (OTHER) {
        t.other_product = zeros();
        t.other_mean = load_floats(other_coefs + own_channel());
    }
    u32 at = 0;
    for (u32 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const uint4 *stage = stages + at * STAGE;
        u32 far = tile + (STAGES - 1) * gridDim.x;
        u32 first = (tiles - 1 - tile) * ROWS;
        copy_wait(STAGES - 2);
        __syncthreads(); /* what others copied is there, and all have done with the tile before */
        if (far < tiles) {
            begin_tile(stages + (at == 0 ? STAGES - 1 : at - 1) * STAGE, p,
                       (tiles - 1 - far) * ROWS, rows);
        }
        copy_group();
        UNROLL
        for (int top = 0; top < ROWS; top += 16) {
            finish_rows(&t, stage, b, top, dz, first, rows);
        }
        at = at == STAGES - 1 ? 0 : at + 1;
    }
    partial += (u64)blockIdx.x * (SUMS * K);
    put_sums(t.sum, partial);
    put_sums(t.product, partial + K);
    if (OTHER) {
        put_sums(t.other_product, partial + 2 * K);
    }
}
#endif

#ifdef K_join_back_finalise
#define AHEAD 4
#define BLOCK_QUADS (u64)(SUMS * K / 4)
#define IN_DOUBLE 1
#include "block_sums.cuh"

/*
 * Adds up the sums of all blocks in float64 and finalises QUADS times four channels. REDUCERS
 * threads share a quad.
 */
KERNEL join_back_finalise(const float *partial /* (blocks, SUMS, K) */, const float *weight,
                        const float *coefs /* (4, K) */, float *weight_grad, float *bias_grad,
                        float *back /* (3, K) */, const float *other_weight,
                        const float *other_coefs, float *other_weight_grad, float *other_bias_grad,
                        float *other_back, int blocks, u32 rows) {
    SHARED(double, room); /* (REDUCERS, SUMS, 4 * QUADS) */
    int quad = (int)threadIdx.x % QUADS;
    int reducer = (int)threadIdx.x / QUADS;
    int first = (int)blockIdx.x * (4 * QUADS);
    UNROLL
    for (int which = 0; which < SUMS; which++) {
        const float4 *from = (const float4 *)(partial + which * K + first) + quad;
        four sum = add_share(from, reducer, blocks, 1);
        double *to = room + (reducer * SUMS + which) * (4 * QUADS) + 4 * quad;
        to[0] = sum.x, to[1] = sum.y, to[2] = sum.z, to[3] = sum.w;
    }
    __syncthreads();
    int own = (int)threadIdx.x;
    if (own < 4 * QUADS) {
        double sums[SUMS];
        UNROLL
        for (int which = 0; which < SUMS; which++) {
            sums[which] = 0;
            for (int k = 0; k < REDUCERS; k++) {
                sums[which] += room[(k * SUMS + which) * (4 * QUADS) + own];
            }
        }
        int c = first + own;
        norm_set_back(c, K, sums[0], sums[1] * coefs[K + c], rows, weight, coefs, weight_grad,
                         bias_grad, back);
        if (OTHER) {
            norm_set_back(c, K, sums[0], sums[2] * other_coefs[K + c], rows, other_weight,
                          other_coefs, other_weight_grad, other_bias_grad, other_back);
        }
    }
}
#endif
