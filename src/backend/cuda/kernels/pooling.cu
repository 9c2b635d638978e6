/*
 * pooling.cu - maximum pools, with or without the norm and activation in front of them, and the
 * average over all pixels. Values are (N, height, width, C).
 *
 *   C                  channels
 *   WIDE               channels of a thread, one vector: 8, or 1 where C is no multiple of 8
 *   TILE               vectors of channels of a block; a power of two
 *   SIDE, STRIDE, PAD  windows of SIDE by SIDE pixels; PAD: padding above and left
 *   NORM, ACT          NORM 1: the input of the pool is ACT(scale * x + shift)
 *   KEEP               1: max_pool writes `where`
 *   REACHES            defined for the backward kernels of maximum pools
 *   ACCUMULATE         1: adds to dx; 0: overwrites dx
 */

#ifdef K_max_pool
/*
 * y = maximum of each window of x. where = tap of the maximum, ky * SIDE + kx, one byte per element
 * of y; of equal maxima the first tap counts. A thread computes one vector of one window;
 * blockIdx.y is the sample. Windows overlap, and neighbouring threads compute neighbouring windows,
 * so that shared pixels come from the cache.
 *
 * A tap outside the picture reads the nearest pixel inside and counts as the tap of that pixel.
 * This changes neither the maximum nor the tap that is found first, and the code is the same for
 * all windows, wherever they lie.
 */
KERNEL max_pool(const T *x, const float *coefs, T *y, u8 *where, int height, int width,
                int out_height, int out_width) {
    u32 vectors = out_height * out_width * (C / WIDE);
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= vectors) {
        return;
    }
    u32 c = at % (C / WIDE) * WIDE;
    u32 pixel = at / (C / WIDE);
    int top = (int)(pixel / out_width) * STRIDE - PAD;
    int left = (int)(pixel % out_width) * STRIDE - PAD;
    const T *image = x + (u64)blockIdx.y * height * width * C + c;
    some scale, shift;
    if (NORM) {
        scale = some_floats(coefs + 2 * C + c), shift = some_floats(coefs + 3 * C + c);
    }
    some best;
    u32 winner[WIDE];
    UNROLL for (int ky = 0; ky < SIDE; ky++) {
        some_packed row[SIDE];
        u32 tap[SIDE];
        int iy = top + ky < 0 ? 0 : top + ky >= height ? height - 1 : top + ky;
        UNROLL for (int kx = 0; kx < SIDE; kx++) {
            int ix = left + kx < 0 ? 0 : left + kx >= width ? width - 1 : left + kx;
            row[kx] = some_fetch(image + (u64)(iy * width + ix) * C);
            tap[kx] = (iy - top) * SIDE + (ix - left);
        }
        UNROLL for (int kx = 0; kx < SIDE; kx++) {
            some v = some_unpack(row[kx]);
            UNROLL for (int i = 0; i < WIDE; i++) {
                if (NORM) {
                    v.v[i] = activate(ACT, scale.v[i] * v.v[i] + shift.v[i]);
                }
                int wins = ky + kx == 0 || v.v[i] > best.v[i];
                best.v[i] = wins ? v.v[i] : best.v[i];
                winner[i] = wins ? tap[kx] : winner[i];
            }
        }
    }
    u64 to = ((u64)blockIdx.y * vectors + at) * WIDE;
    some_store(y + to, best);
    if (!KEEP) {
        return;
    }
#if WIDE == LANES
    uint2 bytes;
    bytes.x = winner[0] | winner[1] << 8 | winner[2] << 16 | winner[3] << 24;
    bytes.y = winner[4] | winner[5] << 8 | winner[6] << 16 | winner[7] << 24;
    *(uint2 *)(where + to) = bytes;
#else
    where[to] = (u8)winner[0];
#endif
}
#endif

#ifdef REACHES /* for the backward kernels of maximum pools */
#define REACH ((SIDE + STRIDE - 1) / STRIDE) /* most windows that cover a pixel, in one direction */

/* The taps of a window's maxima, one byte per channel. */
typedef struct places {
    u32 v[(WIDE + 3) / 4];
} places;

DEVICE places take_places(const u8 *p) {
    places w;
#if WIDE == LANES
    uint2 bytes = *(const uint2 *)p;
    w.v[0] = bytes.x, w.v[1] = bytes.y;
#else
    w.v[0] = *p;
#endif
    return w;
}

/*
 * A thread computes a cell: STRIDE by STRIDE pixels, all covered by the same REACH by REACH
 * windows. In each direction, pixel r of cell i is tap STRIDE * a + r of window i - a. So a thread
 * reads each window once per cell, needs no atomics to sum, and compares taps with compile-time
 * constants. The first cell begins in the padding.
 */
