/*
 * loss.cu - logits become a loss and a gradient.
 *
 * Defines (-D) of loss_outputs:
 *   KIND      stk_loss_kind: 1 sigmoid, 2 squared, 3 absolute, 4 Huber
 *   FOCUS     1: sigmoid with gammas or a margin
 */

/*
 * Returns the sum of `mine` over the threads of the block, in all threads. `room` is one float per
 * thread; their number is a power of two.
 */
DEVICE float block_sum(float mine, float *room) {
    room[threadIdx.x] = mine;
    __syncthreads();
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            room[threadIdx.x] += room[threadIdx.x + half];
        }
        __syncthreads();
    }
    float sum = room[0];
    __syncthreads();
    return sum;
}

#ifdef K_loss
/*
 * Returns the index of the largest logit, the first of equal ones: the same as a loop over all
 * classes that compares with `>`, also where a logit is NaN.
 */
DEVICE int block_best(const T *x, int classes, float *room, int *place) {
    float top = up(x[0]);
    int best = 0;
    for (int c = threadIdx.x; c < classes; c += blockDim.x) {
        float v = up(x[c]);
        best = v > top ? c : best;
        top = v > top ? v : top;
    }
    room[threadIdx.x] = top;
    place[threadIdx.x] = best;
    __syncthreads();
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            float v = room[threadIdx.x + half];
            int c = place[threadIdx.x + half];
            if (v > top || (v == top && c < best)) {
                top = v, best = c;
                room[threadIdx.x] = top;
                place[threadIdx.x] = best;
            }
        }
        __syncthreads();
    }
    best = place[0];
    __syncthreads();
    return best;
}
#endif

/*
 * Adds up the losses and the correct answers of all samples and writes the result; called by one
 * block. The order of the sums is always the same.
 */
DEVICE void finish_loss(const volatile float *losses, const volatile int *right, int batch,
                        double *room, const cuda_scaler *scaler, cuda_result *result) {
    double sum = 0;
    int correct = 0;
    for (int i = threadIdx.x; i < batch; i += blockDim.x) {
        sum += losses[i];
        correct += right[i];
    }
    int *counts = (int *)(room + blockDim.x);
    room[threadIdx.x] = sum;
    counts[threadIdx.x] = correct;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (u32 i = 1; i < blockDim.x && i < (u32)batch; i++) { /* the others have no sample */
            sum += room[i];
            correct += counts[i];
        }
        result->loss_sum = sum;
        result->correct = correct;
        /* For a step without an update; the optimiser overwrites these. */
        result->grad_norm = __uint_as_float(0x7FC00000u);
        result->skipped = 0;
        result->scale = scaler->scale;
    }
}

#ifdef K_loss
/*
 * Softmax cross-entropy of logits (batch, classes), and its gradient:
 *
 *     target  = smoothing / classes + (1 - smoothing) * share, where share is keep at the sample's
 *               own label plus 1 - keep at the label of the sample that it was mixed with
 *     loss    = - sum over classes of target * log(softmax(logits))
 *     dlogits = (softmax(logits) - target) * loss scale / batch
 *
 * A block has one sample; it writes losses[sample] and right[sample], 1 where the largest logit is
 * at the label with the larger share. The last block adds them up to `result`. dlogits may be the
 * same memory as logits: a thread reads an element just before it writes it, and no other thread
 * needs the element any more.
 */
KERNEL loss(const T *logits, T *dlogits, const cuda_step_constants *constants, const cuda_scaler *scaler,
            cuda_result *result, float *losses, int *right, u32 *counter, int classes) {
    SHARED(double, shared); /* 12 bytes per thread, and 8 bytes */
    float *room = (float *)shared;
    int *place = (int *)(room + blockDim.x);
    u32 *told = (u32 *)(room + 3 * blockDim.x);
    int batch = gridDim.x, sample = blockIdx.x;
    const T *x = logits + (u64)sample * classes;
    T *dx = dlogits + (u64)sample * classes;
    const int *labels = (const int *)constants->labels;
    int own = labels[sample], other = labels[batch - 1 - sample];
    float keep = constants->mix_kind == 0 ? 1 : constants->mix_keep;
    float base = constants->label_smoothing / (float)classes;
    float sharp = 1 - constants->label_smoothing;

    int best = block_best(x, classes, room, place);
    float top = up(x[best]);
    float sum = 0;
    for (int c = threadIdx.x; c < classes; c += blockDim.x) {
        sum += c != best ? expf(up(x[c]) - top) : 0;
    }
    float log_sum = log1pf(block_sum(sum, room));

    float share = scaler->scale / (float)batch;
    float mine = 0;
    for (int c = threadIdx.x; c < classes; c += blockDim.x) {
        float log_p = (up(x[c]) - top) - log_sum;
        float target = base + sharp * ((c == own ? keep : 0) + (c == other ? 1 - keep : 0));
        mine -= target != 0 ? target * log_p : 0;
        dx[c] = down((expf(log_p) - target) * share);
    }
    mine = block_sum(mine, room);
    if (threadIdx.x == 0) {
        losses[sample] = mine;
        right[sample] = best == (keep >= 0.5f ? own : other);
    }
    if (last_block(counter, gridDim.x, told)) {
        finish_loss(losses, right, batch, shared, scaler, result);
    }
}
#endif

