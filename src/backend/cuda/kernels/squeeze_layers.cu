/*
 * squeeze_layers.cu - the two small linear layers of squeeze and excite in float32:
 *
 *     hidden (N, REDUCED) = squeezed (N, C) W1' + b1          w1 (REDUCED, C)
 *     gate (N, C)         = sigmoid(HACT(hidden) W2' + b2)    w2 (C, REDUCED)
 *
 * forward (squeeze_hidden, squeeze_gate) and backward (squeeze_back_hidden, squeeze_back_weights).
 * squeeze.cu has the kernels over pixels before and after them, and the formulas of the whole
 * block.
 *
 * There is little to compute and little to read, so latency limits the speed: how often a thread
 * waits for memory. A thread loads several vectors to registers, then copies them to shared memory.
 * A load has no condition: an index past the end is replaced by a valid one, and the result is not
 * used.
 *
 *   C        channels
 *   PIXELS   of a sample
 *   REDUCED  channels of `hidden`
 *   HACT     the activation of `hidden`
 *   EACH     squeeze_hidden: hidden channels of a warp
 *   PARTS    squeeze_back_hidden sums dhidden over C in so many parts, one for each blockIdx.x
 *   CH       squeeze_back_weights: channels of a block
 *   PART     squeeze_back_weights: samples in shared memory at a time
 */
#define WARP 32
#define FULL 0xFFFFFFFFu
#define THREADS 256 /* of the forward kernels */
#define FLIGHT 4    /* loads that a thread has in flight */
#define ROUND 3072  /* channels in shared memory at a time */
#define BACK_SUMS 5 /* sums of squeeze_back_sum per sample, chunk and channel */
#define WIDE_C (C % 4 == 0 ? 4 : 1) /* numbers of a vector in rows of C channels */
#define WIDE_R (REDUCED % 4 == 0 ? 4 : 1) /* the same in rows of REDUCED channels */
#define UP_TO(a, b) ((a) < (b) ? (a) : (b))
#define SHARES(a, b) (((a) + (b)-1) / (b))

/* A vector of `wide` float32: four, or one. */
typedef struct few {
    float v[4];
} few;

DEVICE few few_at(const float *p, int wide) {
    few x = {{0, 0, 0, 0}};
    if (wide == 4) {
        float4 a = *(const float4 *)p;
        x.v[0] = a.x, x.v[1] = a.y, x.v[2] = a.z, x.v[3] = a.w;
    } else {
        x.v[0] = *p;
    }
    return x;
}

DEVICE void few_put(float *p, few x, int wide) {
    if (wide == 4) {
        float4 a;
        a.x = x.v[0], a.y = x.v[1], a.z = x.v[2], a.w = x.v[3];
        *(float4 *)p = a;
    } else {
        *p = x.v[0];
    }
}

/* i if it is an index below `count`, otherwise 0. */
DEVICE int or_first(int i, int count) {
    return i < count ? i : 0;
}

#ifdef K_squeeze_hidden

#define SAMPLES 4 /* of a block */
#define PIECE UP_TO(C, ROUND)    /* channels in shared memory */
#define VECTORS (PIECE / WIDE_C) /* vectors of a sample in shared memory */

/*
 * means (SAMPLES, PIECE) = squeezed of the samples from n0 and the channels from c0 on: the sums of
 * all chunks in partial (N, chunks, C), divided by PIXELS. Blocks with blockIdx.x 0 also write
 * `squeezed`.
 */
