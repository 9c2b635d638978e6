/*
 * cpu_depthwise.c - one filter per channel.
 *
 * In NHWC the channels of a pixel lie together, so the innermost loops go over channels; the
 * weights are laid out as (taps, C) for that. The gradient of x is gathered: each pixel of x is
 * written once. The gradient of the weights is summed per sample and then over samples, in order.
 */
#include "backend/cpu/cpu_kernels.h"
#include "backend/cpu/cpu_vector.h"

#include <string.h>

typedef struct depthwise_job {
    const cpu_call *call;
    float *weights; /* (taps, C) */
    float *parts;   /* (samples, taps, C) */
    size_t channels;
    size_t taps;
} depthwise_job;

static stk_piece_needs needs(const cpu_ask *ask) {
    size_t count = ask->graph->params[ask->node->params[0]].count;
    size_t parts = ask->piece->live ? ask->batch : 0;
    return (stk_piece_needs){.workspace_bytes = (1 + parts) * count * sizeof(float)};
}

/* Lays out the weights, too. */
static depthwise_job job_of(const cpu_call *call) {
    depthwise_job job = {.call = call,
                         .weights = call->workspace,
                         .channels = (size_t)call->out.channels,
                         .taps = (size_t)(call->node->kernel * call->node->kernel)};
    job.parts = job.weights + job.taps * job.channels;
    for (size_t t = 0; t < job.taps; t++) {
        for (size_t c = 0; c < job.channels; c++) {
            job.weights[t * job.channels + c] = call->param[0][c * job.taps + t];
        }
    }
    return job;
}

/* sum += a b, or = when it is the first */
CPU_BODY void multiply_body(const float *a, const float *b, float *sum, size_t count, bool first) {
    if (first) {
        CPU_EACH for (size_t i = 0; i < count; i++) {
            sum[i] = a[i] * b[i];
        }
    } else {
        CPU_EACH for (size_t i = 0; i < count; i++) {
            sum[i] += a[i] * b[i];
        }
    }
}

CPU_VECTOR(multiply, (const float *a, const float *b, float *sum, size_t count, bool first),
           (a, b, sum, count, first))

/* Where pixel (y, x) of a sample begins. */
static size_t pixel_at(stk_shape shape, size_t sample, int y, int x) {
    return ((sample * (size_t)shape.height + (size_t)y) * (size_t)shape.width + (size_t)x) *
           (size_t)shape.channels;
}

static bool inside(stk_shape shape, int y, int x) {
    return y >= 0 && y < shape.height && x >= 0 && x < shape.width;
}

/* A task is one row of the output. */
static void forward_task(void *context, size_t task, int thread) {
    (void)thread;
    const depthwise_job *job = context;
    const cpu_call *call = job->call;
    int kernel = call->node->kernel;
    size_t sample = task / (size_t)call->out.height;
    int oy = (int)(task % (size_t)call->out.height);
    float *y = call->y + pixel_at(call->out, sample, oy, 0);
    for (int ox = 0; ox < call->out.width; ox++, y += job->channels) {
        bool first = true;
        for (int t = 0; t < kernel * kernel; t++) {
            int iy = oy * call->node->stride - call->node->pad + t / kernel;
            int ix = ox * call->node->stride - call->node->pad + t % kernel;
            if (inside(call->in, iy, ix)) {
                multiply(call->x[0] + pixel_at(call->in, sample, iy, ix),
                         job->weights + (size_t)t * job->channels, y, job->channels, first);
                first = false;
            }
        }
        if (first) { /* a window that lies wholly in the padding */
            memset(y, 0, job->channels * sizeof *y);
        }
    }
}

/* A task is one row of x. */
static void data_task(void *context, size_t task, int thread) {
    (void)thread;
    const depthwise_job *job = context;
    const cpu_call *call = job->call;
    int kernel = call->node->kernel;
    int stride = call->node->stride;
    size_t sample = task / (size_t)call->in.height;
    int iy = (int)(task % (size_t)call->in.height);
    float *dx = call->dx[0] + pixel_at(call->in, sample, iy, 0);
    for (int ix = 0; ix < call->in.width; ix++, dx += job->channels) {
        bool first = !call->accumulate[0];
        for (int t = 0; t < kernel * kernel; t++) {
            int oy = iy + call->node->pad - t / kernel;
            int ox = ix + call->node->pad - t % kernel;
            if (oy % stride == 0 && ox % stride == 0 &&
                inside(call->out, oy / stride, ox / stride)) {
                multiply(call->dy + pixel_at(call->out, sample, oy / stride, ox / stride),
                         job->weights + (size_t)t * job->channels, dx, job->channels, first);
                first = false;
            }
        }
        if (first) {
            memset(dx, 0, job->channels * sizeof *dx);
        }
    }
}

/* A task is one sample. */
static void weight_task(void *context, size_t task, int thread) {
    (void)thread;
    const depthwise_job *job = context;
    const cpu_call *call = job->call;
    int kernel = call->node->kernel;
    float *part = job->parts + task * job->taps * job->channels;
    memset(part, 0, job->taps * job->channels * sizeof *part);
    for (int oy = 0; oy < call->out.height; oy++) {
        for (int ox = 0; ox < call->out.width; ox++) {
            const float *dy = call->dy + pixel_at(call->out, task, oy, ox);
            for (int t = 0; t < kernel * kernel; t++) {
                int iy = oy * call->node->stride - call->node->pad + t / kernel;
                int ix = ox * call->node->stride - call->node->pad + t % kernel;
                if (inside(call->in, iy, ix)) {
                    multiply(call->x[0] + pixel_at(call->in, task, iy, ix), dy,
                             part + (size_t)t * job->channels, job->channels, false);
                }
            }
        }
    }
}

static void forward(const cpu_call *call) {
    depthwise_job job = job_of(call);
    stk_pool_run(call->pool, call->batch * (size_t)call->out.height, forward_task, &job);
}

static void backward(const cpu_call *call) {
    depthwise_job job = job_of(call);
    if (call->dx[0] != NULL) {
        stk_pool_run(call->pool, call->batch * (size_t)call->in.height, data_task, &job);
    }
    stk_pool_run(call->pool, call->batch, weight_task, &job);
    for (size_t t = 0; t < job.taps; t++) {
        for (size_t c = 0; c < job.channels; c++) {
            float sum = 0;
            for (size_t s = 0; s < call->batch; s++) {
                sum += job.parts[(s * job.taps + t) * job.channels + c];
            }
            call->param_grad[0][c * job.taps + t] += sum;
        }
    }
}

const cpu_kernel stk_cpu_depthwise = {needs, forward, backward};
