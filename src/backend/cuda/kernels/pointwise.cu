/*
 * pointwise.cu - single nodes without reuse of data: activations, additions, bias, gates, dropout
 * and the padded shortcut. Threads stride over vectors by the grid.
 *
 * act, act_back and add use vectors of LANES; the last count % LANES elements are handled one by
 * one. The other kernels use vectors of WIDE.
 *
 *   C           channels
 *   WIDE        elements of a vector: 8; or 1 where 8 does not divide the channels (in `drop` with
 *               PATH, the elements of a sample)
 *   TILE        vectors of channels of a block; a power of two
 *   ACT         the activation
 *   ACCUMULATE  1: adds to the output; 0: overwrites it
 */

#define FLIGHT 4 /* vectors that a thread has in flight */

#ifdef K_act
/* y = activation of x; ACT_NONE copies. y may be x. */
KERNEL act(const T *x, T *y, long long count) {
    u32 vectors = (u32)(count / LANES);
    u32 step = gridDim.x * blockDim.x;
    u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (u32 from = thread; from < vectors; from += FLIGHT * step) {
        packed in[FLIGHT];
        UNROLL for (u32 k = 0; k < FLIGHT; k++) {
            if (from + k * step < vectors) {
                in[k] = fetch(x + (u64)(from + k * step) * LANES);
            }
        }
        UNROLL for (u32 k = 0; k < FLIGHT; k++) {
            if (from + k * step < vectors) {
                lanes v = unpack(in[k]);
                UNROLL for (int i = 0; i < LANES; i++) {
                    v.v[i] = activate(ACT, v.v[i]);
                }
                store(y + (u64)(from + k * step) * LANES, v);
            }
        }
    }
    if (thread < count % LANES) {
        u64 at = (u64)vectors * LANES + thread;
        y[at] = down(activate(ACT, up(x[at])));
    }
}
#endif

#ifdef K_act_back
/* dy times the slope of ACT. `kept` is the input of SiLU, the output of the other activations. */
DEVICE float slope_times(float kept, float dy) {
    if (ACT == ACT_RELU) {
        return kept > 0 ? dy : 0;
    }
    if (ACT == ACT_RELU6) {
        return kept > 0 && kept < 6 ? dy : 0;
    }
    return ACT == ACT_SILU ? dy * slope(ACT_SILU, kept) : dy * (kept * (1 - kept));
}

/* dx = or += dy * slope of ACT, by slope_times(); dx may be dy. */
KERNEL act_back(const T *kept, const T *dy, T *dx, long long count) {
    u32 vectors = (u32)(count / LANES);
    u32 step = gridDim.x * blockDim.x;
    u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (u32 from = thread; from < vectors; from += 2 * step) {
        packed in[2], back[2], old[2];
        UNROLL for (u32 k = 0; k < 2; k++) {
            u64 at = (u64)(from + k * step) * LANES;
            if (from + k * step < vectors) {
                in[k] = fetch(kept + at);
                back[k] = fetch(dy + at);
                old[k] = fetch((ACCUMULATE ? dx : dy) + at);
            }
        }
        UNROLL for (u32 k = 0; k < 2; k++) {
            if (from + k * step < vectors) {
                lanes v = unpack(in[k]), g = unpack(back[k]), o = unpack(old[k]);
                UNROLL for (int i = 0; i < LANES; i++) {
                    g.v[i] = (ACCUMULATE ? o.v[i] : 0) + slope_times(v.v[i], g.v[i]);
                }
                store(dx + (u64)(from + k * step) * LANES, g);
            }
        }
    }
    if (thread < count % LANES) {
        u64 at = (u64)vectors * LANES + thread;
        float old = ACCUMULATE ? up(dx[at]) : 0;
        dx[at] = down(old + slope_times(up(kept[at]), up(dy[at])));
    }
}
#endif

#ifdef K_add
/* y = a + b; y may be a or b. */
KERNEL add(const T *a, const T *b, T *y, long long count) {
    u32 vectors = (u32)(count / LANES);
    u32 step = gridDim.x * blockDim.x;
    u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (u32 from = thread; from < vectors; from += FLIGHT * step) {
        packed left[FLIGHT], right[FLIGHT];
        UNROLL for (u32 k = 0; k < FLIGHT; k++) {
            u64 at = (u64)(from + k * step) * LANES;
            if (from + k * step < vectors) {
                left[k] = fetch(a + at);
                right[k] = fetch(b + at);
            }
        }
        UNROLL for (u32 k = 0; k < FLIGHT; k++) {
            if (from + k * step < vectors) {
                lanes v = unpack(left[k]), w = unpack(right[k]);
                UNROLL for (int i = 0; i < LANES; i++) {
                    v.v[i] += w.v[i];
                }
                store(y + (u64)(from + k * step) * LANES, v);
            }
        }
    }
    if (thread < count % LANES) {
        u64 at = (u64)vectors * LANES + thread;
        y[at] = down(up(a[at]) + up(b[at]));
    }
}
#endif

