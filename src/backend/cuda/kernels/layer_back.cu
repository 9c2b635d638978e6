/*
 * layer_back.cu - backward of a 1x1 convolution of stride 1 and of the norm after it, in one pass.
 *
 * The convolution maps K channels to N. x (rows, N) is its output, which the norm read. g (rows, N)
 * is the gradient of the output of the chain: norm, stochastic depth, addition, activation. With
 *
 *     sg = slope of the activation * g     (rows, N), also the gradient of what was added
 *     dn = drop factor of the sample * sg  (rows, N)
 *
 * the kernel computes
 *
 *     dy = a * dn + b * (x - mean) + d     (rows, N), rounded to T; a, b and d are in `back`
 *     dx = or += dy W                      (rows, K)
 *     dW = dy' input                       (N, K)
 *
 * With few channels memory limits the speed. Three separate kernels would write dy once and read it
 * twice; here it stays in shared memory.
 *
 * Block b computes tiles b, b + gridDim.x and so on, each of ROWS rows. Shared memory holds W and
 * STAGES tiles: while the block computes one, the next are being copied. dy replaces g in shared
 * memory. Tensor cores compute both products. A block keeps its sum of dW in registers and writes
 * it to `partial` at the end; layer_back_sum adds up the sums of all blocks in a fixed order, so
 * that the result is the same to the bit every time.
 *
 * In shared memory channels are padded with zeros to a multiple of 16.
 *
 *   N, K        channels of the convolution's output and input; multiples of 8
 *   ROWS        rows of a tile; a multiple of 16
 *   STAGES      tiles in shared memory; at least 2
 *   THREADS     threads of a block
 *   BLOCKS      blocks that a multiprocessor should hold
 *   HIGH        the warps form a grid of HIGH by WARPS / HIGH over dW (N, K)
 *   DX_TALL     a warp computes 16 * DX_TALL rows of a tile's dx
 *   ACT         the activation after the norm
 *   DROP        1: stochastic depth follows the norm
 *   MASK        1: the slope of the activation is 0 or 1, as the bits of `mask` say
 *   ADDED_DX    1: sg is written to added_dx
 *   ACCUMULATE  1: adds to dx; 0: overwrites dx
 *   IN_NORM     1: the convolution read IN_ACT(scale * input + shift), by in_coefs; 0: `input`
 *   IN_ACT      see IN_NORM
 */
#ifdef N

#include "tiles.cuh"
#include "branch.cuh"

#define WARPS (THREADS / 32)
#define N_FULL (CEIL(N, 16) * 16)
#define K_FULL (CEIL(K, 16) * 16)
#define N_PIECES (N_FULL / 8)
#define K_PIECES (K_FULL / 8)

/* 1: dx has memory of its own in a stage; 0: dx overwrites x. */
#define OLD (ACCUMULATE || K_FULL > N_FULL)

/* Where the parts of a tile begin in its stage, in pieces of 16 bytes. g, later dy, is at 0. */
#define N_TILE (ROWS * APART(N_PIECES))
#define K_TILE (ROWS * APART(K_PIECES))
#define X_AT N_TILE
#define IN_AT (2 * N_TILE)
#define OLD_AT (2 * N_TILE + K_TILE)
#define OUT_AT (OLD ? OLD_AT : X_AT)
#define MASK_AT (2 * N_TILE + (OLD ? 2 : 1) * K_TILE)
#define STAGE (MASK_AT + (MASK ? CEIL(ROWS * N, 128) : 0))
#define W_SIZE (N_FULL * APART(K_PIECES)) /* pieces of the weights, which lie before all stages */

/* 1: the slope of the activation is computed from its input, a function of x. */
#define FROM_X (ACT != ACT_NONE && !MASK)

/* A warp computes M_UNITS * 16 rows and PAIRS * 16 columns of dW. */
#define ACROSS (WARPS / HIGH)
#define M_UNITS CEIL(N_FULL / 16, HIGH)
#define PAIRS CEIL(K_FULL / 16, ACROSS)

/* A warp computes 16 * DX_TALL rows and DX_PAIRS * 16 columns of a tile's dx, DX_AT_ONCE * 16
 * columns at a time. */
