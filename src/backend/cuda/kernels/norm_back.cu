/*
 * norm_back.cu - backward of batch norm and of what follows it, in two passes: norm_reduce takes
 * the sums, norm_backward computes the gradients. norm_rows.cuh says how blocks and threads divide
 * the work, and what the -D constants mean.
 *
 * Forward was y = ACT(drop * norm(x) + added). g is the gradient of y; sg = slope of ACT * g is the
 * gradient of `added` (with ADDED 2, of its norm's output); dn = drop * sg is the gradient of
 * norm(x).
 */
#include "norm_rows.cuh"

/* Loads a byte of a mask if `wanted`; otherwise returns 0. */
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

/*
 * sg from g: g is multiplied by the slope of the activation, given by the bits of the mask (MASK)
 * or by `before`, the activation's input (FROM_X).
 */
DEVICE lanes through_act(lanes g, lanes before, u32 bits) {
    UNROLL
    for (int i = 0; i < LANES; i++) {
        if (MASK) {
            g.v[i] = bits >> i & 1 ? g.v[i] : 0;
        } else if (FROM_X) {
            g.v[i] *= slope(ACT, before.v[i]);
        }
    }
    return g;
}

#define READ_ADDED (ADDED == 2 || (ADDED == 1 && FROM_X))

#ifdef K_norm_reduce
/*
 * First pass: weight_grad, bias_grad and back (3, C) of the norm, and with ADDED 2 those of the
 * norm of `added`. With AGAIN also writes y to `again`. The sums over all rows are
 *
 *     sums[0]  dn
 *     sums[1]  dn * (x - mean)
 *     sums[2]  sg * (added - its mean)     with ADDED 2, where SUMS is 3 or 4
 *     sums[3]  sg                          with DROP too, where SUMS is 4; otherwise it is sums[0]
 */
KERNEL BOUNDS norm_reduce(const T *g /* (rows, C) */, const T *x, const float *weight,
                          const float *coefs /* (4, C) */, const T *added,
                          const float *added_weight, const float *added_coefs, const u8 *mask,
                          T *again, float *weight_grad, float *bias_grad, float *back /* (3, C) */,
                          float *added_weight_grad, float *added_bias_grad, float *added_back,
                          float *partial, u32 *counters, const cuda_step_constants *constants, u32 rows,
                          u32 pixels, float rate, int node) {
    SHARED(float, room);
    dropping drop = dropping_of(constants, pixels, rate, node);
    int group = blockIdx.y * TILE + threadIdx.x % TILE;
    int inside = group < GROUPS;
    int own = inside ? group : 0;
    u32 step = gridDim.x * HIGH;
    lanes mean = vector(coefs, own);
    lanes added_mean = mean;
    forms f;
    if (FROM_X || AGAIN) {
        f.scale = vector(coefs + 2 * C, own);
        f.shift = vector(coefs + 3 * C, own);
    }
    if (ADDED == 2) {
        added_mean = vector(added_coefs, own);
    }
    if (ADDED == 2 && FROM_X) {
        f.added_scale = vector(added_coefs + 2 * C, own);
        f.added_shift = vector(added_coefs + 3 * C, own);
    }
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
            if (READ_ADDED) {
                more[k] = take(added + place(row, group), wanted, more[k], group);
            }
            if (MASK) {
                bits[k] = take_bits(mask + (u64)row * GROUPS + group, wanted);
            }
        }
        UNROLL
        for (int k = 0; k < DEPTH; k++) {
            /* Where there is no row, g was set to 0, so nothing is added to the sums. */
            u32 row = rows - 1 - (at + k * step);
            float factor = row_factor(drop, row);
            lanes v = open_held(taken_x[k]);
            lanes w = open_held(more[k]);
            lanes before = v;
            if (FROM_X || AGAIN) {
                before = all_before_act(&f, v, w, factor);
            }
            if (AGAIN && at + k * step < rows) {
                put(again + place(row, group), after_act(before), group);
            }
            lanes sg = through_act(open_held(taken_g[k]), before, bits[k]);
            lanes dn = times(sg, factor);
            UNROLL
            for (int i = 0; i < LANES; i++) {
                sums[0].v[i] += dn.v[i];
                sums[1].v[i] = fmaf(dn.v[i], v.v[i] - mean.v[i], sums[1].v[i]);
                if (SUMS >= 3) {
                    sums[2].v[i] = fmaf(sg.v[i], w.v[i] - added_mean.v[i], sums[2].v[i]);
                }
                if (SUMS == 4) {
                    sums[3].v[i] += sg.v[i];
                }
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
            norm_set_back(c, C, totals[k], totals[LANES * TILE + k] * coefs[C + c], rows, weight,
                             coefs, weight_grad, bias_grad, back);
            if (ADDED == 2) {
                norm_set_back(c, C, totals[(SUMS == 4 ? 3 : 0) * LANES * TILE + k],
                              totals[2 * LANES * TILE + k] * added_coefs[C + c], rows, added_weight,
                              added_coefs, added_weight_grad, added_bias_grad, added_back);
            }
        }
    }
}
#endif

