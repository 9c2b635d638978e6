/*
 * depthwise_tile.h - the loops of depthwise convolutions over vectors of channels, written once
 * and included by depthwise.c for each kind of instructions. Before including it,
 * depthwise.c defines
 *     DW_LANES      floats in a vector register
 *     DW_TARGET     the attribute that allows the instructions, or nothing
 *     DW_NAME(x)    the name of x for this kind
 *     DW_TAP_ROWS   rows of 5 taps whose sums fit into the registers
 * DW_NAME(line) and DW_NAME(weights) return the first channel that they left out, because fewer
 * channels than a whole vector were left.
 */

/* May lie anywhere in an array of floats. */
#if DW_LANES > 1
typedef float DW_NAME(vec) __attribute__((vector_size(4 * DW_LANES), aligned(4), may_alias));
#else
typedef float DW_NAME(vec);
#endif
#define VEC DW_NAME(vec)
#define DW_INLINE static inline __attribute__((always_inline)) DW_TARGET

/*
 * DW_PIXELS outputs from `o` on in one vector of channels. `taps`, `stride` and `whole` are
 * constants where this is called: `whole` says that all columns and outputs are there.
 */
DW_INLINE void DW_NAME(block)(const cpu_line *l, int o, size_t c, int taps, int stride,
                              bool whole) {
    VEC sum[DW_PIXELS];
    DW_UNROLL for (int p = 0; p < DW_PIXELS; p++) {
        sum[p] = (VEC){0};
    }
    for (int r = 0; r < l->row_count; r++) {
        VEC weights[5];
        DW_UNROLL for (int k = 0; k < taps; k++) {
            weights[k] = *(const VEC *)(l->weights[r] + (size_t)k * l->channels + c);
        }
        int column = l->column[r] + o * stride;
        const float *x = l->rows[r] + (ptrdiff_t)column * (ptrdiff_t)l->channels + c;
        DW_UNROLL for (int j = 0; j < (DW_PIXELS - 1) * stride + taps; j++) {
            if (!whole && (column + j < 0 || column + j >= l->columns)) {
                continue;
            }
            VEC v = *(const VEC *)(x + (size_t)j * l->channels);
            DW_UNROLL for (int p = 0; p < DW_PIXELS; p++) {
                if (j - p * stride >= 0 && j - p * stride < taps) {
                    sum[p] += v * weights[j - p * stride];
                }
            }
        }
    }
    DW_UNROLL for (int p = 0; p < DW_PIXELS; p++) {
        if (whole || o + p < l->outputs) {
            VEC *out = (VEC *)(l->out + (size_t)(o + p) * l->out_step + c);
            if (l->add) {
                sum[p] += *out;
            }
            *out = sum[p];
        }
    }
}

/* The same with one tap per row and any stride. */
DW_INLINE void DW_NAME(points)(const cpu_line *l, int o, size_t c) {
    for (int p = o; p < o + DW_PIXELS && p < l->outputs; p++) {
        VEC *out = (VEC *)(l->out + (size_t)p * l->out_step + c);
        VEC sum = (VEC){0};
        if (l->add) {
            sum = *out;
        }
        for (int r = 0; r < l->row_count; r++) {
            int column = l->column[r] + p * l->stride;
            if (column >= 0 && column < l->columns) {
                sum += *(const VEC *)(l->rows[r] + (size_t)column * l->channels + c) *
                       *(const VEC *)(l->weights[r] + c);
            }
        }
        *out = sum;
    }
}

DW_INLINE size_t DW_NAME(blocks)(const cpu_line *l, size_t from, int taps, int stride) {
    size_t c = from;
    for (int o = 0; o < l->outputs; o += DW_PIXELS) {
        int before = l->column[0] + o * stride;
        int after = before + (DW_PIXELS - 1) * stride + taps;
        bool whole = before >= 0 && after <= l->columns && o + DW_PIXELS <= l->outputs;
        if (whole) {
            for (c = from; c + DW_LANES <= l->channels; c += DW_LANES) {
                DW_NAME(block)(l, o, c, taps, stride, true);
            }
        } else {
            for (c = from; c + DW_LANES <= l->channels; c += DW_LANES) {
                DW_NAME(block)(l, o, c, taps, stride, false);
            }
        }
    }
    return c;
}

static DW_TARGET size_t DW_NAME(line)(const cpu_line *l, size_t from) {
    switch (10 * l->taps + l->stride) {
    case 21:
        return DW_NAME(blocks)(l, from, 2, 1);
    case 31:
        return DW_NAME(blocks)(l, from, 3, 1);
    case 32:
        return DW_NAME(blocks)(l, from, 3, 2);
    case 51:
        return DW_NAME(blocks)(l, from, 5, 1);
    case 52:
        return DW_NAME(blocks)(l, from, 5, 2);
    default:
        break;
    }
    size_t c = from;
    for (int o = 0; o < l->outputs; o += DW_PIXELS) {
        for (c = from; c + DW_LANES <= l->channels; c += DW_LANES) {
            DW_NAME(points)(l, o, c);
        }
    }
    return c;
}

