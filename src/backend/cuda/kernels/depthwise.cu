/*
 * depthwise.cu - one filter per channel: forward with the statistics of what it writes, and
 * backward, which gives the gradient of the filters and, in the same pass, that of the input.
 *
 * A block has a slab of SL channels and walks over boxes of NN samples times NY by NX tiles. The
 * window that a box needs lies in shared memory, brought there once, activated on the way, zeros
 * where the image ends. A thread has two channels and one tile of TR rows and TC columns, whose
 * sums are registers: loops over a tile and its window are unrolled completely, so that which tap
 * joins which two pixels is known when this is compiled.
 *
 * Forward, the window is of the input and tiles are of y. Backward, the window is of dy and tiles
 * are of x: each tap adds dy * pixel to the gradient of the filter and dy * w to that of its
 * pixel, so that the input is activated once per pixel. TR and TC are multiples of the stride.
 *
 *   C             channels; multiples of 8 are read and written in wide pieces
 *   KS, ST, PD    size of the kernel, stride, padding above and left
 *   IH, IW        size of the input; OH, OW of the output
 *   NORMED, ACT   1: the input is act(scale * x + shift)
 *   THREADS, BLOCKS   of a block, and how many should fit a multiprocessor at least
 *   GAP           numbers between rows of the window, which keep lanes off each other's banks
 *   DOWN          1: tiles are numbered from top to bottom first, for the same reason
 *   STATS         forward: 1: statistics are wanted
 *   DX, ADD       backward: dx is wanted, too; it is added to what is there
 *
 * The grid is (slabs, workers). Sums over all boxes go from threads to a slot per worker, from
 * these to one per team of TEAM workers, from these to the result, each by whoever came last, in
 * the order of their numbers.
 *
 * Forward walks from the first sample to the last, backward the other way, against whoever wrote
 * what is read: what was written last is still in the cache.
 */
#define TEAM 16
#define HEAD 4 /* floats of shared memory in front of `room` */
#define FLIGHT 4 /* loads that a thread has under way */
#define KK (KS * KS)
#define PAIRS (SL / 2)
#define GROUPS (SL / LANES)
#define LOADERS (THREADS / GROUPS) /* pixels that are brought at a time */
#define TILES (NN * NY * NX)
#define FLOOR_DIV(a, b) ((a) >= 0 ? (a) / (b) : -((-(a) + (b)-1) / (b)))
#define ROUND_UP_DIV(a, b) (((a) + (b)-1) / (b))
#define EVEN (C % LANES == 0)

#ifdef K_depthwise_forward
/* The tap that joins row r of the window of a tile with row o of the tile; the same for columns. */
#define TAP(o, r) ((r)-ST * (o))
#define REACH(n) (ST * ((n)-1) + KS)      /* rows of the window of n rows */
#define ORIGIN(first) (ST * (first)-PD) /* where the window begins */
#define STEP(n) (ST * (n))                /* how far it moves when the tile moves by n */
#define FROM_H IH
#define FROM_W IW
#define TO_H OH
#define TO_W OW
#else
#define FIRST (-FLOOR_DIV(KS - 1 - PD, ST))
#define TAP(o, r) ((o) + PD - ST * (FIRST + (r)))
#define REACH(n) (FLOOR_DIV((n)-1 + PD, ST) - FIRST + 1)
#define ORIGIN(first) ((first) / ST + FIRST)
#define STEP(n) ((n) / ST)
#define FROM_H OH
#define FROM_W OW
#define TO_H IH
#define TO_W IW
#endif

#define BOX_H (TR * NY)
#define BOX_W (TC * NX)
#define BOXES_Y ROUND_UP_DIV(TO_H, BOX_H)
#define BOXES_X ROUND_UP_DIV(TO_W, BOX_W)
#define WINDOW_H REACH(BOX_H)
#define WINDOW_W REACH(BOX_W)
#define WINDOW_PIXELS (NN * WINDOW_H * WINDOW_W)
#define ROW (WINDOW_W * SL + GAP)
#define FITS (TO_H % BOX_H == 0 && TO_W % BOX_W == 0) /* no tile ends behind the image */

typedef struct pair {
    float a, b;
} pair;

/* What is in memory is read again behind this: kept in registers, a window would fill them. */
#ifdef __CUDACC_RTC__
#define FORGET asm volatile("" ::: "memory")
#else
#define FORGET
#endif

