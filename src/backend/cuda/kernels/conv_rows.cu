/*
 * conv_rows.cu - convolutions of 1 by 1, stride 1, few channels: y (rows, N) = x (rows, K) times the
 * turned w (N, K). Perhaps x is first what a norm and a ReLU make of it, and perhaps y is summed for
 * the next norm.
 *
 * Only memory should count, so x is read once and y is written once. A block takes tiles of ROWS
 * rows by turns, the last first, since the end of x was written last and the beginning of y is read
 * next. They are copied to shared memory while those before are computed: there are STAGES places.
 *
 * A warp has 32 filters, whose weights stay in its registers, and every TALL-th 16 rows of a tile;
 * ACROSS warps stand side by side. Which column of a product is which filter is free: they are
 * dealt such that of a row a lane has 8 filters that follow each other, a piece of 16 bytes, which
 * it stores at once and whose sums stay in its registers. blocks_sum of conv_blocks.cu adds up those
 * of all blocks, in their order: the same bits every time.
 *
 * Defines: K and N, multiples of 8; ACROSS; TALL; ROWS, a multiple of 16 * TALL; STAGES, at least
 * 2; BLOCKS that a multiprocessor should hold; IN_NORM and STATS, 0 or 1.
 */
#include "tiles.cuh"

#define THREADS (32 * ACROSS * TALL)
#define STEPS CEIL(K, 16)
#define PIECES (2 * STEPS) /* of a row in shared memory: the last may be zeros */
#define FILLED (K / LANES) /* of these */
#define PRODUCTS 4         /* of 8 filters each, that a warp has */
#define WIDTH (8 * PRODUCTS)
#define STAGE (ROWS * APART(PIECES))

DEVICE u32 warp_filter(void) {
    return (blockIdx.y * ACROSS + threadIdx.x / 32 % ACROSS) * WIDTH;
}

/* The first of the lane's filters. Of 16 rows it has one of the upper eight, one of the lower. */
DEVICE u32 own_filter(void) {
    return warp_filter() + threadIdx.x % 4 * LANES;
}

DEVICE u32 own_row(void) {
    return threadIdx.x % 32 / 4;
}

/* In the order of add_product(): column j of product i is the warp's filter PRODUCTS * j + i. */
DEVICE void take_weights(u32 b[STEPS][PRODUCTS][2], const T *w) {
    u32 filter = warp_filter() + threadIdx.x % 32 / 4 * PRODUCTS;
    UNROLL
    for (int i = 0; i < PRODUCTS; i++) {
        u32 row = filter + (u32)i;
        const T *from = w + (u64)(row < N ? row : 0) * K + threadIdx.x % 4 * 2;
        UNROLL
        for (int k = 0; k < PIECES; k++) {
            b[k / 2][i][k % 2] = k < FILLED && row < N ? *(const u32 *)(from + k * LANES) : 0;
        }
    }
}

/* Everything past the last channel is zero, in all places. */
DEVICE void clear_last_piece(uint4 *stages) {
    for (int i = threadIdx.x; FILLED < PIECES && i < STAGES * ROWS; i += THREADS) {
        stages[i / ROWS * STAGE + AT(i % ROWS, FILLED, PIECES)] = fetch_nothing().a;
    }
}

typedef struct places {
    const T *x;
} places;

DEVICE void begin_tile(uint4 *stage, places p, u32 first, u32 rows) {
    copy_rows(stage, p.x, K, PIECES, ROWS, THREADS, first, rows);
}

#include "stages.cuh"

/* Those pieces of a tile that this thread copied go through norm and ReLU; rows that are not there
 * stay zero. */
DEVICE void norm_tile(uint4 *stage, const T *in_norm, u32 first, u32 rows) {
    packed scale = fetch_nothing(), shift = scale;
    UNROLL
    for (int k = 0; k < CEIL(ROWS * FILLED, THREADS); k++) {
        int i = k * THREADS + (int)threadIdx.x;
        int r = i / FILLED;
        int c = i % FILLED;
        if (k == 0 || THREADS % FILLED != 0) {
            scale = fetch(in_norm + c * LANES);
            shift = fetch(in_norm + K + c * LANES);
        }
        if (r < ROWS && first + (u32)r < rows) {
            packed x;
            x.a = stage[AT(r, c, PIECES)];
            lanes v = unpack(x), by = unpack(scale), plus = unpack(shift);
            UNROLL
            for (int j = 0; j < LANES; j++) {
                v.v[j] = activate(ACT_RELU, fmaf(by.v[j], v.v[j], plus.v[j]));
            }
            stage[AT(r, c, PIECES)] = pack(v).a;
        }
    }
}

typedef struct totals {
    lanes sum, squares;
} totals;

