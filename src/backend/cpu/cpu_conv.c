/*
 * cpu_conv.c - convolution as matrix products.
 *
 * Patches are laid out as rows (im2col) a strip at a time, so that the strip is still in the cache
 * when the product reads it: y = col W', dcol = dy W, dW = dy' col. In NHWC a patch row is `kernel`
 * runs of kernel*C floats that lie together in the picture, so laying out is copying. A 1x1
 * convolution with stride 1 needs no layout at all. CBLAS is called from many threads, each with
 * its own strip; it must be single-threaded itself (cpu_device.c sees to that).
 */
#include "backend/cpu/cpu_kernels.h"

#include <cblas.h>
#include <string.h>

/* A strip's patches: large enough that a product outweighs reading the weights again. */
#define STRIP_BYTES ((size_t)2 << 20)
#define STRIP_MIN_ROWS ((size_t)64)
#define STRIP_MAX_ROWS ((size_t)1024)

/* Weight gradients are summed in parts of the batch, at most this much memory for all parts. */
#define PARTS_BYTES ((size_t)32 << 20)
#define PARTS_MAX ((size_t)16)
#define PART_MIN_ROWS ((size_t)512) /* patches: fewer are not worth adding up one more part */

typedef struct conv_shape {
    stk_shape in;
    stk_shape out;
    int kernel, stride, pad;
    size_t depth;   /* floats in a patch: kernel * kernel * input channels */
    size_t filters; /* output channels */
    size_t pixels;  /* output pixels of one image */
    bool direct;    /* patches are the pixels themselves */
    size_t group;   /* images that one task takes */
    size_t strip;   /* patches laid out at a time */
} conv_shape;

typedef struct conv_job {
    const cpu_call *call;
    conv_shape s;
    float *scratch; /* one strip per thread */
    float *parts;   /* (part_count, filters, depth) */
    size_t part_count;
} conv_job;

static conv_shape shape_of(const stk_graph *graph, const stk_node *node) {
    conv_shape s = {.in = graph->values[node->inputs[0]].shape,
                    .out = graph->values[node->output].shape,
                    .kernel = node->kernel,
                    .stride = node->stride,
                    .pad = node->pad};
    s.depth = (size_t)(s.kernel * s.kernel) * (size_t)s.in.channels;
    s.filters = (size_t)s.out.channels;
    s.pixels = (size_t)s.out.height * (size_t)s.out.width;
    s.direct = s.kernel == 1 && s.stride == 1 && s.pad == 0;
    s.strip = STRIP_BYTES / (s.depth * sizeof(float));
    s.strip = s.strip < STRIP_MIN_ROWS ? STRIP_MIN_ROWS : cpu_min(s.strip, STRIP_MAX_ROWS);
    s.group = s.pixels >= s.strip ? 1 : s.strip / s.pixels;
    return s;
}

static size_t part_count(const conv_shape *s, size_t batch) {
    size_t parts = PARTS_BYTES / (s->filters * s->depth * sizeof(float));
    parts = cpu_min(cpu_min(parts, PARTS_MAX), batch * s->pixels / PART_MIN_ROWS);
    return cpu_min(parts < 2 ? 2 : parts, batch);
}

static stk_piece_needs conv_needs(const cpu_ask *ask) {
    conv_shape s = shape_of(ask->graph, ask->node);
    stk_piece_needs needs = {0};
    if (!s.direct) {
        needs.workspace_bytes = (size_t)ask->threads * s.strip * s.depth * sizeof(float);
    }
    if (ask->piece->live) {
        needs.workspace_bytes += part_count(&s, ask->batch) * s.filters * s.depth * sizeof(float);
    }
    return needs;
}

static conv_job job_of(const cpu_call *call) {
    conv_job job = {.call = call, .s = shape_of(call->graph, call->node)};
    job.scratch = call->workspace;
    size_t strips =
        job.s.direct ? 0 : (size_t)stk_pool_threads(call->pool) * job.s.strip * job.s.depth;
    job.parts = (float *)call->workspace + strips;
    return job;
}