/* ---- a thread's two channels, c and c + 1 ---- */

#if TYPE == 0
typedef u64 two; /* as they lie in memory */
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

/*
 * x itself, since `zero` is 0, but not before `y` is known: what follows from x would otherwise be
 * computed long before it is needed, and fill registers until then.
 */
DEVICE two after(two x, float y, u32 zero) {
    return x ^ (__float_as_uint(y) & zero);
}

DEVICE two pair_fetch(const T *p, int c) {
#if EVEN
    return *(const two *)p;
#else
    pair x = {0, 0};
    if (c < C) {
        x.a = up(p[0]);
    }
    if (c + 1 < C) {
        x.b = up(p[1]);
    }
    return pair_down(x);
#endif
}

DEVICE void pair_put(T *p, int c, two x) {
#if EVEN
    *(two *)p = x;
#else
    pair y = pair_up(x);
    if (c < C) {
        p[0] = down(y.a);
    }
    if (c + 1 < C) {
        p[1] = down(y.b);
    }
#endif
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

/* Eight channels from c on; none behind the last. */
DEVICE packed window_fetch(const T *p, int c) {
#if EVEN
    return fetch(p);
#else
    T found[LANES] __attribute__((aligned(16)));
    for (int i = 0; i < LANES; i++) {
        found[i] = c + i < C ? p[i] : down(0);
    }
    return fetch(found);
#endif
}

DEVICE lanes window_vector(const float *vector, int c) {
#if EVEN
    return load_floats(vector + c);
#else
    lanes y;
    for (int i = 0; i < LANES; i++) {
        y.v[i] = c + i < C ? vector[c + i] : 0;
    }
    return y;
#endif
}

DEVICE void put_packed(T *p, packed x) {
#if TYPE == 0
    *(float4 *)p = x.a;
    *(float4 *)(p + 4) = x.b;
#else
    *(uint4 *)p = x.a;
#endif
}

#if defined(K_depthwise_forward) && NORMED
#define ACTIVATED 1
#else
#define ACTIVATED 0
#endif

/* Brings what begins at row y0 and column x0 of the samples from n0 on. */
DEVICE void load_window(T *window, const T *from, const float *coefs, int batch, int n0, int y0,
                        int x0, int c0) {
    int first = threadIdx.x / GROUPS;
    int lane = threadIdx.x % GROUPS * LANES;
    int c = c0 + lane;
    if (first >= LOADERS) {
        return;
    }
#if ACTIVATED
    lanes scale = window_vector(coefs + 2 * C, c);
    lanes shift = window_vector(coefs + 3 * C, c);
#endif
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
#if ACTIVATED
                lanes z = unpack(found[u]);
                UNROLL for (int i = 0; i < LANES; i++) {
                    float s = activate(ACT, fmaf(scale.v[i], z.v[i], shift.v[i]));
                    z.v[i] = inside[u] ? s : 0;
                }
                put_packed(to, pack(z));
#else
                put_packed(to, found[u]);
#endif
            }
        }
    }
}

/* The filters of a slab as (taps, SL). */
DEVICE void load_filters(float *filters, const float *weight, int c0) {
    for (int i = threadIdx.x; i < KK * SL; i += THREADS) {
        int c = c0 + i / KK;
        filters[i % KK * SL + i / KK] = EVEN || c < C ? weight[c0 * KK + i] : 0;
    }
}

/* ---- where a thread's tile is ---- */

