/*
 * squeeze.cu - squeeze and excite after a norm and its activation, as cuda_squeeze of emit.h
 * says it, with s = act(scale * x + shift) computed wherever it is needed: the passes over pixels.
 * squeeze_layers.cu has the two layers.
 *
 * Passes over pixels: a block has one sample, SPAN * WIDE channels and one of `chunks` parts of the
 * pixels; a thread has WIDE channels of every LINES-th pixel. What it sums up goes to `partial`,
 * (N, chunks, sums, C); whoever reads that adds the chunks in order.
 *
 * Backward needs no second look at x and dp before the sums of the norm are known: with dn = (dp *
 * gate + dsqueezed / pixels) * s', the sums of dn and of dn * (x - mean) are combinations of
 * the five sums of the first pass.
 *
 *   C, WIDE       channels; 8 or 1 of them belong to a thread
 *   PIXELS        of a sample
 *   SPAN, LINES   threads across channels and across pixels
 *   ACT           the activation after the norm
 *   AGAIN         backward: 1: p is computed once more
 *   RESIDENT      blocks that a multiprocessor should hold
 */
#define BOUNDS __launch_bounds__(SPAN *LINES, RESIDENT)
#if TYPE == 0
#define FLIGHT 2 /* loads of a tensor that a thread has under way, as registers allow */
#elif defined(K_squeeze_back_sum)
#define FLIGHT 3
#else
#define FLIGHT 4
#endif

/* Where a thread of a pass over pixels works. */
typedef struct place {
    int n, c;
    int busy; /* c is a channel */
    int first, end;
    u64 sample; /* elements before pixel 0, channel c */
} place;

#if defined(SPAN)

#define TILE (SPAN * WIDE)
#define TILES ((C + TILE - 1) / TILE)

/* Passes that sum begin with the last sample, which is still in the cache, and those that follow
 * them with the first. */
#if defined(K_squeeze_sum) || defined(K_squeeze_back_sum)
#define BACKWARDS 1
#else
#define BACKWARDS 0
#endif

DEVICE place find_place(int chunks) {
    place p;
    int chunk = blockIdx.x / TILES;
    int size = (PIXELS + chunks - 1) / chunks;
    p.n = BACKWARDS ? gridDim.y - 1 - blockIdx.y : blockIdx.y;
    p.c = (blockIdx.x % TILES * SPAN + threadIdx.x % SPAN) * WIDE;
    p.busy = C % TILE == 0 || p.c < C;
    p.first = chunk * size + threadIdx.x / SPAN;
    p.end = (chunk + 1) * size < PIXELS ? (chunk + 1) * size : PIXELS;
    p.end = p.busy ? p.end : 0;
    p.sample = (u64)p.n * PIXELS * C + p.c;
    return p;
}

DEVICE some vector_at(const float *vector, const place *p) {
    return some_floats(vector + (p->busy ? p->c : 0));
}

/* FLIGHT pixels from `at` on, LINES apart: all loads are under way before the first is needed. */
DEVICE void take(some_packed found[FLIGHT], const T *from, const place *p, int at) {
    UNROLL for (int u = 0; u < FLIGHT; u++) {
        int pixel = at + u * LINES;
        found[u] = some_fetch_if(from + p->sample + pixel * C, pixel < p->end, some_nothing());
    }
}

/* The sums of all lines of this block, to `sums` planes of C floats. */
DEVICE void tell(const place *p, const some *values, int sums, float *room, float *partial,
                 int chunks) {
    float *to = partial + (u64)(p->n * chunks + blockIdx.x / TILES) * sums * C;
    for (int k = 0; k < sums; k++) {
        __syncthreads();
        UNROLL for (int i = 0; i < WIDE; i++) {
            room[threadIdx.x / SPAN * TILE + threadIdx.x % SPAN * WIDE + i] = values[k].v[i];
        }
        __syncthreads();
        for (int i = threadIdx.x; i < TILE; i += SPAN * LINES) {
            int c = blockIdx.x % TILES * TILE + i;
            float sum = 0;
            UNROLL for (int line = 0; line < LINES; line++) {
                sum += room[line * TILE + i];
            }
            if (c < C) {
                to[k * C + c] = sum;
            }
        }
    }
}

#endif

#ifdef K_squeeze_sum
KERNEL BOUNDS squeeze_sum(const T *x, const float *coefs, float *partial, int chunks) {
    SHARED(float, room);
    place p = find_place(chunks);
    some scale = vector_at(coefs + 2 * C, &p), shift = vector_at(coefs + 3 * C, &p);
    some sum;
    UNROLL for (int i = 0; i < WIDE; i++) {
        sum.v[i] = 0;
    }
    for (int at = p.first; at < p.end; at += FLIGHT * LINES) {
        some_packed found[FLIGHT];
        take(found, x, &p, at);
        UNROLL for (int u = 0; u < FLIGHT; u++) {
            if (at + u * LINES < p.end) {
                some v = some_unpack(found[u]);
                UNROLL for (int i = 0; i < WIDE; i++) {
                    sum.v[i] += activate(ACT, fmaf(scale.v[i], v.v[i], shift.v[i]));
                }
            }
        }
    }
    tell(&p, &sum, 1, room, partial, chunks);
}
#endif

