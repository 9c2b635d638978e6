/*
 * cudnn_graph.h - inside cudnn.c and cudnn_graph.c: descriptors of one convolution, and their
 * owner.
 *
 * As in a cuda_program the first failure is stored and later calls do nothing: the caller checks
 * once, at the end.
 */
#ifndef STK_BACKEND_CUDA_CONVOLUTION_CUDNN_GRAPH_H
#define STK_BACKEND_CUDA_CONVOLUTION_CUDNN_GRAPH_H

#include "backend/cuda/convolution/cudnn.h"

struct cuda_dnn {
    cuda_dnn_functions api;
    cuda_dnn_handle handle; /* NULL where there is no GPU */
    cuda_dnn_descriptor
        device; /* the described GPU that plans are made for; NULL: that of the handle */
};

/* More than the longest graph with the most knobs has. */
#define CUDA_DNN_MOST_DESCRIPTORS (32 + CUDA_DNN_MOST_KNOBS)

typedef struct cuda_dnn_graph {
    const cuda_dnn *dnn;
    cuda_dnn_descriptor owned[CUDA_DNN_MOST_DESCRIPTORS];
    int owned_count;
    cuda_dnn_descriptor ops[5];
    int op_count;
    cuda_dnn_descriptor whole; /* the operation graph */
    int status;                /* the first one that is not success */
} cuda_dnn_graph;

/* Describes the convolution, and unless `plain` what follows it. */
void stk_cuda_dnn_graph_begin(cuda_dnn_graph *graph, const cuda_dnn *dnn,
                              const cuda_conv_shape *shape, bool plain);
void stk_cuda_dnn_graph_end(cuda_dnn_graph *graph);

/* A new descriptor that the graph owns; NULL after a failure. */
cuda_dnn_descriptor stk_cuda_dnn_new(cuda_dnn_graph *graph, int type);
void stk_cuda_dnn_set(cuda_dnn_graph *graph, cuda_dnn_descriptor descriptor, int name, int type,
                      int64_t count, const void *values);
void stk_cuda_dnn_set_one(cuda_dnn_graph *graph, cuda_dnn_descriptor descriptor, int name,
                          cuda_dnn_descriptor value);
void stk_cuda_dnn_set_long(cuda_dnn_graph *graph, cuda_dnn_descriptor descriptor, int name,
                           int64_t value);
void stk_cuda_dnn_finish(cuda_dnn_graph *graph, cuda_dnn_descriptor descriptor);

#endif
