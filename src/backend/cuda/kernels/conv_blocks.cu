/*
 * conv_blocks.cu - convolutions of 16 channels, stride 1, without padding, forward and weight
 * gradient. A network's first layer over blocks of 2 by 2 pixels is one (cuda_stem of emit.h).
 * Libraries are slow for this shape.
 *
 *     y[n,p,q,f]    = sum over ky, kx, c of  x[n,p+ky,q+kx,c] * w[f,ky,kx,c]
 *     dw[f,ky,kx,c] = sum over n, p, q of    x[n,p+ky,q+kx,c] * dy[n,p,q,f]
 *
 * x is (batch, height, width, 16), w (FILTERS, TAPS, TAPS, 16), y and dy (batch, out_height,
 * out_width, FILTERS); all are T, a type of 2 bytes.
 *
 * A block has four warps. It computes tiles of SIDE by SIDE outputs, every gridDim.x-th tile of the
 * batch, and copies the next tile to shared memory while it computes the current one. Each block
 * writes partial sums over its tiles: statistics of y, or dw. The kernel blocks_sum then adds up
 * the sums of all blocks, in the order of the blocks.
 *
 * Defines (-D) of blocks_forward and blocks_weight:
 *   FILTERS    filters: a multiple of 16, up to 64
 *   TAPS       width and height of a filter: 1 to 4
 *   STATS      forward: 1: sums of y and of its squares are wanted
 * Defines of blocks_sum:
 *   WEIGHT     1: the sums are dw and are written as T; 0: they are statistics, written as float32
 *   REDUCERS   threads that share a column
 */
#ifdef TAPS

#include "tiles.cuh"

#define WARPS 4
#define THREADS (32 * WARPS)
#define SIDE 16                 /* outputs in a row of a tile, and rows */
#define ROWS (SIDE / WARPS)     /* rows of outputs that a warp computes, forward */
#define REACH (SIDE + TAPS - 1) /* width and height of the input of a tile */
#define PIXEL 32                /* bytes of a pixel of x */
#define TILE_BYTES (REACH * REACH * PIXEL)
#define GROUPS (FILTERS / 8)
/* Bytes from one output pixel to the next in shared memory. The padding of 16 bytes puts 8 pixels
 * in a row into different banks. */
#define LINE (FILTERS * 2 + 16)

/* The sample of a tile, and the row and column of its first output. */
typedef struct tile {
    int sample, row, column;
} tile;

/* The sizes of x and y. */
typedef struct extent {
    int batch, height, width, out_height, out_width;
} extent;

DEVICE int tiles_of(extent e) {
    return e.batch * ((e.out_height + SIDE - 1) / SIDE) * ((e.out_width + SIDE - 1) / SIDE);
}

DEVICE tile tile_at(extent e, int index) {
    int across = (e.out_width + SIDE - 1) / SIDE;
    int down_ = (e.out_height + SIDE - 1) / SIDE;
    tile t = {index / (across * down_), index / across % down_ * SIDE, index % across * SIDE};
    return t;
}

/*
 * The address of one half (8 channels) of a pixel of x in shared memory. ldmatrix reads the same
 * half of 8 pixels in a row at once. Every other four pixels have their halves exchanged, so that
 * these 8 lie in different banks.
 */
DEVICE char *half_pixel(char *tile_bytes, int pixel, int half) {
    return tile_bytes + pixel * PIXEL + ((half ^ (pixel >> 2 & 1)) << 4);
}

/* Begins to copy the input of a tile; zeros for pixels outside x. */
DEVICE void copy_input(char *to, const T *x, extent e, tile t) {
    for (int i = threadIdx.x; i < 2 * REACH * REACH; i += THREADS) {
        int pixel = i / 2;
        int row = t.row + pixel / REACH, column = t.column + pixel % REACH;
        int inside = row < e.height && column < e.width;
        u64 at = ((u64)t.sample * e.height + (inside ? row : 0)) * e.width + (inside ? column : 0);
        copy_begin(half_pixel(to, pixel, i & 1), x + at * 16 + (i & 1) * 8, inside ? 16 : 0);
    }
}

/*
 * The address that this lane passes to matrices() to load 16 pixels of a row, from `pixel` on, with
 * all 16 channels.
 */
