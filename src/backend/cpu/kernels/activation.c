/*
 * activation.c - ReLU, ReLU6, SiLU and the sigmoid. Where the traits of the operation allow it,
 * x and y, and dx and dy, may be the same memory.
 */
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector.h"

/* Over `count` elements. `kept` is what backward reads: the output, or SiLU's input. */
typedef struct activation {
    void (*forward)(const float *x, float *y, size_t count);
    void (*backward)(const float *kept, const float *dy, float *dx, size_t count, bool accumulate);
} activation;

typedef struct activation_args {
    const cpu_call *call;
    const activation *kind;
    const float *kept;
} activation_args;

#define FORWARD(name)                                                       \
    CPU_BODY void name##_forward_body(const float *x, float *y, size_t n) { \
        CPU_EACH for (size_t i = 0; i < n; i++) {                           \
            y[i] = name(x[i]);                                              \
        }                                                                   \
    }                                                                       \
    CPU_VECTOR(name##_forward, (const float *x, float *y, size_t n), (x, y, n))

#define BACKWARD(name)                                                                          \
    CPU_BODY void name##_backward_body(const float *kept, const float *dy, float *dx, size_t n, \
                                       bool accumulate) {                                       \
        if (accumulate) {                                                                       \
            CPU_EACH for (size_t i = 0; i < n; i++) {                                           \
                dx[i] += name##_grad(kept[i], dy[i]);                                           \
            }                                                                                   \
        } else {                                                                                \
            CPU_EACH for (size_t i = 0; i < n; i++) {                                           \
                dx[i] = name##_grad(kept[i], dy[i]);                                            \
            }                                                                                   \
        }                                                                                       \
    }                                                                                           \
    CPU_VECTOR(name##_backward,                                                                 \
               (const float *kept, const float *dy, float *dx, size_t n, bool accumulate),      \
               (kept, dy, dx, n, accumulate))

/* NaN stays NaN: a training that diverged must show. */
CPU_BODY float relu(float x) {
    return x < 0 ? 0 : x;
}

CPU_BODY float relu_grad(float y, float dy) {
    return y > 0 ? dy : 0;
}

CPU_BODY float relu6(float x) {
    float lower = x < 0 ? 0 : x;
    return lower > 6 ? 6 : lower;
}

CPU_BODY float relu6_grad(float y, float dy) {
    float above = y > 0 ? dy : 0;
    return y < 6 ? above : 0;
}

CPU_BODY float silu(float x) {
    return x * cpu_sigmoid(x);
}

CPU_BODY float silu_grad(float x, float dy) {
    float s = cpu_sigmoid(x);
    return dy * (s * (1 + x * (1 - s)));
}

CPU_BODY float sigmoid(float x) {
    return cpu_sigmoid(x) + (x - x); /* x - x is 0, or NaN where x is NaN or infinite */
}

CPU_BODY float sigmoid_grad(float y, float dy) {
    return dy * (y * (1 - y));
}

FORWARD(relu)
BACKWARD(relu)
FORWARD(relu6)
BACKWARD(relu6)
FORWARD(silu)
BACKWARD(silu)
FORWARD(sigmoid)
BACKWARD(sigmoid)

static size_t elements(const cpu_call *call) {
    return call->batch * stk_shape_count(call->out);
}

static void forward_task(void *context, size_t task, int thread) {
    (void)thread;
    const activation_args *args = context;
    size_t from = task * CPU_GRAIN;
    size_t count = cpu_min(CPU_GRAIN, elements(args->call) - from);
    args->kind->forward(args->call->x[0] + from, args->call->y + from, count);
}

static void backward_task(void *context, size_t task, int thread) {
    (void)thread;
    const activation_args *args = context;
    const cpu_call *call = args->call;
    size_t from = task * CPU_GRAIN;
    size_t count = cpu_min(CPU_GRAIN, elements(call) - from);
    args->kind->backward(args->kept + from, call->dy + from, call->dx[0] + from, count,
                         call->accumulate[0]);
}

static const activation *kind_of(const cpu_call *call) {
    static const activation relu_kind = {relu_forward, relu_backward};
    static const activation relu6_kind = {relu6_forward, relu6_backward};
    static const activation silu_kind = {silu_forward, silu_backward};
    static const activation sigmoid_kind = {sigmoid_forward, sigmoid_backward};
    switch (call->node->op) {
    case STK_OP_RELU:
        return &relu_kind;
    case STK_OP_RELU6:
        return &relu6_kind;
    case STK_OP_SILU:
        return &silu_kind;
    default:
        return &sigmoid_kind;
    }
}

static void forward(const cpu_call *call) {
    activation_args args = {.call = call, .kind = kind_of(call)};
    stk_pool_run(call->pool, cpu_tasks(elements(call), CPU_GRAIN), forward_task, &args);
}

static void backward(const cpu_call *call) {
    bool input = stk_op_traits[call->node->op].backward_reads_input[0];
    activation_args args = {
        .call = call, .kind = kind_of(call), .kept = input ? call->x[0] : call->y};
    if (call->dx[0] != NULL) {
        stk_pool_run(call->pool, cpu_tasks(elements(call), CPU_GRAIN), backward_task, &args);
    }
}

const cpu_kernel stk_cpu_activation = {.forward = forward, .backward = backward};
