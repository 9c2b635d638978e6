/*
 * norm.cu - batch norm and what follows it: statistics, one pass forward, two passes backward.
 *
 * A value is rows of C channels. A thread owns one group of LANES channels, with the coefficients
 * of these in registers, and walks over rows; a block is TILE groups wide and THREADS / TILE rows
 * high, blockIdx.y is the tile, and all blocks of a tile step through the rows together. All that
 * these kernels do is bound by memory, so each thread has DEPTH rows of every tensor in flight
 * before it looks at the first. Where C is no multiple of LANES the last group is a part of one
 * and numbers are taken one at a time: right, but slow.
 *
 * The passes that sum walk from the last row to the first, those that write from the first to the
 * last: whoever wrote a tensor (a convolution, or a pass of the second kind) wrote its end last, so
 * that this part is still in the cache when a sum begins there; and when the sum has ended, it is
 * the beginning that is in the cache for the pass that follows.
 *
 * Sums are the same bits every time: float32 over the rows of a thread, then over the threads of a
 * block, then the block that comes last of a tile adds up those of all blocks, in their order, in
 * float64.
 *
 * Defines: C, TILE, THREADS, DEPTH, BLOCKS (that a multiprocessor should hold); ACT; DROP, MASK,
 * AGAIN, DX: 0 or 1; ADDED: 0, 1 a value, 2 the norm of one; ADDED_DX: 0, 1 write, 2 add.
 */
#ifdef C

#define GROUPS ((C + LANES - 1) / LANES)
#define HIGH (THREADS / TILE) /* rows that a block takes at a time */
#define FROM_X (ACT != ACT_NONE && !MASK) /* the slope is had from what the activation reads */

#define BOUNDS __launch_bounds__(THREADS, BLOCKS)

/* ---- one group of channels ---- */

#if C % LANES == 0
typedef packed held;

DEVICE lanes open_held(held x) {
    return unpack(x);
}

/* What is at p, or `other` when not `wanted`. */
DEVICE held take(const T *p, int wanted, held other, int group) {
    (void)group;
    return fetch_if(p, wanted, other);
}

DEVICE held nothing_held(void) {
    return fetch_nothing();
}

DEVICE void put(T *p, lanes x, int group) {
    (void)group;
    store(p, x);
}

/* Those of a vector per channel. */
DEVICE lanes vector(const float *p, int group) {
    return load_floats(p + group * LANES);
}

#else
typedef lanes held;

DEVICE lanes open_held(held x) {
    return x;
}

DEVICE held take(const T *p, int wanted, held other, int group) {
    for (int i = 0; i < LANES; i++) {
        if (wanted && group * LANES + i < C) {
            other.v[i] = up(p[i]);
        }
    }
    return other;
}

DEVICE held nothing_held(void) {
    held x;
    for (int i = 0; i < LANES; i++) {
        x.v[i] = 0;
    }
    return x;
}

DEVICE void put(T *p, lanes x, int group) {
    for (int i = 0; i < LANES; i++) {
        if (group * LANES + i < C) {
            p[i] = down(x.v[i]);
        }
    }
}

DEVICE lanes vector(const float *p, int group) {
    lanes x;
    for (int i = 0; i < LANES; i++) {
        x.v[i] = group * LANES + i < C ? p[group * LANES + i] : 0;
    }
    return x;
}
#endif

/* A byte of a mask, or 0. */
DEVICE u32 take_bits(const u8 *p, int wanted) {
#ifdef __CUDACC_RTC__
    u32 bits = 0;
    asm volatile("{\n\t.reg .pred q;\n\tsetp.ne.s32 q, %2, 0;\n\t"
                 "@q ld.global.L1::no_allocate.u8 %0, [%1];\n\t}"
                 : "+r"(bits)
                 : "l"(p), "r"(wanted));
    return bits;
#else
    return wanted ? *p : 0;
#endif
}

/* Where the group of a row begins. */
DEVICE u64 place(u32 row, int group) {
    return (u64)row * C + (u32)group * LANES;
}

/* ---- what the elements of a group become ---- */

#ifdef ACT

/*
 * What a launch knows of stochastic depth: in registers, since what is in memory would be read
 * again after every store.
 */
