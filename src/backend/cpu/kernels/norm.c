/*
 * norm.c - batch norm.
 *
 * Statistics are taken in two passes, the mean first: E[x^2] - E[x]^2 loses all digits when the
 * mean is large. Each task sums STRIP rows of pixels in float32; the sums of the strips are added
 * in float64 in a fixed order.
 */
#include "backend/cpu/kernels/kernels.h"

#include <math.h>
#include <string.h>

#define STRIP ((size_t)512)

typedef struct norm_args {
    const cpu_call *call;
    size_t rows; /* pixels of the whole batch */
    size_t channels;
    float *mean;      /* channels; saved */
    float *invstd;    /* channels; saved */
    float *partial;   /* (strips, 2, channels) */
    float *a, *b, *c; /* channels: coefficients of the element-wise pass; after partial */
} norm_args;

static size_t strips_of(size_t rows) {
    return cpu_tasks(rows, STRIP);
}

static stk_piece_needs norm_needs(const cpu_ask *ask) {
    stk_shape shape = ask->graph->values[ask->node->output].shape;
    size_t channels = (size_t)shape.channels;
    size_t rows = ask->batch * (size_t)shape.height * (size_t)shape.width;
    return (stk_piece_needs){.saved_bytes = ask->piece->training ? 2 * channels * sizeof(float) : 0,
                             .workspace_bytes =
                                 (2 * strips_of(rows) + 3) * channels * sizeof(float)};
}

static norm_args job_of(const cpu_call *call) {
    norm_args args = {.call = call,
                      .rows = call->batch * (size_t)call->out.height * (size_t)call->out.width,
                      .channels = (size_t)call->out.channels};
    args.mean = call->saved;
    args.invstd = call->saved != NULL ? args.mean + args.channels : NULL;
    args.partial = call->workspace;
    args.a = args.partial + 2 * strips_of(args.rows) * args.channels;
    args.b = args.a + args.channels;
    args.c = args.b + args.channels;
    return args;
}

static void sum_task(void *context, size_t task, int thread) {
    (void)thread;
    const norm_args *args = context;
    size_t channels = args->channels;
    float *sum = args->partial + task * 2 * channels;
    memset(sum, 0, channels * sizeof *sum);
    size_t end = cpu_min((task + 1) * STRIP, args->rows);
    for (size_t r = task * STRIP; r < end; r++) {
        const float *x = args->call->x[0] + r * channels;
        for (size_t c = 0; c < channels; c++) {
            sum[c] += x[c];
        }
    }
}

static void square_task(void *context, size_t task, int thread) {
    (void)thread;
    const norm_args *args = context;
    size_t channels = args->channels;
    float *sum = args->partial + task * 2 * channels;
    memset(sum, 0, channels * sizeof *sum);
    size_t end = cpu_min((task + 1) * STRIP, args->rows);
    for (size_t r = task * STRIP; r < end; r++) {
        const float *x = args->call->x[0] + r * channels;
        for (size_t c = 0; c < channels; c++) {
            float d = x[c] - args->mean[c];
            sum[c] += d * d;
        }
    }
}

/* The total of one channel over the strips; which is 0 or 1 of the two sums a strip holds. */
static double total(const norm_args *args, size_t channel, size_t which) {
    double sum = 0;
    size_t strips = strips_of(args->rows);
    for (size_t s = 0; s < strips; s++) {
        sum += args->partial[(2 * s + which) * args->channels + channel];
    }
    return sum;
}

/* y = a x + b */
static void apply_task(void *context, size_t task, int thread) {
    (void)thread;
    const norm_args *args = context;
    size_t channels = args->channels;
    size_t end = cpu_min((task + 1) * STRIP, args->rows);
    for (size_t r = task * STRIP; r < end; r++) {
        const float *x = args->call->x[0] + r * channels;
        float *y = args->call->y + r * channels;
        for (size_t c = 0; c < channels; c++) {
            y[c] = args->a[c] * x[c] + args->b[c];
        }
    }
}

