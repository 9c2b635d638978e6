/*
 * drop.c - dropout and stochastic depth; backward draws the same factors again. x and y, and
 * dx and dy, may be the same memory.
 */
#include "backend/cpu/kernels/kernels.h"

typedef struct drop_args {
    const cpu_call *call;
    const float *from; /* x or dy */
    float *to;         /* y or dx */
    bool accumulate;
    size_t run; /* consecutive elements that share a factor: 1, or a whole sample */
} drop_args;

/* A task is one sample. */
static void drop_task(void *context, size_t task, int thread) {
    (void)thread;
    const drop_args *args = context;
    const cpu_call *call = args->call;
    size_t floats = stk_shape_count(call->out);
    const float *from = args->from + task * floats;
    float *to = args->to + task * floats;
    for (size_t i = 0; i < floats; i += args->run) {
        float factor =
            call->train ? cpu_drop_factor(call, call->node, (task * floats + i) / args->run) : 1;
        for (size_t k = i; k < i + args->run; k++) {
            to[k] = (args->accumulate ? to[k] : 0) + factor * from[k];
        }
    }
}

static void run(const cpu_call *call, const float *from, float *to, bool accumulate) {
    bool whole = !call->train || call->node->op == STK_OP_DROP_PATH;
    drop_args args = {.call = call,
                      .from = from,
                      .to = to,
                      .accumulate = accumulate,
                      .run = whole ? stk_shape_count(call->out) : 1};
    if (call->train || accumulate || from != to) {
        stk_pool_run(call->pool, call->batch, drop_task, &args);
    }
}

static void forward(const cpu_call *call) {
    run(call, call->x[0], call->y, false);
}

static void backward(const cpu_call *call) {
    if (call->dx[0] != NULL) {
        run(call, call->dy, call->dx[0], call->accumulate[0]);
    }
}

const cpu_kernel stk_cpu_drop = {.forward = forward, .backward = backward};