typedef struct dropping {
    u64 seed, step;
    u32 pixels; /* of a sample */
    float rate;
    int node;
} dropping;

DEVICE dropping dropping_of(const cuda_knobs *knobs, u32 pixels, float rate, int node) {
    dropping drop = {0, 0, pixels, rate, node};
#if DROP
    drop.seed = knobs->seed;
    drop.step = knobs->step;
#else
    (void)knobs;
#endif
    return drop;
}

/* What a row's sample is multiplied with. */
DEVICE float row_factor(dropping drop, u32 row) {
#if DROP
    return drop_factor(drop.rate, drop.seed, drop.step, drop.node, row / drop.pixels);
#else
    (void)drop;
    (void)row;
    return 1;
#endif
}

/* scale and shift of the norm, and of the norm of what is added. */
typedef struct forms {
    lanes scale, shift;
#if ADDED == 2
    lanes added_scale, added_shift;
#endif
} forms;

/* What the activation reads. */
DEVICE lanes before_act(const forms *f, lanes x, lanes added, float factor) {
    lanes y;
    UNROLL
    for (int i = 0; i < LANES; i++) {
        y.v[i] = fmaf(f->scale.v[i], x.v[i], f->shift.v[i]);
#if DROP
        y.v[i] *= factor;
#else
        (void)factor;
#endif
#if ADDED == 2
        y.v[i] += fmaf(f->added_scale.v[i], added.v[i], f->added_shift.v[i]);
#elif ADDED == 1
        y.v[i] += added.v[i];
#else
        (void)added;
#endif
    }
    return y;
}

DEVICE lanes after_act(lanes x) {
    UNROLL
    for (int i = 0; i < LANES; i++) {
        x.v[i] = activate(ACT, x.v[i]);
    }
    return x;
}

/* The gradient in front of the activation, from the one behind it. */
DEVICE lanes through_act(lanes g, lanes before, u32 bits) {
    UNROLL
    for (int i = 0; i < LANES; i++) {
#if MASK
        g.v[i] = bits >> i & 1 ? g.v[i] : 0;
#elif FROM_X
        g.v[i] *= slope(ACT, before.v[i]);
#endif
    }
    (void)before;
    (void)bits;
    return g;
}

DEVICE lanes times(lanes x, float factor) {
#if DROP
    UNROLL
    for (int i = 0; i < LANES; i++) {
        x.v[i] *= factor;
    }
#else
    (void)factor;
#endif
    return x;
}

#endif

/* ---- sums over all rows ---- */

#ifdef SUMS /* how many a channel has */

#define COLUMNS (SUMS * LANES * TILE) /* sums of a tile, as [which][lane][group] */
#define QUADS (COLUMNS / 4)
#define HANDS (THREADS / QUADS) /* threads that share the blocks' sums of one quad; at least 1 */
#define FOLDS (HIGH / LANES)    /* threads that share one sum of a block; at least 1 */
#define AHEAD 8

/*
 * Shared memory: float (THREADS, LANES), used again as double (HANDS, COLUMNS); then double
 * (COLUMNS), the totals; then one u32.
 */
DEVICE double *totals_in(float *room) {
    return (double *)room + THREADS * LANES / 2;
}

/* Adds up what the block's threads have, LANES numbers each, to those of the tile's groups. */
DEVICE void fold(float *room, lanes x, float *sums) {
    int t = threadIdx.x;
    UNROLL
    for (int i = 0; i < LANES; i++) {
        room[i * THREADS + t] = x.v[i];
    }
    __syncthreads();
    float sum = 0;
    if (t < LANES * FOLDS * TILE) {
        int lane = t / (FOLDS * TILE);
        for (int u = t % (FOLDS * TILE); u < THREADS; u += FOLDS * TILE) {
            sum += room[lane * THREADS + u];
        }
    }
    __syncthreads();
    room[t] = sum;
    __syncthreads();
    if (t < LANES * TILE) {
        sum = 0;
        for (int k = 0; k < FOLDS; k++) {
            sum += room[(t / TILE * FOLDS + k) * TILE + t % TILE];
        }
        sums[t] = sum;
    }
    __syncthreads();
}

