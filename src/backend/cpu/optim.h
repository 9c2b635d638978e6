/* optim.h - inside the CPU backend: a model's tensors, and what the optimiser does to them. */
#ifndef STK_BACKEND_CPU_OPTIM_H
#define STK_BACKEND_CPU_OPTIM_H

#include "base/threads/pool.h"
#include "engine/backend.h"

/* A part of one parameter that one task updates: small enough that its tensors stay in a cache. */
typedef struct cpu_span {
    size_t from; /* elements */
    size_t to;
    int param;
} cpu_span;

struct stk_state {
    stk_device *device;
    stk_pool *pool; /* the device's */
    const stk_graph *graph;
    /* graph->param_elements of each kind, parameters one after the other; NULL: not kept */
    float *blocks[STK_TENSOR_KINDS];
    cpu_span *spans; /* all parameters, in order; NULL unless it is trained */
    size_t span_count;
    double *squares; /* per span: the sum of its gradients' squares; NULL unless it is trained */
};

/* Cuts the parameters into spans, by their shapes alone. */
STK_CHECKED stk_status stk_cpu_spans_make(stk_state *state, stk_error *err);

/*
 * One update of every parameter that learns, only of the head's when `frozen`; then the averages of
 * all. Returns the norm of all gradients before clipping, NaN when nothing is clipped.
 */
double stk_cpu_optimize(const stk_state *state, const stk_update *update, bool frozen);

#endif
