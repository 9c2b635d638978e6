/*
 * chain.c - a convolution and what follows it, computed together.
 *
 * Forward, the convolution writes y, its statistics are taken, and one pass makes z (see
 * chain_run.h). Backward, a first pass sums the gradients of the norm's output per channel. A
 * second pass turns dz into the gradient of y in place, and computes the gradient of the value that
 * was added. Then the convolution's backward follows. Nothing between y and z is stored: the
 * activation's slope is computed again from y, or from z if something was added.
 *
 * The pixels of the batch are cut into strips by shapes alone, and the sums of strips are added in
 * their order in float64.
 */
#include "backend/cpu/convolution/chain_run.h"
#include "backend/cpu/convolution/conv.h"
#include "backend/cpu/convolution/depthwise.h"
#include "backend/cpu/kernels/kernels.h"

#include <math.h>
#include <string.h>

#define WIDTH_MIN ((size_t)128) /* floats that are taken at once, at least */
#define STRIP_FLOATS ((size_t)65536)
#define STRIP_MIN ((size_t)64) /* least pixels of a strip, since each strip has sums of its own */

/* How a chain's pixels are cut, and where things lie in its workspace, in floats. */
typedef struct chain_layout {
    size_t channels;
    size_t pixels; /* of the whole batch */
    size_t width;  /* see cpu_chain_run */
    size_t strip;  /* pixels */
    size_t strips;
    stk_op maker; /* makes y: STK_OP_CONV, STK_OP_DEPTHWISE; STK_OP_COUNT: y is the input */
    size_t block; /* pixels of a block of statistics, unless a convolution makes y */
    size_t blocks;
    size_t lanes;   /* (threads, 3, width) */
    size_t partial; /* (strips or blocks, 2, channels) */
    size_t total;   /* (2, channels) of float64 */
    size_t conv;    /* workspace of the convolution */
} chain_layout;

typedef struct chain_args {
    const cpu_call *call;
    chain_layout at;
    cpu_chain_run run;                                           /* what all strips share */
    const stk_node *drop;                                        /* NULL: nothing is dropped */
    float *scale, *shift, *centre, *by_gradient, *by_y, *by_one; /* width */
    float *lanes;
    float *partial;
    double *total;
    float *mean; /* channels; saved */
    float *invstd;
} chain_args;

static size_t line_up(size_t floats) {
    return (floats + 15) / 16 * 16;
}

static chain_layout layout_of(const stk_graph *graph, const stk_piece *piece, size_t batch,
                              int threads) {
    stk_shape shape = graph->values[piece->output].shape;
    chain_layout at = {.channels = (size_t)shape.channels,
                       .pixels = batch * (size_t)shape.height * (size_t)shape.width};
    size_t repeats = cpu_tasks(WIDTH_MIN, at.channels);
    at.width = repeats * at.channels;
    at.strip = STRIP_FLOATS / at.channels;
    at.strip = cpu_tasks(at.strip < STRIP_MIN ? STRIP_MIN : at.strip, repeats) * repeats;
    at.strips = cpu_tasks(at.pixels, at.strip);
    at.maker = piece->conv != STK_NO_NODE ? graph->nodes[piece->conv].op : STK_OP_COUNT;
    at.block = at.maker == STK_OP_DEPTHWISE ? stk_cpu_depthwise_block(shape) : at.strip;
    at.blocks =
        at.maker == STK_OP_CONV ? stk_cpu_conv_blocks(at.pixels) : cpu_tasks(at.pixels, at.block);
    size_t parts = at.blocks > at.strips ? at.blocks : at.strips;
    at.lanes = 6 * line_up(at.width);
    at.partial = at.lanes + (size_t)threads * 3 * line_up(at.width);
    at.total = at.partial + line_up(parts * 2 * at.channels);
    at.conv = at.total + line_up(2 * at.channels * sizeof(double) / sizeof(float));
    return at;
}

static const cpu_kernel *filter_kernel(const stk_node *conv) {
    return conv->op == STK_OP_DEPTHWISE ? &stk_cpu_depthwise : &stk_cpu_conv;
}