/*
 * One pixel's share in the sums of `rows` x `taps` weights, both constants where this is called;
 * `edge`: some columns may lie outside.
 */
DW_INLINE void DW_NAME(share)(const cpu_line_weights *w, VEC *sums, const float *const *x,
                              const float *dy, int column, int rows, int taps, bool edge) {
    VEC g = *(const VEC *)dy;
    ptrdiff_t at = (ptrdiff_t)column * (ptrdiff_t)w->channels;
    DW_UNROLL for (int k = 0; k < taps; k++) {
        if (edge && (column + k < 0 || column + k >= w->in.width)) {
            continue;
        }
        DW_UNROLL for (int r = 0; r < rows; r++) {
            sums[r * taps + k] +=
                g * *(const VEC *)(x[r] + at + (ptrdiff_t)((size_t)k * w->channels));
        }
    }
}

/*
 * Adds the share of outputs ox .. end-1 of row oy to the sums of `rows` x `taps` weights, the first
 * of which is (ky, kx), in one vector of channels.
 */
DW_INLINE void DW_NAME(sums)(const cpu_line_weights *w, size_t c, int oy, int ox, int end, int ky,
                             int kx, int rows, int taps) {
    VEC sums[25];
    const float *x[5];
    DW_UNROLL for (int i = 0; i < rows * taps; i++) {
        int tap = (ky + i / taps) * w->kernel + kx + i % taps;
        sums[i] = *(VEC *)(w->sums + (size_t)tap * w->channels + c);
    }
    DW_UNROLL for (int r = 0; r < rows; r++) {
        int iy = oy * w->stride - w->pad + ky + r;
        bool inside = iy >= 0 && iy < w->in.height;
        x[r] = (inside ? w->x + (size_t)iy * (size_t)w->in.width * w->channels : w->zeros) + c;
    }
    const float *dy = w->dy + ((size_t)oy * (size_t)w->out.width + (size_t)ox) * w->channels + c;
    int column = ox * w->stride - w->pad + kx;
    for (int o = ox; o < end; o++, dy += w->channels, column += w->stride) {
        if (column >= 0 && column + taps <= w->in.width) {
            DW_NAME(share)(w, sums, x, dy, column, rows, taps, false);
        } else {
            DW_NAME(share)(w, sums, x, dy, column, rows, taps, true);
        }
    }
    DW_UNROLL for (int i = 0; i < rows * taps; i++) {
        int tap = (ky + i / taps) * w->kernel + kx + i % taps;
        *(VEC *)(w->sums + (size_t)tap * w->channels + c) = sums[i];
    }
}

DW_INLINE void DW_NAME(all_sums)(const cpu_line_weights *w, size_t c, int oy, int ox, int end) {
    if (w->kernel == 3) {
        DW_NAME(sums)(w, c, oy, ox, end, 0, 0, 3, 3);
    } else if (w->kernel == 5 && DW_TAP_ROWS == 5) {
        DW_NAME(sums)(w, c, oy, ox, end, 0, 0, 5, 5);
    } else if (w->kernel == 5) {
        DW_NAME(sums)(w, c, oy, ox, end, 0, 0, 2, 5);
        DW_NAME(sums)(w, c, oy, ox, end, 2, 0, 2, 5);
        DW_NAME(sums)(w, c, oy, ox, end, 4, 0, 1, 5);
    } else {
        for (int t = 0; t < w->kernel * w->kernel; t++) {
            DW_NAME(sums)(w, c, oy, ox, end, t / w->kernel, t % w->kernel, 1, 1);
        }
    }
}

/* Some pixels at a time in all channels, so that memory is read in its order. */
static DW_TARGET size_t DW_NAME(weights)(const cpu_line_weights *w, size_t from) {
    size_t c = from;
    for (int oy = 0; oy < w->out.height; oy++) {
        for (int ox = 0; ox < w->out.width; ox += DW_SUMMED) {
            int end = ox + DW_SUMMED < w->out.width ? ox + DW_SUMMED : w->out.width;
            for (c = from; c + DW_LANES <= w->to; c += DW_LANES) {
                DW_NAME(all_sums)(w, c, oy, ox, end);
            }
        }
    }
    return c;
}

#undef VEC
#undef DW_INLINE
#undef DW_LANES
#undef DW_TARGET
#undef DW_NAME
#undef DW_TAP_ROWS