#ifdef K_bias
/* y (rows, C) = x + of_channel (C); y may be x. */
KERNEL bias(const T *x, const float *of_channel, T *y, long long rows) {
    u64 vectors = (u64)rows * (C / WIDE);
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < vectors; at += step) {
        some v = some_unpack(some_fetch(x + at * WIDE));
        some b = some_floats(of_channel + at % (C / WIDE) * WIDE);
        UNROLL for (int i = 0; i < WIDE; i++) {
            v.v[i] += b.v[i];
        }
        some_store(y + at * WIDE, v);
    }
}
#endif

#ifdef K_bias_back
/*
 * bias_grad (C) = sum of dy (rows, C) over all rows. A block sums TILE vectors of channels, the
 * blockIdx.y-th tile, blockDim.x / TILE rows at a time; the gridDim.x blocks of a tile share
 * the rows and write their sums to `partial`. The last block of a tile adds them up.
 */
KERNEL bias_back(const T *dy, float *partial /* (gridDim.x, C) */, float *bias_grad, u32 *counters,
                 long long rows) {
    SHARED(float, room);
    u32 vector = blockIdx.y * TILE + threadIdx.x % TILE;
    u64 at_once = blockDim.x / TILE;
    some sum;
    UNROLL for (int i = 0; i < WIDE; i++) {
        sum.v[i] = 0;
    }
    if (vector < C / WIDE) {
        u64 row = blockIdx.x * at_once + threadIdx.x / TILE;
        for (; row < (u64)rows; row += gridDim.x * at_once) {
            some v = some_unpack(some_fetch(dy + row * C + vector * WIDE));
            UNROLL for (int i = 0; i < WIDE; i++) {
                sum.v[i] += v.v[i];
            }
        }
    }
    sum = some_total(sum, room, TILE);
    if (threadIdx.x < TILE && vector < C / WIDE) {
        UNROLL for (int i = 0; i < WIDE; i++) {
            partial[blockIdx.x * C + vector * WIDE + i] = sum.v[i];
        }
    }
    if (last_block(counters + blockIdx.y, gridDim.x, (u32 *)room)) {
        u32 c = blockIdx.y * TILE * WIDE + threadIdx.x;
        if (threadIdx.x < TILE * WIDE && c < C) {
            double total = 0;
            for (u32 b = 0; b < gridDim.x; b++) {
                total += ((volatile float *)partial)[b * C + c];
            }
            bias_grad[c] = (float)total;
        }
    }
}
#endif

#ifdef K_scale
/* y = x * gate (N, C), the same for all pixels. blockIdx.y is a sample of `vectors` vectors. */
KERNEL scale(const T *x, const T *gate, T *y, int vectors) {
    u64 base = (u64)blockIdx.y * vectors * WIDE;
    u32 step = gridDim.x * blockDim.x;
    for (u32 at = blockIdx.x * blockDim.x + threadIdx.x; at < vectors; at += step) {
        some v = some_unpack(some_fetch(x + base + (u64)at * WIDE));
        some g = some_unpack(some_fetch(gate + (u64)blockIdx.y * C + at % (C / WIDE) * WIDE));
        UNROLL for (int i = 0; i < WIDE; i++) {
            v.v[i] *= g.v[i];
        }
        some_store(y + base + (u64)at * WIDE, v);
    }
}
#endif

#ifdef K_scale_back
/*
 * dx = or += dy * gate; dgate (N, C) = or += sum over pixels of dy * x. With add_x or add_gate the
 * result is added to dx or dgate. dx or dgate may be NULL: not wanted. A block handles all pixels
 * of one sample, blockIdx.y, and TILE vectors of channels.
 */
KERNEL scale_back(const T *x, const T *gate, const T *dy, T *dx, int add_x, T *dgate, int add_gate,
                  int pixels) {
    SHARED(float, room);
    u32 vector = blockIdx.x * TILE + threadIdx.x % TILE;
    some sum;
    UNROLL for (int i = 0; i < WIDE; i++) {
        sum.v[i] = 0;
    }
    if (vector < C / WIDE) {
        some g = some_unpack(some_fetch(gate + (u64)blockIdx.y * C + vector * WIDE));
        for (u32 pixel = threadIdx.x / TILE; pixel < pixels; pixel += blockDim.x / TILE) {
            u64 at = ((u64)blockIdx.y * pixels + pixel) * C + vector * WIDE;
            some back = some_unpack(some_fetch(dy + at));
            if (dgate) {
                some v = some_unpack(some_fetch(x + at));
                UNROLL for (int i = 0; i < WIDE; i++) {
                    sum.v[i] += back.v[i] * v.v[i];
                }
            }
            if (dx) {
                some old;
                if (add_x) {
                    old = some_unpack(some_fetch(dx + at));
                }
                UNROLL for (int i = 0; i < WIDE; i++) {
                    back.v[i] = (add_x ? old.v[i] : 0) + back.v[i] * g.v[i];
                }
                some_store(dx + at, back);
            }
        }
    }
    sum = some_total(sum, room, TILE);
    if (dgate && threadIdx.x < TILE && vector < C / WIDE) {
        T *to = dgate + (u64)blockIdx.y * C + vector * WIDE;
        if (add_gate) {
            some old = some_unpack(some_fetch(to));
            UNROLL for (int i = 0; i < WIDE; i++) {
                sum.v[i] += old.v[i];
            }
        }
        some_store(to, sum);
    }
}
#endif