static stk_piece_needs needs(const cpu_ask *ask) {
    const stk_piece *piece = ask->piece;
    chain_layout at = layout_of(ask->graph, piece, ask->batch, ask->threads);
    stk_piece_needs all = {.saved_bytes = piece->training ? 2 * at.channels * sizeof(float) : 0,
                           .workspace_bytes = at.conv * sizeof(float)};
    if (piece->conv != STK_NO_NODE) {
        cpu_ask part = *ask;
        part.node = &ask->graph->nodes[piece->conv];
        all.workspace_bytes += filter_kernel(part.node)->needs(&part).workspace_bytes;
    }
    return all;
}

static cpu_chain_act act_of(const cpu_call *call) {
    if (call->piece->act == STK_NO_NODE) {
        return CPU_ACT_NONE;
    }
    switch (call->graph->nodes[call->piece->act].op) {
    case STK_OP_RELU:
        return CPU_ACT_RELU;
    case STK_OP_RELU6:
        return CPU_ACT_RELU6;
    default:
        return CPU_ACT_SILU;
    }
}

static chain_args job_of(const cpu_call *call) {
    const stk_piece *piece = call->piece;
    chain_args args = {
        .call = call,
        .at = layout_of(call->graph, piece, call->batch, stk_pool_threads(call->pool))};
    float *room = call->workspace;
    float **rows[] = {&args.scale,       &args.shift, &args.centre,
                      &args.by_gradient, &args.by_y,  &args.by_one};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *rows[i] = room + i * line_up(args.at.width);
    }
    args.lanes = room + args.at.lanes;
    args.partial = room + args.at.partial;
    args.total = (double *)(void *)(room + args.at.total);
    args.mean = call->saved;
    args.invstd = call->saved != NULL ? args.mean + args.at.channels : NULL;
    args.drop = piece->drop != STK_NO_NODE && call->train ? &call->graph->nodes[piece->drop] : NULL;
    args.run = (cpu_chain_run){.act = act_of(call),
                               .width = args.at.width,
                               .factor = 1,
                               .scale = args.scale,
                               .shift = args.shift,
                               .mean = args.centre,
                               .by_gradient = args.by_gradient,
                               .by_y = args.by_y,
                               .by_one = args.by_one};
    return args;
}

/* The call of the convolution alone. */
static cpu_call filter_call(const chain_args *args) {
    cpu_call part = *args->call;
    part.node = &part.graph->nodes[part.piece->conv];
    part.y = part.inner;
    part.dy = part.dinner;
    for (int i = 0; i < part.node->param_count; i++) {
        part.param[i] = cpu_param(&part, part.node, i);
        part.param_grad[i] = cpu_param_grad(&part, part.node, i);
    }
    part.workspace = (float *)part.workspace + args->at.conv;
    return part;
}

/* What the norm reads: the convolution's output, or the chain's input. */
static const float *norm_input(const cpu_call *call) {
    return call->piece->conv != STK_NO_NODE ? call->inner : call->x[0];
}

static const float *moved(const float *p, size_t by) {
    return p != NULL ? p + by : NULL;
}

/* Calls `what` for the pixels of one strip, sample by sample when samples are dropped. */
static void run_strip(const chain_args *args, size_t strip, float *sums,
                      void (*what)(const cpu_chain_run *run)) {
    size_t channels = args->at.channels;
    size_t sample_pixels = (size_t)args->call->out.height * (size_t)args->call->out.width;
    size_t end = cpu_min((strip + 1) * args->at.strip, args->at.pixels);
    size_t next;
    for (size_t p = strip * args->at.strip; p < end; p = next) {
        cpu_chain_run run = args->run;
        size_t sample = p / sample_pixels;
        next = end;
        if (args->drop != NULL) {
            next = cpu_min(end, (sample + 1) * sample_pixels);
            run.factor = cpu_drop_factor(args->call, args->drop, sample);
        }
        size_t by = p * channels;
        run.count = (next - p) * channels;
        run.y = moved(run.y, by);
        run.residual = moved(run.residual, by);
        run.dz = moved(run.dz, by);
        run.kept = moved(run.kept, by);
        run.z = run.z != NULL ? run.z + by : NULL;
        run.dy = run.dy != NULL ? run.dy + by : NULL;
        run.dresidual = run.dresidual != NULL ? run.dresidual + by : NULL;
        run.sums = sums;
        what(&run);
    }
}

/* ---- forward ---- */