/* Adds up the sums of all blocks of a tile into the totals. */
DEVICE void add_blocks(float *room, const float *sums) {
    double *apart = (double *)room;
    double *totals = totals_in(room);
    int t = threadIdx.x;
    int hand = t / QUADS;
    int quad = t % QUADS;
    int blocks = gridDim.x;
    if (hand < HANDS) {
        double a = 0, b = 0, c = 0, d = 0;
        const float4 *from = (const float4 *)sums + quad;
        for (int k = hand; k < blocks; k += AHEAD * HANDS) {
            float4 some_sums[AHEAD];
            UNROLL
            for (int i = 0; i < AHEAD; i++) {
                int block = k + i * HANDS;
                some_sums[i] = from[(block < blocks ? block : k) * QUADS];
            }
            UNROLL
            for (int i = 0; i < AHEAD; i++) {
                if (k + i * HANDS < blocks) {
                    a += some_sums[i].x;
                    b += some_sums[i].y;
                    c += some_sums[i].z;
                    d += some_sums[i].w;
                }
            }
        }
        double *to = apart + hand * COLUMNS + 4 * quad;
        to[0] = a, to[1] = b, to[2] = c, to[3] = d;
    }
    __syncthreads();
    for (int c = t; c < COLUMNS; c += THREADS) {
        double sum = 0;
        for (int k = 0; k < HANDS; k++) {
            sum += apart[k * COLUMNS + c];
        }
        totals[c] = sum;
    }
    __syncthreads();
}

/*
 * From what each thread summed to the totals of the tile, [which * LANES * TILE + column]. 0 in all
 * blocks but the last, which are done then.
 */
DEVICE int sum_up(float *room, const lanes *sums, float *partial, u32 *counters) {
    float *tile = partial + (u64)blockIdx.y * gridDim.x * COLUMNS;
    UNROLL
    for (int s = 0; s < SUMS; s++) {
        fold(room, sums[s], tile + (u64)blockIdx.x * COLUMNS + s * LANES * TILE);
    }
    u32 *told = (u32 *)(totals_in(room) + COLUMNS);
    if (!last_block(counters + blockIdx.y, gridDim.x, told)) {
        return 0;
    }
    add_blocks(room, tile);
    return 1;
}

/* The channel of a column. */
DEVICE int channel_of(int column) {
    return (blockIdx.y * TILE + column % TILE) * LANES + column / TILE;
}

#endif

#endif

/* ---- forward ---- */

#ifdef K_norm_stats
/*
 * Sums are taken about a pivot, the first row: sums of x and x^2 themselves would lose all digits
 * of a deviation that is small beside the mean.
 */
KERNEL BOUNDS norm_stats(const T *x /* (rows, C) */, const float *weight, const float *bias,
                         float *running_mean, float *running_var, float *coefs /* (4, C) */,
                         int narrow, float *partial, u32 *counters, u32 rows, float epsilon) {
    SHARED(float, room);
    int group = blockIdx.y * TILE + threadIdx.x % TILE;
    int inside = group < GROUPS;
    u32 step = gridDim.x * HIGH;
    lanes sums[2];
    held first = take(x + place(0, group), inside, nothing_held(), group);
    lanes pivot = open_held(first);
    UNROLL
    for (int i = 0; i < LANES; i++) {
        sums[0].v[i] = sums[1].v[i] = 0;
    }
    u32 at = inside ? blockIdx.x * HIGH + threadIdx.x / TILE : rows;
    for (; at < rows; at += DEPTH * step) {
        held taken[DEPTH];
        UNROLL
        for (int k = 0; k < DEPTH; k++) {
            u32 row = at + k * step;
            taken[k] = take(x + place(rows - 1 - row, group), row < rows, first, group);
        }
        UNROLL
        for (int k = 0; k < DEPTH; k++) {
            lanes v = open_held(taken[k]);
            UNROLL
            for (int i = 0; i < LANES; i++) {
                float apart = v.v[i] - pivot.v[i];
                sums[0].v[i] += apart;
                sums[1].v[i] = fmaf(apart, apart, sums[1].v[i]);
            }
        }
    }
    if (!sum_up(room, sums, partial, counters)) {
        return;
    }
    const double *totals = totals_in(room);
    for (int k = threadIdx.x; k < LANES * TILE; k += THREADS) {
        int c = channel_of(k);
        if (c < C) {
            double apart = totals[k] / rows;
            double squares = totals[LANES * TILE + k] - totals[k] * apart;
            norm_settle(c, C, up(x[c]) + apart, squares < 0 ? 0 : squares, rows, epsilon, weight,
                        bias, running_mean, running_var, coefs);
            if (narrow) {
                norm_narrow(c, C, bias, coefs);
            }
        }
    }
}
#endif