DEVICE void load_means(float *means, const float *partial, float *squeezed, int n0, int c0,
                       int batch, int chunks) {
    int vectors = UP_TO(C - c0, PIECE) / WIDE_C;
    for (int i0 = threadIdx.x; i0 < SAMPLES * VECTORS; i0 += FLIGHT * THREADS) {
        const float *from[FLIGHT];
        few sums[FLIGHT] = {{{0, 0, 0, 0}}};
        UNROLL for (int u = 0; u < FLIGHT; u++) {
            int i = i0 + u * THREADS;
            int n = n0 + i / VECTORS < batch ? n0 + i / VECTORS : n0;
            from[u] = partial + (u64)n * chunks * C + c0 + or_first(i % VECTORS, vectors) * WIDE_C;
        }
        _Pragma("unroll 2") for (int j = 0; j < chunks; j++) {
            UNROLL for (int u = 0; u < FLIGHT; u++) {
                few x = few_at(from[u] + j * C, WIDE_C);
                UNROLL for (int k = 0; k < WIDE_C; k++) {
                    sums[u].v[k] += x.v[k];
                }
            }
        }
        UNROLL for (int u = 0; u < FLIGHT; u++) {
            int i = i0 + u * THREADS;
            int n = n0 + i / VECTORS, at = i % VECTORS;
            UNROLL for (int k = 0; k < WIDE_C; k++) {
                sums[u].v[k] *= 1.0f / PIXELS;
            }
            if (i < SAMPLES * VECTORS) {
                few_put(means + i * WIDE_C, sums[u], WIDE_C);
                if (blockIdx.x == 0 && n < batch && at < vectors) {
                    few_put(squeezed + (u64)n * C + c0 + at * WIDE_C, sums[u], WIDE_C);
                }
            }
        }
    }
}

/*
 * squeezed (N, C) and hidden (N, REDUCED), before its activation. A block computes SAMPLES samples
 * (blockIdx.y); each of its warps computes EACH hidden channels of all these samples. A lane adds
 * up every 32nd vector of channels of a dot product.
 */
KERNEL __launch_bounds__(THREADS, 2)
    squeeze_hidden(const float *partial, const float *w1, const float *b1, float *squeezed,
                   float *hidden, int batch, int chunks) {
    SHARED(float, means); /* (SAMPLES, PIECE) */
    int lane = threadIdx.x % WARP;
    int r0 = (blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP) * EACH;
    int n0 = blockIdx.y * SAMPLES;
    float sums[EACH][SAMPLES] = {{0}};
    for (int c0 = 0; c0 < C; c0 += PIECE) {
        int vectors = UP_TO(C - c0, PIECE) / WIDE_C;
        __syncthreads();
        load_means(means, partial, squeezed, n0, c0, batch, chunks);
        __syncthreads();
        for (int i0 = lane; i0 < VECTORS && r0 < REDUCED; i0 += FLIGHT * WARP) {
            few w[EACH][FLIGHT];
            UNROLL for (int e = 0; e < EACH; e++) {
                const float *from = w1 + (u64)UP_TO(r0 + e, REDUCED - 1) * C + c0;
                UNROLL for (int u = 0; u < FLIGHT; u++) {
                    w[e][u] = few_at(from + or_first(i0 + u * WARP, vectors) * WIDE_C, WIDE_C);
                }
            }
            UNROLL for (int u = 0; u < FLIGHT; u++) {
                if (i0 + u * WARP < vectors) {
                    UNROLL for (int s = 0; s < SAMPLES; s++) {
                        few m = few_at(means + (s * VECTORS + i0 + u * WARP) * WIDE_C, WIDE_C);
                        UNROLL for (int e = 0; e < EACH; e++) {
                            UNROLL for (int k = 0; k < WIDE_C; k++) {
                                sums[e][s] = fmaf(w[e][u].v[k], m.v[k], sums[e][s]);
                            }
                        }
                    }
                }
            }
        }
    }
    UNROLL for (int e = 0; e < EACH; e++) {
        UNROLL for (int s = 0; s < SAMPLES; s++) {
            UNROLL for (int step = WARP / 2; step > 0; step /= 2) {
                sums[e][s] += __shfl_xor_sync(FULL, sums[e][s], step);
            }
            if (lane == 0 && r0 + e < REDUCED && n0 + s < batch) {
                hidden[(n0 + s) * REDUCED + r0 + e] = sums[e][s] + b1[r0 + e];
            }
        }
    }
}
#endif

#ifdef K_squeeze_gate

#define SAMPLES 16
#define CHANNELS 64
#define ROW (REDUCED + 1 - REDUCED % 2) /* odd, so that lanes use different banks */
#define OF_HIDDEN (SAMPLES * REDUCED / WIDE_R)   /* vectors of `hidden` of a block */
#define OF_FILTERS (CHANNELS * REDUCED / WIDE_R) /* vectors of w2 of a block */
#define BRINGS 8 /* loads of w2 that a thread has in flight */

