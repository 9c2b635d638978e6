/*
 * loss.c - losses and their gradients. A task has one sample; the samples' losses are added in
 * order, so that the sum has the same bits on any number of threads.
 */
#include "backend/cpu/kernels/kernels.h"

#include <math.h>

#include "engine/steps.h"

/* What the forward of one sample comes to. */
typedef struct loss_row {
    double log_sum; /* softmax: log of the sum of all exp(logit) */
    double loss;    /* other losses: of the sample */
    int best;       /* softmax: the class with the largest logit */
    bool right;     /* other losses: see stk_step_output.correct */
} loss_row;

static loss_row *rows_of(const cpu_call *call) {
    return call->workspace;
}

static stk_piece_needs loss_needs(const cpu_ask *ask) {
    return (stk_piece_needs){.workspace_bytes = ask->batch * sizeof(loss_row)};
}

/* One task per sample. Few numbers are done here: threads would take longer to begin. */
static void run_samples(const cpu_call *call, stk_pool_task *task) {
    cpu_call copy = *call;
    if (call->batch * (size_t)call->out.channels >= CPU_GRAIN) {
        stk_pool_run(call->pool, call->batch, task, &copy);
        return;
    }
    for (size_t i = 0; i < call->batch; i++) {
        task(&copy, i, 0);
    }
}

/* How much of its own picture a sample keeps. */
static float keep_of(const cpu_call *call) {
    return call->step->mix.kind == STK_MIX_NONE ? 1 : call->step->mix.keep;
}

/* The sample that most of a mixed picture belongs to. */
static size_t main_sample(const cpu_call *call, size_t i) {
    return keep_of(call) >= 0.5f ? i : call->batch - 1 - i;
}

/* ---- softmax cross-entropy ---- */

/* The target of class c for sample i: smoothed, and shared with the partner when mixed. */
static float class_target(const cpu_call *call, size_t i, int c) {
    const stk_step_input *step = call->step;
    float keep = keep_of(call);
    float base = step->label_smoothing / (float)call->out.channels;
    float hard =
        (c == step->labels[i] ? keep : 0) + (c == step->labels[call->batch - 1 - i] ? 1 - keep : 0);
    return base + (1 - step->label_smoothing) * hard;
}

/* The class with the largest logit, the first of equal ones. */
static int best_class(const float *x, int classes) {
    int best = 0;
    for (int c = 1; c < classes; c++) {
        best = x[c] > x[best] ? c : best;
    }
    return best;
}

/* y holds the probabilities. */
static void softmax_task(void *context, size_t i, int thread) {
    (void)thread;
    const cpu_call *call = context;
    int classes = call->out.channels;
    const float *x = call->x[0] + i * (size_t)classes;
    float *p = call->y + i * (size_t)classes;
    int best = best_class(x, classes);
    double sum = 1; /* of exp(x - best), the best's own to begin with */
    for (int c = 0; c < classes; c++) {
        sum += c != best ? exp((double)x[c] - x[best]) : 0;
    }
    double log_sum = log(sum) + x[best];
    for (int c = 0; c < classes; c++) {
        p[c] = (float)exp(x[c] - log_sum);
    }
    rows_of(call)[i] = (loss_row){.log_sum = log_sum, .best = best};
}

/* Subtracts the share of class c in the loss of sample i from *sum. */
static void add_class(const cpu_call *call, size_t i, int c, double *sum) {
    double log_p =
        call->x[0][i * (size_t)call->out.channels + (size_t)c] - rows_of(call)[i].log_sum;
    float t = class_target(call, i, c);
    *sum -= t != 0 ? t * log_p : 0;
}

static void softmax_forward(const cpu_call *call) {
    const stk_step_input *step = call->step;
    run_samples(call, softmax_task);
    double sum = call->result->loss_sum;
    for (size_t i = 0; i < call->batch; i++) {
        int own = step->labels[i];
        int other = step->labels[call->batch - 1 - i];
        /* Without smoothing only these two have a target above 0. */
        int first = own < other ? own : other;
        int last = own < other ? other : own;
        int between = last - first;
        bool smooth = step->label_smoothing != 0;
        int end = smooth ? call->out.channels : last + 1;
        for (int c = smooth ? 0 : first; c < end; c += smooth || between == 0 ? 1 : between) {
            add_class(call, i, c, &sum);
        }
        call->result->correct += rows_of(call)[i].best == step->labels[main_sample(call, i)];
    }
    call->result->loss_sum = sum;
}