#ifdef K_norm_backward

/* Coefficients of a group: dx = a * dn + b * x + e, where e = d - b * mean. */
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

/*
 * Second pass: dx = a * dn + b * (x - mean) + d, with `back` of the first pass. The gradient of
 * what was added goes to added_dx: sg, or with ADDED 2 the gradient through the norm of `added`. dx
 * or added_dx may lie on g.
 */
KERNEL BOUNDS norm_backward(const T *g /* (rows, C) */, const T *x,
                            const float *coefs /* (4, C) */, const float *back /* (3, C) */,
                            const T *added, const float *added_coefs, const float *added_back,
                            const u8 *mask, T *dx, T *added_dx, const cuda_step_constants *constants, u32 rows,
                            u32 pixels, float rate, int node) {
    dropping drop = dropping_of(constants, pixels, rate, node);
    int group = blockIdx.y * TILE + threadIdx.x % TILE;
    if (group >= GROUPS) {
        return;
    }
    u32 step = gridDim.x * HIGH;
    slopes s, added_s;
    forms f;
    if (DX) {
        s = slopes_of(coefs, back, group);
    }
    if (ADDED == 2 && ADDED_DX) {
        added_s = slopes_of(added_coefs, added_back, group);
    }
    if (FROM_X) {
        f.scale = DX ? s.a : vector(coefs + 2 * C, group); /* a is the scale */
        f.shift = vector(coefs + 3 * C, group);
    }
    if (FROM_X && ADDED == 2) {
        f.added_scale = vector(added_coefs + 2 * C, group);
        f.added_shift = vector(added_coefs + 3 * C, group);
    }
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
            if (READ_X) {
                taken_x[k] = take(x + place(row, group), wanted, taken_x[k], group);
            }
            if (READ_ADDED) {
                more[k] = take(added + place(row, group), wanted, more[k], group);
            }
            if (ADDED_DX == 2) {
                old[k] = take(added_dx + place(row, group), wanted, old[k], group);
            }
            if (MASK) {
                bits[k] = take_bits(mask + (u64)row * GROUPS + group, wanted);
            }
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
            if (FROM_X) {
                before = all_before_act(&f, v, w, factor);
            }
            lanes sg = through_act(open_held(taken_g[k]), before, bits[k]);
            if (DX) {
                put(dx + place(row, group), through_norm(&s, times(sg, factor), v), group);
            }
            if (ADDED_DX && ADDED == 2) {
                sg = through_norm(&added_s, sg, w);
            } else if (ADDED_DX == 2) {
                lanes before_it = open_held(old[k]);
                UNROLL
                for (int i = 0; i < LANES; i++) {
                    sg.v[i] += before_it.v[i];
                }
            }
            if (ADDED_DX) {
                put(added_dx + place(row, group), sg, group);
            }
        }
    }
}
#endif
