/*
 * first_weights.c - random numbers for every parameter.
 *
 * They are drawn by all cores, since a large model has many millions of them, and a training should
 * begin at once. What a parameter gets depends on its place in the graph alone.
 */
#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/pool.h"
#include "engine/backend.h"

typedef struct drawing {
    const stk_graph *graph;
    uint64_t seed;
    float *values; /* of all parameters, one behind the other */
} drawing;

static void draw(void *context, size_t task, int thread) {
    (void)thread;
    const drawing *d = context;
    stk_graph_init_param(d->graph, (int)task, d->seed, d->values + d->graph->params[task].offset);
}

stk_status stk_state_first_weights(const stk_backend *backend, stk_state *state,
                                   const stk_graph *graph, uint64_t seed, stk_error *err) {
    drawing d = {.graph = graph, .seed = seed};
    stk_pool *pool = NULL;
    stk_status status = stk_pool_new(&pool, stk_machine_cores(), err);
    if (status == STK_OK) {
        d.values = stk_mem_raw(graph->param_elements, sizeof *d.values);
        status = d.values != NULL ? STK_OK : STK_FAIL_MEMORY(err, "the first weights");
    }
    if (status == STK_OK) {
        stk_pool_run(pool, (size_t)graph->param_count, draw, &d);
    }
    for (int p = 0; p < graph->param_count && status == STK_OK; p++) {
        status = backend->state_write(state, STK_TENSOR_VALUE, p,
                                      d.values + graph->params[p].offset, err);
    }
    stk_mem_free(d.values);
    stk_pool_free(pool);
    return status;
}