#define DX_HIGH (ROWS / 16 / DX_TALL)
#define DX_PAIRS CEIL(K_FULL / 16, WARPS / DX_HIGH)
#define DX_AT_ONCE (DX_PAIRS % 2 == 0 && K_FULL % 32 == 0 ? 2 : 1)

/* ---- tiles ---- */

#ifdef K_layer_back

/* The tensors that tiles are copied from. */
typedef struct places {
    const T *g, *x, *input, *dx;
    const u8 *mask;
} places;

/* Starts the copies of the tile from row `first` on. Rows that do not exist become zeros. */
DEVICE void begin_tile(uint4 *stage, places p, u32 first, u32 rows) {
    copy_rows(stage, p.g, N, N_PIECES, ROWS, THREADS, first, rows);
    copy_rows(stage + X_AT, p.x, N, N_PIECES, ROWS, THREADS, first, rows);
    copy_rows(stage + IN_AT, p.input, K, K_PIECES, ROWS, THREADS, first, rows);
    if (ACCUMULATE) {
        copy_rows(stage + OLD_AT, p.dx, K, K_PIECES, ROWS, THREADS, first, rows);
    }
    u64 from = (u64)first * (N / 8);
    u64 end = (u64)rows * (N / 8);
    for (int i = threadIdx.x; MASK && i < CEIL(ROWS * N, 128); i += THREADS) {
        u64 at = from + (u32)i * 16;
        if (at + 16 <= end) {
            copy_begin(stage + MASK_AT + i, p.mask + at, 16);
        } else { /* do not read past the end of the mask */
            u8 *to = (u8 *)(stage + MASK_AT + i);
            for (u32 k = 0; k < 16; k++) {
                to[k] = at + k < end ? p.mask[at + k] : 0;
            }
        }
    }
}

/* ---- dy ---- */

#define N_HIGH (THREADS / (N / 8)) /* rows of dy that the threads handle at a time */
#define K_HIGH (THREADS / (K / 8)) /* the same for `input` */

/* The coefficients of a thread's 8 channels: dy = a * dn + b * x + e, where e = d - b * mean. */
typedef struct slopes {
    lanes a, b, e;
    lanes shift; /* with FROM_X: the activation read a * x + shift; a is the norm's scale */
} slopes;

DEVICE slopes slopes_of(const float *coefs, const float *back) {
    slopes s;
    int n = (int)threadIdx.x % (N / 8) * LANES;
    lanes mean = load_floats(coefs + n);
    s.a = load_floats(back + n);
    s.b = load_floats(back + N + n);
    s.e = load_floats(back + 2 * N + n);
    UNROLL
    for (int i = 0; i < LANES; i++) {
        s.e.v[i] = fmaf(-s.b.v[i], mean.v[i], s.e.v[i]);
    }
    if (FROM_X) {
        s.shift = load_floats(coefs + 3 * N + n);
    }
    return s;
}

/* The gradient of the activation's input, from the gradient g of its output. */
DEVICE lanes through_act(const slopes *s, lanes g, lanes x, u32 bits) {
    UNROLL
    for (int i = 0; i < LANES; i++) {
        if (MASK) {
            g.v[i] = bits >> i & 1 ? g.v[i] : 0;
        } else if (FROM_X) {
            g.v[i] *= slope(ACT, fmaf(s->a.v[i], x.v[i], s->shift.v[i]));
        }
    }
    return g;
}

DEVICE packed piece_at(const uint4 *p) {
    packed x;
    x.a = *p;
    return x;
}

/*
 * Replaces g by dy in shared memory. dy is zero in rows that do not exist. With ADDED_DX also
 * writes the gradient of what was added.
 */
