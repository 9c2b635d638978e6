/*
 * join.cu - where two branches join, forward: a norm, an addition and a ReLU; the 1 by 1
 * convolution that reads their result; and the sums for the norm after it.
 *
 *     y = relu(scale * x + shift + added)     (rows, K), rounded to T, and a mask
 *     z = y times the transpose of w          (rows, N), rounded to T
 *     sums of z and of its squares            (2, N)
 *
 * A row is a pixel. K is the number of channels of x and y, N the number of filters. Bit c % 8 of
 * byte c / 8 of a row of the mask is set where y > 0. With few filters memory bandwidth limits the
 * time, and a convolution in a kernel of its own would read y again. This kernel does all of it in
 * one pass over the rows.
 *
 * A block computes every gridDim.x-th tile of ROWS rows, from the last tile to the first: the end
 * of x was written last and is likely still in the cache. For y, a thread has one piece (8
 * channels, 16 bytes) of every HIGH-th row. It copies x and the added tensor to its own part of
 * shared memory, STAGES tiles ahead. It writes its pieces of y to global memory and to a tile in
 * shared memory for the product. There are two such tiles, so that one barrier per tile is enough.
 *
 * For z, a warp has 8 * UNITS filters, whose weights stay in its registers, and all rows of the
 * tile. The columns of the products are assigned so that a lane has consecutive filters. Sums stay
 * in registers until the end and then go to `partial`. join_finalise adds up the sums of all
 * blocks, in the order of the blocks: the same bits every time.
 *
 * Defines (-D) of join:
 *   K         channels: a multiple of 64
 *   N         filters: a multiple of 8 times the number of warps
 *   THREADS   threads of a block: a multiple of K / 8
 *   ROWS      rows of a tile: a multiple of 16 and of THREADS / (K / 8)
 *   STAGES    tiles whose copies are in flight
 *   BLOCKS    least number of blocks that a multiprocessor should hold
 *   ADDED     1: `added` is added; 2: the norm of `added`, with scale and shift of added_coefs
 * Defines of join_finalise: N; WIDTH: filters of a block; REDUCERS: threads that share a filter.
 */
#ifdef K_join

#include "tiles.cuh"
#include "branch.cuh"

#define WARPS (THREADS / 32)
#define PIECES (K / LANES)
#define HIGH (THREADS / PIECES)
#define SHARES (ROWS / HIGH) /* pieces of a tile that a thread has */
#define STEPS (K / 16)
#define UNITS (N / 8 / WARPS)
#define OWN (2 * UNITS) /* consecutive filters of a lane */
#define TILE (ROWS * APART(PIECES))
#define STAGE (2 * SHARES * THREADS)

/* The piece of a row that the thread computes. */
DEVICE u32 own_piece(void) {
    return threadIdx.x % PIECES;
}

/* The row of the thread's piece number `share` of a tile. */
DEVICE u32 own_row(int share) {
    return threadIdx.x / PIECES + (u32)share * HIGH;
}

/* The first filter of the lane. */
DEVICE u32 own_filter(void) {
    return threadIdx.x / 32 * (8 * UNITS) + threadIdx.x % 4 * OWN;
}

/*
 * Loads the warp's weights in the order of add_product(). Column j of product u is the warp's
 * filter j / 2 * OWN + 2 * u + j % 2.
 */
DEVICE void take_weights(u32 b[STEPS][UNITS][2], const T *w) {
    u32 lane = threadIdx.x % 32;
    u32 filter = threadIdx.x / 32 * (8 * UNITS) + lane / 8 * OWN + lane / 4 % 2;
    w += filter * K + lane % 4 * 2;
    UNROLL
    for (int s = 0; s < STEPS; s++) {
        UNROLL
        for (int u = 0; u < UNITS; u++) {
            const T *from = w + 2 * u * K + s * 16;
            b[s][u][0] = *(const u32 *)from;
            b[s][u][1] = *(const u32 *)(from + 8);
        }
    }
}

typedef struct places {
    const T *x, *added;
} places;

/* Begins to copy the thread's pieces of x and `added`; zeros for rows past the end. */
DEVICE void begin_tile(uint4 *mine, places p, u32 first, u32 rows) {
    UNROLL
    for (int k = 0; k < SHARES; k++) {
        u32 row = first + own_row(k);
        int bytes = row < rows ? 16 : 0;
        u64 at = (u64)(row < rows ? row : 0) * K + own_piece() * LANES;
        copy_begin(mine + k * THREADS, p.x + at, bytes);
        copy_begin(mine + (SHARES + k) * THREADS, p.added + at, bytes);
    }
}