/*
 * gate (N, C). A block computes SAMPLES samples (blockIdx.y) of CHANNELS channels (blockIdx.x),
 * with its part of `hidden` and w2 in shared memory. A thread computes 4 samples of one channel.
 */
KERNEL __launch_bounds__(THREADS, 2)
    squeeze_gate(const float *hidden, const float *w2, const float *b2, float *gate, int batch) {
    SHARED(float, room);
    float *inner = room;                        /* (REDUCED, SAMPLES) */
    float *filters = room + SAMPLES * REDUCED; /* (CHANNELS, ROW) */
    int c0 = blockIdx.x * CHANNELS, n0 = blockIdx.y * SAMPLES;
    int count = UP_TO(C - c0, CHANNELS);
    int filled = count * REDUCED / WIDE_R;
    int known = UP_TO(batch - n0, SAMPLES) * REDUCED / WIDE_R;
    int c = threadIdx.x % CHANNELS, s = threadIdx.x / CHANNELS * 4;
    float bias = b2[c0 + (c < count ? c : 0)];
    few found[SHARES(OF_HIDDEN, THREADS)];
    UNROLL for (int u = 0; u < SHARES(OF_HIDDEN, THREADS); u++) {
        int i = or_first(threadIdx.x + u * THREADS, known);
        found[u] = few_at(hidden + n0 * REDUCED + i * WIDE_R, WIDE_R);
    }
    for (int i0 = threadIdx.x; i0 < OF_FILTERS; i0 += BRINGS * THREADS) {
        few brought[BRINGS];
        UNROLL for (int u = 0; u < BRINGS; u++) {
            int i = or_first(i0 + u * THREADS, filled);
            brought[u] = few_at(w2 + (u64)c0 * REDUCED + i * WIDE_R, WIDE_R);
        }
        UNROLL for (int u = 0; u < BRINGS; u++) {
            UNROLL for (int k = 0; k < WIDE_R; k++) {
                int at = (i0 + u * THREADS) * WIDE_R + k;
                if (at < CHANNELS * REDUCED) {
                    filters[at / REDUCED * ROW + at % REDUCED] = brought[u].v[k];
                }
            }
        }
    }
    UNROLL for (int u = 0; u < SHARES(OF_HIDDEN, THREADS); u++) {
        UNROLL for (int k = 0; k < WIDE_R; k++) {
            int at = (threadIdx.x + u * THREADS) * WIDE_R + k;
            if (at < SAMPLES * REDUCED) {
                inner[at % REDUCED * SAMPLES + at / REDUCED] = activate(HACT, found[u].v[k]);
            }
        }
    }
    __syncthreads();
    float sums[4] = {bias, bias, bias, bias};
    _Pragma("unroll 16") for (int r = 0; r < REDUCED; r++) {
        float w = filters[c * ROW + r];
        float4 h = *(const float4 *)(inner + r * SAMPLES + s);
        sums[0] = fmaf(w, h.x, sums[0]), sums[1] = fmaf(w, h.y, sums[1]);
        sums[2] = fmaf(w, h.z, sums[2]), sums[3] = fmaf(w, h.w, sums[3]);
    }
    UNROLL for (int j = 0; j < 4; j++) {
        if (c < count && n0 + s + j < batch) {
            gate[(u64)(n0 + s + j) * C + c0 + c] = sigmoid(sums[j]);
        }
    }
}
#endif

#ifdef K_squeeze_back_hidden

#define BACK_THREADS 512
#define SAMPLES 2
#define VECTORS (C / WIDE_C)
#define PIECE SHARES(VECTORS, PARTS)        /* vectors of channels of a block */
#define ITEMS (SAMPLES * BACK_SUMS * PIECE) /* vectors of sums of a block */
#define GROUPS (REDUCED / WIDE_R)           /* vectors of hidden channels */
#define ACROSS UP_TO(GROUPS, BACK_THREADS)  /* threads across hidden channels */
#define DEEP (BACK_THREADS / ACROSS)        /* threads across channels */
#define BRINGS 8                            /* loads of w2 that a thread has in flight */