#ifdef K_loss_steps
/*
 * Half the squared error of the place on a scale that logits (batch, classes) say, and its
 * gradient, as engine/loss.h has them:
 *
 *     place   = (last logit - first logit) / span
 *     target  = (keep * own label + (1 - keep) * label of the sample that it was mixed with
 *               - middle) / deviation
 *     dlogits = (place - target) / span * loss scale / batch of the last class, its negative of the
 *               first one, and 0 of the others
 *
 * A thread has one sample: the classes are few. It writes losses[sample] and right[sample] as
 * `loss` does, and the last block adds them up. dlogits may be the same memory as logits.
 */
KERNEL loss_steps(const T *logits, T *dlogits, const cuda_step_constants *constants,
                  const cuda_scaler *scaler, cuda_result *result, float *losses, int *right,
                  u32 *counter, int batch, int classes, float middle, float deviation, float span) {
    SHARED(double, shared); /* 12 bytes per thread, and 8 bytes */
    u32 *told = (u32 *)((float *)shared + 3 * blockDim.x);
    int sample = blockIdx.x * blockDim.x + threadIdx.x;
    if (sample < batch) {
        const T *x = logits + (u64)sample * classes;
        T *dx = dlogits + (u64)sample * classes;
        const int *labels = (const int *)constants->labels;
        int own = labels[sample], other = labels[batch - 1 - sample];
        float keep = constants->mix_kind == 0 ? 1 : constants->mix_keep;
        float step = keep * (float)own + (1 - keep) * (float)other;
        float off = (up(x[classes - 1]) - up(x[0])) / span - (step - middle) / deviation;
        int best = 0;
        float top = up(x[0]);
        for (int c = 1; c < classes; c++) {
            float v = up(x[c]);
            best = v > top ? c : best;
            top = v > top ? v : top;
        }
        float slope = off / span * (scaler->scale / (float)batch);
        for (int c = 0; c < classes; c++) {
            dx[c] = down(c == 0 ? -slope : c == classes - 1 ? slope : 0);
        }
        losses[sample] = off * off / 2;
        right[sample] = best == (keep >= 0.5f ? own : other);
    }
    if (last_block(counter, gridDim.x, told)) {
        finish_loss(losses, right, batch, shared, scaler, result);
    }
}
#endif

#ifdef K_loss_outputs
/* What one output adds to the loss, and its derivative. */
typedef struct loss_point {
    float loss;
    float slope;
} loss_point;

/*
 * The parts of a target of 1, -(1 - p)^gamma * log p, and of a target of 0, -m^gamma * log(1 - m)
 * with m = max(p - margin, 0), where p is the sigmoid of x.
 */
DEVICE loss_point sigmoid_part(float x, float gamma) {
    float small = expf(-fabsf(x));
    float p = (x >= 0 ? 1 : small) / (1 + small);
    float q = (x >= 0 ? small : 1) / (1 + small);
    float minus_log = (x < 0 ? -x : 0) + log1pf(small);
    float factor = gamma > 0 ? powf(q, gamma) : 1;
    loss_point point;
    point.loss = factor * minus_log;
    point.slope = -factor * (gamma * p * minus_log + q);
    return point;
}

DEVICE loss_point margin_part(float x, float gamma, float margin) {
    float small = expf(-fabsf(x));
    float p = (x >= 0 ? 1 : small) / (1 + small);
    float q = (x >= 0 ? small : 1) / (1 + small);
    float m = p - margin;
    loss_point point;
    point.loss = m != m ? m : 0;
    point.slope = point.loss;
    if (m > 0) {
        float factor = gamma > 0 ? powf(m, gamma) : 1;
        float minus_log = -log1pf(-m);
        point.loss = factor * minus_log;
        point.slope = factor * (gamma * minus_log / m + 1 / (1 - m)) * p * q;
    }
    return point;
}

