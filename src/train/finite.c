/* finite.c - checks that all tensors of a state are finite. */
#include <math.h>

#include "base/error.h"
#include "base/mem.h"
#include "train/train.h"

static bool all_finite(const float *values, size_t count) {
    /* Infinities and NaN times zero are NaN, and NaN stays in a sum; several sums keep it fast. */
    float sums[8] = {0};
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        for (size_t k = 0; k < 8; k++) {
            sums[k] += values[i + k] * 0.0f;
        }
    }
    for (; i < count; i++) {
        sums[0] += values[i] * 0.0f;
    }
    bool finite = true;
    for (size_t k = 0; k < 8; k++) {
        finite = finite && isfinite(sums[k]);
    }
    return finite;
}

stk_status stk_train_finite(const stk_backend *backend, stk_state *state, const stk_graph *graph,
                            bool *finite, stk_error *err) {
    static const stk_tensor_kind kinds[] = {STK_TENSOR_VALUE, STK_TENSOR_MOMENTUM,
                                            STK_TENSOR_SECOND, STK_TENSOR_EMA};
    size_t largest = 1;
    *finite = true;
    for (int p = 0; p < graph->param_count; p++) {
        largest = graph->params[p].count > largest ? graph->params[p].count : largest;
    }
    float *values = stk_mem_raw(largest, sizeof *values);
    stk_status status = values != NULL ? STK_OK : STK_FAIL_MEMORY(err, "a parameter");
    for (size_t k = 0; k < STK_COUNT(kinds) && status == STK_OK; k++) {
        if (!backend->state_has(state, kinds[k])) {
            continue;
        }
        for (int p = 0; p < graph->param_count && status == STK_OK && *finite; p++) {
            status = backend->state_read(state, kinds[k], p, values, err);
            *finite = status != STK_OK || all_finite(values, graph->params[p].count);
        }
    }
    stk_mem_free(values);
    return status;
}
