/*
 * optimiser.cu - kernels over all parameters: gather gradients, update, copy and fold weights.
 *
 * All tensors over parameters (values, gradients, momentum and so on) have the same layout: chunks
 * of CUDA_CHUNK elements, each of one parameter, which the table of cuda_chunk describes. PART
 * threads share a chunk; each handles one vector of 8 elements. A block handles blockDim.x / PART
 * chunks at a time and strides over all chunks by the grid. Vectors past a parameter's end are not
 * touched. The padding of its last vector is computed like the parameter: zeros there stay zeros.
 */

#define PART (CUDA_CHUNK / LANES)

/* The index, within its chunk, of the first element of a thread. */
#define LANE (threadIdx.x % PART * LANES)

#if defined(K_squares) || defined(K_update)
/* Whether the optimiser changes the chunk. While the backbone is frozen only the head learns. */
DEVICE int learns(cuda_chunk what, int frozen) {
    return what.trainable && (what.head || !frozen);
}
#endif

#ifdef K_gather
#define FLIGHT 4 /* chunks that a thread has in flight */

/* A vector of fresh gradients as it lies in memory. */
typedef struct raw {
    float4 a, b; /* 2-byte types use only `a` */
} raw;

/* Element i of the fresh gradients at p, as float32. */
DEVICE float fresh_at(const u8 *p, int type, int i) {
    return type == 0 ? ((const float *)p)[i] : up(((const T *)p)[i]);
}

/* The eight 2-byte numbers in x, as float32. Not called where T is float32. */
DEVICE lanes unpack_raw(float4 x) {
#if TYPE == 0
    lanes y;
    UNROLL for (int i = 0; i < LANES; i++) {
        y.v[i] = 0;
    }
    return y;
#else
    packed p;
    p.a.x = __float_as_uint(x.x), p.a.y = __float_as_uint(x.y);
    p.a.z = __float_as_uint(x.z), p.a.w = __float_as_uint(x.w);
    return unpack(p);
#endif
}

/*
 * gradients = (keep_gradients ? gradients : 0) + fresh / loss scale, for every trainable chunk.
 * `fresh` holds what the backward pass wrote, as T or float32 (fresh_type of the chunk). Sets
 * scaler->overflow if a gradient is not finite.
 */
KERNEL gather(const u8 *fresh, float *gradients, const cuda_chunk *table, const cuda_step_constants *constants,
              cuda_scaler *scaler, int chunks) {
    int step = gridDim.x * (blockDim.x / PART);
    int first = blockIdx.x * (blockDim.x / PART) + threadIdx.x / PART;
    int keep = constants->keep_gradients, frozen = constants->frozen;
    float inverse = scaler->inverse;
    int bad = 0;
    for (int from = first; from < chunks; from += FLIGHT * step) {
        cuda_chunk what[FLIGHT];
        raw in[FLIGHT];
        int full[FLIGHT]; /* all eight elements are of the parameter and have a fresh gradient */
        UNROLL for (int k = 0; k < FLIGHT; k++) {
            what[k] = table[from + k * step < chunks ? from + k * step : from];
        }
        UNROLL for (int k = 0; k < FLIGHT; k++) {
            const u8 *p = fresh + (u64)what[k].fresh * 16;
            full[k] = from + k * step < chunks && what[k].trainable &&
                      (what[k].head || !frozen) && LANE + LANES <= what[k].count;
            if (full[k] && what[k].fresh_type == 0) {
                in[k].a = *(const float4 *)(p + LANE * 4);
                in[k].b = *(const float4 *)(p + LANE * 4 + 16);
            } else if (full[k]) {
                in[k].a = *(const float4 *)(p + LANE * 2);
            }
        }
        UNROLL for (int k = 0; k < FLIGHT; k++) {
            int chunk = from + k * step;
            if (chunk >= chunks || !what[k].trainable || LANE >= what[k].count) {
                continue;
            }
            float *to = gradients + (u64)chunk * CUDA_CHUNK + LANE;
            lanes g;
            if (full[k] && what[k].fresh_type == 0) {
                g.v[0] = in[k].a.x, g.v[1] = in[k].a.y, g.v[2] = in[k].a.z, g.v[3] = in[k].a.w;
                g.v[4] = in[k].b.x, g.v[5] = in[k].b.y, g.v[6] = in[k].b.z, g.v[7] = in[k].b.w;
            } else if (full[k]) {
                g = unpack_raw(in[k].a);
            } else {
                int counts = what[k].head || !frozen; /* frozen: the fresh gradient is 0 */
                UNROLL for (int i = 0; i < LANES; i++) {
                    int there = counts && LANE + i < what[k].count;
                    g.v[i] = 0;
                    if (there) {
                        g.v[i] = fresh_at(fresh + (u64)what[k].fresh * 16, what[k].fresh_type,
                                          LANE + i);
                    }
                }
            }
            UNROLL for (int i = 0; i < LANES; i++) {
                g.v[i] *= inverse;
            }
            if (keep) {
                lanes old = load_floats(to);
                UNROLL for (int i = 0; i < LANES; i++) {
                    g.v[i] += old.v[i];
                }
            }
            UNROLL for (int i = 0; i < LANES; i++) {
                bad |= !(fabsf(g.v[i]) < __uint_as_float(0x7F800000u));
            }
            store_floats(to, g);
        }
    }
    if (bad) {
        scaler->overflow = 1; /* several threads may write: all write the same */
    }
}
#endif