DEVICE void make_dy(uint4 *stage, const slopes *s, dropping drop, T *added_dx, u32 first,
                    u32 rows) {
    int c = (int)threadIdx.x % (N / 8);
    int top = (int)threadIdx.x / (N / 8);
    UNROLL
    for (int k = 0; k < CEIL(ROWS, N_HIGH); k++) {
        int r = top + k * N_HIGH;
        u32 row = first + (u32)r;
        if (top >= N_HIGH || (ROWS % N_HIGH != 0 && r >= ROWS)) {
            continue;
        }
        uint4 *place = stage + AT(r, c, N_PIECES);
        lanes x = unpack(piece_at(place + X_AT));
        lanes dn = unpack(piece_at(place));
        u32 bits = MASK ? ((const u8 *)(stage + MASK_AT))[r * (N / 8) + c] : 0;
        dn = through_act(s, dn, x, bits);
        if (ADDED_DX && row < rows) {
            store(added_dx + (u64)row * N + (u32)c * LANES, dn);
        }
        dn = times(dn, row_factor(drop, row));
        UNROLL
        for (int i = 0; i < LANES; i++) {
            dn.v[i] = fmaf(s->a.v[i], dn.v[i], fmaf(s->b.v[i], x.v[i], s->e.v[i]));
        }
        *place = row < rows ? pack(dn).a : fetch_nothing().a;
    }
}

/*
 * With IN_NORM: replaces `input` in shared memory by what the convolution read, IN_ACT(scale *
 * input + shift). Each call loads the coefficients again: there are too few registers to keep them.
 */
DEVICE void make_input(uint4 *stage, const float *in_coefs) {
    if (!IN_NORM) {
        return;
    }
    int c = (int)threadIdx.x % (K / 8);
    int top = (int)threadIdx.x / (K / 8);
    lanes scale = load_floats(in_coefs + 2 * K + c * LANES);
    lanes shift = load_floats(in_coefs + 3 * K + c * LANES);
    UNROLL
    for (int k = 0; k < CEIL(ROWS, K_HIGH); k++) {
        int r = top + k * K_HIGH;
        if (top >= K_HIGH || (ROWS % K_HIGH != 0 && r >= ROWS)) {
            continue;
        }
        uint4 *place = stage + IN_AT + AT(r, c, K_PIECES);
        lanes x = unpack(piece_at(place));
        UNROLL
        for (int i = 0; i < LANES; i++) {
            x.v[i] = activate(IN_ACT, fmaf(scale.v[i], x.v[i], shift.v[i]));
        }
        *place = pack(x).a;
    }
}

/* ---- products ---- */

/* Stores two neighbours of dx in shared memory; with ACCUMULATE adds them to its contents. */
DEVICE void put_two(u32 *place, float low, float high) {
    if (ACCUMULATE) {
        low += up((T)(*place & 0xFFFF));
        high += up((T)(*place >> 16));
    }
    *place = down2(low, high);
}

/* dx = dy W of a tile, into shared memory. `pair` is the index of 16 columns of dx. */
DEVICE void make_dx(uint4 *stage, const uint4 *w) {
    int lane = (int)threadIdx.x % 32;
    int warp = (int)threadIdx.x / 32;
    int top = warp % DX_HIGH * 16 * DX_TALL;
    int pair = warp / DX_HIGH * DX_PAIRS;
    int end = pair + DX_PAIRS < K_FULL / 16 ? pair + DX_PAIRS : K_FULL / 16;
    uint4 *out = stage + OUT_AT;
    for (; pair < end; pair += DX_AT_ONCE) {
        float c[DX_TALL][2 * DX_AT_ONCE][4];
        UNROLL
        for (int i = 0; i < DX_TALL * DX_AT_ONCE * 8; i++) {
            c[i / 8 / DX_AT_ONCE][i / 4 % (2 * DX_AT_ONCE)][i % 4] = 0;
        }
        UNROLL_FOUR
        for (int n = 0; n < N_FULL / 16; n++) {
            u32 a[DX_TALL][4];
            UNROLL
            for (int t = 0; t < DX_TALL; t++) {
                matrices(a[t], stage + AT(top + 16 * t + lane % 16, 2 * n + lane / 16, N_PIECES));
            }
            UNROLL
            for (int p = 0; p < DX_AT_ONCE; p++) {
                u32 b[4];
                int piece = 2 * (pair + p) + lane / 16;
                matrices_turned(b, w + AT(16 * n + lane % 16, piece, K_PIECES));
                UNROLL
                for (int t = 0; t < DX_TALL; t++) {
                    add_product(c[t][2 * p], a[t], b);
                    add_product(c[t][2 * p + 1], a[t], b + 2);
                }
            }
        }
        UNROLL
        for (int i = 0; i < DX_TALL * 2 * DX_AT_ONCE; i++) {
            int piece = 2 * pair + i % (2 * DX_AT_ONCE);
            int row = top + i / (2 * DX_AT_ONCE) * 16 + lane / 4;
            float *two = c[i / (2 * DX_AT_ONCE)][i % (2 * DX_AT_ONCE)];
            put_two((u32 *)(out + AT(row, piece, K_PIECES)) + lane % 4, two[0], two[1]);
            put_two((u32 *)(out + AT(row + 8, piece, K_PIECES)) + lane % 4, two[2], two[3]);
        }
    }
}

