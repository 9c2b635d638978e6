/*
 * conv.c - convolution as products of patches, which are laid out while they are used.
 *
 * Forward, the patches of x times the weights, which are cut into panels first. The gradient of x
 * is a convolution of dy: with a stride s, pixels of x that are s apart see the same taps, so that
 * there are s * s classes of pixels ("phases"), and each is a convolution of stride 1 with its
 * share of the taps. No gradient is scattered and each pixel is computed in one place. The
 * gradient of the weights is in conv_weight.c.
 */
#include "backend/cpu/convolution/conv.h"

#include <string.h>

#include "backend/cpu/convolution/conv_weight.h"
#include "backend/cpu/gemm/patches.h"

#define BIAS_PARTS ((size_t)16)

typedef struct conv_shape {
    stk_shape in;
    stk_shape out;
    int kernel, stride;
    int pad; /* before; what lies after follows from the output's shape */
} conv_shape;

/* One convolution: forward, or the gradient of its input. */
typedef struct conv_run {
    const cpu_call *call;
    const cpu_gemm *gemm;
    conv_shape s;
    float *panels;
    float *scratch; /* per thread */
    float *stats;
} conv_run;

static conv_shape shape_of(const stk_graph *graph, const stk_node *node) {
    return (conv_shape){.in = graph->values[node->inputs[0]].shape,
                        .out = graph->values[node->output].shape,
                        .kernel = node->kernel,
                        .stride = node->stride,
                        .pad = node->pad};
}

static const cpu_gemm *gemm_of(const cpu_gemm *gemm) {
    return gemm != NULL ? gemm : stk_cpu_gemm_best();
}

static size_t square(int side) {
    return (size_t)side * (size_t)side;
}

/* Workspaces begin where a cache line does. */
static size_t line_up(size_t floats) {
    return (floats + 15) / 16 * 16;
}

/* The panels of a matrix with so many columns. */
static size_t panel_floats(const cpu_gemm *gemm, size_t depth, size_t width) {
    return line_up(cpu_tasks(width, gemm->cols) * gemm->cols * depth);
}

static cpu_patches input_patches(const conv_shape *s, const float *x) {
    return (cpu_patches){.pictures = x,
                         .image = s->in,
                         .rows = s->out.height,
                         .cols = s->out.width,
                         .stride = s->stride,
                         .top = -s->pad,
                         .left = -s->pad,
                         .height = s->kernel,
                         .width = s->kernel};
}

static cpu_weight_product weight_product(const cpu_gemm *gemm, const conv_shape *s, size_t batch) {
    cpu_weight_product p = {.gemm = gemm,
                            .patches = input_patches(s, NULL),
                            .pixels = batch * (size_t)s->out.height * (size_t)s->out.width,
                            .filters = (size_t)s->out.channels};
    stk_cpu_weight_divide(&p);
    return p;
}

static size_t largest(size_t a, size_t b) {
    return a > b ? a : b;
}

stk_piece_needs stk_cpu_conv_needs(const cpu_gemm *gemm, const cpu_ask *ask) {
    gemm = gemm_of(gemm);
    conv_shape s = shape_of(ask->graph, ask->node);
    size_t taps = square(s.kernel);
    size_t in = (size_t)s.in.channels;
    size_t out = (size_t)s.out.channels;
    size_t scratch = (size_t)ask->threads * CPU_PRODUCT_SCRATCH;
    size_t floats = panel_floats(gemm, taps * in, out) + scratch;
    if (ask->piece->live) {
        cpu_weight_product p = weight_product(gemm, &s, ask->batch);
        floats = largest(floats, panel_floats(gemm, taps * out, in) + scratch);
        floats = largest(floats, line_up(stk_cpu_weight_part_floats(&p)) +
                                     (size_t)ask->threads * CPU_WEIGHT_SCRATCH);
        floats = largest(floats, ask->node->param_count > 1 ? BIAS_PARTS * out : 0);
    }
    return (stk_piece_needs){.workspace_bytes = floats * sizeof(float)};
}

/* ---- forward ---- */

static cpu_patch_product forward_product(const conv_run *run) {
    const cpu_call *call = run->call;
    const conv_shape *s = &run->s;
    return (cpu_patch_product){
        .gemm = run->gemm,
        .patches = input_patches(s, call->x[0]),
        .count = call->batch * (size_t)s->out.height * (size_t)s->out.width,
        .width = (size_t)s->out.channels,
        .panels = run->panels,
        .out = call->y,
        .out_shape = s->out,
        .step = 1,
        .bias = call->node->param_count > 1 ? call->param[1] : NULL,
        .stats = run->stats,
    };
}

