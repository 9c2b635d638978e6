/*
 * conv_rows.cu - convolutions of 1 by 1, stride 1, few channels: a product of matrices.
 *
 *     y (rows, N) = in (rows, K) times the transpose of w (N, K)
 *     in = x, or with IN_NORM relu(scale * x + shift), rounded to T
 *     with STATS: sums of y and of its squares over all rows, (2, N)
 *
 * Memory bandwidth limits this kernel, so a block reads a row of x once and writes a row of y once.
 * blockIdx.y selects 32 * ACROSS filters. A block computes every gridDim.x-th tile of ROWS rows,
 * from the last tile to the first: the end of x was written last and is likely still in the cache,
 * and so will be the beginning of y for the kernel that reads y next. Tiles of x are copied to
 * shared memory ahead of their use; there are STAGES buffers.
 *
 * The warps of a block form a grid of TALL by ACROSS. A warp has 32 filters, whose weights stay in
 * its registers, and every TALL-th group of 16 rows of a tile. The columns of a product may be any
 * filters: they are assigned so that a lane gets 8 consecutive filters of a row, a piece of 16
 * bytes, which it stores at once and whose sums it keeps in registers. blocks_sum of
 * conv_blocks.cu adds up the sums of all blocks, in the order of the blocks: the same bits every
 * time.
 *
 * Defines (-D):
 *   K, N      channels and filters: multiples of 8
 *   ACROSS    warps side by side, with 32 filters each
 *   TALL      warps that share the rows of a tile
 *   ROWS      rows of a tile: a multiple of 16 * TALL
 *   STAGES    buffers for tiles of x: at least 2
 *   BLOCKS    least number of blocks that a multiprocessor should hold
 *   IN_NORM   1: norm and ReLU are applied to x
 *   STATS     1: the sums are wanted
 */
#include "tiles.cuh"

#define THREADS (32 * ACROSS * TALL)
#define STEPS CEIL(K, 16)
#define PIECES (2 * STEPS) /* pieces (8 channels, 16 bytes) of a row; the last may be zeros */
#define FILLED (K / LANES) /* pieces of a row that hold channels */
#define PRODUCTS 4         /* products of a warp, of 8 filters each */
#define WIDTH (8 * PRODUCTS)
#define STAGE (ROWS * APART(PIECES))

/* The first filter of the warp. */
DEVICE u32 warp_filter(void) {
    return (blockIdx.y * ACROSS + threadIdx.x / 32 % ACROSS) * WIDTH;
}

/* The first of the lane's 8 filters. */
DEVICE u32 own_filter(void) {
    return warp_filter() + threadIdx.x % 4 * LANES;
}

/* Of 16 rows of a product the lane has row own_row() and row own_row() + 8. */
DEVICE u32 own_row(void) {
    return threadIdx.x % 32 / 4;
}

/*
 * Loads the warp's weights in the order of add_product(). Column j of product i is the warp's
 * filter PRODUCTS * j + i.
 */
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

/* Where K is no multiple of 16, writes zeros to the piece after the last channel, in all stages. */
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

/*
 * Applies norm and ReLU in place to the pieces of a tile that this thread copied, so that no
 * barrier is needed before. Rows past the end stay zero.
 */
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

/*
 * Computes y for 16 rows, from row `first` on, stores it and adds it, as rounded to T, to the sums.
 * `from`: these rows of x in shared memory. Rows past the end are zeros and add nothing.
 */
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

/* Adds up over the 8 lanes that have the same filters; the first of them writes it to `room`. */
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

/* Adds up the sums of the warps with the same filters, and writes the sums of the block. */
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

/* Shared memory: STAGES tiles of x; at the end float (2, TALL, ACROSS * WIDTH), sums of warps. */
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
        /* After this barrier the tile is complete, and no warp reads the previous tile any more,
         * whose buffer the next copy overwrites. */
        __syncthreads();
        if (far < tiles) {
            begin_tile(stages + (at == 0 ? STAGES - 1 : at - 1) * STAGE, p,
                       (tiles - 1 - far) * ROWS, rows);
        }
        copy_group();
        /* Not unrolled: more than 16 rows at a time would not fit into registers. Other warps
         * compute while this one waits. */
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