typedef struct cell {
    int y, x;                        /* of its first pixel */
    some_packed back[REACH * REACH]; /* dy of each window */
    places won[REACH * REACH];       /* the taps of its maxima */
    int there[REACH * REACH];        /* 1: the window exists */
} cell;

/* Sizes of the input and the output of the pool. */
typedef struct extent {
    int height, width, out_height, out_width;
} extent;

DEVICE u32 cells_down(extent e) {
    return (e.height - 1 + PAD) / STRIDE + 1;
}

DEVICE u32 cells_across(extent e) {
    return (e.width - 1 + PAD) / STRIDE + 1;
}

/* Loads the windows of cell `index` of a sample. `where` and `dy` point to the sample's first pixel
 * and the thread's first channel. */
DEVICE cell take_cell(const u8 *where, const T *dy, extent e, u32 index) {
    cell it;
    int cell_y = (int)(index / cells_across(e)), cell_x = (int)(index % cells_across(e));
    it.y = cell_y * STRIDE - PAD, it.x = cell_x * STRIDE - PAD;
    UNROLL for (int k = 0; k < REACH * REACH; k++) {
        int oy = cell_y - k / REACH, ox = cell_x - k % REACH;
        int near_y = oy < 0 ? 0 : oy >= e.out_height ? e.out_height - 1 : oy;
        int near_x = ox < 0 ? 0 : ox >= e.out_width ? e.out_width - 1 : ox;
        u64 from = (u64)(near_y * e.out_width + near_x) * C;
        it.there[k] = oy == near_y && ox == near_x;
        it.back[k] = some_fetch(dy + from);
        it.won[k] = take_places(where + from);
    }
    return it;
}

/* Whether pixel r of a cell is in the picture; *place is the index of its first channel. */
DEVICE int pixel_of(const cell *it, extent e, int r, u64 *place) {
    int y = it->y + r / STRIDE, x = it->x + r % STRIDE;
    *place = (u64)(y * e.width + x) * C;
    return y >= 0 && y < e.height && x >= 0 && x < e.width;
}

/* sum + dy of all windows whose maximum is pixel r of the cell. */
DEVICE some cell_gradient(const cell *it, int r, some sum) {
    UNROLL for (int k = REACH * REACH - 1; k >= 0; k--) {
        int ky = STRIDE * (k / REACH) + r / STRIDE, kx = STRIDE * (k % REACH) + r % STRIDE;
        if (ky < SIDE && kx < SIDE) {
            some g = some_unpack(it->back[k]);
            UNROLL for (int i = 0; i < WIDE; i++) {
                u32 tap = it->won[k].v[i / 4] >> (i % 4 * 8) & 255;
                sum.v[i] += it->there[k] && tap == (u32)(ky * SIDE + kx) ? g.v[i] : 0;
            }
        }
    }
    return sum;
}

DEVICE some some_zeros(void) {
    some x;
    UNROLL for (int i = 0; i < WIDE; i++) {
        x.v[i] = 0;
    }
    return x;
}
#endif

#ifdef K_max_pool_back
/*
 * dx = or += for each pixel, the sum of dy over the windows whose maximum it is. A thread computes
 * one vector of one cell; blockIdx.y is the sample.
 */
KERNEL max_pool_back(const u8 *where, const T *dy, T *dx, int height, int width, int out_height,
                     int out_width) {
    extent e = {height, width, out_height, out_width};
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= cells_down(e) * cells_across(e) * (C / WIDE)) {
        return;
    }
    u32 c = at % (C / WIDE) * WIDE;
    u64 outputs = (u64)blockIdx.y * out_height * out_width * C + c;
    T *image = dx + (u64)blockIdx.y * height * width * C + c;
    cell it = take_cell(where + outputs, dy + outputs, e, at / (C / WIDE));
    UNROLL for (int r = 0; r < STRIDE * STRIDE; r++) {
        u64 place;
        if (pixel_of(&it, e, r, &place)) {
            some sum = ACCUMULATE ? some_unpack(some_fetch(image + place)) : some_zeros();
            some_store(image + place, cell_gradient(&it, r, sum));
        }
    }
}
#endif

/*
 * Backward of norm, activation and maximum pool together; the gradient of the pool's input is never
 * stored. A block handles TILE vectors of channels, the blockIdx.y-th tile, and blockDim.x / TILE
 * windows (pool_norm_reduce) or cells (pool_norm_backward) at a time; the blocks of a tile
 * share the windows or cells of all samples.
 */
#ifdef K_pool_norm_reduce
#define THREADS 256
#define COLUMNS (TILE * WIDE) /* channels of a block */
#define REDUCERS (THREADS / COLUMNS)
#define AHEAD 16