/* The batch's mean and deviation; also moves the running statistics. */
static void batch_statistics(norm_args *args) {
    const cpu_call *call = args->call;
    float *running_mean = call->param[2];
    float *running_var = call->param[3];
    double rows = (double)args->rows;
    stk_pool_run(call->pool, strips_of(args->rows), sum_task, args);
    for (size_t c = 0; c < args->channels; c++) {
        args->mean[c] = (float)(total(args, c, 0) / rows);
    }
    stk_pool_run(call->pool, strips_of(args->rows), square_task, args);
    for (size_t c = 0; c < args->channels; c++) {
        double squares = total(args, c, 0);
        double unbiased = rows > 1 ? squares / (rows - 1) : squares;
        args->invstd[c] = (float)(1.0 / sqrt(squares / rows + (double)call->node->epsilon));
        running_mean[c] += (float)(CPU_RUNNING * (args->mean[c] - (double)running_mean[c]));
        running_var[c] += (float)(CPU_RUNNING * (unbiased - (double)running_var[c]));
    }
}

static void norm_forward(const cpu_call *call) {
    norm_args args = job_of(call);
    const float *weight = call->param[0];
    const float *bias = call->param[1];
    if (call->train && call->kept_stats) {
        cpu_kept_statistics(call, args.channels, args.mean, args.invstd);
    } else if (call->train) {
        batch_statistics(&args);
    }
    for (size_t c = 0; c < args.channels; c++) {
        double mean = call->train ? args.mean[c] : call->param[2][c];
        double invstd = call->train ? args.invstd[c]
                                    : 1.0 / sqrt(call->param[3][c] + (double)call->node->epsilon);
        args.a[c] = (float)(weight[c] * invstd);
        args.b[c] = (float)(bias[c] - mean * weight[c] * invstd);
    }
    stk_pool_run(call->pool, strips_of(args.rows), apply_task, &args);
}

/* Sums of dy and of dy * xhat. */
static void grad_sum_task(void *context, size_t task, int thread) {
    (void)thread;
    const norm_args *args = context;
    size_t channels = args->channels;
    float *sum = args->partial + task * 2 * channels;
    float *product = sum + channels;
    memset(sum, 0, 2 * channels * sizeof *sum);
    size_t end = cpu_min((task + 1) * STRIP, args->rows);
    for (size_t r = task * STRIP; r < end; r++) {
        const float *x = args->call->x[0] + r * channels;
        const float *dy = args->call->dy + r * channels;
        for (size_t c = 0; c < channels; c++) {
            sum[c] += dy[c];
            product[c] += dy[c] * ((x[c] - args->mean[c]) * args->invstd[c]);
        }
    }
}

/* dx = a dy + b x + c */
static void grad_task(void *context, size_t task, int thread) {
    (void)thread;
    const norm_args *args = context;
    size_t channels = args->channels;
    bool accumulate = args->call->accumulate[0];
    size_t end = cpu_min((task + 1) * STRIP, args->rows);
    for (size_t r = task * STRIP; r < end; r++) {
        const float *x = args->call->x[0] + r * channels;
        const float *dy = args->call->dy + r * channels;
        float *dx = args->call->dx[0] + r * channels;
        for (size_t c = 0; c < channels; c++) {
            float g = args->a[c] * dy[c] + args->b[c] * x[c] + args->c[c];
            dx[c] = accumulate ? dx[c] + g : g;
        }
    }
}

static void norm_backward(const cpu_call *call) {
    norm_args args = job_of(call);
    double rows = (double)args.rows;
    stk_pool_run(call->pool, strips_of(args.rows), grad_sum_task, &args);
    for (size_t c = 0; c < args.channels; c++) {
        double sum = total(&args, c, 0);
        double product = total(&args, c, 1);
        call->param_grad[0][c] += (float)product;
        call->param_grad[1][c] += (float)sum;
        /* dx = w s (dy - mean(dy) - xhat mean(dy xhat)), xhat = (x - mean) s; w s dy where mean
         * and s do not depend on x */
        double ws = (double)call->param[0][c] * args.invstd[c];
        double slope = call->kept_stats ? 0 : ws * args.invstd[c] * product / rows;
        double lower = call->kept_stats ? 0 : ws * sum / rows;
        args.a[c] = (float)ws;
        args.b[c] = (float)-slope;
        args.c[c] = (float)(slope * args.mean[c] - lower);
    }
    if (call->dx[0] != NULL) {
        stk_pool_run(call->pool, strips_of(args.rows), grad_task, &args);
    }
}

const cpu_kernel stk_cpu_batch_norm = {
    .needs = norm_needs, .forward = norm_forward, .backward = norm_backward};
