/*
 * norm_rows.cuh - what the kernels of norm.cu and norm_back.cu share: how they divide the work,
 * loads and stores of a group of channels, and sums over all rows.
 *
 * A tensor is (rows, C). A group is LANES neighbouring channels; a tile is TILE neighbouring
 * groups, and blockIdx.y is its index. A block handles all groups of one tile, HIGH = THREADS /
 * TILE rows at a time; the blocks of a tile share the rows: each takes every gridDim.x-th group of
 * HIGH rows. A thread keeps the same group in all rows, and the coefficients of that group in
 * registers. Memory limits the speed of these kernels, so a thread has DEPTH rows of every tensor
 * in flight before it uses the first. Where C is no multiple of LANES, the last group is incomplete
 * and all loads and stores are of single numbers: correct, but slow.
 *
 * Kernels that sum go from the last row to the first; kernels that write rows go from the first row
 * to the last. The kernel that wrote a tensor wrote its last rows last, so these rows are still in
 * the cache when a sum begins with them. When the sum ends, the first rows are in the cache for the
 * kernel after it.
 *
 * Sums are the same to the bit every time. A thread sums over its rows in float32, then the block
 * sums over its threads in float32. The last block of a tile to finish adds up the sums of all
 * blocks in a fixed order, in float64.
 *
 *   C          channels
 *   TILE       groups of a tile
 *   THREADS    threads of a block, a multiple of TILE
 *   DEPTH      rows that a thread has in flight
 *   BLOCKS     blocks that a multiprocessor should hold
 *   WHOLE      1: C is a multiple of LANES
 *   SUMS       how many sums per channel a kernel takes; defined only for kernels that sum
 *   ACT        the activation after the norm
 *   DROP       1: stochastic depth follows the norm
 *   ADDED      what is added after that. 0: nothing, 1: a value, 2: the norm of a value
 *   MASK       1: norm_apply writes a mask of the slopes; the backward kernels read it
 *   FROM_X     1: the backward kernels compute the slope from the activation's input
 *   AGAIN      1: norm_reduce also writes the output of the activation
 *   DX         1: norm_backward writes dx
 *   ADDED_DX   gradient of what was added. 0: not computed, 1: norm_backward writes it, 2: adds it
 */
#ifdef C

#define GROUPS ((C + LANES - 1) / LANES)
#define HIGH (THREADS / TILE) /* rows that a block takes at a time */

#define BOUNDS __launch_bounds__(THREADS, BLOCKS)

/* ---- one group of channels ---- */

/* A group as it was loaded, not converted yet. */
#if WHOLE
typedef packed held;

DEVICE lanes open_held(held x) {
    return unpack(x);
}

/* Loads a group of a row from p if `wanted`; otherwise returns `other`. */
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

/* Loads a group of p (C). */
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

/* The index of a group's first element in a tensor (rows, C). */
DEVICE u64 place(u32 row, int group) {
    return (u64)row * C + (u32)group * LANES;
}

/* ---- from the norm's input to the activation's output ---- */

#ifdef ACT

#include "branch.cuh"

/* The activation's input for a whole group: factor * (scale * x + shift) + added. */
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

#ifdef SUMS

#define COLUMNS (SUMS * LANES * TILE) /* sums of a tile, as (SUMS, LANES, TILE) */
#define QUADS (COLUMNS / 4)
#define REDUCERS (THREADS / QUADS) /* threads that share the blocks' sums of one quad; at least 1 */
#define FOLDS (HIGH / LANES)       /* threads that share one sum of a block; at least 1 */
#define AHEAD 8
#define BLOCK_QUADS QUADS
#define IN_DOUBLE 1
#include "block_sums.cuh"

/*
 * Shared memory: float (LANES, THREADS), reused as double (REDUCERS, COLUMNS); then the totals,
 * double (COLUMNS); then one u32 for last_block().
 */
DEVICE double *totals_in(float *room) {
    return (double *)room + THREADS * LANES / 2;
}

/* sums (LANES, TILE) = x (LANES) summed over the block's threads that handle the same group. */
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

/* Totals of a tile: `sums` (gridDim.x, COLUMNS) summed over all blocks. */
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
 * Sums `sums` (SUMS) over all threads of all blocks of the tile. Returns 1 in the last block of the
 * tile, which then has the totals, (SUMS, LANES, TILE), in shared memory. Returns 0 in the other
 * blocks, which have nothing left to do. partial is (gridDim.y, gridDim.x, COLUMNS), counters
 * (gridDim.y).
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

/* The channel of a column 0 to LANES * TILE - 1. */
DEVICE int channel_of(int column) {
    return (blockIdx.y * TILE + column % TILE) * LANES + column / TILE;
}

#endif

#endif