DEVICE void *input_rows(char *tile_bytes, int pixel) {
    int lane = threadIdx.x % 32;
    return half_pixel(tile_bytes, pixel + lane % 16, lane / 16);
}

#ifdef K_blocks_forward

#define FILTER_LINE (TAPS * TAPS * PIXEL + 16) /* bytes between filters in shared memory */

/*
 * The address that this lane passes to matrices() to load one tap of 16 filters, from filter
 * 8 * group on: the right operands (16 channels, 8 filters) of two products.
 */
DEVICE void *filter_rows(char *filters, int group, int tap) {
    int lane = threadIdx.x % 32;
    int filter = group * 8 + lane % 8 + lane / 16 * 8;
    return filters + filter * FILTER_LINE + tap * PIXEL + (lane / 8 & 1) * 16;
}

DEVICE void copy_filters(char *to, const T *w) {
    for (int i = threadIdx.x; i < FILTERS * TAPS * TAPS * 2; i += THREADS) {
        int filter = i / (TAPS * TAPS * 2), part = i % (TAPS * TAPS * 2);
        copy_begin(to + filter * FILTER_LINE + part * 16, w + (u64)i * 8, 16);
    }
}

/*
 * Computes the outputs of a warp: ROWS rows of 16 outputs, all filters. For each kx the rows of x
 * are loaded once and used for all ky.
 */
DEVICE void multiply(float sums[ROWS][GROUPS][4], char *input, char *filters, int warp) {
    UNROLL for (int kx = 0; kx < TAPS; kx++) {
        u32 a[ROWS + TAPS - 1][4];
        UNROLL for (int r = 0; r < ROWS + TAPS - 1; r++) {
            matrices(a[r], input_rows(input, (warp * ROWS + r) * REACH + kx));
        }
        UNROLL for (int ky = 0; ky < TAPS; ky++) {
            UNROLL for (int g = 0; g < GROUPS; g += 2) {
                u32 b[4];
                matrices(b, filter_rows(filters, g, ky * TAPS + kx));
                UNROLL for (int r = 0; r < ROWS; r++) {
                    add_product(sums[r][g], a[r + ky], b);
                    add_product(sums[r][g + 1], a[r + ky], b + 2);
                }
            }
        }
    }
}

#define SHARES (32 / GROUPS) /* pixels that a warp stores at a time; lanes left over are idle */

/*
 * Stores the first `count` of a row of 16 outputs, and adds them, as rounded to T, to the
 * statistics. The outputs pass through shared memory (`room`), so that a lane stores 8 filters of a
 * pixel at once.
 */
DEVICE void put_row(float sums[GROUPS][4], char *room, T *y, int count, lanes *total,
                    lanes *squares) {
    int lane = threadIdx.x % 32;
    __syncwarp();
    UNROLL for (int g = 0; g < GROUPS; g++) {
        char *to = room + lane / 4 * LINE + g * 16 + lane % 4 * 4;
        *(u32 *)to = down2(sums[g][0], sums[g][1]);
        *(u32 *)(to + 8 * LINE) = down2(sums[g][2], sums[g][3]);
    }
    __syncwarp();
    int group = lane % GROUPS;
    for (int pixel = lane / GROUPS; pixel < count && lane < SHARES * GROUPS; pixel += SHARES) {
        packed taken;
        taken.a = *(const uint4 *)(room + pixel * LINE + group * 16);
        __stcg((uint4 *)(y + (u64)pixel * FILTERS + group * 8), taken.a);
        lanes v = unpack(taken);
        UNROLL for (int i = 0; STATS && i < 8; i++) {
            total->v[i] += v.v[i];
            squares->v[i] = fmaf(v.v[i], v.v[i], squares->v[i]);
        }
    }
}

/*
 * Computes y and, with STATS, the block's sums of y and of its squares. Shared memory: the inputs
 * of two tiles, the filters, and for each warp a row of 16 outputs; at the end the sums of the
 * threads.
 */