/*
 * Adds up the chunks of `partial` for the block's samples and channels. The first of the five sums,
 * of dp * s, is the gradient of the gate; times gate * (1 - gate) it is the gradient of the
 * sigmoid's input, which goes to `dgate` and to `grads` (SAMPLES, PIECE vectors) in shared memory.
 * The other four sums go to `totals`. `first` is the block's first vector of channels.
 */
DEVICE void add_chunks(float *grads, const float *partial, const float *gates, float *dgate,
                       float *totals, int n0, int first, int batch, int chunks) {
    int vectors = UP_TO(VECTORS - first, PIECE);
    for (int i0 = threadIdx.x; i0 < ITEMS; i0 += FLIGHT * BACK_THREADS) {
        const float *from[FLIGHT];
        few sums[FLIGHT] = {{{0, 0, 0, 0}}};
        few gate[FLIGHT];
        UNROLL for (int u = 0; u < FLIGHT; u++) {
            int i = or_first(i0 + u * BACK_THREADS, ITEMS);
            int s = i / (BACK_SUMS * PIECE), k = i / PIECE % BACK_SUMS;
            int n = n0 + s < batch ? n0 + s : n0;
            int c = (first + or_first(i % PIECE, vectors)) * WIDE_C;
            from[u] = partial + ((u64)n * chunks * BACK_SUMS + k) * C + c;
            gate[u] = few_at(gates + (u64)n * C + (k == 0 ? c : first * WIDE_C), WIDE_C);
        }
        _Pragma("unroll 2") for (int j = 0; j < chunks; j++) {
            UNROLL for (int u = 0; u < FLIGHT; u++) {
                few x = few_at(from[u] + j * BACK_SUMS * C, WIDE_C);
                UNROLL for (int k = 0; k < WIDE_C; k++) {
                    sums[u].v[k] += x.v[k];
                }
            }
        }
        UNROLL for (int u = 0; u < FLIGHT; u++) {
            int i = i0 + u * BACK_THREADS;
            int s = i / (BACK_SUMS * PIECE), k = i / PIECE % BACK_SUMS;
            int at = i % PIECE;
            int there = i < ITEMS && n0 + s < batch && at < vectors;
            u64 c = (u64)(first + at) * WIDE_C;
            if (k == 0 && i < ITEMS) {
                UNROLL for (int m = 0; m < WIDE_C; m++) {
                    float g = gate[u].v[m];
                    sums[u].v[m] = there ? sums[u].v[m] * g * (1 - g) : 0;
                }
                few_put(grads + (s * PIECE + at) * WIDE_C, sums[u], WIDE_C);
            }
            if (there) {
                float *to = k == 0 ? dgate + (u64)(n0 + s) * C
                                   : totals + ((u64)(n0 + s) * (BACK_SUMS - 1) + k - 1) * C;
                few_put(to + c, sums[u], WIDE_C);
            }
        }
    }
}

/*
 * dgate (N, C), the gradient of the sigmoid's input; totals (N, 4, C), the other four sums over all
 * chunks; and dhidden (PARTS, N, REDUCED) = dgate W2, the gradient of HACT(hidden), summed over the
 * channels of each part. A block computes SAMPLES samples (blockIdx.y) of one part of the channels
 * (blockIdx.x).
 *
 * Neighbouring threads read neighbouring vectors of a row of w2, and continue with the next row:
 * loads of w2 are contiguous, whatever REDUCED is.
 */