#include "stages.cuh"

/* Computes one piece of y to *y and returns its bits of the mask. */
DEVICE u32 join_piece(const forms *f, const uint4 *x, const uint4 *added, packed *y) {
    packed taken, more;
    taken.a = *x;
    more.a = *added;
    lanes v = unpack(taken);
    lanes w = unpack(more);
    u32 bits = 0;
    UNROLL
    for (int i = 0; i < LANES; i++) {
        v.v[i] = before_act(f, i, v.v[i], w.v[i], 1);
        bits |= slope(ACT_RELU, v.v[i]) != 0 ? 1u << i : 0;
        v.v[i] = activate(ACT_RELU, v.v[i]);
    }
    *y = pack(v);
    return bits;
}

/*
 * Computes and stores the thread's pieces of a tile. Rows past the end become zeros in `tile`, so
 * that they add nothing to the sums.
 */
DEVICE void join_tile(const forms *f, const uint4 *mine, uint4 *tile, T *y, u8 *mask, u32 first,
                      u32 rows) {
    UNROLL
    for (int k = 0; k < SHARES; k++) {
        u32 row = first + own_row(k);
        packed made;
        u32 bits = join_piece(f, mine + k * THREADS, mine + (SHARES + k) * THREADS, &made);
        if (row < rows) {
            __stcg((uint4 *)(y + (u64)row * K + own_piece() * LANES), made.a);
            mask[(u64)row * PIECES + own_piece()] = (u8)bits;
        } else {
            made.a.x = made.a.y = made.a.z = made.a.w = 0;
        }
        tile[AT((int)own_row(k), (int)own_piece(), PIECES)] = made.a;
    }
}

typedef struct totals {
    float sum[OWN], squares[OWN];
} totals;

/* Stores the lane's OWN numbers of a row of z where `wanted`, and adds them to the sums. */
DEVICE void finish_row(totals *t, const float *v, T *z, int wanted) {
    u32 rounded[UNITS];
    UNROLL
    for (int u = 0; u < UNITS; u++) {
        rounded[u] = down2(v[2 * u], v[2 * u + 1]);
        float low = up((T)(rounded[u] & 0xFFFF));
        float high = up((T)(rounded[u] >> 16));
        t->sum[2 * u] += low;
        t->sum[2 * u + 1] += high;
        t->squares[2 * u] = fmaf(low, low, t->squares[2 * u]);
        t->squares[2 * u + 1] = fmaf(high, high, t->squares[2 * u + 1]);
    }
    if (wanted) {
        UNROLL
        for (int u = 0; u < UNITS; u++) {
            ((u32 *)z)[u] = rounded[u];
        }
    }
}

/* Computes z for 16 rows of a tile, from row `top` of it on, with their share of the sums. */
DEVICE void finish_rows(totals *t, const uint4 *tile, u32 b[STEPS][UNITS][2], int top, T *z,
                        u32 first, u32 rows) {
    u32 lane = threadIdx.x % 32;
    float c[UNITS][4];
    UNROLL
    for (int u = 0; u < UNITS; u++) {
        c[u][0] = c[u][1] = c[u][2] = c[u][3] = 0;
    }
    UNROLL
    for (int s = 0; s < STEPS; s++) {
        u32 a[4];
        matrices(a, tile + AT(top + (int)lane % 16, 2 * s + (int)lane / 16, PIECES));
        UNROLL
        for (int u = 0; u < UNITS; u++) {
            add_product(c[u], a, b[s][u]);
        }
    }
    UNROLL
    for (int half = 0; half < 2; half++) {
        u32 row = first + (u32)top + lane / 4 + (u32)half * 8;
        float v[OWN];
        UNROLL
        for (int i = 0; i < OWN; i++) {
            v[i] = c[i / 2][2 * half + i % 2];
        }
        finish_row(t, v, z + (u64)row * N + own_filter(), row < rows);
    }
}

/* Adds up over the 8 lanes that have the same filters; the first of them writes it. */
DEVICE void put_sums(float *sums, float *to) {
    UNROLL
    for (int i = 0; i < OWN; i++) {
        sums[i] = add_eight(sums[i]);
        if (threadIdx.x % 32 < 4) {
            to[own_filter() + (u32)i] = sums[i];
        }
    }
}

