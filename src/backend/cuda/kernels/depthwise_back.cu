/*
 * depthwise_back.cu - one filter per channel, backward: the gradient of the filters and, in the same
 * pass, that of the input.
 *
 * Defines: those of depthwise_tiles.cuh, and DX, ADD: 1: dx is wanted, too; it is added to what is
 * there.
 */
#define FIRST (-FLOOR_DIV(KS - 1 - PD, ST))
#define TAP(o, r) ((o) + PD - ST * (FIRST + (r)))
#define REACH(n) (FLOOR_DIV((n)-1 + PD, ST) - FIRST + 1)
#define ORIGIN(first) ((first) / ST + FIRST)
#define STEP(n) ((n) / ST)
#define FROM_H OH
#define FROM_W OW
#define TO_H IH
#define TO_W IW
#define ACTIVATED 0
#define SUMS (DX && IN_NORM) /* of the gradient after the norm: two per channel */
#define ENTRIES (KK + 2 * SUMS)
#include "depthwise_tiles.cuh"

/* What is in memory is read again after this: kept in registers, a window would fill them. */
#ifdef __CUDACC_RTC__
#define FORGET asm volatile("" ::: "memory")
#else
#define FORGET
#endif

/*
 * x itself, since `zero` is 0, but not before `y` is known: what follows from x would otherwise be
 * computed long before it is needed, and fill registers until then.
 */
DEVICE two after(two x, float y, u32 zero) {
    return x ^ (__float_as_uint(y) & zero);
}

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

/* What a thread sums up over all its tiles for the norm: dn, and dn times the normalised x. */
typedef struct norm_sums {
    pair dn, product;
} norm_sums;

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

/* What the convolution reads, of pixels as they lie in memory; nothing past the image. */
DEVICE void input_of(two found[TR][TC], pair scale, pair shift, int rows, int columns,
                     pair input[TR][TC]) {
    UNROLL for (int o = 0; o < TR; o++) {
        UNROLL for (int j = 0; j < TC; j++) {
            pair v = pair_up(found[o][j]);
            if (IN_NORM) {
                v.a = activate(ACT, fmaf(scale.a, v.a, shift.a));
                v.b = activate(ACT, fmaf(scale.b, v.b, shift.b));
            }
            if (IN_NORM && !(o < rows && j < columns)) {
                v.a = v.b = 0;
            }
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
                     int rows, int columns, u32 zero, norm_sums *sums) {
    pair mean = {0, 0}, invstd = {0, 0}, scale = {0, 0}, shift = {0, 0};
    if (IN_NORM) {
        mean = pair_of(coefs, c), invstd = pair_of(coefs + C, c);
        scale = pair_of(coefs + 2 * C, c), shift = pair_of(coefs + 3 * C, c);
    }
    UNROLL for (int o = 0; o < TR; o++) {
        UNROLL for (int j = 0; j < TC; j++) {
            if (o < rows && j < columns) {
                T *to = dx + (o * TO_W + j) * C;
                pair g = grad[o][j];
                if (IN_NORM) {
                    pair v = pair_up(after(found[o][j], g.a, zero));
                    g.a *= slope(ACT, fmaf(scale.a, v.a, shift.a));
                    g.b *= slope(ACT, fmaf(scale.b, v.b, shift.b));
                    sums->dn.a += g.a, sums->dn.b += g.b;
                    sums->product.a = fmaf(g.a, (v.a - mean.a) * invstd.a, sums->product.a);
                    sums->product.b = fmaf(g.b, (v.b - mean.b) * invstd.b, sums->product.b);
                }
                if (ADD) {
                    pair before = pair_up(pair_fetch(to, c));
                    g.a += before.a, g.b += before.b;
                }
                pair_put(to, c, pair_down(g));
            }
        }
    }
}

/* The slot of this worker from what its threads have summed up. */
DEVICE void tell_sums(const tile *t, pair taps[KK], const norm_sums *sums, float *room, float *slot) {
    __syncthreads();
    if (t->busy) {
        float *at = room + t->number * SLOT + t->c;
        UNROLL for (int k = 0; k < KK; k++) {
            at[k * SL] = taps[k].a, at[k * SL + 1] = taps[k].b;
        }
        if (SUMS) {
            at[KK * SL] = sums->dn.a, at[KK * SL + 1] = sums->dn.b;
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
DEVICE void finish_channels(const float *room, int c0, int batch, const float *coefs,
                   const float *norm_weight, float *weight_grad, float *norm_weight_grad,
                   float *norm_bias_grad, float *back) {
    for (int i = threadIdx.x; i < KK * SL; i += THREADS) {
        if (EVEN || c0 + i / KK < C) {
            weight_grad[c0 * KK + i] = room[i % KK * SL + i / KK];
        }
    }
    for (int c = threadIdx.x; SUMS && c < SL && c0 + c < C; c += THREADS) {
        norm_set_back(c0 + c, C, room[KK * SL + c], room[(KK + 1) * SL + c],
                         (double)batch * IH * IW, norm_weight, coefs, norm_weight_grad,
                         norm_bias_grad, back);
    }
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
    pair taps[KK];
    UNROLL for (int k = 0; k < KK; k++) {
        taps[k].a = taps[k].b = 0;
    }
    norm_sums sums = {{0, 0}, {0, 0}};
    int boxes = BOXES_Y * BOXES_X * ((batch + NN - 1) / NN);
    u32 zero = (u32)(batch >> 31);
    if (DX) {
        load_filters(filters, weight, c0);
    }
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
            if (IN_NORM) {
                scale = pair_of(coefs + 2 * C, c), shift = pair_of(coefs + 3 * C, c);
            }
            input_of(found, scale, shift, rows, columns, input);
            add_taps(window + t.corner, input, taps);
            FORGET;
            if (DX) {
                pair grad[TR][TC];
                UNROLL for (int o = 0; o < TR; o++) {
                    UNROLL for (int j = 0; j < TC; j++) {
                        grad[o][j].a = grad[o][j].b = 0;
                    }
                }
                spread_back(window + t.corner, filters + t.c, zero, grad);
                put_grad(dx + at, coefs, c, found, grad, rows, columns, zero, &sums);
            }
        }
    }
    slots += (u64)blockIdx.x * (gridDim.y + (gridDim.y + TEAM - 1) / TEAM) * SLOT;
    tell_sums(&t, taps, &sums, room, slots + blockIdx.y * SLOT);
    if (gather(slots, counters, room)) {
        finish_channels(room, c0, batch, coefs, norm_weight, weight_grad, norm_weight_grad, norm_bias_grad,
               back);
    }
}
