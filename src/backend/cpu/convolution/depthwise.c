/*
 * depthwise.c - one filter per channel.
 *
 * In NHWC the channels of a pixel lie together, so vectors hold channels, and several pixels of a
 * row are summed at once to use each column of x and each weight more than once. The gradient of x
 * is gathered, each pixel written once: with a stride s, columns of x that are s apart see the same
 * taps, so that each of the s classes ("phases") is a row of outputs like those of forward. The
 * gradient of the weights is summed per sample and then over samples, in order.
 */
#include "backend/cpu/convolution/depthwise.h"

#include <string.h>

#include "backend/cpu/convolution/chain_run.h"

#define DW_PIXELS 7        /* outputs computed at once; common widths are multiples of 7 */
#define DW_SUMMED 14       /* outputs whose share in the weights' gradient is summed at once */
#define SLAB ((size_t)256) /* channels of a task of weight gradients */
#define BLOCK_FLOATS ((size_t)32768)

/* Sums are registers only if no loop over them is left. */
#if defined(__clang__)
#define DW_UNROLL _Pragma("clang loop unroll(full)")
#else
#define DW_UNROLL _Pragma("GCC unroll 32")
#endif

#define DW_LANES 1
#define DW_TARGET
#define DW_NAME(x) x##_single
#define DW_TAP_ROWS 2
#include "backend/cpu/convolution/depthwise_tile.h"

#if defined(__x86_64__)
#define DW_LANES 16
#define DW_TARGET __attribute__((target("avx512f")))
#define DW_NAME(x) x##_avx512
#define DW_TAP_ROWS 5
#include "backend/cpu/convolution/depthwise_tile.h"

#define DW_LANES 8
#define DW_TARGET __attribute__((target("avx2,fma")))
#define DW_NAME(x) x##_avx2
#define DW_TAP_ROWS 2
#include "backend/cpu/convolution/depthwise_tile.h"
#endif

/* What every processor of this kind has: SSE2 or NEON, of which the latter has more registers. */
#define DW_LANES 4
#define DW_TARGET
#define DW_NAME(x) x##_plain
#if defined(__aarch64__)
#define DW_TAP_ROWS 5
#else
#define DW_TAP_ROWS 2
#endif
#include "backend/cpu/convolution/depthwise_tile.h"

static void run_line(const cpu_line *l) {
    size_t c = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        c = line_avx512(l, 0);
    } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        c = line_avx2(l, 0);
    }
#endif
    c = line_plain(l, c);
    line_single(l, c);
}

static void run_weights(const cpu_line_weights *w) {
    size_t c = w->from;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        c = weights_avx512(w, c);
    } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        c = weights_avx2(w, c);
    }
#endif
    c = weights_plain(w, c);
    weights_single(w, c);
}

/* ---- arguments and workspace ---- */

typedef struct depthwise_args {
    const cpu_call *call;
    float *weights; /* (taps, C): forward in their order, backward as phase_weights() says */
    float *zeros;   /* a row of x */
    float *parts;   /* (samples, taps, C) */
    size_t channels;
    size_t taps;
    size_t rows; /* output rows, or rows of x, of the batch */
    size_t rows_per_task;
    float *stats; /* NULL: not wanted */
    size_t stats_width;
    float *lanes;
    size_t lanes_step;
} depthwise_args;

static size_t line_up(size_t floats) {
    return (floats + 15) / 16 * 16;
}

static stk_piece_needs needs(const cpu_ask *ask) {
    stk_shape in = ask->graph->values[ask->node->inputs[0]].shape;
    size_t count = line_up(ask->graph->params[ask->node->params[0]].count);
    size_t floats = count;
    if (ask->piece->live) {
        floats += line_up((size_t)in.width * (size_t)in.channels) + ask->batch * count;
    }
    return (stk_piece_needs){.workspace_bytes = floats * sizeof(float)};
}

static size_t rows_per_task(stk_shape shape) {
    size_t row = (size_t)shape.width * (size_t)shape.channels;
    return row > BLOCK_FLOATS ? 1 : BLOCK_FLOATS / row;
}

size_t stk_cpu_depthwise_block(stk_shape out) {
    return rows_per_task(out) * (size_t)out.width;
}

static depthwise_args job_of(const cpu_call *call) {
    depthwise_args args = {.call = call,
                           .weights = call->workspace,
                           .channels = (size_t)call->out.channels,
                           .taps = (size_t)(call->node->kernel * call->node->kernel)};
    args.zeros = args.weights + line_up(args.taps * args.channels);
    args.parts = args.zeros + line_up((size_t)call->in.width * args.channels);
    return args;
}