/*
 * weight_grad, bias_grad and back of the norm from the sums of dn and dn * (x - mean), as
 * norm_reduce of norm_back.cu. Only the maxima of windows have a gradient, so only their x is read.
 * The last block of a tile adds up the sums of its blocks; REDUCERS threads share a channel, each
 * with AHEAD loads in flight.
 */
KERNEL __launch_bounds__(THREADS, 4)
    pool_norm_reduce(const u8 *where, const T *dy, const T *x, const float *weight,
                     const float *coefs /* (4, C) */, float *weight_grad, float *bias_grad,
                     float *back /* (3, C) */, float *partial /* (gridDim.x, 2, C) */,
                     u32 *counters, int batch, int height, int width, int out_height,
                     int out_width) {
    SHARED(float, room);
    u32 vector = blockIdx.y * TILE + threadIdx.x % TILE;
    int inside = vector < C / WIDE;
    u32 c = inside ? vector * WIDE : 0;
    u32 windows = batch * out_height * out_width, at_once = blockDim.x / TILE;
    some mean = some_floats(coefs + c);
    some scale = some_floats(coefs + 2 * C + c), shift = some_floats(coefs + 3 * C + c);
    some sum = some_zeros(), product = some_zeros();
    u32 at = inside ? blockIdx.x * at_once + threadIdx.x / TILE : windows;
    for (; at < windows; at += gridDim.x * at_once) {
        u32 row = at / out_width; /* counted through all samples */
        int top = (int)(row % out_height) * STRIDE - PAD;
        int left = (int)(at % out_width) * STRIDE - PAD;
        const T *window =
            x + ((long long)(row / out_height) * height * width + top * width + left) * C + c;
        places won = take_places(where + (u64)at * C + c);
        some g = some_unpack(some_fetch(dy + (u64)at * C + c));
        float v[WIDE];
        UNROLL for (int i = 0; i < WIDE; i++) {
            u32 tap = won.v[i / 4] >> (i % 4 * 8) & 255;
            v[i] = up(window[(long long)(tap / SIDE * width + tap % SIDE) * C + i]);
        }
        UNROLL for (int i = 0; i < WIDE; i++) {
            float dn = g.v[i] * slope(ACT, fmaf(scale.v[i], v[i], shift.v[i]));
            sum.v[i] += dn;
            product.v[i] = fmaf(dn, v[i] - mean.v[i], product.v[i]);
        }
    }
    float *mine = partial + (u64)blockIdx.x * 2 * C;
    sum = some_total(sum, room, TILE);
    __syncthreads();
    product = some_total(product, room, TILE);
    if (threadIdx.x < TILE && inside) {
        UNROLL for (int i = 0; i < WIDE; i++) {
            mine[c + i] = sum.v[i];
            mine[C + c + i] = product.v[i];
        }
    }
    if (last_block(counters + blockIdx.y, gridDim.x, (u32 *)room)) {
        double *totals = (double *)room;
        u32 column = threadIdx.x % COLUMNS, reducer = threadIdx.x / COLUMNS;
        u32 channel = blockIdx.y * COLUMNS + column;
        double both[2] = {0, 0};
        for (u32 first = reducer; first < gridDim.x && channel < C; first += AHEAD * REDUCERS) {
            float some_sums[AHEAD][2];
            UNROLL for (int k = 0; k < AHEAD; k++) {
                u32 block = first + k * REDUCERS;
                const float *from = partial + (u64)(block < gridDim.x ? block : first) * 2 * C;
                some_sums[k][0] = from[channel], some_sums[k][1] = from[C + channel];
            }
            UNROLL for (int k = 0; k < AHEAD; k++) {
                int there = first + k * REDUCERS < gridDim.x;
                both[0] += there ? some_sums[k][0] : 0, both[1] += there ? some_sums[k][1] : 0;
            }
        }
        __syncthreads();
        totals[2 * threadIdx.x] = both[0], totals[2 * threadIdx.x + 1] = both[1];
        __syncthreads();
        if (reducer == 0 && channel < C) {
            for (u32 k = 1; k < REDUCERS; k++) {
                both[0] += totals[2 * (k * COLUMNS + column)];
                both[1] += totals[2 * (k * COLUMNS + column) + 1];
            }
            norm_set_back(channel, C, both[0], both[1] * coefs[C + channel],
                             (double)batch * height * width, weight, coefs, weight_grad, bias_grad,
                             back);
        }
    }
}
#endif

#ifdef K_pool_norm_backward
/*
 * dx = a * dn + b * (x - mean) + d, as norm_backward of norm_back.cu, where dn = slope of ACT * the
 * gradient of the pool's input. A thread computes one vector of one cell at a time.
 */