#ifdef K_squares
/* The sum of `mine` over the block's threads. `room` is shared memory, one double per thread. */
DEVICE double block_sum(double mine, double *room) {
    room[threadIdx.x] = mine;
    __syncthreads();
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            room[threadIdx.x] += room[threadIdx.x + half];
        }
        __syncthreads();
    }
    return room[0];
}

/*
 * Gradient clipping: grad_norm of the result = grad_scale * sqrt(sum of squares of all gradients
 * that the optimiser uses); factor = grad_scale * min(1, clip_norm / (grad_norm + 1e-6)). Does
 * nothing unless clip_norm > 0. Blocks write their sums to `partial`; the last block adds them up.
 */
KERNEL squares(const float *gradients, const cuda_chunk *table, const cuda_step_constants *constants,
               cuda_result *result, double *partial /* gridDim.x */, u32 *counter, int chunks) {
    SHARED(double, room); /* one per thread, and one for last_block() */
    int step = gridDim.x * (blockDim.x / PART);
    int first = blockIdx.x * (blockDim.x / PART) + threadIdx.x / PART;
    if (!(constants->clip_norm > 0)) {
        return;
    }
    double sum = 0;
    for (int chunk = first; chunk < chunks; chunk += step) {
        cuda_chunk what = table[chunk];
        if (learns(what, constants->frozen) && LANE < what.count) {
            lanes g = load_floats(gradients + (u64)chunk * CUDA_CHUNK + LANE);
            UNROLL for (int i = 0; i < LANES; i++) {
                sum += LANE + i < what.count ? (double)g.v[i] * g.v[i] : 0;
            }
        }
    }
    sum = block_sum(sum, room);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
    }
    if (last_block(counter, gridDim.x, (u32 *)(room + blockDim.x))) {
        sum = 0;
        for (u32 i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
            sum += ((volatile double *)partial)[i];
        }
        sum = block_sum(sum, room);
        if (threadIdx.x == 0) {
            double norm = sqrt(sum) * constants->grad_scale;
            double cut = constants->clip_norm / (norm + 1e-6); /* as PyTorch's clip_grad_norm_ */
            result->grad_norm = norm;
            result->factor = constants->grad_scale * (cut < 1 ? (float)cut : 1);
        }
    }
}
#endif

#ifdef K_update
/* AdamW's bias corrections, from the number of updates; [0] is the backbone's, [1] the head's. */
typedef struct adam {
    float size[2]; /* lr / (1 - momentum ^ updates) */
    float root[2]; /* 1 / sqrt(1 - beta2 ^ updates) */
} adam;

/* x to the power of n, 1 where n <= 0. */
DEVICE double power(double x, long long n) {
    double y = 1;
    for (; n > 0; n >>= 1) {
        y = n & 1 ? y * x : y;
        x *= x;
    }
    return y;
}

