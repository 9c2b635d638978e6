/*
 * kernels.h - inside the CPU backend: one kernel per operation.
 *
 * A kernel says what memory it needs, computes a node's output, and computes the gradients of its
 * inputs and parameters. All tensors are float32 and lie as (N, H, W, C). Work is divided into
 * tasks by shapes alone, never by the number of threads, and partial sums are added in a fixed
 * order: the same input gives the same bits on one thread or on many.
 */
#ifndef STK_BACKEND_CPU_KERNELS_KERNELS_H
#define STK_BACKEND_CPU_KERNELS_KERNELS_H

#include <math.h>

#include "base/threads/pool.h"
#include "engine/backend.h"
#include "engine/drop.h"
#include "engine/memory_layout.h"

/* One piece, with everything it reads and writes; unused pointers are NULL. */
typedef struct cpu_call {
    stk_pool *pool;
    const stk_graph *graph;
    const stk_piece *piece;
    const stk_node *node; /* of a chain: its norm */
    size_t batch;         /* samples in this call */
    bool train;           /* batch norm uses the batch's statistics, drops drop */
    bool kept_stats;      /* batch norm uses its running statistics nevertheless */
    stk_shape in;         /* of x[0] */
    stk_shape out;        /* of y */
    const float *x[2];
    float *y;
    const float *dy;
    float *dx[2];         /* NULL: that input needs no gradient */
    bool accumulate[2];   /* add to dx instead of writing it */
    float *inner;         /* of a chain: its convolution's output; may share y's memory */
    float *dinner;        /* gradient of `inner`; shares dy's memory */
    float *param[4];      /* of `node` */
    float *param_grad[4]; /* gradients are added to these */
    float *weights;       /* all parameters, in the order of the graph */
    float *gradients;     /* of all of them */
    void *saved;          /* as many bytes as needs() asked for */
    void *workspace;
    const stk_step_input *step; /* NULL in inference */
    const uint8_t *images;      /* (batch, size, size, channels) */
    const float *features;      /* (batch, graph features); NULL without */
    stk_step_output *result;    /* the loss adds to it */
} cpu_call;

/* What a kernel's memory depends on. */
typedef struct cpu_ask {
    const stk_graph *graph;
    const stk_piece *piece; /* `live`: it will have a backward; `training`: see cpu_call.train */
    const stk_node *node;
    size_t batch;
    int threads;
} cpu_ask;

typedef struct cpu_kernel {
    /* NULL: nothing beyond the values. */
    stk_piece_needs (*needs)(const cpu_ask *ask);
    void (*forward)(const cpu_call *call);
    void (*backward)(const cpu_call *call);
    /* Instead of `forward` and `backward`: tasks over a cpu_call, each of which does one sample. */
    stk_pool_task *forward_sample;
    stk_pool_task *backward_sample; /* neither this nor `backward`: no gradients pass */
} cpu_kernel;

extern const cpu_kernel stk_cpu_chain; /* a whole chain of stk_piece */
extern const cpu_kernel stk_cpu_input;
extern const cpu_kernel stk_cpu_conv;
extern const cpu_kernel stk_cpu_batch_norm;
extern const cpu_kernel stk_cpu_depthwise;
extern const cpu_kernel stk_cpu_activation; /* ReLU, ReLU6, SiLU, sigmoid */
extern const cpu_kernel stk_cpu_scale;
extern const cpu_kernel stk_cpu_shortcut;
extern const cpu_kernel stk_cpu_drop; /* dropout and stochastic depth */
extern const cpu_kernel stk_cpu_add;
extern const cpu_kernel stk_cpu_max_pool;
extern const cpu_kernel stk_cpu_avg_pool;
extern const cpu_kernel stk_cpu_linear;
extern const cpu_kernel stk_cpu_features;
extern const cpu_kernel stk_cpu_concat;
extern const cpu_kernel stk_cpu_steps;
extern const cpu_kernel stk_cpu_loss;

/* Elements per task of element-wise work: some microseconds, and a fraction of a cache. */
#define CPU_GRAIN ((size_t)16384)

static inline size_t cpu_tasks(size_t count, size_t grain) {
    return (count + grain - 1) / grain;
}

static inline size_t cpu_min(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Weight of the new batch in a norm's running statistics, as in PyTorch. */
#define CPU_RUNNING 0.1

/* Mean and 1 / deviation of a norm that keeps its running statistics. */
static inline void cpu_kept_statistics(const cpu_call *call, size_t channels, float *mean,
                                       float *invstd) {
    for (size_t c = 0; c < channels; c++) {
        mean[c] = call->param[2][c];
        invstd[c] = (float)(1.0 / sqrt(call->param[3][c] + (double)call->node->epsilon));
    }
}

static inline float *cpu_param(const cpu_call *call, const stk_node *node, int which) {
    return call->weights + call->graph->params[node->params[which]].offset;
}

static inline float *cpu_param_grad(const cpu_call *call, const stk_node *node, int which) {
    return call->gradients != NULL
               ? call->gradients + call->graph->params[node->params[which]].offset
               : NULL;
}

/* The factor of a drop node in this step; `index` counts elements or samples, see engine/drop.h. */
static inline float cpu_drop_factor(const cpu_call *call, const stk_node *node, size_t index) {
    return stk_drop_factor(node->rate, call->step->seed, call->step->step,
                           (int)(node - call->graph->nodes), index);
}

#endif
