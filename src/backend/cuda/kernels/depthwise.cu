/*
 * depthwise.cu - depthwise convolution (one filter per channel), forward, with the statistics of
 * its output for the norm after it.
 *
 *     y[n,p,q,c] = sum over r, s of  in[n, p * ST - PD + r, q * ST - PD + s, c] * weight[c,r,s]
 *     in = x, or with IN_NORM act(scale * x + shift)
 *
 * depthwise_tiles.cuh says how blocks and threads divide the work.
 *
 * Defines (-D): those of depthwise_tiles.cuh; STATS: 1: statistics are wanted.
 */
#define TAP(o, r) ((r)-ST * (o))
#define REACH(n) (ST * ((n)-1) + KS)
#define ORIGIN(first) (ST * (first)-PD)
#define STEP(n) (ST * (n))
#define FROM_H IH
#define FROM_W IW
#define TO_H OH
#define TO_W OW
#define ACTIVATED IN_NORM
#define ENTRIES 3 /* number of pixels, their mean, the sum of their squared deviations from it */
#include "depthwise_tiles.cuh"

/*
 * Merges `count` slots of (number, mean, squared deviations) into one, in float64, with the mean of
 * the first slot as pivot. Other blocks may have written the slots: volatile reads bypass L1.
 */
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

/*
 * Statistics of a thread's two channels over its tiles: the number of pixels, and the sums of v -
 * pivot and of its square. The pivot is the mean of the thread's first tile.
 */
typedef struct spread {
    float count;
    pair pivot, sum, squares;
} spread;

/* Convolves the window of one tile: adds to the outputs of the tile in `sums`. */
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

/* Whether output (o, j) of a tile lies within the image. */
#define VALID(o, j) (FITS || ((o) < rows && (j) < columns))

/* Adds one tile of outputs to the statistics. */
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

/* Writes a tile, rounded to T, and leaves the rounded values in `sums`. */
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

/* Merges the statistics of the block's threads and writes them to the slot of this worker. */
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

/*
 * x (batch, IH, IW, C), weight (C, KS, KS), y (batch, OH, OW, C). in_coefs: coefs of the norm in
 * front, read with IN_NORM. With STATS the last block of a slab writes coefs (4, C) of the norm
 * after y and moves its running statistics. Shared memory: HEAD floats, the filters, the window; at
 * the end HEAD floats and TILES slots.
 */
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
    if (!STATS) {
        return;
    }
    slots += (u64)blockIdx.x * (gridDim.y + (gridDim.y + TEAM - 1) / TEAM) * SLOT;
    tell_spread(&t, &s, room, slots + blockIdx.y * SLOT);
    if (gather(slots, counters, room)) {
        for (int c = threadIdx.x; c < SL && c0 + c < C; c += THREADS) {
            norm_set_coefs(c0 + c, C, room[SL + c], room[2 * SL + c], room[c], epsilon, norm_weight,
                        norm_bias, running_mean, running_var, coefs);
        }
    }
}