KERNEL __launch_bounds__(BACK_THREADS, 1)
    squeeze_back_hidden(const float *partial, const float *gates, const float *w2, float *dgate,
                        float *totals, float *dhidden, int batch, int chunks) {
    SHARED(float, room);
    float *grads = room; /* (SAMPLES, PIECE) vectors */
    float *apart = room + SHARES(SAMPLES * PIECE * WIDE_C, 4) * 4; /* (DEEP, SAMPLES, ACROSS) */
    int first = blockIdx.x * PIECE; /* first vector of channels */
    int n0 = blockIdx.y * SAMPLES;
    int channels = UP_TO(VECTORS - first, PIECE) * WIDE_C;
    int row = threadIdx.x / ACROSS, across = threadIdx.x % ACROSS;
    add_chunks(grads, partial, gates, dgate, totals, n0, first, batch, chunks);
    __syncthreads();
    for (int g0 = 0; g0 < GROUPS; g0 += ACROSS) {
        int g = or_first(g0 + across, GROUPS);
        const float *from = w2 + (u64)first * WIDE_C * REDUCED + g * WIDE_R;
        few sums[SAMPLES] = {{{0, 0, 0, 0}}};
        for (int c = row; c < channels && row < DEEP; c += BRINGS * DEEP) {
            few w[BRINGS];
            UNROLL for (int u = 0; u < BRINGS; u++) {
                w[u] = few_at(from + or_first(c + u * DEEP, channels) * REDUCED, WIDE_R);
            }
            UNROLL for (int u = 0; u < BRINGS; u++) {
                UNROLL for (int s = 0; s < SAMPLES; s++) {
                    int at = c + u * DEEP;
                    float d = at < channels ? grads[s * PIECE * WIDE_C + at] : 0;
                    UNROLL for (int k = 0; k < WIDE_R; k++) {
                        sums[s].v[k] = fmaf(w[u].v[k], d, sums[s].v[k]);
                    }
                }
            }
        }
        __syncthreads();
        UNROLL for (int s = 0; s < SAMPLES; s++) {
            if (row < DEEP) {
                few_put(apart + ((row * SAMPLES + s) * ACROSS + across) * WIDE_R, sums[s], WIDE_R);
            }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < SAMPLES * ACROSS * WIDE_R; i += BACK_THREADS) {
            int n = n0 + i / (ACROSS * WIDE_R), r = g0 * WIDE_R + i % (ACROSS * WIDE_R);
            float sum = 0;
            _Pragma("unroll 16") for (int k = 0; k < DEEP; k++) {
                sum += apart[k * SAMPLES * ACROSS * WIDE_R + i];
            }
            if (n < batch && r < REDUCED) {
                dhidden[((u64)blockIdx.x * batch + n) * REDUCED + r] = sum;
            }
        }
    }
}
#endif

#ifdef K_squeeze_back_weights

/* A task is the weight gradients of two channels and HELD fours of hidden channels. */
#define WAYS 32                       /* threads of a channel, which share the samples */
#define BACK_THREADS (WAYS * CH)      /* of a block */
#define FOURS ((REDUCED + 3) / 4)     /* groups of four hidden channels */
#define ROW (4 * FOURS)               /* hidden channels, padded with zeros */
#define ACROSS UP_TO(FOURS, 2 * WAYS) /* fours that different threads compute */
#define HELD SHARES(FOURS, ACROSS)    /* fours that one thread computes */
#define TASKS (CH / 2 * ACROSS)       /* tasks of a block */
#define SLICES (BACK_THREADS / TASKS) /* threads that share the samples of one task */
#define TURNS SHARES(PART, WAYS)      /* samples in shared memory that one thread handles */
#define BRINGS 4                      /* loads of each tensor that a thread has in flight */

/* Shared memory: PART samples of the block's channels. */
typedef struct stage {
    float *inner;    /* (PART, ROW): HACT(hidden) */
    float *dhidden;  /* (PART, ROW): the gradient of `hidden` */
    float *filters;  /* (ROW, CH): w1 */
    float *dgate;    /* (PART, CH) */
    float *squeezed; /* (PART, CH) */
} stage;

/* Loads `hidden` and the sum of the parts of dhidden, of `count` samples from n0 on, to inner and
 * dhidden of the stage. */