/* The first row of a warp's part of dW, in units of 16. */
DEVICE int unit_of_warp(void) {
    return (int)threadIdx.x / 32 % HIGH * M_UNITS;
}

/* The first column of a warp's part of dW, in units of 16. */
DEVICE int pair_of_warp(void) {
    return (int)threadIdx.x / 32 / HIGH * PAIRS;
}

/*
 * Adds dy' input of a tile to the warp's part of dW. Where this part reaches past the end of dW,
 * the last 16 rows or columns are computed once more; put_dw() does not write them.
 */
DEVICE void add_dw(float c[M_UNITS][PAIRS][2][4], const uint4 *stage) {
    int lane = (int)threadIdx.x % 32;
    const uint4 *input = stage + IN_AT;
    UNROLL
    for (int r = 0; r < ROWS; r += 16) {
        u32 a[M_UNITS][4];
        UNROLL
        for (int m = 0; m < M_UNITS; m++) {
            int unit = unit_of_warp() + m;
            unit = unit < N_FULL / 16 ? unit : N_FULL / 16 - 1;
            matrices_turned(a[m], stage + AT(r + lane % 8 + lane / 16 * 8,
                                             2 * unit + lane / 8 % 2, N_PIECES));
        }
        UNROLL
        for (int p = 0; p < PAIRS; p++) {
            u32 b[4];
            int pair = pair_of_warp() + p;
            pair = pair < K_FULL / 16 ? pair : K_FULL / 16 - 1;
            matrices_turned(b, input + AT(r + lane % 16, 2 * pair + lane / 16, K_PIECES));
            UNROLL
            for (int m = 0; m < M_UNITS; m++) {
                add_product(c[m][p][0], a[m], b);
                add_product(c[m][p][1], a[m], b + 2);
            }
        }
    }
}

/* Writes the warp's part of dW to the block's (N, K) floats of `partial`. */
DEVICE void put_dw(float c[M_UNITS][PAIRS][2][4], float *partial) {
    int lane = (int)threadIdx.x % 32;
    UNROLL
    for (int m = 0; m < M_UNITS; m++) {
        UNROLL
        for (int i = 0; i < 4 * PAIRS; i++) {
            int n = (unit_of_warp() + m) * 16 + i % 2 * 8 + lane / 4;
            int k = (pair_of_warp() + i / 4) * 16 + i / 2 % 2 * 8 + lane % 4 * 2;
            if (n < N && k < K) {
                float2 two;
                two.x = c[m][i / 4][i / 2 % 2][i % 2 * 2];
                two.y = c[m][i / 4][i / 2 % 2][i % 2 * 2 + 1];
                *(float2 *)(partial + n * K + k) = two;
            }
        }
    }
}

/* Copies dx of a tile from shared to global memory. */
DEVICE void put_dx(const uint4 *stage, T *dx, u32 first, u32 rows) {
    UNROLL
    for (int k = 0; k < CEIL(ROWS * K / 8, THREADS); k++) {
        int i = k * THREADS + (int)threadIdx.x;
        int r = i / (K / 8);
        int c = i % (K / 8);
        u32 row = first + (u32)r;
        if (r < ROWS && row < rows) {
            __stcg((uint4 *)(dx + (u64)row * K + (u32)c * LANES),
                   stage[OUT_AT + AT(r, c, K_PIECES)]);
        }
    }
}

/*
 * Starts the copies of the weights. If channels are padded, fills shared memory with zeros first.
 */