#ifdef K_squeeze_apply
KERNEL BOUNDS squeeze_apply(const T *x, const float *coefs, const float *gates, T *out, int chunks) {
    place p = find_place(chunks);
    some scale = vector_at(coefs + 2 * C, &p), shift = vector_at(coefs + 3 * C, &p);
    some gate = vector_at(gates + (u64)p.n * C, &p);
    for (int at = p.first; at < p.end; at += FLIGHT * LINES) {
        some_packed found[FLIGHT];
        take(found, x, &p, at);
        UNROLL for (int u = 0; u < FLIGHT; u++) {
            if (at + u * LINES < p.end) {
                some v = some_unpack(found[u]);
                UNROLL for (int i = 0; i < WIDE; i++) {
                    v.v[i] = gate.v[i] * activate(ACT, fmaf(scale.v[i], v.v[i], shift.v[i]));
                }
                some_store(out + p.sample + (at + u * LINES) * C, v);
            }
        }
    }
}
#endif

/* ---- backward ---- */

/* Sums over pixels: of dp s, dp s', s', dp s' (x - mean), s' (x - mean). */
#define BACK_SUMS 5

#ifdef K_squeeze_back_sum
KERNEL BOUNDS
    squeeze_back_sum(const T *x, const T *dp, const float *coefs, const float *gates, T *again,
                     float *partial, int chunks) {
    SHARED(float, room);
    place p = find_place(chunks);
    some mean = vector_at(coefs, &p);
    some scale = vector_at(coefs + 2 * C, &p), shift = vector_at(coefs + 3 * C, &p);
    some gate = vector_at(gates + (u64)p.n * C, &p);
    some sums[BACK_SUMS];
    UNROLL for (int k = 0; k < BACK_SUMS; k++) {
        UNROLL for (int i = 0; i < WIDE; i++) {
            sums[k].v[i] = 0;
        }
    }
    for (int at = p.first; at < p.end; at += FLIGHT * LINES) {
        some_packed found[FLIGHT], given[FLIGHT];
        take(found, x, &p, at);
        take(given, dp, &p, at);
        UNROLL for (int u = 0; u < FLIGHT; u++) {
            if (at + u * LINES < p.end) {
                some v = some_unpack(found[u]), g = some_unpack(given[u]);
                UNROLL for (int i = 0; i < WIDE; i++) {
                    float z = fmaf(scale.v[i], v.v[i], shift.v[i]);
                    float s = activate(ACT, z), d = slope(ACT, z);
                    float away = v.v[i] - mean.v[i], t = g.v[i] * d;
                    sums[0].v[i] = fmaf(g.v[i], s, sums[0].v[i]);
                    sums[1].v[i] += t;
                    sums[2].v[i] += d;
                    sums[3].v[i] = fmaf(t, away, sums[3].v[i]);
                    sums[4].v[i] = fmaf(d, away, sums[4].v[i]);
                    v.v[i] = s * gate.v[i];
                }
                if (AGAIN) {
                    some_store(again + p.sample + (at + u * LINES) * C, v);
                }
            }
        }
    }
    tell(&p, sums, BACK_SUMS, room, partial, chunks);
}
#endif

#ifdef K_squeeze_back_apply
KERNEL BOUNDS
    squeeze_back_apply(const T *x, const T *dp, const float *coefs, const float *gates,
                       const float *dsqueezed, const float *back, T *dx, int chunks) {
    place p = find_place(chunks);
    some scale = vector_at(coefs + 2 * C, &p), shift = vector_at(coefs + 3 * C, &p);
    some mean = vector_at(coefs, &p), each = vector_at(dsqueezed + (u64)p.n * C, &p);
    some a = vector_at(back, &p), b = vector_at(back + C, &p), d = vector_at(back + 2 * C, &p);
    some gate = vector_at(gates + (u64)p.n * C, &p);
    UNROLL for (int i = 0; i < WIDE; i++) { /* dx = (a * gate * g + a * each) * slope + b * x + d */
        gate.v[i] *= a.v[i];
        each.v[i] *= a.v[i] * (1.0f / PIXELS);
        d.v[i] = fmaf(-b.v[i], mean.v[i], d.v[i]);
    }
    for (int at = p.first; at < p.end; at += FLIGHT * LINES) {
        some_packed found[FLIGHT], given[FLIGHT];
        take(found, x, &p, at);
        take(given, dp, &p, at);
        UNROLL for (int u = 0; u < FLIGHT; u++) {
            if (at + u * LINES < p.end) {
                some v = some_unpack(found[u]), g = some_unpack(given[u]);
                UNROLL for (int i = 0; i < WIDE; i++) {
                    float z = fmaf(scale.v[i], v.v[i], shift.v[i]);
                    float dn = fmaf(g.v[i], gate.v[i], each.v[i]);
                    v.v[i] = fmaf(dn, slope(ACT, z), fmaf(b.v[i], v.v[i], d.v[i]));
                }
                some_store(dx + p.sample + (at + u * LINES) * C, v);
            }
        }
    }
}
#endif
