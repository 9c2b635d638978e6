/*
 * squeeze.cu - squeeze and excite after a norm and its activation: the kernels over all pixels.
 * squeeze_layers.cu has the two small layers between them. Per sample and channel,
 *
 *     s        = ACT(scale * x + shift), never stored: computed wherever it is needed
 *     squeezed = mean of s over pixels
 *     gate     = sigmoid(HACT(squeezed W1' + b1) W2' + b2)
 *     p        = s * gate, the output
 *
 * A block handles one sample, blockIdx.y; SPAN * WIDE channels, the blockIdx.x % TILES-th tile; and
 * the blockIdx.x / TILES-th of `chunks` parts of the pixels. A thread handles WIDE channels of
 * every LINES-th pixel of the part. Kernels that sum write the sums of a block to `partial` (N,
 * chunks, sums, C); the kernel that reads `partial` adds up the chunks in order.
 *
 * Backward: dn = (dp * gate + dsqueezed / PIXELS) * s' is the gradient of the norm's output; s' is
 * the slope of ACT. gate and dsqueezed are the same for all pixels. So the sums of dn and of dn *
 * (x - mean) follow from the last four of the BACK_SUMS sums, which do not contain dsqueezed: x and
 * dp are read once for all sums, and once more for dx.
 *
 *   C            channels
 *   WIDE         channels of a thread: 8, or 1 where C is no multiple of 8
 *   PIXELS       of a sample
 *   SPAN, LINES  threads of a block across channels and across pixels
 *   ACT          the activation after the norm
 *   AGAIN        1: squeeze_back_sum also writes p
 *   RESIDENT     blocks that a multiprocessor should hold
 */
#define BOUNDS __launch_bounds__(SPAN *LINES, RESIDENT)
#if TYPE == 0
#define FLIGHT 2 /* loads of a tensor that a thread has in flight, as registers allow */
#elif defined(K_squeeze_back_sum)
#define FLIGHT 3
#else
#define FLIGHT 4
#endif

/* What a thread works on. */
typedef struct place {
    int n, c;       /* sample and first channel */
    int busy;       /* c is a channel: c < C */
    int first, end; /* pixels first, first + LINES and so on, below end */
    u64 sample;     /* index of pixel 0, channel c of the sample */
} place;

#if defined(SPAN)

#define TILE (SPAN * WIDE)
#define TILES ((C + TILE - 1) / TILE)

/* Kernels that sum begin with the last sample, which is still in the cache; the kernels that apply
 * the result begin with the first sample. */
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

/* The thread's channels of `vector` (C). */
DEVICE some vector_at(const float *vector, const place *p) {
    return some_floats(vector + (p->busy ? p->c : 0));
}

/* Loads FLIGHT pixels of `from`, LINES apart, beginning with pixel `at`; zeros past the last pixel.
 * All loads are in flight before the first is used. */
DEVICE void take(some_packed found[FLIGHT], const T *from, const place *p, int at) {
    UNROLL for (int u = 0; u < FLIGHT; u++) {
        int pixel = at + u * LINES;
        found[u] = some_fetch_if(from + p->sample + pixel * C, pixel < p->end, some_nothing());
    }
}

/* Sums each of the `sums` values over the block's lines and writes the results to `partial`. */
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
/* partial (N, chunks, 1, C): sums of s over pixels. */
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
/* out = p = s * gate, with gates (N, C). */
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

/* The sums over pixels: dp * s, dp * s', s', dp * s' * (x - mean), s' * (x - mean). */
#define BACK_SUMS 5

#ifdef K_squeeze_back_sum
/* partial (N, chunks, BACK_SUMS, C): the five sums. With AGAIN also again = p. */
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
/* dx = a * dn + b * (x - mean) + d, with `back` (3, C) of the norm and dsqueezed (N, C). */
KERNEL BOUNDS
    squeeze_back_apply(const T *x, const T *dp, const float *coefs, const float *gates,
                       const float *dsqueezed, const float *back, T *dx, int chunks) {
    place p = find_place(chunks);
    some scale = vector_at(coefs + 2 * C, &p), shift = vector_at(coefs + 3 * C, &p);
    some mean = vector_at(coefs, &p), each = vector_at(dsqueezed + (u64)p.n * C, &p);
    some a = vector_at(back, &p), b = vector_at(back + C, &p), d = vector_at(back + 2 * C, &p);
    some gate = vector_at(gates + (u64)p.n * C, &p);
    UNROLL for (int i = 0; i < WIDE; i++) { /* now dx = (gate * dp + each) * s' + b * x + d */
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