KERNEL __launch_bounds__(THREADS, 2)
    blocks_forward(const T *x, const T *w, T *y, float *partial /* (blocks, 2, FILTERS) */,
                   int batch, int height, int width, int out_height, int out_width) {
    SHARED(char, room);
    extent e = {batch, height, width, out_height, out_width};
    int warp = threadIdx.x / 32;
    char *filters = room + 2 * TILE_BYTES;
    char *outputs = filters + FILTERS * FILTER_LINE;
    lanes total, squares;
    UNROLL for (int i = 0; i < 8; i++) {
        total.v[i] = squares.v[i] = 0;
    }
    int index = blockIdx.x, count = tiles_of(e), turn = 0;
    copy_filters(filters, w);
    copy_input(room, x, e, tile_at(e, index));
    copy_group();
    for (; index < count; index += gridDim.x, turn ^= 1) {
        tile now = tile_at(e, index);
        if (index + (int)gridDim.x < count) {
            copy_input(room + (turn ^ 1) * TILE_BYTES, x, e, tile_at(e, index + gridDim.x));
        }
        copy_group();
        copy_wait(1);
        __syncthreads();
        float sums[ROWS][GROUPS][4];
        UNROLL for (int r = 0; r < ROWS; r++) {
            UNROLL for (int g = 0; g < GROUPS; g++) {
                sums[r][g][0] = sums[r][g][1] = sums[r][g][2] = sums[r][g][3] = 0;
            }
        }
        multiply(sums, room + turn * TILE_BYTES, filters, warp);
        int wide = e.out_width - now.column < SIDE ? e.out_width - now.column : SIDE;
        UNROLL for (int r = 0; r < ROWS; r++) {
            int row = now.row + warp * ROWS + r;
            int some = row < e.out_height ? wide : 0;
            u64 at = ((u64)now.sample * e.out_height + row) * e.out_width + now.column;
            put_row(sums[r], outputs + warp * 16 * LINE, y + at * FILTERS, some, &total, &squares);
        }
        __syncthreads();
    }
    if (!STATS) {
        return;
    }
    /* Adds up each filter over the lanes that hold it, warp by warp, always in the same order. */
    float *mine = (float *)room;
    UNROLL for (int i = 0; i < 8; i++) {
        mine[(0 + i) * THREADS + threadIdx.x] = total.v[i];
        mine[(8 + i) * THREADS + threadIdx.x] = squares.v[i];
    }
    __syncthreads();
    for (int c = threadIdx.x; c < 2 * FILTERS; c += THREADS) {
        int filter = c % FILTERS;
        const float *from = mine + (c / FILTERS * 8 + filter % 8) * THREADS;
        float sum = 0;
        for (int k = 0; k < WARPS * SHARES; k++) {
            sum += from[k / SHARES * 32 + k % SHARES * GROUPS + filter / 8];
        }
        partial[blockIdx.x * 2 * FILTERS + c] = sum;
    }
}
#endif

#ifdef K_blocks_weight

#define GRADIENT_BYTES (SIDE * SIDE * LINE)
#define BUFFER_BYTES (TILE_BYTES + GRADIENT_BYTES)

/* Begins to copy dy of a tile; zeros for pixels outside y. */
DEVICE void copy_gradients(char *to, const T *dy, extent e, tile t) {
    for (int i = threadIdx.x; i < SIDE * SIDE * GROUPS; i += THREADS) {
        int pixel = i / GROUPS, group = i % GROUPS;
        int row = t.row + pixel / SIDE, column = t.column + pixel % SIDE;
        int inside = row < e.out_height && column < e.out_width;
        u64 at = ((u64)t.sample * e.out_height + (inside ? row : 0)) * e.out_width +
                 (inside ? column : 0);
        copy_begin(to + pixel * LINE + group * 16, dy + at * FILTERS + group * 8,
                   inside ? 16 : 0);
    }
}

/*
 * Computes the block's sums of dw. Warp ky computes row ky of the taps for all filters: (FILTERS,
 * TAPS, 16). Warps from TAPS on only copy. Shared memory: x and dy of two tiles.
 */