#ifdef K_drop
/*
 * y = or += factor * x, with factors of drop_factor(); y may be x. PATH 1, stochastic depth:
 * blockIdx.y is a sample of `count` elements, which share a factor. PATH 0, dropout: each of all
 * `count` elements has its own factor.
 */
KERNEL drop(const T *x, T *y, const cuda_step_constants *constants, long long count, float rate, int node) {
    u64 seed = constants->seed, when = constants->step;
    float shared_factor = PATH ? drop_factor(rate, seed, when, node, blockIdx.y) : 0;
    u64 base = (u64)blockIdx.y * count;
    u64 vectors = (u64)count / WIDE;
    u64 step = (u64)gridDim.x * blockDim.x;
    u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (u64 at = thread; at < vectors; at += step) {
        some v = some_unpack(some_fetch(x + base + at * WIDE));
        some old;
        if (ACCUMULATE) {
            old = some_unpack(some_fetch(y + base + at * WIDE));
        }
        UNROLL for (int i = 0; i < WIDE; i++) {
            float factor =
                PATH ? shared_factor : drop_factor(rate, seed, when, node, base + at * WIDE + i);
            v.v[i] = (ACCUMULATE ? old.v[i] : 0) + factor * v.v[i];
        }
        some_store(y + base + at * WIDE, v);
    }
    if (thread < count % WIDE) { /* never with PATH: there WIDE divides `count` */
        u64 at = vectors * WIDE + thread;
        float factor = drop_factor(rate, seed, when, node, at);
        y[at] = down((ACCUMULATE ? up(y[at]) : 0) + factor * up(x[at]));
    }
}
#endif

#ifdef K_shortcut
/*
 * y (N, out_height, out_width, OUT_C): every STRIDE-th pixel of x (N, height, width, C) in both
 * directions, with BEFORE zero channels in front of its C and zeros after them. blockIdx.y is the
 * sample.
 */
KERNEL shortcut(const T *x, T *y, int height, int width, int out_height, int out_width) {
    u32 vectors = out_height * out_width * (OUT_C / WIDE);
    u32 step = gridDim.x * blockDim.x;
    const T *from = x + (u64)blockIdx.y * height * width * C;
    for (u32 at = blockIdx.x * blockDim.x + threadIdx.x; at < vectors; at += step) {
        u32 c = at % (OUT_C / WIDE) * WIDE;
        u32 pixel = at / (OUT_C / WIDE);
        u64 source = (u64)(pixel / out_width) * STRIDE * width + pixel % out_width * STRIDE;
        some v;
        if (c >= BEFORE && c < BEFORE + C) {
            v = some_unpack(some_fetch(from + source * C + c - BEFORE));
        } else {
            UNROLL for (int i = 0; i < WIDE; i++) {
                v.v[i] = 0;
            }
        }
        some_store(y + ((u64)blockIdx.y * vectors + at) * WIDE, v);
    }
}
#endif

#ifdef K_shortcut_back
/* dx = or += dy of the same pixel and channel; pixels that `shortcut` did not read get zero. */
KERNEL shortcut_back(const T *dy, T *dx, int height, int width, int out_height, int out_width) {
    u32 vectors = height * width * (C / WIDE);
    u32 step = gridDim.x * blockDim.x;
    const T *from = dy + (u64)blockIdx.y * out_height * out_width * OUT_C;
    for (u32 at = blockIdx.x * blockDim.x + threadIdx.x; at < vectors; at += step) {
        u32 c = at % (C / WIDE) * WIDE;
        u32 pixel = at / (C / WIDE);
        u32 row = pixel / width, column = pixel % width;
        T *to = dx + ((u64)blockIdx.y * vectors + at) * WIDE;
        some v;
        UNROLL for (int i = 0; i < WIDE; i++) {
            v.v[i] = 0;
        }
        if (row % STRIDE == 0 && column % STRIDE == 0 && row / STRIDE < out_height &&
            column / STRIDE < out_width) {
            u64 source = (u64)(row / STRIDE) * out_width + column / STRIDE;
            v = some_unpack(some_fetch(from + source * OUT_C + BEFORE + c));
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