DEVICE loss_point sigmoid_point(float x, float t, float weight, float gamma_pos, float gamma_neg,
                                float margin) {
    loss_point one = sigmoid_part(x, FOCUS ? gamma_pos : 0);
    loss_point none;
    if (FOCUS && margin > 0) {
        none = margin_part(x, gamma_neg, margin);
    } else { /* the same as a target of 1 for -x */
        none = sigmoid_part(-x, FOCUS ? gamma_neg : 0);
        none.slope = -none.slope;
    }
    loss_point sum;
    sum.loss = (t != 0 ? weight * t * one.loss : 0) + (t != 1 ? (1 - t) * none.loss : 0);
    sum.slope = (t != 0 ? weight * t * one.slope : 0) + (t != 1 ? (1 - t) * none.slope : 0);
    return sum;
}

DEVICE loss_point regression_point(float x, float t, float delta) {
    float d = x - t;
    float sign = d > 0 ? 1 : d < 0 ? -1 : d; /* NaN stays */
    loss_point point;
    if (KIND == 2 || (KIND == 4 && fabsf(d) <= delta)) {
        point.loss = 0.5f * d * d;
        point.slope = d;
    } else if (KIND == 3) {
        point.loss = fabsf(d);
        point.slope = sign;
    } else {
        point.loss = delta * (fabsf(d) - 0.5f * delta);
        point.slope = delta * sign;
    }
    return point;
}

/*
 * A loss that adds up over the outputs, and its gradient, from logits (batch, outputs) and the
 * targets of constants, float32 (batch, outputs):
 *
 *     target  = keep * own + (1 - keep) * other, the target of the sample that it was mixed with;
 *               with sigmoid then drawn towards 0.5 by smoothing; NaN: the output takes no part
 *     dlogits = derivative * loss scale / batch
 *
 * `first`, `second` and `third` are gamma_pos, gamma_neg and margin; with Huber `first` is its
 * delta. positive_weights may be NULL. A block has one sample; it writes losses[sample] and
 * right[sample], with sigmoid 1 where all known outputs of the larger part are on the right side.
 * The last block adds them up to `result`. dlogits may be the same memory as logits: only the
 * thread that writes an element reads it.
 */
KERNEL loss_outputs(const T *logits, T *dlogits, const cuda_step_constants *constants,
                    const cuda_scaler *scaler, cuda_result *result, float *losses, int *right,
                    u32 *counter, const float *positive_weights, int outputs, float first,
                    float second, float third) {
    SHARED(double, shared); /* 12 bytes per thread, and 8 bytes */
    float *room = (float *)shared;
    u32 *told = (u32 *)(room + 3 * blockDim.x);
    int batch = gridDim.x, sample = blockIdx.x;
    const T *x = logits + (u64)sample * outputs;
    T *dx = dlogits + (u64)sample * outputs;
    const float *targets = (const float *)constants->targets;
    const float *own = targets + (u64)sample * outputs;
    const float *other = targets + (u64)(batch - 1 - sample) * outputs;
    float keep = constants->mix_kind == 0 ? 1 : constants->mix_keep;
    const float *truth = keep >= 0.5f ? own : other;
    float smoothing = KIND == 1 ? constants->label_smoothing : 0;
    float share = scaler->scale / (float)batch;
    float mine = 0, wrong = 0;
    for (int o = threadIdx.x; o < outputs; o += blockDim.x) {
        float v = up(x[o]);
        float t = keep >= 1 ? own[o] : keep <= 0 ? other[o] : keep * own[o] + (1 - keep) * other[o];
        t = smoothing != 0 ? t * (1 - smoothing) + smoothing / 2 : t;
        loss_point point;
        point.loss = point.slope = 0;
        if (t == t && KIND == 1) {
            float weight = positive_weights != 0 ? positive_weights[o] : 1;
            point = sigmoid_point(v, t, weight, first, second, third);
        } else if (t == t) {
            point = regression_point(v, t, first);
        }
        mine += point.loss;
        dx[o] = down(point.slope * share);
        int good = truth[o] != truth[o] || (truth[o] > 0.5f ? v > 0 : v <= 0);
        wrong += good ? 0 : 1;
    }
    mine = block_sum(mine, room);
    wrong = block_sum(wrong, room);
    if (threadIdx.x == 0) {
        losses[sample] = mine;
        right[sample] = KIND == 1 && wrong == 0;
    }
    if (last_block(counter, gridDim.x, told)) {
        finish_loss(losses, right, batch, shared, scaler, result);
    }
}
#endif