static void pack_forward_task(void *context, size_t task, int thread) {
    (void)thread;
    const conv_run *run = context;
    size_t cols = run->gemm->cols;
    size_t depth = square(run->s.kernel) * (size_t)run->s.in.channels;
    size_t count = cpu_min(cols, (size_t)run->s.out.channels - task * cols);
    run->gemm->pack_rows(run->call->param[0] + task * cols * depth, depth, count,
                         run->panels + task * cols * depth);
}

static void forward_task(void *context, size_t task, int thread) {
    const conv_run *run = context;
    cpu_patch_product p = forward_product(run);
    stk_cpu_product_task(&p, task, run->scratch + (size_t)thread * CPU_PRODUCT_SCRATCH);
}

void stk_cpu_conv_forward(const cpu_gemm *gemm, const cpu_call *call, float *stats) {
    conv_run run = {.call = call,
                    .gemm = gemm_of(gemm),
                    .s = shape_of(call->graph, call->node),
                    .panels = call->workspace,
                    .stats = stats};
    size_t width = (size_t)run.s.out.channels;
    size_t depth = square(run.s.kernel) * (size_t)run.s.in.channels;
    run.scratch = run.panels + panel_floats(run.gemm, depth, width);
    cpu_patch_product p = forward_product(&run);
    stk_pool_run(call->pool, cpu_tasks(width, run.gemm->cols), pack_forward_task, &run);
    stk_pool_run(call->pool, stk_cpu_product_tasks(&p), forward_task, &run);
}

size_t stk_cpu_conv_blocks(size_t pixels) {
    return stk_cpu_product_blocks(pixels);
}

size_t stk_cpu_conv_block_start(size_t pixels, size_t block) {
    return stk_cpu_product_block_start(pixels, block);
}

/* ---- gradient of the input ---- */

/* Along one side: which taps the pixels offset, offset + stride, ... see, and of which pixels. */
typedef struct phase {
    int offset;
    int pixels;    /* in the input */
    int first_tap; /* then every stride-th */
    int taps;
    int from; /* pixel of dy that the first window begins at, which sees the last tap */
} phase;

static phase phase_of(int offset, int side, const conv_shape *s) {
    phase p = {.offset = offset, .first_tap = (offset + s->pad) % s->stride};
    p.pixels = offset < side ? (side - offset + s->stride - 1) / s->stride : 0;
    p.taps = p.first_tap < s->kernel ? (s->kernel - p.first_tap + s->stride - 1) / s->stride : 0;
    p.from = (offset + s->pad - p.first_tap) / s->stride - (p.taps - 1);
    return p;
}

/* One phase of the picture's rows and one of its columns. */
typedef struct phase_pair {
    phase y, x;
    size_t depth;
    size_t panels_at; /* floats before its panels */
} phase_pair;

static size_t phase_count(const conv_run *run) {
    return square(run->s.stride);
}

/* Phase `index`; each tap belongs to one phase, so that all panels together are the weights. */
static phase_pair pair_of(const conv_run *run, size_t index) {
    const conv_shape *s = &run->s;
    size_t padded = cpu_tasks((size_t)s->in.channels, run->gemm->cols) * run->gemm->cols;
    phase_pair pair = {0};
    for (size_t i = 0; i <= index; i++) {
        pair.panels_at += pair.depth * padded;
        pair.y = phase_of((int)i / s->stride, s->in.height, s);
        pair.x = phase_of((int)i % s->stride, s->in.width, s);
        pair.depth = (size_t)(pair.y.taps * pair.x.taps) * (size_t)s->out.channels;
    }
    return pair;
}

static cpu_patch_product data_product(const conv_run *run, const phase_pair *pair) {
    const cpu_call *call = run->call;
    return (cpu_patch_product){
        .gemm = run->gemm,
        .patches = {.pictures = call->dy,
                    .image = run->s.out,
                    .rows = pair->y.pixels,
                    .cols = pair->x.pixels,
                    .stride = 1,
                    .top = pair->y.from,
                    .left = pair->x.from,
                    .height = pair->y.taps,
                    .width = pair->x.taps},
        .count = call->batch * (size_t)pair->y.pixels * (size_t)pair->x.pixels,
        .width = (size_t)run->s.in.channels,
        .panels = run->panels + pair->panels_at,
        .out = call->dx[0],
        .out_shape = run->s.in,
        .step = run->s.stride,
        .top = pair->y.offset,
        .left = pair->x.offset,
        .add = call->accumulate[0],
    };
}