/* Computes the bias corrections. Skipped updates did not change the moments and do not count. */
DEVICE void correct(const cuda_step_constants *constants, const cuda_scaler *scaler, adam *to) {
    NO_UNROLL for (int i = 0; i < 2; i++) {
        long long updates = constants->steps[i] - scaler->left_out[i];
        updates = updates > 1 ? updates : 1;
        to->size[i] = (float)(constants->lr[i] / (1 - power(constants->momentum, updates)));
        to->root[i] = (float)(1 / sqrt(1 - power(constants->beta2, updates)));
    }
}

/*
 * AdamW for one vector: changes the values w and the moments m and v, by the gradient factor * g.
 */
DEVICE void change_adamw(cuda_step_constants constants, adam corrected, cuda_chunk what, float factor,
                         lanes g, lanes *w, lanes *m, lanes *v) {
    int head = what.head != 0;
    float size = head ? corrected.size[1] : corrected.size[0];
    float root = head ? corrected.root[1] : corrected.root[0];
    double decay = what.decay ? constants.weight_decay : 0;
    float keep = (float)(1 - (head ? constants.lr[1] : constants.lr[0]) * decay);
    UNROLL for (int i = 0; i < LANES; i++) {
        float gradient = g.v[i] * factor;
        m->v[i] += (1 - constants.momentum) * (gradient - m->v[i]);
        v->v[i] = constants.beta2 * v->v[i] + (1 - constants.beta2) * gradient * gradient;
        w->v[i] = keep * w->v[i] - size * (m->v[i] / (sqrtf(v->v[i]) * root + constants.epsilon));
    }
}

/* SGD with momentum for one vector: changes the values w and the momentum m. */
DEVICE void change_sgd(cuda_step_constants constants, cuda_chunk what, float factor, lanes g, lanes *w,
                       lanes *m) {
    int head = what.head != 0;
    /* Nesterov's step is g + momentum * m, the plain one m. */
    float of_g = constants.nesterov ? 1 : 0, of_m = constants.nesterov ? constants.momentum : 1;
    float decay = what.decay ? constants.weight_decay : 0;
    float lr = head ? constants.lr[1] : constants.lr[0];
    UNROLL for (int i = 0; i < LANES; i++) {
        float gradient = g.v[i] * factor + decay * w->v[i];
        m->v[i] = constants.momentum * m->v[i] + gradient;
        w->v[i] -= lr * (of_g * gradient + of_m * m->v[i]);
    }
}

/*
 * One update of all parameters that learn: values, moments, and the copy of weights as T. With EMA
 * also ema = ema_decay * ema + (1 - ema_decay) * values, of all parameters. Changes nothing after
 * an overflow, if the loss scale is dynamic. ADAMW: 1 AdamW, 0 SGD; only AdamW has `second`.
 */
KERNEL update(float *values, T *weights, const float *gradients, float *momentum, float *second,
              float *ema, const cuda_chunk *table, const cuda_step_constants *given,
              const cuda_scaler *scaler, const cuda_result *result, int chunks) {
    int step = gridDim.x * (blockDim.x / PART);
    int first = blockIdx.x * (blockDim.x / PART) + threadIdx.x / PART;
    cuda_step_constants constants = *given; /* a copy: stores below may alias it */
    float factor = constants.clip_norm > 0 ? result->factor : constants.grad_scale;
    if (scaler->dynamic && scaler->overflow) {
        return;
    }
    adam corrected;
    if (ADAMW) {
        SHARED(adam, of_block);
        if (threadIdx.x == 0) {
            correct(given, scaler, of_block);
        }
        __syncthreads();
        corrected = *of_block;
    }
    for (int chunk = first; chunk < chunks; chunk += step) {
        cuda_chunk what = table[chunk];
        int moves = learns(what, constants.frozen);
        u64 at = (u64)chunk * CUDA_CHUNK + LANE;
        if (LANE >= what.count || !(EMA || moves)) {
            continue;
        }
        lanes w = load_floats(values + at);
        lanes mean = EMA ? load_floats(ema + at) : w;
        if (moves) {
            lanes g = load_floats(gradients + at), m = load_floats(momentum + at);
            if (ADAMW) {
                lanes v = load_floats(second + at);
                change_adamw(constants, corrected, what, factor, g, &w, &m, &v);
                store_floats(second + at, v);
            } else {
                change_sgd(constants, what, factor, g, &w, &m);
            }
            store_floats(momentum + at, m);
            store_floats(values + at, w);
            if (what.weight) {
                store(weights + at, w);
            }
        }
        if (EMA) {
            UNROLL for (int i = 0; i < LANES; i++) {
                mean.v[i] = constants.ema_decay * mean.v[i] + (1 - constants.ema_decay) * w.v[i];
            }
            store_floats(ema + at, mean);
        }
    }
}
#endif

