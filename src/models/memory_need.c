/* memory_need.c - builds the graph, asks the backend for its need, and frees the graph. */
#include "models/memory_need.h"

#include "base/error.h"

stk_status stk_model_memory_need(const stk_model *model, size_t batch, int img_size,
                                 stk_precision precision, const stk_memory_need_config *config,
                                 const stk_backend *backend, stk_device *device,
                                 stk_memory_need *need, stk_error *err) {
    stk_model_config network = {.img_size = img_size,
                                .classes = config->classes,
                                .dropout = STK_MODEL_OWN_RATE,
                                .drop_path = STK_MODEL_OWN_RATE};
    stk_compile_config compile = {.batch = batch,
                                  .precision = precision,
                                  .train = !config->infer,
                                  .frozen = config->frozen,
                                  .plain = config->plain};
    stk_graph *graph = NULL;
    *need = (stk_memory_need){0};
    stk_status status = stk_model_build(model, &network, &graph, err);
    STK_THEN(status, backend->exec_need(device, graph, &compile, &need->exec_bytes, NULL, err));
    if (status == STK_OK) {
        need->state_bytes = backend->state_bytes(graph, &config->state);
        need->bytes = need->exec_bytes + need->state_bytes;
    }
    stk_graph_free(graph);
    return status;
}