#ifdef K_norm_settled
/* From sums that a convolution took. */
KERNEL norm_settled(const float *sums /* (2, channels) */, const float *weight, const float *bias,
                    float *running_mean, float *running_var, float *coefs /* (4, channels) */,
                    int narrow, int channels, u32 rows, float epsilon) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < channels) {
        norm_settle_sums(c, channels, sums[c], sums[channels + c], rows, epsilon, weight, bias,
                         running_mean, running_var, coefs, narrow);
    }
}
#endif

#ifdef K_norm_running
KERNEL norm_running(const float *weight, const float *bias, const float *running_mean,
                    const float *running_var, float *coefs /* (4, channels) */, int channels,
                    float epsilon) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < channels) {
        double mean = running_mean[c];
        double invstd = 1.0 / sqrt((double)running_var[c] + (double)epsilon);
        coefs[c] = (float)mean;
        coefs[channels + c] = (float)invstd;
        coefs[2 * channels + c] = (float)(weight[c] * invstd);
        coefs[3 * channels + c] = (float)(bias[c] - mean * weight[c] * invstd);
    }
}
#endif

#ifdef K_norm_apply
KERNEL BOUNDS norm_apply(const T *x /* (rows, C) */, const float *coefs /* (4, C) */,
                         const T *added /* (rows, C) */, const float *added_coefs, T *y, u8 *mask,
                         const cuda_knobs *knobs, u32 rows, u32 pixels, float rate, int node) {
    dropping drop = dropping_of(knobs, pixels, rate, node);
    int group = blockIdx.y * TILE + threadIdx.x % TILE;
    if (group >= GROUPS) {
        return;
    }
    u32 step = gridDim.x * HIGH;
    forms f;
    f.scale = vector(coefs + 2 * C, group);
    f.shift = vector(coefs + 3 * C, group);
#if ADDED == 2
    f.added_scale = vector(added_coefs + 2 * C, group);
    f.added_shift = vector(added_coefs + 3 * C, group);
#endif
    for (u32 at = blockIdx.x * HIGH + threadIdx.x / TILE; at < rows; at += DEPTH * step) {
        held taken[DEPTH];
        held more[DEPTH];
        UNROLL
        for (int k = 0; k < DEPTH; k++) {
            u32 row = at + k * step;
            taken[k] = take(x + place(row, group), row < rows, nothing_held(), group);
            more[k] = nothing_held();
#if ADDED
            more[k] = take(added + place(row, group), row < rows, more[k], group);
#endif
        }
        UNROLL
        for (int k = 0; k < DEPTH; k++) {
            u32 row = at + k * step;
            if (row < rows) {
                lanes v = before_act(&f, open_held(taken[k]), open_held(more[k]),
                                     row_factor(drop, row));
#if MASK
                u32 bits = 0;
                UNROLL
                for (int i = 0; i < LANES; i++) {
                    bits |= slope(ACT, v.v[i]) != 0 ? 1u << i : 0;
                }
                mask[(u64)row * GROUPS + group] = (u8)bits;
#endif
                put(y + place(row, group), after_act(v), group);
            }
        }
    }
}
#endif

/* ---- backward ---- */

#ifdef ACT
#define READ_ADDED (ADDED == 2 || (ADDED == 1 && FROM_X))
#endif

#ifdef K_norm_reduce
/*
 * Sums of dn and of dn * (x - mean); then, with the norm of what is added, of sg and sg * (added -
 * its mean), where dn = drop * sg. Without stochastic depth dn and sg are one.
 */