#ifdef K_rescale
#define GOOD_UPDATES 2000 /* updates without an overflow after which the scale doubles */
#define MOST_SCALE 16777216.0f

/*
 * After the update, one thread: writes skipped, scale and, without clipping, a grad_norm of NaN to
 * the result; then adapts the loss scale for the next step and clears `overflow`.
 */
KERNEL rescale(const cuda_step_constants *constants, cuda_scaler *scaler, cuda_result *result) {
    int skipped = scaler->dynamic && scaler->overflow;
    result->skipped = skipped;
    result->scale = scaler->scale;
    if (!(constants->clip_norm > 0)) {
        result->grad_norm = __uint_as_float(0x7FC00000u);
    }
    if (skipped) {
        scaler->scale = scaler->scale > 2 ? scaler->scale / 2 : 1;
        scaler->good = 0;
        scaler->left_out[0] += !constants->frozen;
        scaler->left_out[1]++;
    } else if (scaler->dynamic && ++scaler->good >= GOOD_UPDATES) {
        scaler->scale = scaler->scale < MOST_SCALE / 2 ? scaler->scale * 2 : MOST_SCALE;
        scaler->good = 0;
    }
    scaler->inverse = 1 / scaler->scale;
    scaler->overflow = 0;
}
#endif

#ifdef K_copy_weights
/* weights = values as T, for every chunk that has such a copy. */
KERNEL copy_weights(const float *values, T *weights, const cuda_chunk *table, int chunks) {
    int step = gridDim.x * (blockDim.x / PART);
    int first = blockIdx.x * (blockDim.x / PART) + threadIdx.x / PART;
    for (int chunk = first; chunk < chunks; chunk += step) {
        cuda_chunk what = table[chunk];
        u64 at = (u64)chunk * CUDA_CHUNK + LANE;
        if (what.weight && LANE < what.count) {
            store(weights + at, load_floats(values + at));
        }
    }
}
#endif

#ifdef K_fold
#if DEPTHWISE
typedef float folded_type;
#else
typedef T folded_type;
#endif

/*
 * The weights of a convolution for inference: folded = scale * weight, and bias. With NORM the norm
 * after the convolution becomes part of them: scale = gamma / sqrt(var + epsilon), bias = beta +
 * (own_bias - mean) * scale, with the running mean and var. Without NORM: scale 1, bias = own_bias,
 * or 0 where own_bias is NULL. A block handles one filter of per_filter weights. DEPTHWISE: 1
 * stores float32, 0 stores T.
 */
KERNEL fold(const float *weight, const float *own_bias, const float *gamma, const float *beta,
            const float *mean, const float *var, float epsilon, folded_type *folded, float *bias,
            int per_filter) {
    int filter = blockIdx.x;
    double scale = 1;
    double shift = own_bias ? own_bias[filter] : 0;
    if (NORM) {
        scale = gamma[filter] * (1.0 / sqrt(var[filter] + (double)epsilon));
        shift = beta[filter] + (shift - mean[filter]) * scale;
    }
    for (int i = threadIdx.x; i < per_filter; i += blockDim.x) {
        u64 at = (u64)filter * per_filter + i;
        float w = (float)scale * weight[at];
#if DEPTHWISE
        folded[at] = w;
#else
        folded[at] = down(w);
#endif
    }
    if (threadIdx.x == 0) {
        bias[filter] = (float)shift;
    }
}
#endif
