/*
 * depthwise_tiles.cuh - what depthwise.cu and depthwise_back.cu share: how blocks and threads
 * divide the work, how a window is loaded, and how the sums of all blocks are added up.
 *
 * Words. A slab is SL channels. A tile is TR rows by TC columns of pixels. A box is NN samples
 * times NY by NX tiles. A window is the pixels that the outputs of a tile or of a box depend on. A
 * worker is a block, one of those that share a slab.
 *
 * The grid is (slabs, workers). A block has one slab and computes every gridDim.y-th box. It loads
 * the window of the box to shared memory once, applies the activation on the way, and writes zeros
 * outside the image. A thread has two channels and one tile, whose sums are in registers. Loops
 * over a tile and its window are unrolled completely, so that the compiler knows which tap joins
 * which two pixels.
 *
 * Forward, the window is of the input and tiles are of y. Backward, the window is of dy and tiles
 * are of x: each tap adds dy * pixel to the gradient of the filter and dy * w to the gradient of
 * the pixel, so that the input is activated once per pixel. There TR and TC are multiples of the
 * stride.
 *
 * Sums over all boxes are added up in steps: threads to a slot per worker, the slots of TEAM
 * workers to a slot per team, the slots of the teams to the result. The block that finishes last
 * does the next step, in the order of the numbers of workers and teams, so that the result does not
 * depend on which block was last.
 *
 * Forward computes boxes from the first sample to the last, backward from the last to the first.
 * The kernel before has usually gone the other way: what it touched last is still in the cache.
 *
 * Defines (-D):
 *   C                channels
 *   EVEN             1: C is a multiple of LANES, so channels are read and written as vectors
 *   KS, ST, PD       size of the filter, stride, padding above and left
 *   IH, IW, OH, OW   size of the input, of the output
 *   IN_NORM, ACT     IN_NORM 1: the input is act(scale * x + shift)
 *   SL               channels of a slab: a multiple of LANES
 *   TR, TC           rows and columns of a tile
 *   NY, NX           tiles of a box, down and across
 *   NN               samples of a box
 *   THREADS          threads of a block
 *   BLOCKS           least number of blocks that a multiprocessor should hold
 *   GAP              elements between rows of the window, against bank conflicts
 *   DOWN             1: tiles are numbered down the columns, 0: along the rows; also against bank
 *                    conflicts
 *
 * The including file defines, for its direction:
 *   TAP(o, r)        the tap that joins row r of a tile's window with row o of the tile; the same
 *                    for columns
 *   REACH(n)         rows of the window of n rows
 *   ORIGIN(first)    first row of the window of a box whose first row is `first`
 *   STEP(n)          rows by which the window moves when the tile moves by n rows
 *   FROM_H, FROM_W   size of the image of the window
 *   TO_H, TO_W       size of the image of the tiles
 *   ACTIVATED        1: norm and ACT are applied as the window is loaded
 *   ENTRIES          sums of a channel
 */
#define TEAM 16 /* workers of a team */
#define HEAD 4 /* floats of shared memory in front of `room` */
#define FLIGHT 4 /* loads that a thread has in flight */
#define KK (KS * KS)
#define PAIRS (SL / 2)
#define GROUPS (SL / LANES)
#define LOADERS (THREADS / GROUPS) /* pixels that a block loads at a time */
#define TILES (NN * NY * NX)
#define FLOOR_DIV(a, b) ((a) >= 0 ? (a) / (b) : -((-(a) + (b)-1) / (b)))
#define ROUND_UP_DIV(a, b) (((a) + (b)-1) / (b))

#define BOX_H (TR * NY)
#define BOX_W (TC * NX)
#define BOXES_Y ROUND_UP_DIV(TO_H, BOX_H)
#define BOXES_X ROUND_UP_DIV(TO_W, BOX_W)
#define WINDOW_H REACH(BOX_H)
#define WINDOW_W REACH(BOX_W)
#define WINDOW_PIXELS (NN * WINDOW_H * WINDOW_W)
#define ROW (WINDOW_W * SL + GAP)
#define FITS (TO_H % BOX_H == 0 && TO_W % BOX_W == 0) /* all tiles lie within the image */

