/* chain_run.c - the loops of a chain. */
#include "backend/cpu/convolution/chain_run.h"

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector.h"

#define CHUNK ((size_t)512)    /* gradients held between two loops, within the first cache */
#define PIVOT_ROWS ((size_t)8) /* of `width` floats, whose mean the sums are taken about */

CPU_BODY float activate(cpu_chain_act act, float u) {
    float positive = u < 0 ? 0 : u; /* NaN stays NaN */
    switch (act) {
    case CPU_ACT_RELU:
        return positive;
    case CPU_ACT_RELU6:
        return positive > 6 ? 6 : positive;
    case CPU_ACT_SILU:
        return u * cpu_sigmoid(u);
    default:
        return u;
    }
}

/* `act` and `adds` are constants where this is called, so that each loop is made for its case. */
CPU_BODY void forward_loop(const cpu_chain_run *run, cpu_chain_act act, bool adds) {
    const float *scale = run->scale;
    const float *shift = run->shift;
    float factor = run->factor;
    for (size_t i = 0; i < run->count; i += run->width) {
        size_t count = cpu_min(run->width, run->count - i);
        const float *y = run->y + i;
        const float *residual = adds ? run->residual + i : NULL;
        float *z = run->z + i;
        CPU_EACH for (size_t c = 0; c < count; c++) {
            float u = factor * (scale[c] * y[c] + shift[c]);
            z[c] = activate(act, adds ? u + residual[c] : u);
        }
    }
}

CPU_BODY void forward_act(const cpu_chain_run *run, cpu_chain_act act) {
    if (run->residual != NULL) {
        forward_loop(run, act, true);
    } else {
        forward_loop(run, act, false);
    }
}

CPU_BODY void forward_body(const cpu_chain_run *run) {
    switch (run->act) {
    case CPU_ACT_RELU:
        forward_act(run, CPU_ACT_RELU);
        break;
    case CPU_ACT_RELU6:
        forward_act(run, CPU_ACT_RELU6);
        break;
    case CPU_ACT_SILU:
        forward_act(run, CPU_ACT_SILU);
        break;
    default:
        forward_act(run, CPU_ACT_NONE);
    }
}

CPU_VECTOR(forward, (const cpu_chain_run *run), (run))

void stk_cpu_chain_forward(const cpu_chain_run *run) {
    forward(run);
}

/* The gradient of an activation's input u. For ReLU and ReLU6 the output may stand for u. */
CPU_BODY float slope(cpu_chain_act act, float u, float dz) {
    float above = u > 0 ? dz : 0;
    float s;
    switch (act) {
    case CPU_ACT_RELU:
        return above;
    case CPU_ACT_RELU6:
        return u < 6 ? above : 0;
    case CPU_ACT_SILU:
        s = cpu_sigmoid(u);
        return dz * (s * (1 + u * (1 - s)));
    default:
        return dz;
    }
}

/* Gradients of the activation's input, floats at .. at+count-1; coefficients start at c0. */
CPU_BODY void slopes_act(const cpu_chain_run *run, cpu_chain_act act, size_t at, size_t c0,
                         size_t count, float *g) {
    const float *dz = run->dz + at;
    if (run->kept != NULL) {
        const float *z = run->kept + at;
        CPU_EACH for (size_t c = 0; c < count; c++) {
            g[c] = slope(act, z[c], dz[c]);
        }
        return;
    }
    const float *y = run->y + at;
    const float *scale = run->scale + c0;
    const float *shift = run->shift + c0;
    float factor = run->factor;
    CPU_EACH for (size_t c = 0; c < count; c++) {
        g[c] = slope(act, factor * (scale[c] * y[c] + shift[c]), dz[c]);
    }
}

/* Returns where the gradients are: in `room`, or where they came from when nothing is to be done.
 */
CPU_BODY const float *slopes(const cpu_chain_run *run, size_t at, size_t c0, size_t count,
                             float *room) {
    switch (run->act) {
    case CPU_ACT_RELU:
        slopes_act(run, CPU_ACT_RELU, at, c0, count, room);
        return room;
    case CPU_ACT_RELU6:
        slopes_act(run, CPU_ACT_RELU6, at, c0, count, room);
        return room;
    case CPU_ACT_SILU:
        slopes_act(run, CPU_ACT_SILU, at, c0, count, room);
        return room;
    default:
        return run->dz + at;
    }
}

CPU_BODY void sums_chunk(const cpu_chain_run *run, size_t at, size_t c0, size_t count) {
    float room[CHUNK];
    const float *g = slopes(run, at, c0, count, room);
    const float *y = run->y + at;
    const float *mean = run->mean + c0;
    float *sum = run->sums + c0;
    float *product = run->sums + run->width + c0;
    float factor = run->factor;
    CPU_EACH for (size_t c = 0; c < count; c++) {
        float own = factor * g[c];
        sum[c] += own;
        product[c] += own * (y[c] - mean[c]);
    }
}