DEVICE void begin_weights(uint4 *room, const T *w) {
    if (N % 16 != 0 || K % 16 != 0) {
        for (int i = threadIdx.x; i < W_SIZE + STAGES * STAGE; i += THREADS) {
            room[i] = fetch_nothing().a;
        }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < N * K / 8; i += THREADS) {
        copy_begin(room + AT(i / (K / 8), i % (K / 8), K_PIECES), w + i * LANES, 16);
    }
}

/*
 * x and added_dx are (rows, N), added_dx may lie on g; mask is as in stk_cuda_norm_apply().
 * `pixels` of a sample, `rate` and `node` are those of stochastic depth.
 */
KERNEL __launch_bounds__(THREADS, BLOCKS)
    layer_back(const T *g /* (rows, N) */, const T *x, const float *coefs /* (4, N) */,
               const float *back /* (3, N) */, const u8 *mask, T *added_dx,
               const T *input /* (rows, K) */, const float *in_coefs /* (4, K) */,
               const T *w /* (N, K) */, T *dx /* (rows, K) */,
               float *partial /* (blocks, N, K) */, const cuda_step_constants *constants, u32 rows, u32 pixels,
               float rate, int node) {
    SHARED(uint4, room);
    uint4 *stages = room + W_SIZE;
    places p = {g, x, input, dx, mask};
    slopes s = slopes_of(coefs, back);
    dropping drop = dropping_of(constants, pixels, rate, node);
    float dw[M_UNITS][PAIRS][2][4];
    UNROLL
    for (int i = 0; i < M_UNITS * PAIRS * 8; i++) {
        dw[i / 8 / PAIRS][i / 8 % PAIRS][i / 4 % 2][i % 4] = 0;
    }
    u32 step = gridDim.x * ROWS;
    begin_weights(room, w);
    UNROLL
    for (u32 k = 0; k < STAGES - 1; k++) {
        u32 first = blockIdx.x * ROWS + k * step;
        if (first < rows) {
            begin_tile(stages + k * STAGE, p, first, rows);
        }
        copy_group();
    }
    u32 at = 0;
    for (u32 first = blockIdx.x * ROWS; first < rows; first += step) {
        uint4 *stage = stages + at * STAGE;
        u32 far = first + (STAGES - 1) * step;
        copy_wait(STAGES - 2);
        __syncthreads();
        if (far < rows) {
            begin_tile(stages + (at == 0 ? STAGES - 1 : at - 1) * STAGE, p, far, rows);
        }
        copy_group();
        make_dy(stage, &s, drop, added_dx, first, rows);
        make_input(stage, in_coefs);
        __syncthreads();
        make_dx(stage, room);
        add_dw(dw, stage);
        __syncthreads();
        put_dx(stage, dx, first, rows);
        at = at == STAGES - 1 ? 0 : at + 1;
    }
    put_dw(dw, partial + (u64)blockIdx.x * (N * K));
}
#endif

#endif

#ifdef K_layer_back_sum
#define AHEAD 4
#define BLOCK_QUADS (u64)(COUNT / 4)
#define IN_DOUBLE 0
#include "block_sums.cuh"

/*
 * dw = sum of `partial` over all blocks of layer_back, in a fixed order. A quad is four
 * neighbouring sums. A block has QUADS * REDUCERS threads: it computes QUADS quads, and REDUCERS
 * threads share the blocks' values of one quad. COUNT is N * K.
 */
KERNEL layer_back_sum(const float *partial /* (blocks, COUNT) */, T *dw, int blocks) {
    SHARED(four, room);
    int quad = (int)threadIdx.x % QUADS;
    int reducer = (int)threadIdx.x / QUADS;
    int at = (int)blockIdx.x * QUADS + quad;
    int inside = at < COUNT / 4;
    const float4 *from = (const float4 *)partial + at;
    four sum = add_share(from, reducer, blocks, inside);
    room[threadIdx.x] = sum;
    __syncthreads();
    if (reducer == 0 && inside) {
        for (int k = 1; k < REDUCERS; k++) {
            four more = room[k * QUADS + quad];
            sum.x += more.x;
            sum.y += more.y;
            sum.z += more.z;
            sum.w += more.w;
        }
        uint2 packed_sum;
        packed_sum.x = down2(sum.x, sum.y);
        packed_sum.y = down2(sum.z, sum.w);
        *(uint2 *)(dw + 4 * at) = packed_sum;
    }
}
#endif