typedef struct pair {
    float a, b;
} pair;

/* ---- a thread's two channels, c and c + 1 ---- */

#if TYPE == 0
typedef u64 two; /* two channels as they lie in memory */
DEVICE pair pair_up(two x) {
    pair y;
    y.a = __uint_as_float((u32)x), y.b = __uint_as_float((u32)(x >> 32));
    return y;
}
DEVICE two pair_down(pair x) {
    return (two)__float_as_uint(x.b) << 32 | __float_as_uint(x.a);
}
#else
typedef u32 two;
DEVICE pair pair_up(two x) {
    pair y;
    y.a = up((T)(x & 0xFFFF)), y.b = up((T)(x >> 16));
    return y;
}
DEVICE two pair_down(pair x) {
    return down2(x.a, x.b);
}
#endif

DEVICE two pair_fetch(const T *p, int c) {
    if (EVEN) {
        return *(const two *)p;
    }
    pair x = {0, 0};
    if (c < C) {
        x.a = up(p[0]);
    }
    if (c + 1 < C) {
        x.b = up(p[1]);
    }
    return pair_down(x);
}

DEVICE void pair_put(T *p, int c, two x) {
    if (EVEN) {
        *(two *)p = x;
        return;
    }
    pair y = pair_up(x);
    if (c < C) {
        p[0] = down(y.a);
    }
    if (c + 1 < C) {
        p[1] = down(y.b);
    }
}

DEVICE pair pair_of(const float *vector, int c) {
    pair y = {0, 0};
    if (EVEN || c < C) {
        y.a = vector[c];
    }
    if (EVEN || c + 1 < C) {
        y.b = vector[c + 1];
    }
    return y;
}

/* ---- the window ---- */

/* LANES channels from c on; zeros past the last channel. */
DEVICE packed window_fetch(const T *p, int c) {
    if (EVEN) {
        return fetch(p);
    }
    T found[LANES] __attribute__((aligned(16)));
    for (int i = 0; i < LANES; i++) {
        found[i] = c + i < C ? p[i] : down(0);
    }
    return fetch(found);
}

DEVICE lanes window_vector(const float *vector, int c) {
    if (EVEN) {
        return load_floats(vector + c);
    }
    lanes y;
    for (int i = 0; i < LANES; i++) {
        y.v[i] = c + i < C ? vector[c + i] : 0;
    }
    return y;
}

DEVICE void put_packed(T *p, packed x) {
#if TYPE == 0
    *(float4 *)p = x.a;
    *(float4 *)(p + 4) = x.b;
#else
    *(uint4 *)p = x.a;
#endif
}

/*
 * Loads the window of a box to shared memory: rows from y0 on and columns from x0 on, of the NN
 * samples from n0 on; zeros outside the image.
 */