KERNEL __launch_bounds__(256, 2)
    pool_norm_backward(const u8 *where, const T *dy, const T *x, const float *coefs /* (4, C) */,
                       const float *back /* (3, C) */, T *dx, int batch, int height, int width,
                       int out_height, int out_width) {
    extent e = {height, width, out_height, out_width};
    u32 vector = blockIdx.y * TILE + threadIdx.x % TILE;
    if (vector >= C / WIDE) {
        return;
    }
    u32 c = vector * WIDE, cells = cells_down(e) * cells_across(e), at_once = blockDim.x / TILE;
    some mean = some_floats(coefs + c);
    some scale = some_floats(coefs + 2 * C + c), shift = some_floats(coefs + 3 * C + c);
    some b = some_floats(back + C + c), d = some_floats(back + 2 * C + c);
    UNROLL for (int i = 0; i < WIDE; i++) {
        d.v[i] = fmaf(-b.v[i], mean.v[i], d.v[i]);
    }
    u32 at = blockIdx.x * at_once + threadIdx.x / TILE;
    for (; at < batch * cells; at += gridDim.x * at_once) {
        u64 sample = at / cells;
        u64 outputs = sample * out_height * out_width * C + c;
        u64 image = sample * height * width * C + c;
        some_packed taken[STRIDE * STRIDE];
        u64 place;
        cell it = take_cell(where + outputs, dy + outputs, e, at % cells);
        UNROLL for (int r = 0; r < STRIDE * STRIDE; r++) {
            int there = pixel_of(&it, e, r, &place);
            taken[r] = some_fetch_if(x + image + (there ? place : 0), there, some_nothing());
        }
        UNROLL for (int r = 0; r < STRIDE * STRIDE; r++) {
            if (pixel_of(&it, e, r, &place)) {
                some v = some_unpack(taken[r]);
                some g = cell_gradient(&it, r, some_zeros());
                UNROLL for (int i = 0; i < WIDE; i++) {
                    /* The factor a of dn is the norm's scale. */
                    float n = fmaf(scale.v[i], v.v[i], shift.v[i]);
                    float dn = g.v[i] * slope(ACT, n);
                    v.v[i] = fmaf(scale.v[i], dn, fmaf(b.v[i], v.v[i], d.v[i]));
                }
                some_store(dx + image + place, v);
            }
        }
    }
}
#endif

#ifdef K_avg_pool
/* y (N, C) = mean of x over all pixels. A block handles TILE vectors of one sample, blockIdx.y. */
KERNEL avg_pool(const T *x, T *y, int pixels) {
    SHARED(float, room);
    u32 vector = blockIdx.x * TILE + threadIdx.x % TILE;
    some sum;
    UNROLL for (int i = 0; i < WIDE; i++) {
        sum.v[i] = 0;
    }
    if (vector < C / WIDE) {
        const T *from = x + (u64)blockIdx.y * pixels * C + vector * WIDE;
        _Pragma("unroll 8") for (u32 pixel = threadIdx.x / TILE; pixel < pixels;
                                 pixel += blockDim.x / TILE) {
            some v = some_unpack(some_fetch(from + (u64)pixel * C));
            UNROLL for (int i = 0; i < WIDE; i++) {
                sum.v[i] += v.v[i];
            }
        }
    }
    sum = some_total(sum, room, TILE);
    if (threadIdx.x < TILE && vector < C / WIDE) {
        UNROLL for (int i = 0; i < WIDE; i++) {
            sum.v[i] /= (float)pixels;
        }
        some_store(y + (u64)blockIdx.y * C + vector * WIDE, sum);
    }
}
#endif

#ifdef K_avg_pool_back
/* dx = or += dy (N, C) / pixels, the same for all pixels of a sample. blockIdx.y is the sample. */
KERNEL avg_pool_back(const T *dy, T *dx, int pixels) {
    u32 vectors = pixels * (C / WIDE);
    u32 step = gridDim.x * blockDim.x;
    float share = 1.0f / (float)pixels;
    for (u32 at = blockIdx.x * blockDim.x + threadIdx.x; at < vectors; at += step) {
        T *to = dx + ((u64)blockIdx.y * vectors + at) * WIDE;
        some v = some_unpack(some_fetch(dy + (u64)blockIdx.y * C + at % (C / WIDE) * WIDE));
        UNROLL for (int i = 0; i < WIDE; i++) {
            v.v[i] *= share;
        }
        if (ACCUMULATE) {
            some old = some_unpack(some_fetch(to));
            UNROLL for (int i = 0; i < WIDE; i++) {
                v.v[i] += old.v[i];
            }
        }
        some_store(to, v);
    }
}
#endif
