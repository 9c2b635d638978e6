/*
 * norm_rows.cuh - what the kernels of norm.cu and norm_back.cu have in common.
 *
 * A value is rows of C channels. A thread owns one group of LANES channels, with the coefficients
 * of these in registers, and walks over rows; a block is TILE groups wide and THREADS / TILE rows
 * high, blockIdx.y is the tile, and all blocks of a tile step through the rows together. All that
 * these kernels do is bound by memory, so each thread has DEPTH rows of every tensor in flight
 * before it looks at the first. Where C is no multiple of LANES the last group is a part of one
 * and numbers are taken one at a time: right, but slow.
 *
 * The passes that sum walk from the last row to the first, those that write from the first to the
 * last: whoever wrote a tensor (a convolution, or a pass of the second kind) wrote its end last, so
 * that this part is still in the cache when a sum begins there; and when the sum has ended, it is
 * the beginning that is in the cache for the pass that follows.
 *
 * Sums are the same bits every time: float32 over the rows of a thread, then over the threads of a
 * block, then the block that comes last of a tile adds up those of all blocks, in their order, in
 * float64.
 *
 * Defines: C, TILE, THREADS, DEPTH, BLOCKS (that a multiprocessor should hold); WHOLE: 1 where C is
 * a multiple of LANES; ACT; FROM_X: 1 where the slope is had from what the activation reads; DROP,
 * MASK, AGAIN, DX: 0 or 1; ADDED: 0, 1 a value, 2 the norm of one; ADDED_DX: 0, 1 write, 2 add.
 */
#ifdef C

#define GROUPS ((C + LANES - 1) / LANES)
#define HIGH (THREADS / TILE) /* rows that a block takes at a time */

#define BOUNDS __launch_bounds__(THREADS, BLOCKS)

/* ---- one group of channels ---- */

#if WHOLE
typedef packed held;

DEVICE lanes open_held(held x) {
    return unpack(x);
}

/* What is at p, or `other` when not `wanted`. */
DEVICE held take(const T *p, int wanted, held other, int group) {
    (void)group;
    return fetch_if(p, wanted, other);
}

DEVICE held nothing_held(void) {
    return fetch_nothing();
}

DEVICE void put(T *p, lanes x, int group) {
    (void)group;
    store(p, x);
}

/* Those of a vector per channel. */
DEVICE lanes vector(const float *p, int group) {
    return load_floats(p + group * LANES);
}

#else
typedef lanes held;

DEVICE lanes open_held(held x) {
    return x;
}

DEVICE held take(const T *p, int wanted, held other, int group) {
    for (int i = 0; i < LANES; i++) {
        if (wanted && group * LANES + i < C) {
            other.v[i] = up(p[i]);
        }
    }
    return other;
}

DEVICE held nothing_held(void) {
    held x;
    for (int i = 0; i < LANES; i++) {
        x.v[i] = 0;
    }
    return x;
}

DEVICE void put(T *p, lanes x, int group) {
    for (int i = 0; i < LANES; i++) {
        if (group * LANES + i < C) {
            p[i] = down(x.v[i]);
        }
    }
}

DEVICE lanes vector(const float *p, int group) {
    lanes x;
    for (int i = 0; i < LANES; i++) {
        x.v[i] = group * LANES + i < C ? p[group * LANES + i] : 0;
    }
    return x;
}
#endif

/* Where the group of a row begins. */
DEVICE u64 place(u32 row, int group) {
    return (u64)row * C + (u32)group * LANES;
}

/* ---- what the elements of a group become ---- */

#ifdef ACT

#include "branch.cuh"

/* What the activation reads, of a whole group. */
DEVICE lanes all_before_act(const forms *f, lanes x, lanes added, float factor) {
    lanes y;
    UNROLL
    for (int i = 0; i < LANES; i++) {
        y.v[i] = before_act(f, i, x.v[i], added.v[i], factor);
    }
    return y;
}