KERNEL __launch_bounds__(THREADS, 2)
    blocks_weight(const T *x, const T *dy, float *partial /* (blocks, FILTERS, TAPS, TAPS, 16) */,
                  int batch, int height, int width, int out_height, int out_width) {
    SHARED(char, room);
    extent e = {batch, height, width, out_height, out_width};
    int lane = threadIdx.x % 32, ky = threadIdx.x / 32;
    float sums[FILTERS / 16][TAPS][2][4];
    UNROLL for (int f = 0; f < FILTERS / 16; f++) {
        UNROLL for (int i = 0; i < TAPS * 8; i++) {
            sums[f][i / 8][i / 4 % 2][i % 4] = 0;
        }
    }
    int index = blockIdx.x, count = tiles_of(e), turn = 0;
    copy_input(room, x, e, tile_at(e, index));
    copy_gradients(room + TILE_BYTES, dy, e, tile_at(e, index));
    copy_group();
    for (; index < count; index += gridDim.x, turn ^= 1) {
        if (index + (int)gridDim.x < count) {
            tile next = tile_at(e, index + gridDim.x);
            copy_input(room + (turn ^ 1) * BUFFER_BYTES, x, e, next);
            copy_gradients(room + (turn ^ 1) * BUFFER_BYTES + TILE_BYTES, dy, e, next);
        }
        copy_group();
        copy_wait(1);
        __syncthreads();
        char *input = room + turn * BUFFER_BYTES;
        char *gradients = input + TILE_BYTES;
        for (int r = 0; r < SIDE && ky < TAPS; r++) {
            u32 a[FILTERS / 16][4];
            /* dy is (outputs, filters), the left operand (filters, outputs): transpose on load. */
            char *from = gradients + (r * SIDE + lane % 8 + lane / 16 * 8) * LINE + (lane / 8 & 1) * 16;
            UNROLL for (int f = 0; f < FILTERS / 16; f++) {
                matrices_turned(a[f], from + f * 32);
            }
            UNROLL for (int kx = 0; kx < TAPS; kx++) {
                u32 b[4];
                matrices_turned(b, input_rows(input, (r + ky) * REACH + kx));
                UNROLL for (int f = 0; f < FILTERS / 16; f++) {
                    add_product(sums[f][kx][0], a[f], b);
                    add_product(sums[f][kx][1], a[f], b + 2);
                }
            }
        }
        __syncthreads();
    }
    float *mine = partial + (u64)blockIdx.x * FILTERS * TAPS * TAPS * 16;
    UNROLL for (int f = 0; f < FILTERS / 16 && ky < TAPS; f++) {
        UNROLL for (int i = 0; i < TAPS * 2; i++) {
            const float *c = sums[f][i / 2][i % 2];
            u64 at = ((u64)(f * 16 + lane / 4) * TAPS * TAPS + ky * TAPS + i / 2) * 16 + i % 2 * 8 +
                     lane % 4 * 2;
            float2 upper, lower;
            upper.x = c[0], upper.y = c[1], lower.x = c[2], lower.y = c[3];
            *(float2 *)(mine + at) = upper;
            *(float2 *)(mine + at + 8 * TAPS * TAPS * 16) = lower;
        }
    }
}
#endif

#endif

#ifdef K_blocks_sum
#if WEIGHT
typedef T summed;
#else
typedef float summed;
#endif

/*
 * to[i] = the sum of partial[block][i] over all blocks; `partial` is (blocks, count). A block has
 * blockDim.x / REDUCERS columns i. REDUCERS threads share a column: each adds up every REDUCERS-th
 * row, then the first adds up their sums, in order. AHEAD: loads that a thread has in flight.
 */
#define AHEAD 8
KERNEL blocks_sum(const float *partial, summed *to, int blocks, int count) {
    SHARED(float, room); /* (REDUCERS, columns) */
    int columns = blockDim.x / REDUCERS;
    int reducer = threadIdx.x / columns;
    int i = blockIdx.x * columns + threadIdx.x % columns;
    float sum = 0;
    for (int k = reducer; k < blocks && i < count; k += AHEAD * REDUCERS) {
        float some_sums[AHEAD];
        UNROLL for (int j = 0; j < AHEAD; j++) {
            int row = k + j * REDUCERS;
            some_sums[j] = row < blocks ? partial[(u64)row * count + i] : 0;
        }
        UNROLL for (int j = 0; j < AHEAD; j++) {
            sum += some_sums[j];
        }
    }
    room[threadIdx.x] = sum;
    __syncthreads();
    if (reducer == 0 && i < count) {
        UNROLL for (int k = 1; k < REDUCERS; k++) {
            sum += room[k * columns + threadIdx.x];
        }
#if WEIGHT
        to[i] = down(sum);
#else
        to[i] = sum;
#endif
    }
}
#endif
