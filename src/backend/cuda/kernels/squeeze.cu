/*
 * squeeze.cu - squeeze and excite behind a norm and its activation, as cuda_squeeze of cuda_emit.h
 * says it, with s = act(scale * x + shift) computed wherever it is needed.
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
 *   ACT           the activation behind the norm; HACT that of `hidden`
 *   REDUCED       channels of `hidden`
 *   AGAIN         backward: 1: p is computed once more
 *   PART          samples that squeeze_back_weights has in shared memory at a time
 */
#define FLIGHT 4 /* loads that a thread has under way */
#define WARP 32
#define FULL 0xFFFFFFFFu

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
KERNEL squeeze_sum(const T *x, const float *coefs, float *partial, int chunks) {
    SHARED(float, room);
    place p = find_place(chunks);
    some scale = vector_at(coefs + 2 * C, &p), shift = vector_at(coefs + 3 * C, &p);
    some sum;
    UNROLL for (int i = 0; i < WIDE; i++) {
        sum.v[i] = 0;
    }
    for (int at = p.first; at < p.end; at += FLIGHT * LINES) {
        some_packed found[FLIGHT];
        UNROLL for (int u = 0; u < FLIGHT; u++) {
            if (at + u * LINES < p.end) {
                found[u] = some_fetch(x + p.sample + (at + u * LINES) * C);
            }
        }
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
KERNEL squeeze_apply(const T *x, const float *coefs, const float *gates, T *out, int chunks) {
    place p = find_place(chunks);
    some scale = vector_at(coefs + 2 * C, &p), shift = vector_at(coefs + 3 * C, &p);
    some gate = vector_at(gates + (u64)p.n * C, &p);
    for (int at = p.first; at < p.end; at += FLIGHT * LINES) {
        some_packed found[FLIGHT];
        UNROLL for (int u = 0; u < FLIGHT; u++) {
            if (at + u * LINES < p.end) {
                found[u] = some_fetch(x + p.sample + (at + u * LINES) * C);
            }
        }
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

/* ---- two small linear layers ---- */

#define ROUND 1024 /* channels that are in shared memory at a time */

/*
 * A block has 4 samples, a warp one hidden channel, a lane every 32nd of the channels. squeezed is
 * made from the chunks on the way.
 */
#ifdef K_squeeze_hidden
KERNEL squeeze_hidden(const float *partial, const float *w1, const float *b1, float *squeezed,
                      float *hidden, int batch, int chunks) {
    SHARED(float, room);
    float4 *means = (float4 *)room; /* (ROUND), of four samples */
    int warps = blockDim.x / WARP;
    int lane = threadIdx.x % WARP;
    int r = blockIdx.x * warps + threadIdx.x / WARP;
    int n0 = blockIdx.y * 4;
    float sums[4] = {0, 0, 0, 0};
    for (int c0 = 0; c0 < C; c0 += ROUND) {
        int count = C - c0 < ROUND ? C - c0 : ROUND;
        __syncthreads();
        for (int i = threadIdx.x; i < count * 4; i += blockDim.x) {
            int k = i / count, c = c0 + i % count;
            float sum = 0;
            if (n0 + k < batch) {
                const float *from = partial + (u64)(n0 + k) * chunks * C + c;
                for (int j = 0; j < chunks; j++) {
                    sum += from[j * C];
                }
                sum *= 1.0f / PIXELS;
                if (blockIdx.x == 0) {
                    squeezed[(u64)(n0 + k) * C + c] = sum;
                }
            }
            room[i % count * 4 + k] = sum;
        }
        __syncthreads();
        if (r < REDUCED) {
            _Pragma("unroll 8") for (int i = lane; i < count; i += WARP) {
                float w = w1[r * C + c0 + i];
                float4 s = means[i];
                sums[0] = fmaf(w, s.x, sums[0]), sums[1] = fmaf(w, s.y, sums[1]);
                sums[2] = fmaf(w, s.z, sums[2]), sums[3] = fmaf(w, s.w, sums[3]);
            }
        }
    }
    UNROLL for (int k = 0; k < 4; k++) {
        for (int step = WARP / 2; step > 0; step /= 2) {
            sums[k] += __shfl_xor_sync(FULL, sums[k], step);
        }
        if (lane == 0 && r < REDUCED && n0 + k < batch) {
            hidden[(n0 + k) * REDUCED + r] = sums[k] + b1[r];
        }
    }
}
#endif

/* A block has 16 samples and 64 channels; a thread 4 samples of one channel. 256 threads. */
#ifdef K_squeeze_gate
#define ROW (REDUCED + 1 - REDUCED % 2) /* odd: lanes keep off each other's banks */
KERNEL squeeze_gate(const float *hidden, const float *w2, const float *b2, float *gate,
                    int batch) {
    SHARED(float, room);
    float *inner = room;                   /* (REDUCED, 16) */
    float *filters = room + 16 * REDUCED; /* (64, ROW) */
    int c0 = blockIdx.x * 64, n0 = blockIdx.y * 16;
    int count = C - c0 < 64 ? C - c0 : 64;
    for (int i = threadIdx.x; i < 16 * REDUCED; i += blockDim.x) {
        int k = i / REDUCED, r = i % REDUCED;
        inner[r * 16 + k] =
            n0 + k < batch ? activate(HACT, hidden[(n0 + k) * REDUCED + r]) : 0;
    }
    _Pragma("unroll 4") for (int i = threadIdx.x; i < count * REDUCED; i += blockDim.x) {
        filters[i / REDUCED * ROW + i % REDUCED] = w2[(u64)c0 * REDUCED + i];
    }
    __syncthreads();
    int c = threadIdx.x % 64, k = threadIdx.x / 64 * 4;
    if (c < count) {
        float bias = b2[c0 + c];
        float sums[4] = {bias, bias, bias, bias};
        for (int r = 0; r < REDUCED; r++) {
            float w = filters[c * ROW + r];
            float4 h = *(const float4 *)(inner + r * 16 + k);
            sums[0] = fmaf(w, h.x, sums[0]), sums[1] = fmaf(w, h.y, sums[1]);
            sums[2] = fmaf(w, h.z, sums[2]), sums[3] = fmaf(w, h.w, sums[3]);
        }
        UNROLL for (int j = 0; j < 4; j++) {
            if (n0 + k + j < batch) {
                gate[(u64)(n0 + k + j) * C + c0 + c] = sigmoid(sums[j]);
            }
        }
    }
}
#endif

/* ---- backward ---- */

/* Sums over pixels: of dp s, dp s', s', dp s' (x - mean), s' (x - mean). */
#define BACK_SUMS 5

#ifdef K_squeeze_back_sum
KERNEL __launch_bounds__(SPAN *LINES, 2)
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
    for (int at = p.first; at < p.end; at += 2 * LINES) {
        some_packed found[2], given[2];
        UNROLL for (int u = 0; u < 2; u++) {
            if (at + u * LINES < p.end) {
                found[u] = some_fetch(x + p.sample + (at + u * LINES) * C);
                given[u] = some_fetch(dp + p.sample + (at + u * LINES) * C);
            }
        }
        UNROLL for (int u = 0; u < 2; u++) {
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
#if AGAIN
                some_store(again + p.sample + (at + u * LINES) * C, v);
#endif
            }
        }
    }
    tell(&p, sums, BACK_SUMS, room, partial, chunks);
}
#endif

/* The gradient of dp s, summed over pixels, in front of the sigmoid. */
DEVICE float gate_grad(const float *partial, const float *gates, int n, int c, int chunks) {
    const float *from = partial + (u64)n * chunks * BACK_SUMS * C + c;
    float sum = 0;
    for (int j = 0; j < chunks; j++) {
        sum += from[j * BACK_SUMS * C];
    }
    float gate = gates[(u64)n * C + c];
    return sum * gate * (1 - gate);
}

/*
 * dgate (N, C), in front of the sigmoid, and dhidden (N, REDUCED), in front of the activation. A
 * block has 4 samples and 32 hidden channels, a lane one of these, a warp every so many channels.
 */
#ifdef K_squeeze_back_hidden
KERNEL squeeze_back_hidden(const float *partial, const float *gates, const float *w2,
                           const float *hidden, float *dgate, float *dhidden, int batch,
                           int chunks) {
    SHARED(float, room);
    float4 *grads = (float4 *)room; /* (ROUND), of four samples */
    int warps = blockDim.x / WARP, warp = threadIdx.x / WARP;
    int lane = threadIdx.x % WARP;
    int r = blockIdx.x * WARP + lane;
    int n0 = blockIdx.y * 4;
    float sums[4] = {0, 0, 0, 0};
    for (int c0 = 0; c0 < C; c0 += ROUND) {
        int count = C - c0 < ROUND ? C - c0 : ROUND;
        __syncthreads();
        for (int i = threadIdx.x; i < count * 4; i += blockDim.x) {
            int k = i / count, c = c0 + i % count;
            float grad = 0;
            if (n0 + k < batch) {
                grad = gate_grad(partial, gates, n0 + k, c, chunks);
                if (blockIdx.x == 0) {
                    dgate[(u64)(n0 + k) * C + c] = grad;
                }
            }
            room[i % count * 4 + k] = grad;
        }
        __syncthreads();
        if (r < REDUCED) {
            _Pragma("unroll 8") for (int i = warp; i < count; i += warps) {
                float w = w2[(u64)(c0 + i) * REDUCED + r];
                float4 g = grads[i];
                sums[0] = fmaf(w, g.x, sums[0]), sums[1] = fmaf(w, g.y, sums[1]);
                sums[2] = fmaf(w, g.z, sums[2]), sums[3] = fmaf(w, g.w, sums[3]);
            }
        }
    }
    __syncthreads();
    UNROLL for (int k = 0; k < 4; k++) {
        room[(k * warps + warp) * WARP + lane] = sums[k];
    }
    __syncthreads();
    if (warp < 4 && r < REDUCED && n0 + warp < batch) {
        int at = (n0 + warp) * REDUCED + r;
        float sum = 0;
        for (int i = 0; i < warps; i++) {
            sum += room[(warp * warps + i) * WARP + lane];
        }
        dhidden[at] = sum * slope(HACT, hidden[at]);
    }
}
#endif

/*
 * Everything that is left: a block has 16 channels and all samples, PART at a time in shared
 * memory. A thread has one channel and, of the gradients of weights, fours of hidden channels; of
 * dsqueezed and the norm's sums, every 16th sample. 256 threads.
 */
#ifdef K_squeeze_back_weights

#define WAYS 16                        /* channels of a block, and threads of a channel */
#define FOURS ((REDUCED + 3) / 4)      /* of hidden channels */
#define HELD ((FOURS + WAYS - 1) / WAYS) /* of which a thread has so many */

typedef struct stage {
    float *inner;    /* (PART, 4 * FOURS): hidden behind its activation */
    float *dhidden;  /* (PART, 4 * FOURS) */
    float *filters;  /* (4 * FOURS, WAYS): of w1 */
    float *dgate;    /* (PART, WAYS) */
    float *squeezed; /* (PART, WAYS) */
} stage;

DEVICE void load_stage(const stage *s, const float *hidden, const float *dhidden,
                       const float *dgate, const float *squeezed, int n0, int batch, int c0) {
    for (int i = threadIdx.x; i < PART * 4 * FOURS; i += WAYS * WAYS) {
        int n = n0 + i / (4 * FOURS), r = i % (4 * FOURS);
        int there = n < batch && r < REDUCED;
        s->inner[i] = there ? activate(HACT, hidden[n * REDUCED + r]) : 0;
        s->dhidden[i] = there ? dhidden[n * REDUCED + r] : 0;
    }
    for (int i = threadIdx.x; i < PART * WAYS; i += WAYS * WAYS) {
        int n = n0 + i / WAYS, c = c0 + i % WAYS;
        int there = n < batch && c < C;
        s->dgate[i] = there ? dgate[(u64)n * C + c] : 0;
        s->squeezed[i] = there ? squeezed[(u64)n * C + c] : 0;
    }
}

/* acc += x * v */
DEVICE void add_four(float4 *acc, float x, float4 v) {
    acc->x = fmaf(x, v.x, acc->x), acc->y = fmaf(x, v.y, acc->y);
    acc->z = fmaf(x, v.z, acc->z), acc->w = fmaf(x, v.w, acc->w);
}

DEVICE float dsqueezed_of(const stage *s, int n, int way) {
    float sum = 0;
    for (int q = 0; q < FOURS; q++) {
        float4 d = *(const float4 *)(s->dhidden + (n * FOURS + q) * 4);
        const float *w = s->filters + q * 4 * WAYS + way;
        sum = fmaf(d.x, w[0], sum);
        sum = fmaf(d.y, w[WAYS], sum);
        sum = fmaf(d.z, w[2 * WAYS], sum);
        sum = fmaf(d.w, w[3 * WAYS], sum);
    }
    return sum;
}

/* Adds one sample's share of the norm's sums. */
DEVICE void add_norm_sums(const float *partial, const float *gates, float dsqueezed, int n, int c,
                          int chunks, double *sum, double *product) {
    const float *from = partial + (u64)n * chunks * BACK_SUMS * C + c;
    float sums[4] = {0, 0, 0, 0};
    for (int j = 0; j < chunks; j++, from += BACK_SUMS * C) {
        UNROLL for (int k = 0; k < 4; k++) {
            sums[k] += from[(k + 1) * C];
        }
    }
    float gate = gates[(u64)n * C + c], each = dsqueezed * (1.0f / PIXELS);
    *sum += gate * sums[0] + each * sums[1];
    *product += gate * sums[2] + each * sums[3];
}

/* The norm's sums of all threads of a channel, and what follows from them. */
DEVICE void settle_norm(double *room, double sum, double product, int c0, int batch,
                        const float *coefs, const float *norm_weight, float *norm_weight_grad,
                        float *norm_bias_grad, float *back) {
    int way = threadIdx.x % WAYS, c = c0 + way;
    __syncthreads();
    room[threadIdx.x] = sum;
    room[WAYS * WAYS + threadIdx.x] = product;
    __syncthreads();
    if (threadIdx.x < WAYS && c < C) {
        sum = product = 0;
        for (int i = 0; i < WAYS; i++) {
            sum += room[i * WAYS + way];
            product += room[(WAYS + i) * WAYS + way];
        }
        norm_settle_back(c, C, sum, product * coefs[C + c], (double)batch * PIXELS, norm_weight,
                         coefs, norm_weight_grad, norm_bias_grad, back);
    }
}

KERNEL squeeze_back_weights(const float *partial, const float *gates, const float *squeezed,
                            const float *hidden, const float *dgate, const float *dhidden,
                            const float *w1, T *dw1, float *db1, T *dw2, float *db2,
                            float *dsqueezed, int batch, int chunks, const float *coefs,
                            const float *norm_weight, float *norm_weight_grad,
                            float *norm_bias_grad, float *back) {
    SHARED(float, room);
    stage s = {room, room + PART * 4 * FOURS, room + 2 * PART * 4 * FOURS, 0, 0};
    s.dgate = s.filters + 4 * FOURS * WAYS;
    s.squeezed = s.dgate + PART * WAYS;
    int c0 = blockIdx.x * WAYS, way = threadIdx.x % WAYS, row = threadIdx.x / WAYS;
    int c = c0 + way;
    float4 first[HELD], second[HELD]; /* of dw1 and dw2 */
    UNROLL for (int h = 0; h < HELD; h++) {
        first[h].x = first[h].y = first[h].z = first[h].w = 0;
        second[h] = first[h];
    }
    float bias1 = 0, bias2 = 0;
    double sum = 0, product = 0;
    for (int i = threadIdx.x; i < 4 * FOURS * WAYS; i += WAYS * WAYS) {
        int r = i / WAYS, at = c0 + i % WAYS;
        s.filters[i] = r < REDUCED && at < C ? w1[(u64)r * C + at] : 0;
    }
    for (int n0 = 0; n0 < batch; n0 += PART) {
        int count = batch - n0 < PART ? batch - n0 : PART;
        __syncthreads();
        load_stage(&s, hidden, dhidden, dgate, squeezed, n0, batch, c0);
        __syncthreads();
        for (int n = row; n < count && c < C; n += WAYS) {
            float d = dsqueezed_of(&s, n, way);
            dsqueezed[(u64)(n0 + n) * C + c] = d;
            add_norm_sums(partial, gates, d, n0 + n, c, chunks, &sum, &product);
        }
        for (int n = 0; n < count; n++) {
            float mean = s.squeezed[n * WAYS + way], grad = s.dgate[n * WAYS + way];
            UNROLL for (int h = 0; h < HELD; h++) {
                int q = row + h * WAYS < FOURS ? row + h * WAYS : FOURS - 1;
                add_four(&first[h], mean, *(const float4 *)(s.dhidden + (n * FOURS + q) * 4));
                add_four(&second[h], grad, *(const float4 *)(s.inner + (n * FOURS + q) * 4));
            }
            bias2 += grad;
        }
        for (int r = threadIdx.x; r < REDUCED && blockIdx.x == 0; r += WAYS * WAYS) {
            bias1 = n0 == 0 ? 0 : db1[r];
            for (int n = 0; n < count; n++) {
                bias1 += s.dhidden[n * FOURS * 4 + r];
            }
            db1[r] = bias1;
        }
    }
    UNROLL for (int h = 0; h < HELD; h++) {
        float one[4] = {first[h].x, first[h].y, first[h].z, first[h].w};
        float two[4] = {second[h].x, second[h].y, second[h].z, second[h].w};
        UNROLL for (int i = 0; i < 4; i++) {
            int r = (row + h * WAYS) * 4 + i;
            if (r < REDUCED && c < C) {
                dw1[(u64)r * C + c] = down(one[i]);
                dw2[(u64)c * REDUCED + r] = down(two[i]);
            }
        }
    }
    if (row == 0 && c < C) {
        db2[c] = bias2;
    }
    settle_norm((double *)room, sum, product, c0, batch, coefs, norm_weight, norm_weight_grad,
                norm_bias_grad, back);
}
#endif

#ifdef K_squeeze_back_apply
KERNEL __launch_bounds__(SPAN *LINES, 2)
    squeeze_back_apply(const T *x, const T *dp, const float *coefs, const float *gates,
                       const float *dsqueezed, const float *back, T *dx, int chunks) {
    place p = find_place(chunks);
    some mean = vector_at(coefs, &p);
    some scale = vector_at(coefs + 2 * C, &p), shift = vector_at(coefs + 3 * C, &p);
    some gate = vector_at(gates + (u64)p.n * C, &p);
    some each = vector_at(dsqueezed + (u64)p.n * C, &p);
    some a = vector_at(back, &p), b = vector_at(back + C, &p), d = vector_at(back + 2 * C, &p);
    UNROLL for (int i = 0; i < WIDE; i++) {
        each.v[i] *= 1.0f / PIXELS;
    }
    for (int at = p.first; at < p.end; at += 2 * LINES) {
        some_packed found[2], given[2];
        UNROLL for (int u = 0; u < 2; u++) {
            if (at + u * LINES < p.end) {
                found[u] = some_fetch(x + p.sample + (at + u * LINES) * C);
                given[u] = some_fetch(dp + p.sample + (at + u * LINES) * C);
            }
        }
        UNROLL for (int u = 0; u < 2; u++) {
            if (at + u * LINES < p.end) {
                some v = some_unpack(found[u]), g = some_unpack(given[u]);
                UNROLL for (int i = 0; i < WIDE; i++) {
                    float z = fmaf(scale.v[i], v.v[i], shift.v[i]);
                    float dn = fmaf(g.v[i], gate.v[i], each.v[i]) * slope(ACT, z);
                    v.v[i] = fmaf(a.v[i], dn, fmaf(b.v[i], v.v[i] - mean.v[i], d.v[i]));
                }
                some_store(dx + p.sample + (at + u * LINES) * C, v);
            }
        }
    }
}
#endif