KERNEL __launch_bounds__(THREADS, BLOCKS)
    join(const T *x /* (rows, K) */, const float *coefs /* (4, K) */,
         const T *added /* (rows, K) */, const float *added_coefs, const T *w /* (N, K) */,
         T *y /* (rows, K) */, u8 *mask, T *z /* (rows, N) */,
         float *partial /* (blocks, 2, N) */, u32 rows) {
    SHARED(uint4, room); /* two tiles of y, then STAGES stages of the threads' pieces */
    uint4 *mine = room + 2 * TILE + threadIdx.x;
    places p = {x, added};
    u32 tiles = CEIL(rows, ROWS);
    begin_turns(mine, p, STAGES, tiles, rows);
    u32 b[STEPS][UNITS][2];
    take_weights(b, w);
    forms f;
    f.scale = load_floats(coefs + 2 * K + own_piece() * LANES);
    f.shift = load_floats(coefs + 3 * K + own_piece() * LANES);
    if (ADDED == 2) {
        f.added_scale = load_floats(added_coefs + 2 * K + own_piece() * LANES);
        f.added_shift = load_floats(added_coefs + 3 * K + own_piece() * LANES);
    }
    totals t;
    UNROLL
    for (int i = 0; i < OWN; i++) {
        t.sum[i] = t.squares[i] = 0;
    }
    u32 at = 0;
    u32 turn = 0;
    for (u32 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        u32 far = tile + STAGES * gridDim.x;
        u32 first = (tiles - 1 - tile) * ROWS;
        uint4 *joined = room + turn * TILE;
        copy_wait(STAGES - 1); /* no barrier: a thread reads only what it copied itself */
        join_tile(&f, mine + at * STAGE, joined, y, mask, first, rows);
        if (far < tiles) {
            begin_tile(mine + at * STAGE, p, (tiles - 1 - far) * ROWS, rows);
        }
        copy_group();
        /* After this barrier the tile of y is complete, and no warp reads the previous tile any
         * more, whose buffer the next turn overwrites. */
        __syncthreads();
        UNROLL
        for (int top = 0; top < ROWS; top += 16) {
            finish_rows(&t, joined, b, top, z, first, rows);
        }
        at = at == STAGES - 1 ? 0 : at + 1;
        turn = 1 - turn;
    }
    partial += (u64)blockIdx.x * (2 * N);
    put_sums(t.sum, partial);
    put_sums(t.squares, partial + N);
}
#endif

#ifdef K_join_finalise
/*
 * Adds up the sums of all blocks in float64. From them it computes coefs and running statistics of
 * the norm of z; with `narrow` also its scale and shift as T. A block has WIDTH filters, with
 * REDUCERS threads for each. AHEAD: loads that a thread has in flight.
 */
#define AHEAD 4
KERNEL join_finalise(const float *partial /* (blocks, 2, N) */, const float *weight,
                   const float *bias, float *running_mean, float *running_var,
                   float *coefs /* (4, N) */, int narrow, int blocks, u32 rows, float epsilon) {
    SHARED(double, room); /* (REDUCERS, 2, WIDTH) */
    int own = (int)threadIdx.x % WIDTH;
    int reducer = (int)threadIdx.x / WIDTH;
    int c = (int)blockIdx.x * WIDTH + own;
    for (int which = 0; which < 2; which++) {
        const float *from = partial + which * N + (c < N ? c : 0);
        double sum = 0;
        for (int k = reducer; k < blocks; k += AHEAD * REDUCERS) {
            float taken[AHEAD];
            UNROLL
            for (int i = 0; i < AHEAD; i++) {
                taken[i] = from[(u64)(k + i * REDUCERS < blocks ? k + i * REDUCERS : k) * (2 * N)];
            }
            UNROLL
            for (int i = 0; i < AHEAD; i++) {
                sum += k + i * REDUCERS < blocks ? (double)taken[i] : 0;
            }
        }
        room[(reducer * 2 + which) * WIDTH + own] = sum;
    }
    __syncthreads();
    if (reducer == 0 && c < N) {
        double sum = 0, squares = 0;
        for (int k = 0; k < REDUCERS; k++) {
            sum += room[k * 2 * WIDTH + own];
            squares += room[(k * 2 + 1) * WIDTH + own];
        }
        norm_set_coefs_of_sums(c, N, sum, squares, rows, epsilon, weight, bias, running_mean,
                         running_var, coefs, narrow);
    }
}
#endif