static void moments_task(void *context, size_t task, int thread) {
    const chain_args *args = context;
    size_t channels = args->at.channels;
    size_t from = task * args->at.strip;
    size_t pixels = cpu_min(args->at.strip, args->at.pixels - from);
    float *mean = args->partial + task * 2 * channels;
    stk_cpu_chain_moments(
        args->run.y + from * channels, pixels * channels, channels, args->at.width,
        args->lanes + (size_t)thread * 3 * line_up(args->at.width), mean, mean + channels);
}

/* The first pixel of a block of statistics; block + 1 gives the end. */
static size_t block_start(const chain_layout *at, size_t block) {
    return at->maker == STK_OP_CONV ? stk_cpu_conv_block_start(at->pixels, block)
                                    : cpu_min(block * at->block, at->pixels);
}

/*
 * One mean and one sum of squares out of those of the blocks: with n pixels, mean m and squares q
 * so far, a block of k pixels with mean b and squares s makes them q + s + (b - m)^2 n k / (n + k).
 */
static void merge_moments(const chain_args *args) {
    size_t channels = args->at.channels;
    double *mean = args->total;
    double *squares = mean + channels;
    memset(mean, 0, 2 * channels * sizeof *mean);
    for (size_t b = 0; b < args->at.blocks; b++) {
        const float *part = args->partial + b * 2 * channels;
        double before = (double)block_start(&args->at, b);
        double own = (double)block_start(&args->at, b + 1) - before;
        double share = own / (before + own);
        for (size_t c = 0; c < channels; c++) {
            double apart = part[c] - mean[c];
            mean[c] += apart * share;
            squares[c] += part[channels + c] + apart * apart * before * share;
        }
    }
}

/* The batch's mean and deviation; also moves the running statistics. */
static void batch_statistics(chain_args *args) {
    const cpu_call *call = args->call;
    double pixels = (double)args->at.pixels;
    float *running_mean = call->param[2];
    float *running_var = call->param[3];
    merge_moments(args);
    for (size_t c = 0; c < args->at.channels; c++) {
        double mean = args->total[c];
        double squares = fmax(args->total[args->at.channels + c], 0);
        double unbiased = pixels > 1 ? squares / (pixels - 1) : squares;
        args->mean[c] = (float)mean;
        args->invstd[c] = (float)(1.0 / sqrt(squares / pixels + (double)call->node->epsilon));
        running_mean[c] += (float)(CPU_RUNNING * (mean - (double)running_mean[c]));
        running_var[c] += (float)(CPU_RUNNING * (unbiased - (double)running_var[c]));
    }
}

/* Coefficients of the first channels are repeated up to the width. */
static void repeat(const chain_args *args, float *values) {
    for (size_t i = args->at.channels; i < args->at.width; i++) {
        values[i] = values[i - args->at.channels];
    }
}

/* Scale and shift; from the saved numbers, so that backward finds the same. */
static void set_scale(const chain_args *args) {
    const cpu_call *call = args->call;
    for (size_t c = 0; c < args->at.channels; c++) {
        double mean = call->train ? args->mean[c] : call->param[2][c];
        double invstd = call->train ? args->invstd[c]
                                    : 1.0 / sqrt(call->param[3][c] + (double)call->node->epsilon);
        args->scale[c] = (float)(call->param[0][c] * invstd);
        args->shift[c] = (float)(call->param[1][c] - mean * call->param[0][c] * invstd);
    }
    repeat(args, args->scale);
    repeat(args, args->shift);
}

static void forward_task(void *context, size_t task, int thread) {
    (void)thread;
    run_strip(context, task, NULL, stk_cpu_chain_forward);
}

/* Makes y and, if the norm needs them, the statistics of its blocks in `partial`. */
static void filter(chain_args *args) {
    const cpu_call *call = args->call;
    float *stats = call->train && !call->kept_stats ? args->partial : NULL;
    cpu_call part = args->at.maker != STK_OP_COUNT ? filter_call(args) : *call;
    if (args->at.maker == STK_OP_CONV) {
        stk_cpu_conv_forward(NULL, &part, stats);
    } else if (args->at.maker == STK_OP_DEPTHWISE) {
        stk_cpu_depthwise_forward(&part, stats, args->at.width, args->lanes,
                                  3 * line_up(args->at.width));
    } else if (stats != NULL) {
        stk_pool_run(call->pool, args->at.strips, moments_task, args);
    }
}

