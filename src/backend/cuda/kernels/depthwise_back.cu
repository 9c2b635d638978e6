/*
 * depthwise_back.cu - depthwise convolution (one filter per channel), backward: the gradient of the
 * filters and, in the same pass, of the input.
 *
 *     weight_grad[c,r,s] = sum over n, p, q of  dy[n,p,q,c] * in[n,row,column,c]
 *     dx[n,row,column,c] = sum over r, s of     dy[n,p,q,c] * weight[c,r,s]
 *     where row = p * ST - PD + r and column = q * ST - PD + s
 *
 * With IN_NORM, in = act(scale * x + shift); dx is then multiplied by the slope of act, and the
 * sums for the gradients of that norm are taken. depthwise_tiles.cuh says how blocks and threads
 * divide the work.
 *
 * Defines (-D): those of depthwise_tiles.cuh;
 *   DX    1: dx is wanted
 *   ADD   1: dx is added to what its memory holds; never with IN_NORM
 */

/* The first row of dy that a tile needs, counted from the tile's first row divided by ST. */
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
#define SUMS (DX && IN_NORM) /* 1: two sums per channel for the gradients of the norm */
#define ENTRIES (KK + 2 * SUMS)
#include "depthwise_tiles.cuh"

/*
 * A compiler barrier: values of shared memory are loaded again after it. Otherwise the compiler
 * would keep the window in registers and run out of them.
 */
#ifdef __CUDACC_RTC__
#define FORGET asm volatile("" ::: "memory")
#else
#define FORGET
#endif

/*
 * Returns x. `zero` is 0, which the compiler does not know, so the result seems to depend on y.
 * Without this the compiler would compute with x long before the results are needed, and they would
 * occupy registers.
 */
DEVICE two after(two x, float y, u32 zero) {
    return x ^ (__float_as_uint(y) & zero);
}

/* Adds up `count` slots in float64. Other blocks wrote them: volatile reads bypass L1. */
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

/*
 * A thread's sums for the norm in front, over all its tiles: of dn, the gradient of the norm's
 * output, and of dn * (x - mean) * invstd.
 */
typedef struct norm_sums {
    pair dn, product;
} norm_sums;

/* Loads a tile of x; zeros for pixels outside the image. */
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

/* The input of the convolution, from pixels of x; zeros for pixels outside the image. */
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
 * The gradient of a tile of the input: grad[pixel] += dy * w, for every dy of the window and every
 * tap that joins it with the pixel. `zero` is 0. Where SL is no multiple of 32 the assembler would
 * load rows of the window far ahead and spill them; ROWS_WAIT makes the address of a row seem to
 * depend on the result of an earlier row.
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

/* The gradient of the filter: taps[tap] += dy * pixel, for every dy and pixel that a tap joins. */
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

/* Writes dx of a tile. With IN_NORM multiplies by the slope of ACT first, and adds to the sums. */
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

/* Adds up the sums of the block's threads and writes them to the slot of this worker. */
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

/* Writes the gradients of the filters and of the norm, from the totals in `room`. */
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

/*
 * dy (batch, OH, OW, C), x and dx (batch, IH, IW, C), weight and weight_grad (C, KS, KS). coefs (4,
 * C) of the norm in front are read with IN_NORM. The last block of a slab writes weight_grad and,
 * with DX and IN_NORM, the norm's gradients and back (3, C). Shared memory: HEAD floats, with DX
 * the filters, the window; at the end HEAD floats and TILES slots.
 */
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