/* Chunks outside, pixels inside: the sums of a chunk stay near. */
CPU_BODY void sums_body(const cpu_chain_run *run) {
    for (size_t c0 = 0; c0 < run->width; c0 += CHUNK) {
        size_t chunk = cpu_min(CHUNK, run->width - c0);
        for (size_t at = c0; at < run->count; at += run->width) {
            sums_chunk(run, at, c0, cpu_min(chunk, run->count - at));
        }
    }
}

CPU_VECTOR(sums, (const cpu_chain_run *run), (run))

void stk_cpu_chain_sums(const cpu_chain_run *run) {
    sums(run);
}

CPU_BODY void pass_on(const float *g, float *to, size_t count, bool add) {
    if (add) {
        CPU_EACH for (size_t c = 0; c < count; c++) {
            to[c] += g[c];
        }
    } else {
        CPU_EACH for (size_t c = 0; c < count; c++) {
            to[c] = g[c];
        }
    }
}

CPU_BODY void gradients_chunk(const cpu_chain_run *run, size_t at, size_t c0, size_t count) {
    float room[CHUNK];
    const float *g = slopes(run, at, c0, count, room);
    if (run->dresidual != NULL) {
        pass_on(g, run->dresidual + at, count, run->add_dresidual);
    }
    if (run->dy == NULL) {
        return;
    }
    const float *y = run->y + at;
    float *dy = run->dy + at;
    const float *by_gradient = run->by_gradient + c0;
    const float *by_y = run->by_y + c0;
    const float *by_one = run->by_one + c0;
    float factor = run->factor;
    if (run->add_dy) {
        CPU_EACH for (size_t c = 0; c < count; c++) {
            dy[c] += by_gradient[c] * (factor * g[c]) + (by_y[c] * y[c] + by_one[c]);
        }
    } else {
        CPU_EACH for (size_t c = 0; c < count; c++) {
            dy[c] = by_gradient[c] * (factor * g[c]) + (by_y[c] * y[c] + by_one[c]);
        }
    }
}

CPU_BODY void gradients_body(const cpu_chain_run *run) {
    for (size_t i = 0; i < run->count; i += run->width) {
        size_t width = cpu_min(run->width, run->count - i);
        for (size_t c0 = 0; c0 < width; c0 += CHUNK) {
            gradients_chunk(run, i + c0, c0, cpu_min(CHUNK, width - c0));
        }
    }
}

CPU_VECTOR(gradients, (const cpu_chain_run *run), (run))

void stk_cpu_chain_gradients(const cpu_chain_run *run) {
    gradients(run);
}

/* ---- statistics ---- */

/* The mean of the first rows, the same in all repeats of a channel. */
CPU_BODY void find_pivot(const float *y, size_t count, size_t channels, size_t width,
                         float *pivot) {
    size_t pixels = cpu_min(count, PIVOT_ROWS * width) / channels;
    memset(pivot, 0, width * sizeof *pivot);
    for (size_t p = 0; p < pixels; p++) {
        CPU_EACH for (size_t c = 0; c < channels; c++) {
            pivot[c] += y[p * channels + c];
        }
    }
    for (size_t c = 0; c < width; c++) {
        pivot[c] = c < channels ? pivot[c] / (float)pixels : pivot[c - channels];
    }
}

CPU_BODY void moments_body(const float *y, size_t count, size_t channels, size_t width,
                           float *lanes, float *mean, float *squares) {
    float *pivot = lanes;
    float *sum = lanes + width;
    float *square = sum + width;
    find_pivot(y, count, channels, width, pivot);
    memset(sum, 0, 2 * width * sizeof *sum);
    for (size_t i = 0; i < count; i += width) {
        size_t n = cpu_min(width, count - i);
        CPU_EACH for (size_t c = 0; c < n; c++) {
            float d = y[i + c] - pivot[c];
            sum[c] += d;
            square[c] += d * d;
        }
    }
    for (size_t k = channels; k < width; k++) { /* repeats of a channel go to its first */
        sum[k % channels] += sum[k];
        square[k % channels] += square[k];
    }
    size_t rows = count / channels;
    float pixels = (float)rows;
    CPU_EACH for (size_t c = 0; c < channels; c++) {
        float apart = sum[c] / pixels;
        mean[c] = pivot[c] + apart;
        squares[c] = square[c] - apart * sum[c];
    }
}

CPU_VECTOR(moments,
           (const float *y, size_t count, size_t channels, size_t width, float *lanes, float *mean,
            float *squares),
           (y, count, channels, width, lanes, mean, squares))

void stk_cpu_chain_moments(const float *y, size_t count, size_t channels, size_t width,
                           float *lanes, float *mean, float *squares) {
    moments(y, count, channels, width, lanes, mean, squares);
}