KERNEL BOUNDS norm_reduce(const T *g /* (rows, C) */, const T *x, const float *weight,
                          const float *coefs /* (4, C) */, const T *added,
                          const float *added_weight, const float *added_coefs, const u8 *mask,
                          T *again, float *weight_grad, float *bias_grad, float *back /* (3, C) */,
                          float *added_weight_grad, float *added_bias_grad, float *added_back,
                          float *partial, u32 *counters, const cuda_knobs *knobs, u32 rows,
                          u32 pixels, float rate, int node) {
    SHARED(float, room);
    dropping drop = dropping_of(knobs, pixels, rate, node);
    int group = blockIdx.y * TILE + threadIdx.x % TILE;
    int inside = group < GROUPS;
    int own = inside ? group : 0;
    u32 step = gridDim.x * HIGH;
    lanes mean = vector(coefs, own);
#if FROM_X || AGAIN
    forms f;
    f.scale = vector(coefs + 2 * C, own);
    f.shift = vector(coefs + 3 * C, own);
#endif
#if ADDED == 2
    lanes added_mean = vector(added_coefs, own);
#if FROM_X
    f.added_scale = vector(added_coefs + 2 * C, own);
    f.added_shift = vector(added_coefs + 3 * C, own);
#endif
#endif
    lanes sums[SUMS];
    UNROLL
    for (int s = 0; s < SUMS; s++) {
        UNROLL
        for (int i = 0; i < LANES; i++) {
            sums[s].v[i] = 0;
        }
    }
    u32 at = inside ? blockIdx.x * HIGH + threadIdx.x / TILE : rows;
    for (; at < rows; at += DEPTH * step) {
        held taken_g[DEPTH];
        held taken_x[DEPTH];
        held more[DEPTH];
        u32 bits[DEPTH];
        UNROLL
        for (int k = 0; k < DEPTH; k++) {
            u32 row = rows - 1 - (at + k * step);
            int wanted = at + k * step < rows;
            taken_g[k] = take(g + place(row, group), wanted, nothing_held(), group);
            taken_x[k] = take(x + place(row, group), wanted, nothing_held(), group);
            more[k] = nothing_held();
            bits[k] = 0;
#if READ_ADDED
            more[k] = take(added + place(row, group), wanted, more[k], group);
#endif
#if MASK
            bits[k] = take_bits(mask + (u64)row * GROUPS + group, wanted);
#endif
        }
        UNROLL
        for (int k = 0; k < DEPTH; k++) {
            /* Behind the last row g is 0, and so is all that is added to the sums. */
            u32 row = rows - 1 - (at + k * step);
            float factor = row_factor(drop, row);
            lanes v = open_held(taken_x[k]);
            lanes w = open_held(more[k]);
            lanes before = v;
#if FROM_X || AGAIN
            before = before_act(&f, v, w, factor);
#endif
#if AGAIN
            if (at + k * step < rows) {
                put(again + place(row, group), after_act(before), group);
            }
#endif
            lanes sg = through_act(open_held(taken_g[k]), before, bits[k]);
            lanes dn = times(sg, factor);
            UNROLL
            for (int i = 0; i < LANES; i++) {
                sums[0].v[i] += dn.v[i];
                sums[1].v[i] = fmaf(dn.v[i], v.v[i] - mean.v[i], sums[1].v[i]);
#if ADDED == 2
                sums[2].v[i] = fmaf(sg.v[i], w.v[i] - added_mean.v[i], sums[2].v[i]);
#if SUMS == 4
                sums[3].v[i] += sg.v[i];
#endif
#endif
            }
        }
    }
    if (!sum_up(room, sums, partial, counters)) {
        return;
    }
    const double *totals = totals_in(room);
    for (int k = threadIdx.x; k < LANES * TILE; k += THREADS) {
        int c = channel_of(k);
        if (c < C) {
            norm_settle_back(c, C, totals[k], totals[LANES * TILE + k] * coefs[C + c], rows, weight,
                             coefs, weight_grad, bias_grad, back);
#if ADDED == 2
            norm_settle_back(c, C, totals[(SUMS == 4 ? 3 : 0) * LANES * TILE + k],
                             totals[2 * LANES * TILE + k] * added_coefs[C + c], rows, added_weight,
                             added_coefs, added_weight_grad, added_bias_grad, added_back);
#endif
        }
    }
}
#endif

#ifdef K_norm_backward