/* Where row y of a sample begins. */
static size_t row_at(stk_shape shape, size_t sample, int y) {
    return (sample * (size_t)shape.height + (size_t)y) * (size_t)shape.width *
           (size_t)shape.channels;
}

/*
 * Adds a row of `taps` taps, the first of them over `column`, to a line: as one row, or tap by tap
 * where the line's loops take one tap. A line that is full is computed first.
 */
static void add_taps(cpu_line *line, const float *row, const float *weights, int taps, int column) {
    bool made = line->taps > 1;
    for (int t = 0; t < (made ? 1 : taps); t++) {
        if (line->row_count == CPU_LINE_ROWS) {
            run_line(line);
            line->add = true;
            line->row_count = 0;
        }
        line->rows[line->row_count] = row;
        line->weights[line->row_count] = weights + (size_t)t * line->channels;
        line->column[line->row_count++] = column + t;
    }
}

/* How many taps a line takes as one. */
static int taps_at_once(int taps, int stride) {
    bool made = (stride == 1 && taps == 2) || (stride <= 2 && (taps == 3 || taps == 5));
    return made ? taps : 1;
}

/* ---- forward ---- */

static void forward_row(const depthwise_args *args, size_t sample, int oy) {
    const cpu_call *call = args->call;
    const stk_node *node = call->node;
    cpu_line line = {.channels = args->channels,
                     .columns = call->in.width,
                     .taps = taps_at_once(node->kernel, node->stride),
                     .stride = node->stride,
                     .outputs = call->out.width,
                     .out = call->y + row_at(call->out, sample, oy),
                     .out_step = args->channels};
    for (int ky = 0; ky < node->kernel; ky++) {
        int iy = oy * node->stride - node->pad + ky;
        if (iy >= 0 && iy < call->in.height) {
            add_taps(&line, call->x[0] + row_at(call->in, sample, iy),
                     args->weights + (size_t)(ky * node->kernel) * args->channels, node->kernel,
                     -node->pad);
        }
    }
    run_line(&line);
}

static void forward_task(void *context, size_t task, int thread) {
    const depthwise_args *args = context;
    size_t height = (size_t)args->call->out.height;
    size_t from = task * args->rows_per_task;
    size_t to = cpu_min(from + args->rows_per_task, args->rows);
    for (size_t row = from; row < to; row++) {
        forward_row(args, row / height, (int)(row % height));
    }
    if (args->stats != NULL) {
        size_t floats = (size_t)args->call->out.width * args->channels;
        float *mean = args->stats + task * 2 * args->channels;
        stk_cpu_chain_moments(args->call->y + from * floats, (to - from) * floats, args->channels,
                              args->stats_width, args->lanes + (size_t)thread * args->lanes_step,
                              mean, mean + args->channels);
    }
}

void stk_cpu_depthwise_forward(const cpu_call *call, float *stats, size_t width, float *lanes,
                               size_t lanes_step) {
    depthwise_args args = job_of(call);
    args.stats = stats;
    args.stats_width = width;
    args.lanes = lanes;
    args.lanes_step = lanes_step;
    for (size_t c = 0; c < args.channels; c++) {
        for (size_t t = 0; t < args.taps; t++) {
            args.weights[t * args.channels + c] = call->param[0][c * args.taps + t];
        }
    }
    args.rows = call->batch * (size_t)call->out.height;
    args.rows_per_task = rows_per_task(call->out);
    stk_pool_run(call->pool, cpu_tasks(args.rows, args.rows_per_task), forward_task, &args);
}

static void forward(const cpu_call *call) {
    stk_cpu_depthwise_forward(call, NULL, 0, NULL, 0);
}

/* ---- the gradient of x ---- */

/* The largest tap that columns of a phase see; below 0: none. Others are `stride` apart. */
static int last_tap(const stk_node *node, int phase) {
    int parity = (phase + node->pad) % node->stride;
    int rest = node->kernel - 1 - parity;
    return rest < 0 ? -1 : parity + rest / node->stride * node->stride;
}

/* Taps before those of a phase within a row of laid out weights. */
static int taps_before(const stk_node *node, int phase) {
    int taps = 0;
    for (int p = 0; p < phase; p++) {
        taps += (last_tap(node, p) + node->stride) / node->stride;
    }
    return taps;
}

/* Row by row of taps; in a row, phase by phase; of a phase, the last tap first. */
static void phase_weights(const depthwise_args *args) {
    const stk_node *node = args->call->node;
    float *to = args->weights;
    for (int ky = 0; ky < node->kernel; ky++) {
        for (int phase = 0; phase < node->stride; phase++) {
            for (int kx = last_tap(node, phase); kx >= 0; kx -= node->stride) {
                for (size_t c = 0; c < args->channels; c++) {
                    *to++ = args->call->param[0][c * args->taps + (size_t)(ky * node->kernel + kx)];
                }
            }
        }
    }
}