typedef struct tile {
    int busy; /* there are more threads than tiles */
    int n, y, x;
    int c;       /* within the slab */
    int corner;  /* where its window begins in the window of the box */
    int number;  /* of all tiles of the box */
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

#ifdef K_depthwise_forward
#define ENTRIES 3 /* number of pixels, their mean, their squares about it */
#else
#define SUMS (DX && NORMED) /* of the gradient behind the norm: two per channel */
#define ENTRIES (KK + 2 * SUMS)
#endif
#define SLOT (ENTRIES * SL) /* floats that a worker tells */

DEVICE void join(const float *slots, int count, float *to);

/*
 * Each worker has filled its slot; slots are (workers and then teams, SLOT). True in one block of
 * the slab, which finds the result in `room`; HEAD floats in front of it are for `last_block`.
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

#ifdef K_depthwise_forward

/* Several such slots as one, about the mean of the first. Slots are not cached where written. */
DEVICE void join(const float *slots, int count, float *to) {
    for (int c = threadIdx.x; c < SL; c += THREADS) {
        const volatile float *at = slots + c;
        double pivot = at[SL];
        double pixels = 0, sum = 0, squares = 0;
        for (int i = 0; i < count; i++, at += SLOT) {
            double n = at[0];
            double d = at[SL] - pivot;
            pixels += n;
            sum += n * d;
            squares += at[2 * SL] + n * d * d;
        }
        double mean = pixels > 0 ? sum / pixels : 0;
        to[c] = (float)pixels;
        to[SL + c] = (float)(pivot + mean);
        to[2 * SL + c] = (float)(squares - sum * mean);
    }
}

/* What a thread knows of its two channels, about the mean of its first tile. */
typedef struct spread {
    float count;
    pair pivot, sum, squares;
} spread;

/* The sums of one tile: conv of its window. */
DEVICE void convolve(const T *window, const float *filters, pair sums[TR][TC]) {
    UNROLL for (int r = 0; r < REACH(TR); r++) {
        pair v[REACH(TC)];
        UNROLL for (int q = 0; q < REACH(TC); q++) {
            v[q] = pair_up(*(const two *)(window + r * ROW + q * SL));
        }
        UNROLL for (int o = 0; o < TR; o++) {
            if (TAP(o, r) >= 0 && TAP(o, r) < KS) {
                UNROLL for (int k = 0; k < KS; k++) {
                    float2 w = *(const float2 *)(filters + (TAP(o, r) * KS + k) * SL);
                    UNROLL for (int j = 0; j < TC; j++) {
                        sums[o][j].a = fmaf(v[ST * j + k].a, w.x, sums[o][j].a);
                        sums[o][j].b = fmaf(v[ST * j + k].b, w.y, sums[o][j].b);
                    }
                }
            }
        }
    }
}

#define VALID(o, j) (FITS || ((o) < rows && (j) < columns))

DEVICE void spread_add(spread *s, pair sums[TR][TC], int rows, int columns) {
    float count = (float)(rows * columns);
    if (s->count == 0) {
        pair mean = {0, 0};
        UNROLL for (int o = 0; o < TR; o++) {
            UNROLL for (int j = 0; j < TC; j++) {
                mean.a += VALID(o, j) ? sums[o][j].a : 0;
                mean.b += VALID(o, j) ? sums[o][j].b : 0;
            }
        }
        s->pivot.a = mean.a / count, s->pivot.b = mean.b / count;
    }
    UNROLL for (int o = 0; o < TR; o++) {
        UNROLL for (int j = 0; j < TC; j++) {
            float a = VALID(o, j) ? sums[o][j].a - s->pivot.a : 0;
            float b = VALID(o, j) ? sums[o][j].b - s->pivot.b : 0;
            s->sum.a += a, s->sum.b += b;
            s->squares.a = fmaf(a, a, s->squares.a);
            s->squares.b = fmaf(b, b, s->squares.b);
        }
    }
    s->count += count;
}

/* Writes a tile; in `sums` stays what was written. */
DEVICE void put_tile(T *to, int c, pair sums[TR][TC], int rows, int columns) {
    UNROLL for (int o = 0; o < TR; o++) {
        UNROLL for (int j = 0; j < TC; j++) {
            two stored = pair_down(sums[o][j]);
            if (VALID(o, j)) {
                pair_put(to + (o * TO_W + j) * C, c, stored);
            }
            sums[o][j] = pair_up(stored);
        }
    }
}

/* The slot of this worker from what its threads know. */
DEVICE void tell_spread(const tile *t, const spread *s, float *room, float *slot) {
    __syncthreads();
    if (t->busy) {
        float *at = room + t->number * SLOT + t->c;
        float n = s->count > 0 ? 1 / s->count : 0;
        at[0] = at[1] = s->count;
        at[SL] = fmaf(s->sum.a, n, s->pivot.a);
        at[SL + 1] = fmaf(s->sum.b, n, s->pivot.b);
        at[2 * SL] = s->squares.a - s->sum.a * s->sum.a * n;
        at[2 * SL + 1] = s->squares.b - s->sum.b * s->sum.b * n;
    }
    __syncthreads();
    join(room, TILES, slot);
}

KERNEL __launch_bounds__(THREADS, BLOCKS)
    depthwise_forward(const T *x, const float *in_coefs, const float *weight, T *y, int batch,
                      const float *norm_weight, const float *norm_bias, float *running_mean,
                      float *running_var, float epsilon, float *coefs, float *slots,
                      u32 *counters) {
    SHARED(float, shared);
    float *room = shared + HEAD;
    float *filters = room;
    T *window = (T *)(room + KK * SL);
    int c0 = blockIdx.x * SL;
    tile t = find_tile();
    spread s = {0, {0, 0}, {0, 0}, {0, 0}};
    int boxes = BOXES_Y * BOXES_X * ((batch + NN - 1) / NN);
    load_filters(filters, weight, c0);
    for (int box = blockIdx.y; box < boxes; box += gridDim.y) {
        int n0 = box / (BOXES_Y * BOXES_X) * NN;
        int y0 = box / BOXES_X % BOXES_Y * BOX_H;
        int x0 = box % BOXES_X * BOX_W;
        __syncthreads();
        load_window(window, x, in_coefs, batch, n0, ORIGIN(y0), ORIGIN(x0), c0);
        __syncthreads();
        int n = n0 + t.n, row = y0 + t.y, column = x0 + t.x;
        int rows = TO_H - row < TR ? TO_H - row : TR;
        int columns = TO_W - column < TC ? TO_W - column : TC;
        if (t.busy && n < batch && rows > 0 && columns > 0) {
            pair sums[TR][TC];
            UNROLL for (int o = 0; o < TR; o++) {
                UNROLL for (int j = 0; j < TC; j++) {
                    sums[o][j].a = sums[o][j].b = 0;
                }
            }
            convolve(window + t.corner, filters + t.c, sums);
            T *to = y + (u64)n * (TO_H * TO_W) * C + (row * TO_W + column) * C + c0 + t.c;
            put_tile(to, c0 + t.c, sums, rows, columns);
            if (STATS) {
                spread_add(&s, sums, rows, columns);
            }
        }
    }
#if STATS
    slots += (u64)blockIdx.x * (gridDim.y + (gridDim.y + TEAM - 1) / TEAM) * SLOT;
    tell_spread(&t, &s, room, slots + blockIdx.y * SLOT);
    if (gather(slots, counters, room)) {
        for (int c = threadIdx.x; c < SL && c0 + c < C; c += THREADS) {
            norm_settle(c0 + c, C, room[SL + c], room[2 * SL + c], room[c], epsilon, norm_weight,
                        norm_bias, running_mean, running_var, coefs);
        }
    }
#endif
}
#endif

#ifdef K_depthwise_back

DEVICE void join(const float *slots, int count, float *to) {
    for (int i = threadIdx.x; i < SLOT; i += THREADS) {
        const volatile float *at = slots + i;
        double sum = 0;
        UNROLL for (int k = 0; k < TEAM; k++) {
            sum += k < count ? at[k * SLOT] : 0;
        }
        for (int k = TEAM; k < count; k++) {
            sum += at[k * SLOT];
        }
        to[i] = (float)sum;
    }
}

/* What a thread sums up over all its tiles. */
typedef struct take {
    pair taps[KK];
    pair sum, product; /* of dn, and of dn times the normed x */
} take;

DEVICE void load_tile(const T *x, int c, two found[TR][TC], int rows, int columns) {
    UNROLL for (int o = 0; o < TR; o++) {
        UNROLL for (int j = 0; j < TC; j++) {
            found[o][j] = 0;
            if (o < rows && j < columns) {
                found[o][j] = pair_fetch(x + (o * TO_W + j) * C, c);
            }
        }
    }
}

/* What the convolution reads, of pixels as they lie in memory; nothing behind the image. */
DEVICE void input_of(two found[TR][TC], pair scale, pair shift, int rows, int columns,
                     pair input[TR][TC]) {
    UNROLL for (int o = 0; o < TR; o++) {
        UNROLL for (int j = 0; j < TC; j++) {
            pair v = pair_up(found[o][j]);
#if NORMED
            v.a = activate(ACT, fmaf(scale.a, v.a, shift.a));
            v.b = activate(ACT, fmaf(scale.b, v.b, shift.b));
            if (!(o < rows && j < columns)) {
                v.a = v.b = 0;
            }
#endif
            input[o][j] = v;
        }
    }
}

/*
 * Each dy of the window times the filter goes to the pixels that it came from. `zero` is 0. With
 * slabs that are no multiple of a warp's lanes the assembler reads far ahead and spills what it has
 * read, unless a row waits for what the row before came to.
 */
#define ROWS_WAIT (KS > 3 && SL % 32 != 0)
DEVICE void spread_back(const T *window, const float *filters, u32 zero, pair grad[TR][TC]) {
    UNROLL for (int r = 0; r < REACH(TR); r++) {
        FORGET;
        if (ROWS_WAIT) {
            window += __float_as_uint(grad[r * TR / REACH(TR)][TC - 1].b) & zero;
        }
        pair v[REACH(TC)];
        UNROLL for (int q = 0; q < REACH(TC); q++) {
            v[q] = pair_up(*(const two *)(window + r * ROW + q * SL));
        }
        UNROLL for (int o = 0; o < TR; o++) {
            if (TAP(o, r) >= 0 && TAP(o, r) < KS) {
                float2 w[KS];
                UNROLL for (int k = 0; k < KS; k++) {
                    w[k] = *(const float2 *)(filters + (TAP(o, r) * KS + k) * SL);
                }
                UNROLL for (int q = 0; q < REACH(TC); q++) {
                    UNROLL for (int j = 0; j < TC; j++) {
                        int k = TAP(j, q);
                        if (k >= 0 && k < KS) {
                            grad[o][j].a = fmaf(v[q].a, w[k].x, grad[o][j].a);
                            grad[o][j].b = fmaf(v[q].b, w[k].y, grad[o][j].b);
                        }
                    }
                }
            }
        }
    }
}

/* Each dy of the window times the pixels goes to the taps that joined them. */
DEVICE void add_taps(const T *window, pair input[TR][TC], pair taps[KK]) {
    UNROLL for (int r = 0; r < REACH(TR); r++) {
        UNROLL for (int q = 0; q < REACH(TC); q++) {
            pair v = pair_up(*(const two *)(window + r * ROW + q * SL));
            UNROLL for (int o = 0; o < TR; o++) {
                UNROLL for (int j = 0; j < TC; j++) {
                    int ky = TAP(o, r), kx = TAP(j, q);
                    if (ky >= 0 && ky < KS && kx >= 0 && kx < KS) {
                        pair *tap = &taps[ky * KS + kx];
                        tap->a = fmaf(v.a, input[o][j].a, tap->a);
                        tap->b = fmaf(v.b, input[o][j].b, tap->b);
                    }
                }
            }
        }
    }
}

/* The gradient of a tile, through the activation of the input where it has one. */
DEVICE void put_grad(T *dx, const float *coefs, int c, two found[TR][TC], pair grad[TR][TC],
                     int rows, int columns, u32 zero, take *sums) {
#if NORMED
    pair mean = pair_of(coefs, c), invstd = pair_of(coefs + C, c);
    pair scale = pair_of(coefs + 2 * C, c), shift = pair_of(coefs + 3 * C, c);
#endif
    UNROLL for (int o = 0; o < TR; o++) {
        UNROLL for (int j = 0; j < TC; j++) {
            if (o < rows && j < columns) {
                T *to = dx + (o * TO_W + j) * C;
                pair g = grad[o][j];
#if NORMED
                pair v = pair_up(after(found[o][j], g.a, zero));
                g.a *= slope(ACT, fmaf(scale.a, v.a, shift.a));
                g.b *= slope(ACT, fmaf(scale.b, v.b, shift.b));
                sums->sum.a += g.a, sums->sum.b += g.b;
                sums->product.a = fmaf(g.a, (v.a - mean.a) * invstd.a, sums->product.a);
                sums->product.b = fmaf(g.b, (v.b - mean.b) * invstd.b, sums->product.b);
#endif
#if ADD
                pair before = pair_up(pair_fetch(to, c));
                g.a += before.a, g.b += before.b;
#endif
                pair_put(to, c, pair_down(g));
            }
        }
    }
}

/* The slot of this worker from what its threads have summed up. */
DEVICE void tell_take(const tile *t, const take *sums, float *room, float *slot) {
    __syncthreads();
    if (t->busy) {
        float *at = room + t->number * SLOT + t->c;
        UNROLL for (int k = 0; k < KK; k++) {
            at[k * SL] = sums->taps[k].a, at[k * SL + 1] = sums->taps[k].b;
        }
        if (SUMS) {
            at[KK * SL] = sums->sum.a, at[KK * SL + 1] = sums->sum.b;
            at[(KK + 1) * SL] = sums->product.a, at[(KK + 1) * SL + 1] = sums->product.b;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < SLOT; i += THREADS) {
        float sum = 0;
        UNROLL for (int k = 0; k < TILES; k++) {
            sum += room[k * SLOT + i];
        }
        slot[i] = sum;
    }
}

/* From the totals in `room` to the gradients of the filters and of the norm. */
DEVICE void settle(const float *room, int c0, int batch, const float *coefs,
                   const float *norm_weight, float *weight_grad, float *norm_weight_grad,
                   float *norm_bias_grad, float *back) {
    for (int i = threadIdx.x; i < KK * SL; i += THREADS) {
        if (EVEN || c0 + i / KK < C) {
            weight_grad[c0 * KK + i] = room[i % KK * SL + i / KK];
        }
    }
#if SUMS
    for (int c = threadIdx.x; c < SL && c0 + c < C; c += THREADS) {
        norm_settle_back(c0 + c, C, room[KK * SL + c], room[(KK + 1) * SL + c],
                         (double)batch * IH * IW, norm_weight, coefs, norm_weight_grad,
                         norm_bias_grad, back);
    }
#endif
}

KERNEL __launch_bounds__(THREADS, BLOCKS)
    depthwise_back(const T *dy, const T *x, const float *coefs, const float *weight, T *dx,
                   float *weight_grad, int batch, const float *norm_weight,
                   float *norm_weight_grad, float *norm_bias_grad, float *back, float *slots,
                   u32 *counters) {
    SHARED(float, shared);
    float *room = shared + HEAD;
    float *filters = room;
    T *window = (T *)(room + DX * KK * SL);
    int c0 = blockIdx.x * SL;
    tile t = find_tile();
    int c = c0 + t.c;
    take sums;
    UNROLL for (int k = 0; k < KK; k++) {
        sums.taps[k].a = sums.taps[k].b = 0;
    }
    sums.sum.a = sums.sum.b = sums.product.a = sums.product.b = 0;
    int boxes = BOXES_Y * BOXES_X * ((batch + NN - 1) / NN);
#if DX
    u32 zero = (u32)(batch >> 31);
    load_filters(filters, weight, c0);
#endif
    for (int turn = blockIdx.y; turn < boxes; turn += gridDim.y) {
        int box = boxes - 1 - turn;
        int n0 = box / (BOXES_Y * BOXES_X) * NN;
        int y0 = box / BOXES_X % BOXES_Y * BOX_H;
        int x0 = box % BOXES_X * BOX_W;
        int n = n0 + t.n, row = y0 + t.y, column = x0 + t.x;
        int rows = TO_H - row < TR ? TO_H - row : TR;
        int columns = TO_W - column < TC ? TO_W - column : TC;
        int busy = t.busy && n < batch && rows > 0 && columns > 0;
        u64 at = (u64)n * (TO_H * TO_W) * C + (row * TO_W + column) * C + c;
        two found[TR][TC];
        if (FITS) {
            rows = TR, columns = TC;
        }
        __syncthreads();
        load_window(window, dy, coefs, batch, n0, ORIGIN(y0), ORIGIN(x0), c0);
        load_tile(x + at, c, found, busy ? rows : 0, columns);
        __syncthreads();
        if (busy) {
            pair input[TR][TC];
            pair scale = {1, 1}, shift = {0, 0};
            if (NORMED) {
                scale = pair_of(coefs + 2 * C, c), shift = pair_of(coefs + 3 * C, c);
            }
            input_of(found, scale, shift, rows, columns, input);
            add_taps(window + t.corner, input, sums.taps);
            FORGET;
#if DX
            pair grad[TR][TC];
            UNROLL for (int o = 0; o < TR; o++) {
                UNROLL for (int j = 0; j < TC; j++) {
                    grad[o][j].a = grad[o][j].b = 0;
                }
            }
            spread_back(window + t.corner, filters + t.c, zero, grad);
            put_grad(dx + at, coefs, c, found, grad, rows, columns, zero, &sums);
#endif
        }
    }
    slots += (u64)blockIdx.x * (gridDim.y + (gridDim.y + TEAM - 1) / TEAM) * SLOT;
    tell_take(&t, &sums, room, slots + blockIdx.y * SLOT);
    if (gather(slots, counters, room)) {
        settle(room, c0, batch, coefs, norm_weight, weight_grad, norm_weight_grad, norm_bias_grad,
               back);
    }
}
#endif
