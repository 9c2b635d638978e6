/*
 * join_back.cu - backward of join.cu, where two gradients of a tensor join: computes the gradient
 * through a 1 by 1 convolution, adds it to the other gradient, applies the mask of the ReLU, and
 * takes the sums for the norm in front of the ReLU.
 *
 *     dz = mask * (dy times w + old)           (rows, K), rounded to T
 *     sums of dz and of dz * (x - mean)        (2, K), where x is the input of the norm
 *
 * A row is a pixel. K is the number of channels of the tensor, N the number of filters of the
 * convolution: dy is (rows, N), w (N, K). With OTHER, the norm of `other` was added in front of the
 * ReLU, and the sums of dz * (other - other mean) are taken, too. With few channels memory
 * bandwidth limits the time, and separate kernels would read and write the gradient several times.
 * This kernel does all of it in one pass over the rows.
 *
 * blockIdx.y selects COLUMNS of the K channels. A block computes every gridDim.x-th tile of ROWS
 * rows, from the last tile to the first: the end of dy was written last and is likely still in the
 * cache, and so will be the beginning of dz for the kernel that reads dz next. The inputs of a tile
 * are copied to shared memory ahead of their use; there are STAGES buffers.
 *
 * A warp has 32 channels of all rows of a tile; their weights stay in its registers. The columns of
 * the products may be any channels: they are assigned so that a lane gets 8 consecutive channels of
 * a row, a piece of 16 bytes. So each thread copies those pieces of old and x that it will read,
 * and stores whole pieces of dz. The sums of its 8 channels stay in registers until the end and
 * then go to `partial`. join_back_finalise adds up the sums of all blocks, in the order of the
 * blocks: the same bits every time.
 *
 * Defines (-D) of join_back:
 *   N         filters: a multiple of 16
 *   K         channels
 *   COLUMNS   channels of a block, and its threads: a divisor of K and a multiple of 128
 *   ROWS      rows of a tile: a multiple of 16
 *   STAGES    buffers for tiles: at least 2
 *   BLOCKS    least number of blocks that a multiprocessor should hold
 *   OTHER     1: the norm of a second tensor was added in front of the ReLU
 * Defines of join_back_finalise: K; OTHER; QUADS: groups of four channels of a block; REDUCERS:
 * threads that share a quad.
 */
#include "tiles.cuh"

#define SUMS (2 + OTHER) /* sums of a channel */

#ifdef K_join_back

#define THREADS COLUMNS
#define PIECES (N / LANES) /* pieces of a row of dy */
#define STEPS (N / 16)
#define SHARES (ROWS / 8) /* pieces of a tile that a thread has */

/* Where old, x (then `other`) and the mask of a tile begin in its buffer, after dy; in pieces. */
#define OLD_AT (ROWS * APART(PIECES))
#define X_AT (OLD_AT + SHARES * THREADS)
#define MASK_AT (X_AT + (1 + OTHER) * SHARES * THREADS)
#define STAGE (MASK_AT + ROWS * COLUMNS / 128)

/* The thread's first channel. */
DEVICE u32 own_channel(void) {
    return blockIdx.y * COLUMNS + threadIdx.x / 32 * 32 + threadIdx.x % 4 * LANES;
}

/* The thread's first row in a tile; it has every eighth row from there on. */
DEVICE u32 own_row(void) {
    return threadIdx.x % 32 / 4;
}

/*
 * Loads the warp's weights in the order of add_product(). Column j of product i is the warp's
 * channel 4 * j + i. A lane loads 4 channels of two rows of w and interleaves the rows.
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

/* Begins to copy the inputs of a tile; zeros for rows past the end. */
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

/* Reads a piece that this thread copied. */
DEVICE lanes own_piece(const uint4 *p) {
    packed x;
    x.a = *p;
    return unpack(x);
}

typedef struct totals {
    lanes sum;
    lanes mean, product;
    lanes other_mean, other_product; /* only with OTHER */
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

/* Applies the mask to a piece of a row, stores it where `wanted`, and adds it to the sums. */
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

/* Computes dz for 16 rows of a tile, from row `top` of it on. Rows past the end are zeros. */
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

/* Adds up over the 8 lanes that have the same channels; the first of them writes it. */
DEVICE void put_sums(lanes sums, float *to) {
    UNROLL
    for (int i = 0; i < LANES; i++) {
        sums.v[i] = add_eight(sums.v[i]);
    }
    if (threadIdx.x % 32 < 4) {
        store_floats(to + own_channel(), sums);
    }
}

/* dz may be the same memory as old. Shared memory: STAGES buffers of a tile's inputs. */
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
        /* After this barrier the tile is complete, and no warp reads the previous tile any more,
         * whose buffer the next copy overwrites. */
        __syncthreads();
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
 * Adds up the sums of all blocks in float64. From them it computes the gradients of the norm's
 * weight and bias, and its `back`; with OTHER also those of the second norm. A block has 4 * QUADS
 * channels; REDUCERS threads share a quad.
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