static void forward(const cpu_call *call) {
    chain_args args = job_of(call);
    args.run.y = norm_input(call);
    filter(&args);
    if (call->train && call->kept_stats) {
        cpu_kept_statistics(call, args.at.channels, args.mean, args.invstd);
    } else if (call->train) {
        batch_statistics(&args);
    }
    set_scale(&args);
    args.run.residual = call->piece->add != STK_NO_NODE ? call->x[1] : NULL;
    args.run.z = call->y;
    stk_pool_run(call->pool, args.at.strips, forward_task, &args);
}

/* ---- backward ---- */

static void sums_task(void *context, size_t task, int thread) {
    const chain_args *args = context;
    size_t channels = args->at.channels;
    size_t width = args->at.width;
    float *sums = args->lanes + (size_t)thread * 3 * line_up(width);
    float *part = args->partial + task * 2 * channels;
    memset(sums, 0, 2 * width * sizeof *sums);
    run_strip(args, task, sums, stk_cpu_chain_sums);
    for (size_t k = 0; k < 2; k++) {
        memcpy(part + k * channels, sums + k * width, channels * sizeof *part);
        for (size_t i = channels; i < width; i++) {
            part[k * channels + i % channels] += sums[k * width + i];
        }
    }
}

static void add_sums(const chain_args *args) {
    size_t count = 2 * args->at.channels;
    memset(args->total, 0, count * sizeof *args->total);
    for (size_t s = 0; s < args->at.strips; s++) {
        for (size_t i = 0; i < count; i++) {
            args->total[i] += args->partial[s * count + i];
        }
    }
}

/*
 * The norm's own gradients, and the coefficients of y's: with s = 1/deviation, xhat = (y - mean) s
 * it is w s (g - mean(g) - xhat mean(g xhat)), and w s g where mean and s do not depend on y.
 */
static void set_gradients(const chain_args *args) {
    const cpu_call *call = args->call;
    size_t channels = args->at.channels;
    double pixels = (double)args->at.pixels;
    for (size_t c = 0; c < channels; c++) {
        double sum = args->total[c];
        double product = args->total[channels + c] * args->invstd[c];
        call->param_grad[0][c] += (float)product;
        call->param_grad[1][c] += (float)sum;
        double ws = (double)call->param[0][c] * args->invstd[c];
        double steep = call->kept_stats ? 0 : ws * args->invstd[c] * product / pixels;
        double lower = call->kept_stats ? 0 : ws * sum / pixels;
        args->by_gradient[c] = (float)ws;
        args->by_y[c] = (float)-steep;
        args->by_one[c] = (float)(steep * args->mean[c] - lower);
    }
    repeat(args, args->by_gradient);
    repeat(args, args->by_y);
    repeat(args, args->by_one);
}

static void gradients_task(void *context, size_t task, int thread) {
    (void)thread;
    run_strip(context, task, NULL, stk_cpu_chain_gradients);
}

static void backward(const cpu_call *call) {
    chain_args args = job_of(call);
    const stk_piece *piece = call->piece;
    bool filters = piece->conv != STK_NO_NODE;
    args.run.y = norm_input(call);
    args.run.dz = call->dy;
    args.run.kept = piece->backward_reads_output ? call->y : NULL;
    set_scale(&args);
    memcpy(args.centre, args.mean, args.at.channels * sizeof *args.centre);
    repeat(&args, args.centre);
    stk_pool_run(call->pool, args.at.strips, sums_task, &args);
    add_sums(&args);
    set_gradients(&args);
    args.run.dy = filters ? call->dinner : call->dx[0];
    args.run.add_dy = !filters && call->accumulate[0];
    args.run.dresidual = piece->add != STK_NO_NODE ? call->dx[1] : NULL;
    args.run.add_dresidual = call->accumulate[1];
    stk_pool_run(call->pool, args.at.strips, gradients_task, &args);
    if (filters) {
        cpu_call part = filter_call(&args);
        filter_kernel(part.node)->backward(&part);
    }
}

const cpu_kernel stk_cpu_chain = {.needs = needs, .forward = forward, .backward = backward};