static void softmax_back_task(void *context, size_t i, int thread) {
    (void)thread;
    const cpu_call *call = context;
    int classes = call->out.channels;
    float share = 1.0f / (float)call->batch;
    const float *p = call->y + i * (size_t)classes;
    float *dx = call->dx[0] + i * (size_t)classes;
    for (int c = 0; c < classes; c++) {
        dx[c] = (p[c] - class_target(call, i, c)) * share;
    }
}

/* ---- squared error of a place on a scale ---- */

/* y holds the slopes. */
static void place_task(void *context, size_t i, int thread) {
    (void)thread;
    const cpu_call *call = context;
    const int *labels = call->step->labels;
    int classes = call->out.channels;
    stk_steps steps = stk_steps_of(classes);
    const float *x = call->x[0] + i * (size_t)classes;
    float *slope = call->y + i * (size_t)classes;
    double keep = (double)keep_of(call);
    double step = keep * labels[i] + (1 - keep) * labels[call->batch - 1 - i];
    double place = ((double)x[classes - 1] - x[0]) / steps.span;
    double off = place - (step - steps.middle) / steps.deviation;
    for (int c = 1; c < classes - 1; c++) {
        slope[c] = 0;
    }
    slope[classes - 1] = (float)(off / steps.span);
    slope[0] = -slope[classes - 1];
    bool right = best_class(x, classes) == labels[main_sample(call, i)];
    rows_of(call)[i] = (loss_row){.loss = 0.5 * off * off, .right = right};
}

/* ---- losses that add up over the outputs ---- */

/* The loss of one output, and its derivative. */
typedef struct loss_point {
    double loss;
    double slope;
} loss_point;

/* The part of a target of 1: -(1 - p)^gamma * log p, where p is the sigmoid of x. */
static loss_point positive_part(double x, double gamma) {
    double small = exp(-fabs(x));
    double p = (x >= 0 ? 1 : small) / (1 + small);
    double q = (x >= 0 ? small : 1) / (1 + small);
    double minus_log = fmax(-x, 0) + log1p(small);
    double factor = gamma > 0 ? pow(q, gamma) : 1;
    return (loss_point){factor * minus_log, -factor * (gamma * p * minus_log + q)};
}

/* The part of a target of 0: -m^gamma * log(1 - m), where m = max(p - margin, 0). */
static loss_point negative_part(double x, double gamma, double margin) {
    if (margin <= 0) { /* the same as a target of 1 for -x */
        loss_point turned = positive_part(-x, gamma);
        return (loss_point){turned.loss, -turned.slope};
    }
    double small = exp(-fabs(x));
    double p = (x >= 0 ? 1 : small) / (1 + small);
    double q = (x >= 0 ? small : 1) / (1 + small);
    double m = p - margin;
    if (m <= 0) {
        return (loss_point){0, 0};
    }
    double factor = gamma > 0 ? pow(m, gamma) : 1;
    double minus_log = -log1p(-m);
    return (loss_point){factor * minus_log, factor * (gamma * minus_log / m + 1 / (1 - m)) * p * q};
}

static loss_point sigmoid_point(const stk_loss *loss, double x, double t, double weight) {
    loss_point sum = {0, 0};
    if (t != 0) {
        loss_point one = positive_part(x, (double)loss->gamma_pos);
        sum = (loss_point){weight * t * one.loss, weight * t * one.slope};
    }
    if (t != 1) {
        loss_point none = negative_part(x, (double)loss->gamma_neg, (double)loss->margin);
        sum.loss += (1 - t) * none.loss;
        sum.slope += (1 - t) * none.slope;
    }
    return sum;
}

