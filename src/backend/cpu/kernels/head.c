/* head.c - the classifier: a few rows of numbers, done on one thread. */
#include "backend/cpu/kernels/kernels.h"

#include <cblas.h>
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
