/* step_check.c - whether the input of a step fits the network. */
#include "base/error.h"
#include "engine/backend.h"

stk_status stk_step_check(const stk_graph *graph, const stk_step_input *input, stk_error *err) {
    bool softmax = graph->loss.kind == STK_LOSS_SOFTMAX;
    if (softmax ? input->labels == NULL : input->targets == NULL) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "a training step of this network needs %s",
                        softmax ? "labels" : "targets");
    }
    return STK_OK;
}