static loss_point regression_point(const stk_loss *loss, double x, double t) {
    double d = x - t;
    double delta = (double)loss->huber_delta;
    double sign = d > 0 ? 1 : d < 0 ? -1 : d; /* NaN stays */
    bool squared =
        loss->kind == STK_LOSS_SQUARED || (loss->kind == STK_LOSS_HUBER && fabs(d) <= delta);
    if (squared) {
        return (loss_point){0.5 * d * d, d};
    }
    if (loss->kind == STK_LOSS_ABSOLUTE) {
        return (loss_point){fabs(d), sign};
    }
    return (loss_point){delta * (fabs(d) - 0.5 * delta), delta * sign};
}

/* The target of output o for sample i, mixed and smoothed; NaN: it is not known. */
static float output_target(const cpu_call *call, size_t i, size_t o) {
    const stk_step_input *step = call->step;
    size_t outputs = (size_t)call->out.channels;
    float keep = keep_of(call);
    float own = step->targets[i * outputs + o];
    float other = step->targets[(call->batch - 1 - i) * outputs + o];
    float t = keep >= 1 ? own : keep <= 0 ? other : keep * own + (1 - keep) * other;
    float smoothing = call->graph->loss.kind == STK_LOSS_SIGMOID ? step->label_smoothing : 0;
    return smoothing != 0 ? t * (1 - smoothing) + smoothing / 2 : t;
}

/* y holds the slopes. */
static void outputs_task(void *context, size_t i, int thread) {
    (void)thread;
    const cpu_call *call = context;
    const stk_loss *loss = &call->graph->loss;
    size_t outputs = (size_t)call->out.channels;
    const float *x = call->x[0] + i * outputs;
    const float *truth = call->step->targets + main_sample(call, i) * outputs;
    float *slope = call->y + i * outputs;
    loss_row row = {.right = loss->kind == STK_LOSS_SIGMOID};
    for (size_t o = 0; o < outputs; o++) {
        float t = output_target(call, i, o);
        loss_point point = {0, 0};
        if (!isnan(t) && loss->kind == STK_LOSS_SIGMOID) {
            double weight = loss->positive_weights != NULL ? (double)loss->positive_weights[o] : 1;
            point = sigmoid_point(loss, (double)x[o], (double)t, weight);
        } else if (!isnan(t)) {
            point = regression_point(loss, (double)x[o], (double)t);
        }
        row.loss += point.loss;
        slope[o] = (float)point.slope;
        bool good = isnan(truth[o]) || (truth[o] > 0.5f ? x[o] > 0 : x[o] <= 0);
        row.right = row.right && good;
    }
    rows_of(call)[i] = row;
}

/* ---- all but softmax: y holds the slopes ---- */

static void slopes_forward(const cpu_call *call) {
    run_samples(call, call->graph->loss.kind == STK_LOSS_STEPS ? place_task : outputs_task);
    for (size_t i = 0; i < call->batch; i++) {
        call->result->loss_sum += rows_of(call)[i].loss;
        call->result->correct += rows_of(call)[i].right;
    }
}

static void slopes_back_task(void *context, size_t i, int thread) {
    (void)thread;
    const cpu_call *call = context;
    size_t outputs = (size_t)call->out.channels;
    float share = 1.0f / (float)call->batch;
    const float *slope = call->y + i * outputs;
    float *dx = call->dx[0] + i * outputs;
    for (size_t o = 0; o < outputs; o++) {
        dx[o] = slope[o] * share;
    }
}

/* ---- any ---- */

static void loss_forward(const cpu_call *call) {
    if (call->graph->loss.kind == STK_LOSS_SOFTMAX) {
        softmax_forward(call);
    } else {
        slopes_forward(call);
    }
}

static void loss_backward(const cpu_call *call) {
    bool softmax = call->graph->loss.kind == STK_LOSS_SOFTMAX;
    run_samples(call, softmax ? softmax_back_task : slopes_back_task);
}

const cpu_kernel stk_cpu_loss = {
    .needs = loss_needs, .forward = loss_forward, .backward = loss_backward};
