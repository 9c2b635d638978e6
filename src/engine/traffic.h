/*
 * traffic.h - how many bytes a step moves through a device's memory.
 *
 * On a fast device a step of a convolutional network is bound by memory, not by arithmetic. What is
 * counted is a step whose normalisations are fused with the addition and the activation behind them
 * and whose convolutions are not fused with anything: every pass over a tensor once, whatever a
 * cache may keep. The share of a device's bandwidth that a measured step comes to by this count is
 * comparable between devices and batches; it passes 1 where more is fused.
 */
#ifndef STK_ENGINE_TRAFFIC_H
#define STK_ENGINE_TRAFFIC_H

#include "engine/graph.h"

typedef struct stk_traffic {
    double image_bytes; /* per picture: activations and their gradients */
    double step_bytes;  /* per step: weights, their gradients, the optimiser's memory (SGD) */
} stk_traffic;

/* `number_bytes`: of one activation, 2 or 4. Without `train` an inference is counted. */
STK_CHECKED stk_status stk_graph_traffic(const stk_graph *graph, bool train, int number_bytes,
                                         stk_traffic *traffic, stk_error *err);

#endif
