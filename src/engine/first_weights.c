/* first_weights.c - one parameter at a time, so that no copy of the model is needed. */
#include "base/error.h"
#include "base/mem.h"
#include "engine/backend.h"

stk_status stk_state_first_weights(const stk_backend *backend, stk_state *state,
                                   const stk_graph *graph, uint64_t seed, stk_error *err) {
    stk_status status = STK_OK;
    for (int p = 0; p < graph->param_count && status == STK_OK; p++) {
        float *values = stk_mem_raw(graph->params[p].count, sizeof *values);
        if (values == NULL) {
            return STK_FAIL_MEMORY(err, "the parameters");
        }
        stk_graph_init_param(graph, p, seed, values);
        status = backend->state_write(state, STK_TENSOR_VALUE, p, values, err);
        stk_mem_free(values);
    }
    return status;
}