DEVICE void load_rows(const stage *s, const float *hidden, const float *dhidden, int n0, int count,
                      int batch) {
    int there = count * (REDUCED / WIDE_R);
    for (int i0 = threadIdx.x; i0 < there; i0 += BRINGS * BACK_THREADS) {
        few x[BRINGS], d[PARTS][BRINGS];
        UNROLL for (int u = 0; u < BRINGS; u++) {
            u64 at = (u64)n0 * REDUCED + or_first(i0 + u * BACK_THREADS, there) * WIDE_R;
            x[u] = few_at(hidden + at, WIDE_R);
            UNROLL for (int k = 0; k < PARTS; k++) {
                d[k][u] = few_at(dhidden + (u64)k * batch * REDUCED + at, WIDE_R);
            }
        }
        UNROLL for (int u = 0; u < BRINGS; u++) {
            int i = i0 + u * BACK_THREADS;
            if (i < there) {
                UNROLL for (int m = 0; m < WIDE_R; m++) {
                    UNROLL for (int k = 1; k < PARTS; k++) {
                        d[0][u].v[m] += d[k][u].v[m];
                    }
                    d[0][u].v[m] *= slope(HACT, x[u].v[m]);
                    x[u].v[m] = activate(HACT, x[u].v[m]);
                }
                int at = i * WIDE_R / REDUCED * ROW + i * WIDE_R % REDUCED;
                few_put(s->inner + at, x[u], WIDE_R);
                few_put(s->dhidden + at, d[0][u], WIDE_R);
            }
        }
    }
}

/* What a thread loads of its channel and of every WAYS-th sample. */
typedef struct owned {
    float totals[TURNS][BACK_SUMS - 1];
    float gate[TURNS], grad[TURNS], mean[TURNS]; /* of gates, dgate and squeezed */
} owned;

DEVICE owned load_owned(const float *totals, const float *gates, const float *dgate,
                        const float *squeezed, int n0, int count, int c) {
    owned o;
    UNROLL for (int t = 0; t < TURNS; t++) {
        u64 n = (u64)(n0 + or_first(threadIdx.x / CH + t * WAYS, count));
        UNROLL for (int k = 0; k < BACK_SUMS - 1; k++) {
            o.totals[t][k] = totals[(n * (BACK_SUMS - 1) + k) * C + c];
        }
        o.gate[t] = gates[n * C + c];
        o.grad[t] = dgate[n * C + c];
        o.mean[t] = squeezed[n * C + c];
    }
    return o;
}

/* found = dsqueezed = dhidden W1, for a thread's channel and samples. */
DEVICE void find_dsqueezed(const stage *s, float found[TURNS]) {
    int way = threadIdx.x % CH;
    UNROLL for (int t = 0; t < TURNS; t++) {
        found[t] = 0;
    }
    _Pragma("unroll 4") for (int q = 0; q < FOURS; q++) {
        const float *w = s->filters + q * 4 * CH + way;
        float w0 = w[0], w1 = w[CH], w2 = w[2 * CH], w3 = w[3 * CH];
        UNROLL for (int t = 0; t < TURNS; t++) {
            int n = or_first(threadIdx.x / CH + t * WAYS, PART);
            float4 d = *(const float4 *)(s->dhidden + n * ROW + q * 4);
            found[t] = fmaf(d.x, w0, found[t]), found[t] = fmaf(d.y, w1, found[t]);
            found[t] = fmaf(d.z, w2, found[t]), found[t] = fmaf(d.w, w3, found[t]);
        }
    }
}

/* acc[i] += x[i] * v, for two channels i and four hidden channels. */
DEVICE void add_four(float4 acc[2], float2 x, float4 v) {
    acc[0].x = fmaf(x.x, v.x, acc[0].x), acc[0].y = fmaf(x.x, v.y, acc[0].y);
    acc[0].z = fmaf(x.x, v.z, acc[0].z), acc[0].w = fmaf(x.x, v.w, acc[0].w);
    acc[1].x = fmaf(x.y, v.x, acc[1].x), acc[1].y = fmaf(x.y, v.y, acc[1].y);
    acc[1].z = fmaf(x.y, v.z, acc[1].z), acc[1].w = fmaf(x.y, v.w, acc[1].w);
}

/* A thread's sums for the gradients of w1 (first) and w2 (second): HELD fours of hidden channels by
 * two channels. */
typedef struct taken {
    float4 first[HELD][2], second[HELD][2];
} taken;

