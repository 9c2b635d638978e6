/* step_check.c - whether the input of a step or an inference fits the network. */
#include "base/error.h"
#include "engine/backend.h"

stk_status stk_features_check(const stk_graph *graph, const float *features, stk_error *err) {
    size_t count = stk_graph_feature_count(graph);
    return count == 0 || features != NULL
               ? STK_OK
               : STK_FAIL(err, STK_ERR_INTERNAL, "this network needs %zu features per sample",
                          count);
}

stk_status stk_step_check(const stk_graph *graph, const stk_step_input *input, stk_error *err) {
    bool labels = stk_loss_has_labels(graph->loss.kind);
    if (labels ? input->labels == NULL : input->targets == NULL) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "a training step of this network needs %s",
                        labels ? "labels" : "targets");
    }
    return stk_features_check(graph, input->features, err);
}