DEVICE void load_window(T *window, const T *from, const float *coefs, int batch, int n0, int y0,
                        int x0, int c0) {
    int first = threadIdx.x / GROUPS;
    int lane = threadIdx.x % GROUPS * LANES;
    int c = c0 + lane;
    if (first >= LOADERS) {
        return;
    }
    lanes scale, shift;
    if (ACTIVATED) {
        scale = window_vector(coefs + 2 * C, c);
        shift = window_vector(coefs + 3 * C, c);
    }
    for (int at = first; at < WINDOW_PIXELS; at += FLIGHT * LOADERS) {
        packed found[FLIGHT];
        int inside[FLIGHT];
        UNROLL for (int u = 0; u < FLIGHT; u++) {
            int pixel = at + u * LOADERS;
            int n = n0 + pixel / (WINDOW_H * WINDOW_W);
            int y = y0 + pixel / WINDOW_W % WINDOW_H;
            int x = x0 + pixel % WINDOW_W;
            inside[u] = pixel < WINDOW_PIXELS && n < batch && y >= 0 && y < FROM_H && x >= 0 &&
                        x < FROM_W && (EVEN || c < C);
            found[u] = fetch_nothing();
            if (inside[u]) {
                const T *sample = from + (u64)n * (FROM_H * FROM_W) * C;
                found[u] = window_fetch(sample + (y * FROM_W + x) * C + c, c);
            }
        }
        UNROLL for (int u = 0; u < FLIGHT; u++) {
            int pixel = at + u * LOADERS;
            if (pixel < WINDOW_PIXELS) {
                T *to = window + pixel / WINDOW_W * ROW + pixel % WINDOW_W * SL + lane;
                if (ACTIVATED) {
                    lanes z = unpack(found[u]);
                    UNROLL for (int i = 0; i < LANES; i++) {
                        float s = activate(ACT, fmaf(scale.v[i], z.v[i], shift.v[i]));
                        z.v[i] = inside[u] ? s : 0;
                    }
                    found[u] = pack(z);
                }
                put_packed(to, found[u]);
            }
        }
    }
}

/* Loads the filters of a slab to shared memory, as (taps, SL). */
DEVICE void load_filters(float *filters, const float *weight, int c0) {
    for (int i = threadIdx.x; i < KK * SL; i += THREADS) {
        int c = c0 + i / KK;
        filters[i % KK * SL + i / KK] = EVEN || c < C ? weight[c0 * KK + i] : 0;
    }
}

/* ---- where a thread's tile is ---- */

typedef struct tile {
    int busy; /* 0: the thread has no tile */
    int n, y, x; /* sample, first row and first column, within the box */
    int c;       /* the first of the thread's two channels, within the slab */
    int corner;  /* index of its window in the window of the box */
    int number;  /* index of the tile in the box */
} tile;

DEVICE tile find_tile(void) {
    tile t;
    t.c = threadIdx.x % PAIRS * 2;
    t.number = threadIdx.x / PAIRS;
    t.busy = t.number < TILES;
    int within = t.number % (NY * NX);
    t.n = t.number / (NY * NX);
    t.y = (DOWN ? within % NY : within / NX) * TR;
    t.x = (DOWN ? within / NY : within % NX) * TC;
    t.corner = (t.n * WINDOW_H + STEP(t.y)) * ROW + STEP(t.x) * SL + t.c;
    return t;
}

/* ---- sums of all workers ---- */

#define SLOT (ENTRIES * SL) /* floats of a slot */

/* Merges `count` slots into one; the including file defines it. */
DEVICE void join(const float *slots, int count, float *to);

/*
 * Merges the slots of all workers of a slab; each worker calls it after it wrote its slot. `slots`
 * is (workers + teams, SLOT), `counters` (slabs, 1 + teams). Returns 1 in one block, which has the
 * result in `room`, and 0 in all others. The HEAD floats in front of `room` are for last_block().
 */
DEVICE int gather(float *slots, u32 *counters, float *room) {
    int workers = gridDim.y;
    int teams = (workers + TEAM - 1) / TEAM;
    int team = blockIdx.y / TEAM;
    int members = workers - team * TEAM < TEAM ? workers - team * TEAM : TEAM;
    u32 *counter = counters + blockIdx.x * (teams + 1);
    volatile u32 *told = (u32 *)(room - HEAD);
    if (!last_block(counter + 1 + team, (u32)members, told)) {
        return 0;
    }
    join(slots + team * TEAM * SLOT, members, slots + (workers + team) * SLOT);
    if (!last_block(counter, (u32)teams, told)) {
        return 0;
    }
    join(slots + workers * SLOT, teams, room);
    __syncthreads();
    return 1;
}
