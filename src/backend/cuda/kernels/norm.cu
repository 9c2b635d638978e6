/*
 * norm.cu - forward of batch norm and of what follows it: the statistics, then one pass that
 * applies them. norm_back.cu has the backward. norm_rows.cuh has what both files share: how blocks
 * and threads divide the work, and what the -D constants mean.
 */
#include "norm_rows.cuh"

#ifdef K_norm_stats
/*
 * The batch's statistics of x: computes coefs, and updates the running mean and variance. With
 * `narrow` also stores scale and shift as T after coefs.
 *
 * The kernel sums x - pivot and (x - pivot)^2 per channel; the pivot is the first row. Sums of x
 * and x^2 would lose all digits of a deviation that is small compared to the mean.
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
            norm_set_coefs(c, C, up(x[c]) + apart, squares < 0 ? 0 : squares, rows, epsilon, weight,
                        bias, running_mean, running_var, coefs);
            if (narrow) {
                norm_narrow(c, C, bias, coefs);
            }
        }
    }
}
#endif

#ifdef K_norm_finalise
/* As norm_stats, from the sums of x and of x^2 that another kernel took. One thread per channel. */
KERNEL norm_finalise(const float *sums /* (2, channels) */, const float *weight, const float *bias,
                    float *running_mean, float *running_var, float *coefs /* (4, channels) */,
                    int narrow, int channels, u32 rows, float epsilon) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < channels) {
        norm_set_coefs_of_sums(c, channels, sums[c], sums[channels + c], rows, epsilon, weight, bias,
                         running_mean, running_var, coefs, narrow);
    }
}
#endif

#ifdef K_norm_running
/* Computes coefs from the running mean and variance, for inference. One thread per channel. */
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
/*
 * y = ACT(drop * (scale * x + shift) + added). With ADDED 2 `added` goes through its own norm
 * first, with added_coefs (4, C). y may lie on x. mask (rows, GROUPS): bit i of a byte is 1 where
 * the slope of the activation at channel i of the group is not 0.
 */
KERNEL BOUNDS norm_apply(const T *x /* (rows, C) */, const float *coefs /* (4, C) */,
                         const T *added /* (rows, C) */, const float *added_coefs, T *y, u8 *mask,
                         const cuda_step_constants *constants, u32 rows, u32 pixels, float rate, int node) {
    dropping drop = dropping_of(constants, pixels, rate, node);
    int group = blockIdx.y * TILE + threadIdx.x % TILE;
    if (group >= GROUPS) {
        return;
    }
    u32 step = gridDim.x * HIGH;
    forms f;
    f.scale = vector(coefs + 2 * C, group);
    f.shift = vector(coefs + 3 * C, group);
    if (ADDED == 2) {
        f.added_scale = vector(added_coefs + 2 * C, group);
        f.added_shift = vector(added_coefs + 3 * C, group);
    }
    for (u32 at = blockIdx.x * HIGH + threadIdx.x / TILE; at < rows; at += DEPTH * step) {
        held taken[DEPTH];
        held more[DEPTH];
        UNROLL
        for (int k = 0; k < DEPTH; k++) {
            u32 row = at + k * step;
            taken[k] = take(x + place(row, group), row < rows, nothing_held(), group);
            more[k] = nothing_held();
            if (ADDED) {
                more[k] = take(added + place(row, group), row < rows, more[k], group);
            }
        }
        UNROLL
        for (int k = 0; k < DEPTH; k++) {
            u32 row = at + k * step;
            if (row < rows) {
                lanes v = all_before_act(&f, open_held(taken[k]), open_held(more[k]),
                                     row_factor(drop, row));
                if (MASK) {
                    u32 bits = 0;
                    UNROLL
                    for (int i = 0; i < LANES; i++) {
                        bits |= slope(ACT, v.v[i]) != 0 ? 1u << i : 0;
                    }
                    mask[(u64)row * GROUPS + group] = (u8)bits;
                }
                put(y + place(row, group), after_act(v), group);
            }
        }
    }
}
#endif
