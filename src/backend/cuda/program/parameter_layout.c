/* parameter_layout.c - parameters one after the other, each on a boundary of a chunk. */
#include "backend/cuda/program/parameter_layout.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

static size_t rounded(size_t value, size_t step) {
    return (value + step - 1) / step * step;
}

/* Marks the weights of convolutions and linear layers. */
static void find_weights(cuda_parameter_layout *layout) {
    for (int n = 0; n < layout->graph->node_count; n++) {
        const stk_node *node = &layout->graph->nodes[n];
        if (node->op == STK_OP_CONV || node->op == STK_OP_LINEAR) {
            layout->weight[node->params[0]] = true;
        }
    }
}

static void place(cuda_parameter_layout *layout) {
    for (int i = 0; i < layout->graph->param_count; i++) {
        const stk_param *param = &layout->graph->params[i];
        cuda_type fresh = layout->weight[i] ? layout->type : CUDA_TYPE_F32;
        layout->offsets[i] = layout->elements;
        layout->fresh[i] = layout->fresh_bytes;
        layout->elements += rounded(param->count, CUDA_CHUNK);
        if (param->trainable && (layout->train || !layout->weight[i])) {
            layout->fresh_bytes += rounded(param->count * cuda_type_bytes(fresh), CUDA_ALIGN);
        }
    }
}

static void fill_chunks(cuda_parameter_layout *layout) {
    for (int i = 0; i < layout->graph->param_count; i++) {
        const stk_param *param = &layout->graph->params[i];
        cuda_type fresh = layout->weight[i] ? layout->type : CUDA_TYPE_F32;
        for (size_t from = 0; from < param->count; from += CUDA_CHUNK) {
            size_t left = param->count - from;
            layout->chunks[(layout->offsets[i] + from) / CUDA_CHUNK] = (cuda_chunk){
                .fresh = (unsigned)((layout->fresh[i] + from * cuda_type_bytes(fresh)) / 16),
                .fresh_type = (unsigned char)fresh,
                .trainable = param->trainable,
                .decay = param->decay,
                .head = param->head,
                .count = (unsigned short)(left < CUDA_CHUNK ? left : CUDA_CHUNK),
                .weight = layout->weight[i]};
        }
    }
}

stk_status stk_cuda_parameter_layout_make(cuda_parameter_layout *layout, const stk_graph *graph,
                                          cuda_type type, bool train, stk_error *err) {
    size_t params = (size_t)graph->param_count;
    *layout = (cuda_parameter_layout){.graph = graph, .type = type, .train = train};
    layout->offsets = stk_mem_new(params, sizeof *layout->offsets);
    layout->fresh = stk_mem_new(params, sizeof *layout->fresh);
    layout->weight = stk_mem_new(params, sizeof *layout->weight);
    bool good = layout->offsets != NULL && layout->fresh != NULL && layout->weight != NULL;
    if (good) {
        find_weights(layout);
        place(layout);
        layout->chunks = stk_mem_new(layout->elements / CUDA_CHUNK, sizeof *layout->chunks);
        good = layout->chunks != NULL;
    }
    if (!good) {
        stk_cuda_parameter_layout_free(layout);
        return STK_FAIL_MEMORY(err, "the layout of the parameters");
    }
    fill_chunks(layout);
    return STK_OK;
}

void stk_cuda_parameter_layout_free(cuda_parameter_layout *layout) {
    stk_mem_free(layout->offsets);
    stk_mem_free(layout->fresh);
    stk_mem_free(layout->weight);
    stk_mem_free(layout->chunks);
    memset(layout, 0, sizeof *layout);
}
