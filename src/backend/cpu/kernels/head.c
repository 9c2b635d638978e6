/* head.c - the classifier and the loss: a few rows of numbers, done on one thread. */
#include "backend/cpu/kernels/kernels.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

/* ---- linear: y (N, O) = x (N, I) W' + b ---- */

static void linear_forward(const cpu_call *call) {
    int inputs = (int)stk_shape_count(call->in);
    int outputs = call->out.channels;
    for (size_t i = 0; i < call->batch; i++) {
        memcpy(call->y + i * (size_t)outputs, call->param[1], (size_t)outputs * sizeof *call->y);
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)call->batch, outputs, inputs, 1,
                call->x[0], inputs, call->param[0], inputs, 1, call->y, outputs);
}

static void linear_backward(const cpu_call *call) {
    int inputs = (int)stk_shape_count(call->in);
    int outputs = call->out.channels;
    if (call->dx[0] != NULL) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)call->batch, inputs, outputs, 1,
                    call->dy, outputs, call->param[0], inputs, call->accumulate[0] ? 1 : 0,
                    call->dx[0], inputs);
    }
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, outputs, inputs, (int)call->batch, 1,
                call->dy, outputs, call->x[0], inputs, 1, call->param_grad[0], inputs);
    for (size_t i = 0; i < call->batch; i++) {
        for (int o = 0; o < outputs; o++) {
            call->param_grad[1][o] += call->dy[i * (size_t)outputs + (size_t)o];
        }
    }
}

const cpu_kernel stk_cpu_linear = {.forward = linear_forward, .backward = linear_backward};

/* ---- loss: softmax cross-entropy, the mean over the batch ---- */

/* The target of class c for sample i: smoothed, and shared with the partner when mixed. */
static float target(const cpu_call *call, size_t i, int c) {
    const stk_step_input *step = call->step;
    float keep = step->mix.kind == STK_MIX_NONE ? 1 : step->mix.keep;
    float base = step->label_smoothing / (float)call->out.channels;
    float hard =
        (c == step->labels[i] ? keep : 0) + (c == step->labels[call->batch - 1 - i] ? 1 - keep : 0);
    return base + (1 - step->label_smoothing) * hard;
}

/* The label that most of a mixed picture belongs to: what a right answer would be. */
static int main_label(const cpu_call *call, size_t i) {
    const stk_step_input *step = call->step;
    bool own = step->mix.kind == STK_MIX_NONE || step->mix.keep >= 0.5f;
    return step->labels[own ? i : call->batch - 1 - i];
}

/* y holds the probabilities. */
static void loss_forward(const cpu_call *call) {
    int classes = call->out.channels;
    for (size_t i = 0; i < call->batch; i++) {
        const float *x = call->x[0] + i * (size_t)classes;
        float *p = call->y + i * (size_t)classes;
        int best = 0;
        for (int c = 1; c < classes; c++) {
            best = x[c] > x[best] ? c : best;
        }
        double sum = 1; /* of exp(x - best), the best's own to begin with */
        for (int c = 0; c < classes; c++) {
            sum += c != best ? exp((double)x[c] - x[best]) : 0;
        }
        double log_sum = log(sum) + x[best];
        for (int c = 0; c < classes; c++) {
            double log_p = x[c] - log_sum;
            p[c] = (float)exp(log_p);
            float t = target(call, i, c);
            call->result->loss_sum -= t != 0 ? t * log_p : 0;
        }
        call->result->correct += best == main_label(call, i);
    }
}

static void loss_backward(const cpu_call *call) {
    int classes = call->out.channels;
    float share = 1.0f / (float)call->batch;
    for (size_t i = 0; i < call->batch; i++) {
        const float *p = call->y + i * (size_t)classes;
        float *dx = call->dx[0] + i * (size_t)classes;
        for (int c = 0; c < classes; c++) {
            dx[c] = (p[c] - target(call, i, c)) * share;
        }
    }
}

const cpu_kernel stk_cpu_loss = {.forward = loss_forward, .backward = loss_backward};
