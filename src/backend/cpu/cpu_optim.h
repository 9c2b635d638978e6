/* cpu_optim.h - inside the CPU backend: a model's tensors, and what the optimiser does to them. */
#ifndef STK_BACKEND_CPU_OPTIM_H
#define STK_BACKEND_CPU_OPTIM_H

#include "base/pool.h"
#include "engine/backend.h"

struct stk_state {
    stk_device *device;
    stk_pool *pool; /* the device's */
    const stk_graph *graph;
    /* graph->param_elements of each kind, parameters one behind the other; NULL: not kept */
    float *blocks[STK_TENSOR_KINDS];
};

/*
 * One update of every parameter that learns, only of the head's when `frozen`. Returns the norm of
 * all gradients before clipping, NaN when nothing is clipped.
 */
double stk_cpu_optimize(const stk_state *state, const stk_update *update, bool frozen);

#endif
