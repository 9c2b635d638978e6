/*
 * join.cu - where two branches join: a norm, an addition and a ReLU, and the convolution of 1 by 1
 * that reads what they make, with the sums for its own norm.
 *
 * A value is rows of K channels, of which the convolution makes N. With few filters only
 * memory counts, and a convolution of its own would read again what was just written. Here, in one
 * pass over all rows:
 *
 *     y = relu(scale * x + shift + added)     (rows, K), rounded to T, and a mask
 *     z = y W'                                (rows, N), rounded to T
 *     sums of z and of its squares            (N)
 *
 * Blocks take tiles of ROWS rows by turns, the last first, since the end of x was written last. A
 * thread has one piece of 8 channels of every HIGH-th row: it copies x and what is added to places of
 * its own in shared memory, STAGES tiles ahead, and computes y of them, which goes to memory and to a
 * tile in shared memory for the product; there are two of these, so that the warps of a block wait
 * for each other once for each tile. A warp has 8 * UNITS of the filters, whose weights stay in its
 * registers, dealt such that a lane has filters that follow each other. Sums stay in registers until
 * the end, when they go to `partial`; join_finalise adds up those of all blocks, in their order: the
 * same bits every time.
 *
 * Defines: K, a multiple of 64; N, of 8 times the warps; THREADS, a multiple of K / 8; ROWS, a
 * multiple of 16 and of THREADS / (K / 8); STAGES; BLOCKS that a multiprocessor should hold; ADDED: 1
 * a value, 2 the norm of one.
 */
#ifdef K_join

#include "tiles.cuh"
#include "branch.cuh"

#define WARPS (THREADS / 32)
#define PIECES (K / LANES)
#define HIGH (THREADS / PIECES)
#define SHARES (ROWS / HIGH) /* pieces that a thread has of a tile */
#define STEPS (K / 16)
#define UNITS (N / 8 / WARPS)
#define OWN (2 * UNITS) /* filters of a lane */
#define TILE (ROWS * APART(PIECES))
#define STAGE (2 * SHARES * THREADS)

DEVICE u32 own_piece(void) {
    return threadIdx.x % PIECES;
}

DEVICE u32 own_row(int share) {
    return threadIdx.x / PIECES + (u32)share * HIGH;
}

DEVICE u32 own_filter(void) {
    return threadIdx.x / 32 * (8 * UNITS) + threadIdx.x % 4 * OWN;
}

/* Weights in the order of add_product(): column j of unit u is filter j / 2 * OWN + 2 * u + j % 2. */
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

/* A piece of y, where it is wanted; its bits. */
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

/* All of the thread's pieces of a tile. Rows that are not there are zeros, which sums do not see. */
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

/* One row of z, of which a lane has OWN numbers: out, and into the sums. */
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

/* 16 rows of the product. */
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

/* What the eight lanes of the same filters have, added up; the first of them writes it. */
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
    SHARED(uint4, room); /* two tiles, then STAGES of places */
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
        copy_wait(STAGES - 1); /* the thread's own, and no other's */
        join_tile(&f, mine + at * STAGE, joined, y, mask, first, rows);
        if (far < tiles) {
            begin_tile(mine + at * STAGE, p, (tiles - 1 - far) * ROWS, rows);
        }
        copy_group();
        __syncthreads(); /* the tile is there, and all have done with the one before the last */
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
/* Adds up the sums of all blocks in float64. A block has WIDTH filters, REDUCERS threads for each. */
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