/* One panel of one phase: for each of its taps, the last first, and each filter, some channels. */
static void pack_data_task(void *context, size_t task, int thread) {
    (void)thread;
    const conv_run *run = context;
    const conv_shape *s = &run->s;
    size_t cols = run->gemm->cols;
    size_t channels = (size_t)s->in.channels;
    size_t per_phase = cpu_tasks(channels, cols);
    phase_pair pair = pair_of(run, task / per_phase);
    size_t first = task % per_phase * cols;
    size_t count = cpu_min(cols, channels - first);
    float *out = run->panels + pair.panels_at + task % per_phase * pair.depth * cols;
    for (int ty = pair.y.taps - 1; ty >= 0; ty--) {
        for (int tx = pair.x.taps - 1; tx >= 0; tx--) {
            int ky = pair.y.first_tap + ty * s->stride;
            int kx = pair.x.first_tap + tx * s->stride;
            const float *from =
                run->call->param[0] + (size_t)(ky * s->kernel + kx) * channels + first;
            for (int o = 0; o < s->out.channels; o++, out += cols) {
                memcpy(out, from, count * sizeof *out);
                memset(out + count, 0, (cols - count) * sizeof *out);
                from += square(s->kernel) * channels;
            }
        }
    }
}

static void data_task(void *context, size_t task, int thread) {
    const conv_run *run = context;
    for (size_t i = 0; i < phase_count(run); i++) {
        phase_pair pair = pair_of(run, i);
        cpu_patch_product p = data_product(run, &pair);
        size_t tasks = stk_cpu_product_tasks(&p);
        if (task < tasks) {
            stk_cpu_product_task(&p, task, run->scratch + (size_t)thread * CPU_PRODUCT_SCRATCH);
            return;
        }
        task -= tasks;
    }
}

void stk_cpu_conv_data_gradient(const cpu_gemm *gemm, const cpu_call *call) {
    conv_run run = {.call = call,
                    .gemm = gemm_of(gemm),
                    .s = shape_of(call->graph, call->node),
                    .panels = call->workspace};
    size_t taps = square(run.s.kernel);
    size_t width = (size_t)run.s.in.channels;
    run.scratch = run.panels + panel_floats(run.gemm, taps * (size_t)run.s.out.channels, width);
    size_t phases = phase_count(&run);
    size_t tasks = 0;
    for (size_t i = 0; i < phases; i++) {
        phase_pair pair = pair_of(&run, i);
        cpu_patch_product p = data_product(&run, &pair);
        tasks += stk_cpu_product_tasks(&p);
    }
    stk_pool_run(call->pool, phases * cpu_tasks(width, run.gemm->cols), pack_data_task, &run);
    stk_pool_run(call->pool, tasks, data_task, &run);
}

/* ---- gradients of the parameters ---- */

typedef struct bias_run {
    const float *dy; /* (pixels, channels) */
    size_t pixels, channels, part_count;
    float *parts; /* (part_count, channels) */
} bias_run;

static void bias_task(void *context, size_t task, int thread) {
    (void)thread;
    const bias_run *run = context;
    float *part = run->parts + task * run->channels;
    memset(part, 0, run->channels * sizeof *part);
    size_t to = cpu_even(run->pixels, run->part_count, task + 1);
    for (size_t i = cpu_even(run->pixels, run->part_count, task); i < to; i++) {
        for (size_t c = 0; c < run->channels; c++) {
            part[c] += run->dy[i * run->channels + c];
        }
    }
}

static void bias_gradient(const cpu_call *call, size_t pixels, size_t channels) {
    bias_run run = {call->dy, pixels, channels, cpu_min(BIAS_PARTS, pixels), call->workspace};
    stk_pool_run(call->pool, run.part_count, bias_task, &run);
    for (size_t i = 0; i < run.part_count; i++) {
        for (size_t c = 0; c < channels; c++) {
            call->param_grad[1][c] += run.parts[i * channels + c];
        }
    }
}

void stk_cpu_conv_weight_gradient(const cpu_gemm *gemm, const cpu_call *call) {
    conv_shape s = shape_of(call->graph, call->node);
    cpu_weight_product p = weight_product(gemm_of(gemm), &s, call->batch);
    p.patches.pictures = call->x[0];
    p.dy = call->dy;
    p.grad = call->param_grad[0];
    p.parts = call->workspace;
    stk_cpu_weight_run(&p, call->pool, p.parts + line_up(stk_cpu_weight_part_floats(&p)));
    if (call->node->param_count > 1) {
        bias_gradient(call, p.pixels, p.filters);
    }
}

static stk_piece_needs conv_needs(const cpu_ask *ask) {
    return stk_cpu_conv_needs(NULL, ask);
}

static void conv_forward(const cpu_call *call) {
    stk_cpu_conv_forward(NULL, call, NULL);
}

static void conv_backward(const cpu_call *call) {
    if (call->dx[0] != NULL) {
        stk_cpu_conv_data_gradient(NULL, call);
    }
    stk_cpu_conv_weight_gradient(NULL, call);
}

const cpu_kernel stk_cpu_conv = {
    .needs = conv_needs, .forward = conv_forward, .backward = conv_backward};