/* dx = a * dn + b * x + e, where e = d - b * mean. */
typedef struct slopes {
    lanes a, b, e;
} slopes;

DEVICE slopes slopes_of(const float *coefs, const float *back, int group) {
    slopes s;
    lanes mean = vector(coefs, group);
    s.a = vector(back, group);
    s.b = vector(back + C, group);
    s.e = vector(back + 2 * C, group);
    UNROLL
    for (int i = 0; i < LANES; i++) {
        s.e.v[i] = fmaf(-s.b.v[i], mean.v[i], s.e.v[i]);
    }
    return s;
}

DEVICE lanes through_norm(const slopes *s, lanes dn, lanes x) {
    lanes y;
    UNROLL
    for (int i = 0; i < LANES; i++) {
        y.v[i] = fmaf(s->a.v[i], dn.v[i], fmaf(s->b.v[i], x.v[i], s->e.v[i]));
    }
    return y;
}

#define READ_X (DX || FROM_X)

KERNEL BOUNDS norm_backward(const T *g /* (rows, C) */, const T *x,
                            const float *coefs /* (4, C) */, const float *back /* (3, C) */,
                            const T *added, const float *added_coefs, const float *added_back,
                            const u8 *mask, T *dx, T *added_dx, const cuda_knobs *knobs, u32 rows,
                            u32 pixels, float rate, int node) {
    dropping drop = dropping_of(knobs, pixels, rate, node);
    int group = blockIdx.y * TILE + threadIdx.x % TILE;
    if (group >= GROUPS) {
        return;
    }
    u32 step = gridDim.x * HIGH;
#if DX
    slopes s = slopes_of(coefs, back, group);
#endif
#if ADDED == 2 && ADDED_DX
    slopes added_s = slopes_of(added_coefs, added_back, group);
#endif
#if FROM_X
    forms f;
#if DX
    f.scale = s.a; /* the same number, in the same registers */
#else
    f.scale = vector(coefs + 2 * C, group);
#endif
    f.shift = vector(coefs + 3 * C, group);
#if ADDED == 2
    f.added_scale = vector(added_coefs + 2 * C, group);
    f.added_shift = vector(added_coefs + 3 * C, group);
#endif
#endif
    for (u32 at = blockIdx.x * HIGH + threadIdx.x / TILE; at < rows; at += DEPTH * step) {
        held taken_g[DEPTH];
        held taken_x[DEPTH];
        held more[DEPTH];
        held old[DEPTH];
        u32 bits[DEPTH];
        UNROLL
        for (int k = 0; k < DEPTH; k++) {
            u32 row = at + k * step;
            int wanted = row < rows;
            taken_g[k] = take(g + place(row, group), wanted, nothing_held(), group);
            taken_x[k] = more[k] = old[k] = nothing_held();
            bits[k] = 0;
#if READ_X
            taken_x[k] = take(x + place(row, group), wanted, taken_x[k], group);
#endif
#if READ_ADDED
            more[k] = take(added + place(row, group), wanted, more[k], group);
#endif
#if ADDED_DX == 2
            old[k] = take(added_dx + place(row, group), wanted, old[k], group);
#endif
#if MASK
            bits[k] = take_bits(mask + (u64)row * GROUPS + group, wanted);
#endif
        }
        UNROLL
        for (int k = 0; k < DEPTH; k++) {
            u32 row = at + k * step;
            if (row >= rows) {
                continue;
            }
            float factor = row_factor(drop, row);
            lanes v = open_held(taken_x[k]);
            lanes w = open_held(more[k]);
            lanes before = v;
#if FROM_X
            before = before_act(&f, v, w, factor);
#endif
            lanes sg = through_act(open_held(taken_g[k]), before, bits[k]);
#if DX
            put(dx + place(row, group), through_norm(&s, times(sg, factor), v), group);
#endif
#if ADDED_DX
#if ADDED == 2
            sg = through_norm(&added_s, sg, w);
#elif ADDED_DX == 2
            lanes before_it = open_held(old[k]);
            UNROLL
            for (int i = 0; i < LANES; i++) {
                sg.v[i] += before_it.v[i];
            }
#endif
            put(added_dx + place(row, group), sg, group);
#endif
        }
    }
}
#endif
