/* lower.c - appends all pieces in order, then their backward passes in the opposite order. */
#include "backend/cuda/lowering/lower.h"

#include "backend/cuda/lowering/lowering.h"
#include "base/error.h"
#include "base/mem.h"

static void forward(lowering *l) {
    for (int i = 0; i < l->pieces->count; i++) {
        bool loss = l->pieces->items[i].node != STK_NO_NODE &&
                    graph_node_of(l, l->pieces->items[i].node)->op == STK_OP_LOSS;
        switch (l->items[i].kind) {
        case LOWER_CHAIN:
            stk_cuda_lower_chain(l, i);
            break;
        case LOWER_SQUEEZE:
            stk_cuda_lower_squeeze(l, i);
            break;
        case LOWER_NODE:
            if (l->train || !loss) {
                stk_cuda_append_node(l, i);
            }
            break;
        case LOWER_ABSORBED:
            break;
        }
    }
}

static void backward(lowering *l) {
    for (int i = l->pieces->count - 1; i >= 0; i--) {
        if (!l->pieces->items[i].live) {
            continue;
        }
        switch (l->items[i].kind) {
        case LOWER_CHAIN:
            stk_cuda_lower_chain_back(l, i);
            break;
        case LOWER_SQUEEZE:
            stk_cuda_lower_squeeze_back(l, i);
            break;
        case LOWER_NODE:
            stk_cuda_append_node_back(l, i);
            break;
        case LOWER_ABSORBED:
            break;
        }
    }
}

static void begin(lowering *l) {
    for (int v = 0; v < l->graph->value_count; v++) {
        l->values[v] = (lower_value){.data = cuda_nothing(),
                                     .unpadded = cuda_nothing(),
                                     .grad = cuda_nothing(),
                                     .raw = cuda_nothing(),
                                     .in_norm = cuda_nothing(),
                                     .late.node = -1,
                                     .maker = -1,
                                     .reader = -1};
    }
    for (int i = 0; i < l->pieces->count; i++) {
        l->items[i] = (lowered_piece){.inner = cuda_nothing(),
                                      .dinner = cuda_nothing(),
                                      .stats_scratch = cuda_nothing(),
                                      .mask = cuda_nothing(),
                                      .where = cuda_nothing()};
    }
}

stk_status stk_cuda_lower(cuda_program *p, const stk_pieces *pieces,
                          const cuda_parameter_layout *layout, int batch,
                          cuda_tuning_results *results, cuda_ref *logits, stk_error *err) {
    const stk_graph *graph = pieces->graph;
    lowering l = {.p = p,
                  .graph = graph,
                  .pieces = pieces,
                  .layout = layout,
                  .batch = batch,
                  .results = results,
                  .train = pieces->config.train,
                  .values = stk_mem_new((size_t)graph->value_count, sizeof *l.values),
                  .items = stk_mem_new((size_t)pieces->count, sizeof *l.items)};
    stk_status status = STK_OK;
    if (l.values == NULL || l.items == NULL) {
        status = STK_FAIL_MEMORY(err, "the program of a network");
    } else {
        begin(&l);
        stk_cuda_lower_analyse(&l);
        forward(&l);
        if (l.train) {
            backward(&l);
        } else {
            size_t count = lower_count(&l, graph->logits);
            *logits = stk_cuda_buffer(p, count * sizeof(float));
            stk_cuda_to_float(p, count, l.values[graph->logits].data, *logits);
        }
    }
    stk_mem_free(l.values);
    stk_mem_free(l.items);
    return status;
}

void stk_cuda_lower_weights(cuda_program *p, const stk_pieces *pieces,
                            const cuda_parameter_layout *layout) {
    const stk_graph *graph = pieces->graph;
    stk_cuda_copy_weights(p, layout->elements);
    for (int i = 0; i < pieces->count && !pieces->config.train; i++) {
        const stk_piece *piece = &pieces->items[i];
        if (piece->node != STK_NO_NODE || piece->conv == STK_NO_NODE ||
            graph->nodes[piece->conv].op != STK_OP_CONV) {
            continue;
        }
        const stk_node *conv = &graph->nodes[piece->conv];
        const stk_node *node = &graph->nodes[piece->norm];
        const stk_param *weight = &graph->params[conv->params[0]];
        cuda_norm norm = {.weight = cuda_value(layout, node->params[0]),
                          .bias = cuda_value(layout, node->params[1]),
                          .running_mean = cuda_value(layout, node->params[2]),
                          .running_var = cuda_value(layout, node->params[3]),
                          .weight_grad = cuda_nothing(),
                          .bias_grad = cuda_nothing(),
                          .epsilon = node->epsilon,
                          .coefs = cuda_nothing(),
                          .back = cuda_nothing()};
        stk_cuda_fold(p, weight->shape[0], (int)(weight->count / (size_t)weight->shape[0]),
                      cuda_value(layout, conv->params[0]), cuda_nothing(), &norm, false,
                      cuda_weight(layout, conv->params[0]), cuda_fresh(layout, node->params[1]));
    }
}