/* Columns [from, to) of kernel column range that fall inside the picture for input column x0. */
static void clip(int x0, int kernel, int side, int *from, int *to) {
    *from = x0 < 0 ? -x0 : 0;
    *to = side - x0 < kernel ? side - x0 : kernel;
    *from = *from > kernel ? kernel : *from;
    *to = *to < *from ? *from : *to;
}

/* Lays out patches first .. first+count-1 of consecutive images that start at x. */
static void lay_out(const conv_shape *s, const float *x, size_t first, size_t count, float *col) {
    size_t channels = (size_t)s->in.channels;
    size_t row_floats = (size_t)s->in.width * channels;
    size_t run = (size_t)s->kernel * channels;
    for (size_t i = first; i < first + count; i++) {
        const float *image = x + i / s->pixels * (size_t)s->in.height * row_floats;
        int y0 = (int)(i % s->pixels) / s->out.width * s->stride - s->pad;
        int x0 = (int)(i % s->pixels) % s->out.width * s->stride - s->pad;
        int from, to;
        clip(x0, s->kernel, s->in.width, &from, &to);
        size_t before = (size_t)from * channels;
        size_t inside = (size_t)(to - from) * channels;
        for (int ky = 0; ky < s->kernel; ky++, col += run) {
            if (y0 + ky < 0 || y0 + ky >= s->in.height || inside == 0) {
                memset(col, 0, run * sizeof *col);
                continue;
            }
            const float *row = image + (size_t)(y0 + ky) * row_floats +
                               (ptrdiff_t)(x0 + from) * (ptrdiff_t)channels;
            memcpy(col + before, row, inside * sizeof *col);
            if (inside < run) { /* at the picture's edge */
                memset(col, 0, before * sizeof *col);
                memset(col + before + inside, 0, (run - before - inside) * sizeof *col);
            }
        }
    }
}

/* The opposite: adds each patch's floats to the pixels that they came from. */
static void add_back(const conv_shape *s, const float *col, size_t first, size_t count, float *dx) {
    size_t channels = (size_t)s->in.channels;
    size_t row_floats = (size_t)s->in.width * channels;
    size_t run = (size_t)s->kernel * channels;
    for (size_t i = first; i < first + count; i++) {
        float *image = dx + i / s->pixels * (size_t)s->in.height * row_floats;
        int y0 = (int)(i % s->pixels) / s->out.width * s->stride - s->pad;
        int x0 = (int)(i % s->pixels) % s->out.width * s->stride - s->pad;
        int from, to;
        clip(x0, s->kernel, s->in.width, &from, &to);
        size_t inside = (size_t)(to - from) * channels;
        for (int ky = 0; ky < s->kernel; ky++, col += run) {
            if (y0 + ky < 0 || y0 + ky >= s->in.height || inside == 0) {
                continue;
            }
            float *row = image + (size_t)(y0 + ky) * row_floats +
                         (ptrdiff_t)(x0 + from) * (ptrdiff_t)channels;
            const float *part = col + (size_t)from * channels;
            for (size_t j = 0; j < inside; j++) {
                row[j] += part[j];
            }
        }
    }
}

/* y (rows, filters) = col (rows, depth) W' */
static void multiply_forward(const conv_shape *s, const float *col, const float *weights,
                             size_t rows, float *y) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)s->filters, (int)s->depth,
                1, col, (int)s->depth, weights, (int)s->depth, 0, y, (int)s->filters);
}

/* A forward task is one strip of patches out of all patches of the batch. */
static void forward_task(void *context, size_t task, int thread) {
    const conv_job *job = context;
    const conv_shape *s = &job->s;
    const cpu_call *call = job->call;
    size_t first = task * s->strip;
    size_t rows = cpu_min(s->strip, call->batch * s->pixels - first);
    const float *col = call->x[0] + first * s->depth;
    if (!s->direct) {
        float *mine = job->scratch + (size_t)thread * s->strip * s->depth;
        lay_out(s, call->x[0], first, rows, mine);
        col = mine;
    }
    multiply_forward(s, col, call->param[0], rows, call->y + first * s->filters);
}