/* The columns phase, phase + stride and so on of one row of x. */
static void data_phase(const depthwise_args *args, size_t sample, int iy, int phase) {
    const cpu_call *call = args->call;
    const stk_node *node = call->node;
    int last = last_tap(node, phase);
    int taps = (last + node->stride) / node->stride;
    int before = taps_before(node, phase);
    cpu_line line = {.channels = args->channels,
                     .columns = call->out.width,
                     .taps = taps_at_once(taps, 1),
                     .stride = 1,
                     .outputs = (call->in.width - phase - 1) / node->stride + 1,
                     .out = call->dx[0] + row_at(call->in, sample, iy) +
                            (size_t)phase * args->channels,
                     .out_step = (size_t)node->stride * args->channels,
                     .add = call->accumulate[0]};
    for (int ky = 0; ky < node->kernel && taps > 0; ky++) {
        int oy = iy + node->pad - ky;
        if (oy >= 0 && oy % node->stride == 0 && oy / node->stride < call->out.height) {
            add_taps(&line, call->dy + row_at(call->out, sample, oy / node->stride),
                     args->weights + (size_t)(ky * node->kernel + before) * args->channels, taps,
                     (phase + node->pad - last) / node->stride);
        }
    }
    run_line(&line);
}

static void data_task(void *context, size_t task, int thread) {
    (void)thread;
    const depthwise_args *args = context;
    const stk_node *node = args->call->node;
    size_t height = (size_t)args->call->in.height;
    size_t from = task * args->rows_per_task;
    size_t to = cpu_min(from + args->rows_per_task, args->rows);
    for (size_t row = from; row < to; row++) {
        for (int phase = 0; phase < node->stride && phase < args->call->in.width; phase++) {
            data_phase(args, row / height, (int)(row % height), phase);
        }
    }
}

/* ---- the gradient of the weights ---- */

/* A task is some channels of one sample. */
static void weight_task(void *context, size_t task, int thread) {
    (void)thread;
    const depthwise_args *args = context;
    const cpu_call *call = args->call;
    size_t slabs = cpu_tasks(args->channels, SLAB);
    size_t sample = task / slabs;
    size_t from = task % slabs * SLAB;
    cpu_line_weights w = {.channels = args->channels,
                          .from = from,
                          .to = cpu_min(from + SLAB, args->channels),
                          .x = call->x[0] + sample * stk_shape_count(call->in),
                          .dy = call->dy + sample * stk_shape_count(call->out),
                          .zeros = args->zeros,
                          .in = call->in,
                          .out = call->out,
                          .kernel = call->node->kernel,
                          .stride = call->node->stride,
                          .pad = call->node->pad,
                          .sums = args->parts + sample * line_up(args->taps * args->channels)};
    for (size_t t = 0; t < args->taps; t++) {
        memset(w.sums + t * w.channels + from, 0, (w.to - from) * sizeof *w.sums);
    }
    run_weights(&w);
}

/* Adds the samples' sums, in their order; a task is some channels. */
static void sum_task(void *context, size_t task, int thread) {
    (void)thread;
    const depthwise_args *args = context;
    size_t from = task * SLAB;
    size_t count = cpu_min(SLAB, args->channels - from);
    size_t step = line_up(args->taps * args->channels);
    for (size_t t = 0; t < args->taps; t++) {
        float sums[SLAB] = {0};
        for (size_t s = 0; s < args->call->batch; s++) {
            const float *part = args->parts + s * step + t * args->channels + from;
            for (size_t c = 0; c < count; c++) {
                sums[c] += part[c];
            }
        }
        for (size_t c = 0; c < count; c++) {
            args->call->param_grad[0][(from + c) * args->taps + t] += sums[c];
        }
    }
}

static void backward(const cpu_call *call) {
    depthwise_args args = job_of(call);
    size_t slabs = cpu_tasks(args.channels, SLAB);
    if (call->dx[0] != NULL) {
        phase_weights(&args);
        args.rows = call->batch * (size_t)call->in.height;
        args.rows_per_task = rows_per_task(call->in);
        stk_pool_run(call->pool, cpu_tasks(args.rows, args.rows_per_task), data_task, &args);
    }
    memset(args.zeros, 0, (size_t)call->in.width * args.channels * sizeof *args.zeros);
    stk_pool_run(call->pool, call->batch * slabs, weight_task, &args);
    stk_pool_run(call->pool, slabs, sum_task, &args);
}

const cpu_kernel stk_cpu_depthwise = {.needs = needs, .forward = forward, .backward = backward};