/* Adds the products of the samples in shared memory that belong to the thread's slice. */
DEVICE void add_products(const stage *s, int count, taken *sums) {
    int slice = threadIdx.x / TASKS;
    int pair = threadIdx.x % (CH / 2), q0 = threadIdx.x % TASKS / (CH / 2);
    if (slice >= SLICES) {
        return;
    }
    _Pragma("unroll 4") for (int n = slice; n < count; n += SLICES) {
        float2 mean = *(const float2 *)(s->squeezed + n * CH + 2 * pair);
        float2 grad = *(const float2 *)(s->dgate + n * CH + 2 * pair);
        UNROLL for (int h = 0; h < HELD; h++) {
            int at = n * ROW + or_first(q0 + h * ACROSS, FOURS) * 4;
            add_four(sums->first[h], mean, *(const float4 *)(s->dhidden + at));
            add_four(sums->second[h], grad, *(const float4 *)(s->inner + at));
        }
    }
}

/* Adds up the sums of all slices and writes dw1 (REDUCED, C) and dw2 (C, REDUCED). */
DEVICE void put_products(float *room, taken *sums, T *dw1, T *dw2, int c0) {
    float *first = room, *second = room + SLICES * CH * ROW; /* (SLICES, CH, ROW) */
    int slice = threadIdx.x / TASKS;
    int pair = threadIdx.x % (CH / 2), q0 = threadIdx.x % TASKS / (CH / 2);
    __syncthreads();
    UNROLL for (int h = 0; h < HELD; h++) {
        int q = q0 + h * ACROSS;
        if (slice < SLICES && q < FOURS) {
            UNROLL for (int i = 0; i < 2; i++) {
                int at = (slice * CH + 2 * pair + i) * ROW + q * 4;
                *(float4 *)(first + at) = sums->first[h][i];
                *(float4 *)(second + at) = sums->second[h][i];
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < CH * REDUCED; i += BACK_THREADS) {
        int one = i % CH * ROW + i / CH, two = i / REDUCED * ROW + i % REDUCED;
        float a = 0, b = 0;
        _Pragma("unroll 8") for (int k = 0; k < SLICES; k++) {
            a += first[k * CH * ROW + one];
            b += second[k * CH * ROW + two];
        }
        if (c0 + i % CH < C) {
            dw1[(u64)(i / CH) * C + c0 + i % CH] = down(a);
        }
        if (c0 + i / REDUCED < C) {
            dw2[(u64)c0 * REDUCED + i] = down(b);
        }
    }
}

/*
 * Adds up `mine` over the WAYS threads of each channel: the sums of dn, of dn * (x - mean) and of
 * dgate. From these come the norm's weight_grad, bias_grad and back, and db2.
 */
DEVICE void finish_channel(double *room, const double mine[3], int c0, int batch, float *db2,
                           const float *coefs, const float *norm_weight, float *norm_weight_grad,
                           float *norm_bias_grad, float *back) {
    int c = c0 + threadIdx.x;
    __syncthreads();
    UNROLL for (int k = 0; k < 3; k++) {
        room[k * BACK_THREADS + threadIdx.x] = mine[k];
    }
    __syncthreads();
    if (threadIdx.x < CH && c < C) {
        double sums[3] = {0, 0, 0};
        UNROLL for (int k = 0; k < 3; k++) {
            UNROLL for (int i = 0; i < WAYS; i++) {
                sums[k] += room[k * BACK_THREADS + i * CH + threadIdx.x];
            }
        }
        db2[c] = (float)sums[2];
        norm_set_back(c, C, sums[0], sums[1] * coefs[C + c], (double)batch * PIXELS,
                         norm_weight, coefs, norm_weight_grad, norm_bias_grad, back);
    }
}

/* Adds dhidden of the samples in shared memory to db1. Only block 0 does this. */
DEVICE void add_bias(const stage *s, float *db1, int n0, int count) {
    for (int r = threadIdx.x; r < REDUCED && blockIdx.x == 0; r += BACK_THREADS) {
        float sum = n0 == 0 ? 0 : db1[r];
        _Pragma("unroll 16") for (int n = 0; n < count; n++) {
            sum += s->dhidden[n * ROW + r];
        }
        db1[r] = sum;
    }
}

/*
 * The rest of backward before dx. With dhidden summed over its parts and multiplied by the slope of
 * HACT:
 *
 *     dsqueezed (N, C) = dhidden W1
 *     dw1 (REDUCED, C) = dhidden' squeezed         db1 = sum of dhidden over samples
 *     dw2 (C, REDUCED) = dgate' HACT(hidden)       db2 = sum of dgate over samples
 *
 * and norm_weight_grad, norm_bias_grad and back of the norm, from totals, gates and dsqueezed. A
 * block computes CH channels of all samples, with PART samples at a time in shared memory. For
 * dsqueezed and the norm's sums a thread handles one channel and every WAYS-th sample; for dw1 and
 * dw2 it handles one task and every SLICES-th sample.
 */
KERNEL __launch_bounds__(BACK_THREADS, 1)
    squeeze_back_weights(const float *totals, const float *gates, const float *squeezed,
                         const float *hidden, const float *dgate, const float *dhidden,
                         const float *w1, T *dw1, float *db1, T *dw2, float *db2, float *dsqueezed,
                         int batch, const float *coefs, const float *norm_weight,
                         float *norm_weight_grad, float *norm_bias_grad, float *back) {
    SHARED(float, room);
    stage s = {room, room + PART * ROW, room + 2 * PART * ROW, 0, 0};
    s.dgate = s.filters + ROW * CH;
    s.squeezed = s.dgate + PART * CH;
    int c0 = blockIdx.x * CH, c = c0 + threadIdx.x % CH;
    int from = c < C ? c : c0; /* a channel that can be read */
    taken sums;
    UNROLL for (int h = 0; h < HELD; h++) {
        float4 zero;
        zero.x = zero.y = zero.z = zero.w = 0;
        sums.first[h][0] = sums.first[h][1] = sums.second[h][0] = sums.second[h][1] = zero;
    }
    double mine[3] = {0, 0, 0}; /* sums of dn, of dn * (x - mean) and of dgate */
    for (int i = threadIdx.x; i < ROW * CH; i += BACK_THREADS) {
        s.filters[i] = i / CH < REDUCED ? w1[(u64)(i / CH) * C + from] : 0;
    }
    if (REDUCED % 4 != 0) {
        for (int i = threadIdx.x; i < 2 * PART * ROW; i += BACK_THREADS) {
            room[i] = 0; /* the padding of rows stays zero */
        }
    }
    for (int n0 = 0; n0 < batch; n0 += PART) {
        int count = UP_TO(batch - n0, PART);
        __syncthreads();
        owned o = load_owned(totals, gates, dgate, squeezed, n0, count, from);
        load_rows(&s, hidden, dhidden, n0, count, batch);
        UNROLL for (int t = 0; t < TURNS; t++) {
            int n = threadIdx.x / CH + t * WAYS;
            if (n < count) {
                s.dgate[n * CH + threadIdx.x % CH] = o.grad[t];
                s.squeezed[n * CH + threadIdx.x % CH] = o.mean[t];
            }
        }
        __syncthreads();
        float found[TURNS];
        find_dsqueezed(&s, found);
        UNROLL for (int t = 0; t < TURNS; t++) {
            int n = threadIdx.x / CH + t * WAYS;
            if (n < count && c < C) {
                float each = found[t] * (1.0f / PIXELS);
                dsqueezed[(u64)(n0 + n) * C + c] = found[t];
                mine[0] += o.gate[t] * o.totals[t][0] + each * o.totals[t][1];
                mine[1] += o.gate[t] * o.totals[t][2] + each * o.totals[t][3];
                mine[2] += o.grad[t];
            }
        }
        add_products(&s, count, &sums);
        add_bias(&s, db1, n0, count);
    }
    put_products(room, &sums, dw1, dw2, c0);
    finish_channel((double *)room, mine, c0, batch, db2, coefs, norm_weight, norm_weight_grad,
                   norm_bias_grad, back);
}
#endif
