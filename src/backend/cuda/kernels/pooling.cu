/*
 * pooling.cu - the maximum of windows, and the average over all pixels. A thread has WIDE channels.
 */

#ifdef K_max_pool
/*
 * Windows of SIDE by SIDE pixels; blockIdx.y is the sample. Neighbouring windows overlap, and are
 * computed by neighbouring threads: what they share comes from the cache. A tap outside the picture
 * is the nearest one inside once more: that changes neither the maximum nor, under the number of
 * the tap that it repeats, which one comes first, and nothing depends on where the window lies.
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
#if NORM
    some scale = some_floats(coefs + 2 * C + c), shift = some_floats(coefs + 3 * C + c);
#endif
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
#if NORM
                v.v[i] = activate(ACT, scale.v[i] * v.v[i] + shift.v[i]);
#endif
                int wins = ky + kx == 0 || v.v[i] > best.v[i];
                best.v[i] = wins ? v.v[i] : best.v[i];
                winner[i] = wins ? tap[kx] : winner[i];
            }
        }
    }
    u64 to = ((u64)blockIdx.y * vectors + at) * WIDE;
    some_store(y + to, best);
#if KEEP && WIDE == LANES
    uint2 bytes;
    bytes.x = winner[0] | winner[1] << 8 | winner[2] << 16 | winner[3] << 24;
    bytes.y = winner[4] | winner[5] << 8 | winner[6] << 16 | winner[7] << 24;
    *(uint2 *)(where + to) = bytes;
#elif KEEP
    where[to] = (u8)winner[0];
#endif
}
#endif

#ifdef K_max_pool_back
#define REACH ((SIDE + STRIDE - 1) / STRIDE) /* windows that cover a pixel, in one direction */

/* The winners of one window. */
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
 * A thread has a cell of STRIDE by STRIDE pixels of dx, which the same REACH by REACH windows
 * cover: window (cell - a) has pixel r of the cell at its tap STRIDE * a + r. So each window is read
 * once per cell, nothing is added through memory, and all comparisons are with constants.
 */
KERNEL max_pool_back(const u8 *where, const T *dy, T *dx, int height, int width, int out_height,
                     int out_width) {
    u32 cells_down = (height - 1 + PAD) / STRIDE + 1;
    u32 cells_across = (width - 1 + PAD) / STRIDE + 1;
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= cells_down * cells_across * (C / WIDE)) {
        return;
    }
    u32 c = at % (C / WIDE) * WIDE;
    u32 cell = at / (C / WIDE);
    int cell_y = (int)(cell / cells_across), cell_x = (int)(cell % cells_across);
    u64 outputs = (u64)blockIdx.y * out_height * out_width * C + c;
    T *image = dx + (u64)blockIdx.y * height * width * C + c;
    some_packed back[REACH * REACH];
    places won[REACH * REACH];
    int there[REACH * REACH];
    UNROLL for (int k = 0; k < REACH * REACH; k++) {
        int oy = cell_y - k / REACH, ox = cell_x - k % REACH;
        int near_y = oy < 0 ? 0 : oy >= out_height ? out_height - 1 : oy;
        int near_x = ox < 0 ? 0 : ox >= out_width ? out_width - 1 : ox;
        u64 from = outputs + (u64)(near_y * out_width + near_x) * C;
        there[k] = oy == near_y && ox == near_x;
        back[k] = some_fetch(dy + from);
        won[k] = take_places(where + from);
    }
    UNROLL for (int r = 0; r < STRIDE * STRIDE; r++) {
        int iy = cell_y * STRIDE + r / STRIDE - PAD, ix = cell_x * STRIDE + r % STRIDE - PAD;
        if (iy < 0 || iy >= height || ix < 0 || ix >= width) {
            continue;
        }
        T *to = image + (u64)(iy * width + ix) * C;
        some sum;
        UNROLL for (int i = 0; i < WIDE; i++) {
            sum.v[i] = 0;
        }
#if ACCUMULATE
        sum = some_unpack(some_fetch(to));
#endif
        UNROLL for (int k = REACH * REACH - 1; k >= 0; k--) {
            int ky = STRIDE * (k / REACH) + r / STRIDE, kx = STRIDE * (k % REACH) + r % STRIDE;
            if (ky < SIDE && kx < SIDE) {
                some g = some_unpack(back[k]);
                UNROLL for (int i = 0; i < WIDE; i++) {
                    u32 tap = won[k].v[i / 4] >> (i % 4 * 8) & 255;
                    sum.v[i] += there[k] && tap == (u32)(ky * SIDE + kx) ? g.v[i] : 0;
                }
            }
        }
        some_store(to, sum);
    }
}
#endif

#ifdef K_avg_pool
/* A block has one sample, blockIdx.y, and TILE vectors of channels. */
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
/* dx = or += dy / pixels; blockIdx.y is the sample. */
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
#if ACCUMULATE
        some old = some_unpack(some_fetch(to));
        UNROLL for (int i = 0; i < WIDE; i++) {
            v.v[i] += old.v[i];
        }
#endif
        some_store(to, v);
    }
}
#endif