static void conv_forward(const cpu_call *call) {
    conv_job job = job_of(call);
    stk_pool_run(call->pool, cpu_tasks(call->batch * job.s.pixels, job.s.strip), forward_task,
                 &job);
}

/* dcol (rows, depth) = dy (rows, filters) W, added to what is there when beta is 1. */
static void multiply_data(const conv_shape *s, const float *dy, const float *weights, size_t rows,
                          float beta, float *dcol) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, (int)s->depth,
                (int)s->filters, 1, dy, (int)s->filters, weights, (int)s->depth, beta, dcol,
                (int)s->depth);
}

/*
 * A data-gradient task is a group of whole images: patches of neighbouring rows overlap, so one
 * image must not be shared.
 */
static void data_task(void *context, size_t task, int thread) {
    const conv_job *job = context;
    const conv_shape *s = &job->s;
    const cpu_call *call = job->call;
    size_t first_image = task * s->group;
    size_t images = cpu_min(s->group, call->batch - first_image);
    size_t image_floats = stk_shape_count(s->in);
    float *dx = call->dx[0] + first_image * image_floats;
    const float *dy = call->dy + first_image * s->pixels * s->filters;
    size_t rows = images * s->pixels;
    if (s->direct) {
        multiply_data(s, dy, call->param[0], rows, call->accumulate[0] ? 1 : 0, dx);
        return;
    }
    if (!call->accumulate[0]) {
        memset(dx, 0, images * image_floats * sizeof *dx);
    }
    float *mine = job->scratch + (size_t)thread * s->strip * s->depth;
    for (size_t first = 0; first < rows; first += s->strip) {
        size_t count = cpu_min(s->strip, rows - first);
        multiply_data(s, dy + first * s->filters, call->param[0], count, 0, mine);
        add_back(s, mine, first, count, dx);
    }
}

/* A weight-gradient task sums dW over its part of the batch. */
static void weight_task(void *context, size_t task, int thread) {
    const conv_job *job = context;
    const conv_shape *s = &job->s;
    const cpu_call *call = job->call;
    size_t from = call->batch * task / job->part_count;
    size_t to = call->batch * (task + 1) / job->part_count;
    size_t rows = (to - from) * s->pixels;
    const float *x = call->x[0] + from * stk_shape_count(s->in);
    const float *dy = call->dy + from * s->pixels * s->filters;
    float *part = job->parts + task * s->filters * s->depth;
    float *mine = job->scratch + (size_t)thread * s->strip * s->depth;
    for (size_t first = 0; first < rows; first += s->strip) {
        size_t count = cpu_min(s->strip, rows - first);
        const float *col = x + first * s->depth;
        if (!s->direct) {
            lay_out(s, x, first, count, mine);
            col = mine;
        }
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)s->filters, (int)s->depth,
                    (int)count, 1, dy + first * s->filters, (int)s->filters, col, (int)s->depth,
                    first > 0 ? 1 : 0, part, (int)s->depth);
    }
}

/* Adds the parts, always in the same order, to the gradient. */
static void sum_task(void *context, size_t task, int thread) {
    (void)thread;
    const conv_job *job = context;
    size_t count = job->s.filters * job->s.depth;
    size_t from = task * CPU_GRAIN;
    size_t to = cpu_min(from + CPU_GRAIN, count);
    float *grad = job->call->param_grad[0];
    for (size_t p = 0; p < job->part_count; p++) {
        const float *part = job->parts + p * count;
        for (size_t i = from; i < to; i++) {
            grad[i] += part[i];
        }
    }
}

static void conv_backward(const cpu_call *call) {
    conv_job job = job_of(call);
    job.part_count = part_count(&job.s, call->batch);
    if (call->dx[0] != NULL) {
        stk_pool_run(call->pool, cpu_tasks(call->batch, job.s.group), data_task, &job);
    }
    stk_pool_run(call->pool, job.part_count, weight_task, &job);
    stk_pool_run(call->pool, cpu_tasks(job.s.filters * job.s.depth, CPU_GRAIN), sum_task, &job);
}

const cpu_kernel stk_cpu_conv = {conv_needs, conv_forward, conv_backward};