DEVICE lanes after_act(lanes x) {
    UNROLL
    for (int i = 0; i < LANES; i++) {
        x.v[i] = activate(ACT, x.v[i]);
    }
    return x;
}

#endif

/* ---- sums over all rows ---- */

#ifdef SUMS /* how many a channel has */

#define COLUMNS (SUMS * LANES * TILE) /* sums of a tile, as [which][lane][group] */
#define QUADS (COLUMNS / 4)
#define REDUCERS (THREADS / QUADS) /* threads that share the blocks' sums of one quad; at least 1 */
#define FOLDS (HIGH / LANES)    /* threads that share one sum of a block; at least 1 */
#define AHEAD 8
#define BLOCK_QUADS QUADS
#define IN_DOUBLE 1
#include "block_sums.cuh"

/*
 * Shared memory: float (THREADS, LANES), used again as double (REDUCERS, COLUMNS); then double
 * (COLUMNS), the totals; then one u32.
 */
DEVICE double *totals_in(float *room) {
    return (double *)room + THREADS * LANES / 2;
}

/* Adds up what the block's threads have, LANES numbers each, to those of the tile's groups. */
DEVICE void fold(float *room, lanes x, float *sums) {
    int t = threadIdx.x;
    UNROLL
    for (int i = 0; i < LANES; i++) {
        room[i * THREADS + t] = x.v[i];
    }
    __syncthreads();
    float sum = 0;
    if (t < LANES * FOLDS * TILE) {
        int lane = t / (FOLDS * TILE);
        for (int u = t % (FOLDS * TILE); u < THREADS; u += FOLDS * TILE) {
            sum += room[lane * THREADS + u];
        }
    }
    __syncthreads();
    room[t] = sum;
    __syncthreads();
    if (t < LANES * TILE) {
        sum = 0;
        for (int k = 0; k < FOLDS; k++) {
            sum += room[(t / TILE * FOLDS + k) * TILE + t % TILE];
        }
        sums[t] = sum;
    }
    __syncthreads();
}

/* Adds up the sums of all blocks of a tile into the totals. */
DEVICE void add_blocks(float *room, const float *sums) {
    double *apart = (double *)room;
    double *totals = totals_in(room);
    int t = threadIdx.x;
    int reducer = t / QUADS;
    int quad = t % QUADS;
    int blocks = gridDim.x;
    if (reducer < REDUCERS) {
        four sum = add_share((const float4 *)sums + quad, reducer, blocks, 1);
        double *to = apart + reducer * COLUMNS + 4 * quad;
        to[0] = sum.x, to[1] = sum.y, to[2] = sum.z, to[3] = sum.w;
    }
    __syncthreads();
    for (int c = t; c < COLUMNS; c += THREADS) {
        double sum = 0;
        for (int k = 0; k < REDUCERS; k++) {
            sum += apart[k * COLUMNS + c];
        }
        totals[c] = sum;
    }
    __syncthreads();
}

/*
 * From what each thread summed to the totals of the tile, [which * LANES * TILE + column]. 0 in all
 * blocks but the last, which are done then.
 */
DEVICE int sum_up(float *room, const lanes *sums, float *partial, u32 *counters) {
    float *tile = partial + (u64)blockIdx.y * gridDim.x * COLUMNS;
    UNROLL
    for (int s = 0; s < SUMS; s++) {
        fold(room, sums[s], tile + (u64)blockIdx.x * COLUMNS + s * LANES * TILE);
    }
    u32 *told = (u32 *)(totals_in(room) + COLUMNS);
    if (!last_block(counters + blockIdx.y, gridDim.x, told)) {
        return 0;
    }
    add_blocks(room, tile);
    return 1;
}

/* The channel of a column. */
DEVICE int channel_of(int column) {
    return (blockIdx.y * TILE + column % TILE) * LANES + column / TILE;
}

#endif

#endif