/* 16 rows, which are in shared memory from `from` on: `first` and the next ones. */
DEVICE void finish_rows(totals *t, const uint4 *from, u32 b[STEPS][PRODUCTS][2], T *y, u32 first,
                        u32 rows) {
    int lane = (int)threadIdx.x % 32;
    float c[PRODUCTS][4];
    UNROLL
    for (int i = 0; i < PRODUCTS; i++) {
        c[i][0] = c[i][1] = c[i][2] = c[i][3] = 0;
    }
    UNROLL
    for (int k = 0; k < STEPS; k++) {
        u32 a[4];
        matrices(a, from + AT(lane % 16, 2 * k + lane / 16, PIECES));
        UNROLL
        for (int i = 0; i < PRODUCTS; i++) {
            add_product(c[i], a, b[k][i]);
        }
    }
    packed rounded[2];
    UNROLL
    for (int half = 0; half < 2; half++) {
        lanes v;
        UNROLL
        for (int i = 0; i < LANES; i++) {
            v.v[i] = c[i % 4][2 * half + i / 4];
        }
        rounded[half] = pack(v);
    }
    UNROLL
    for (int half = 0; half < 2; half++) {
        u32 row = first + own_row() + (u32)half * 8;
        if (row < rows && own_filter() < N) {
            __stcg((uint4 *)(y + (u64)row * N + own_filter()), rounded[half].a);
        }
        lanes v = unpack(rounded[half]);
        UNROLL
        for (int i = 0; STATS && i < LANES; i++) {
            t->sum.v[i] += v.v[i];
            t->squares.v[i] = fmaf(v.v[i], v.v[i], t->squares.v[i]);
        }
    }
}

/* Adds up over the lanes that have the same filters; the first of them leaves it in `room`. */
DEVICE void leave_sums(lanes sums, float *room /* (TALL, ACROSS * WIDTH) */) {
    UNROLL
    for (int i = 0; i < LANES; i++) {
        sums.v[i] = add_eight(sums.v[i]);
    }
    if (threadIdx.x % 32 < 4) {
        u32 at = own_filter() - blockIdx.y * ACROSS * WIDTH;
        store_floats(room + threadIdx.x / 32 / ACROSS * ACROSS * WIDTH + at, sums);
    }
}

/* The sums of a block, over all its warps. */
DEVICE void put_sums(const totals *t, float *room, float *partial /* (2, N) */) {
    __syncthreads();
    leave_sums(t->sum, room);
    leave_sums(t->squares, room + TALL * ACROSS * WIDTH);
    __syncthreads();
    for (u32 i = threadIdx.x; i < 2 * ACROSS * WIDTH; i += THREADS) {
        u32 which = i / (ACROSS * WIDTH), column = i % (ACROSS * WIDTH);
        u32 filter = blockIdx.y * ACROSS * WIDTH + column;
        float sum = 0;
        UNROLL
        for (u32 k = 0; k < TALL; k++) {
            sum += room[(which * TALL + k) * ACROSS * WIDTH + column];
        }
        if (filter < N) {
            partial[which * N + filter] = sum;
        }
    }
}

/* Shared memory: STAGES tiles; at the end 2 floats for each of a warp's filters. */
KERNEL __launch_bounds__(THREADS, BLOCKS)
    conv_rows(const T *x /* (rows, K) */, const T *w /* (N, K) */,
              const T *in_norm /* scale, shift: (2, K) */, T *y /* (rows, N) */,
              float *partial /* (blocks, 2, N) */, u32 rows) {
    SHARED(uint4, stages);
    places p = {x};
    u32 tiles = CEIL(rows, ROWS);
    begin_turns(stages, p, STAGES - 1, tiles, rows);
    clear_last_piece(stages);
    u32 b[STEPS][PRODUCTS][2];
    take_weights(b, w);
    totals t;
    UNROLL
    for (int i = 0; i < LANES; i++) {
        t.sum.v[i] = t.squares.v[i] = 0;
    }
    u32 at = 0;
    for (u32 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        uint4 *stage = stages + at * STAGE;
        u32 far = tile + (STAGES - 1) * gridDim.x;
        u32 first = (tiles - 1 - tile) * ROWS;
        copy_wait(STAGES - 2);
        if (IN_NORM) {
            norm_tile(stage, in_norm, first, rows);
        }
        __syncthreads(); /* the tile is there for all, and all have done with the one before */
        if (far < tiles) {
            begin_tile(stages + (at == 0 ? STAGES - 1 : at - 1) * STAGE, p,
                       (tiles - 1 - far) * ROWS, rows);
        }
        copy_group();
        /* One at a time, since more would not fit into registers: other warps go on meanwhile. */
        NO_UNROLL
        for (u32 top = threadIdx.x / 32 / ACROSS * 16; top < ROWS; top += 16 * TALL) {
            finish_rows(&t, stage + top * APART(PIECES), b, y, first + top, rows);
        }
        at = at == STAGES - 1 ? 0 : at + 1;
    }
    if (STATS) {
        put_sums(&t, (float *)stages, partial + (u64)blockIdx.x * (2 * N));
    }
}
