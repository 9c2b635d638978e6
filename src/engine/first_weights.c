/*
 * first_weights.c - random numbers for every parameter.
 *
 * All cores draw them: a large model has many millions, and training should begin at once. The
 * values of a parameter depend only on the seed and its position in the graph.
 */
#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/threads/pool.h"
#include "engine/backend.h"

/* Values that are drawn at a time: short enough to be waited for. */
#define PART ((size_t)32768)

typedef struct weight_draw {
    const stk_graph *graph;
    uint64_t seed;
    float *values; /* of all parameters, one after the other */
} weight_draw;

static size_t parts_of(const stk_param *param) {
    return (param->count + PART - 1) / PART;
}

static void draw(void *context, size_t task, int thread) {
    (void)thread;
    const weight_draw *d = context;
    int p = 0;
    for (; task >= parts_of(&d->graph->params[p]); p++) {
        task -= parts_of(&d->graph->params[p]);
    }
    const stk_param *param = &d->graph->params[p];
    size_t from = task * PART;
    size_t count = param->count - from < PART ? param->count - from : PART;
    stk_graph_init_part(d->graph, p, d->seed, from, count, d->values + param->offset + from);
}

stk_status stk_state_first_weights(const stk_backend *backend, stk_state *state,
                                   const stk_graph *graph, uint64_t seed, stk_error *err) {
    return stk_state_first_weights_unless(backend, state, graph, seed, NULL, NULL, err);
}

stk_status stk_state_first_weights_unless(const stk_backend *backend, stk_state *state,
                                          const stk_graph *graph, uint64_t seed,
                                          bool (*halted)(void *user), void *user, stk_error *err) {
    weight_draw d = {.graph = graph, .seed = seed};
    stk_pool *pool = NULL;
    stk_status status = stk_pool_new(&pool, stk_machine_cores(), err);
    if (status == STK_OK) {
        d.values = stk_mem_raw(graph->param_elements, sizeof *d.values);
        status = d.values != NULL ? STK_OK : STK_FAIL_MEMORY(err, "the first weights");
    }
    if (status == STK_OK) {
        size_t parts = 0;
        for (int p = 0; p < graph->param_count; p++) {
            parts += parts_of(&graph->params[p]);
        }
        stk_pool_watch(pool, halted, user);
        stk_pool_run(pool, parts, draw, &d);
        status = stk_pool_was_halted(pool)
                     ? STK_FAIL(err, STK_ERR_STOPPED, "stopped before the first weights were drawn")
                     : STK_OK;
    }
    for (int p = 0; p < graph->param_count && status == STK_OK; p++) {
        status = backend->state_write(state, STK_TENSOR_VALUE, p,
                                      d.values + graph->params[p].offset, err);
    }
    stk_mem_free(d.values);
    stk_pool_free(pool);
    return status;
}
