/*
 * traffic.h - how many bytes a training step moves through a device's memory, and how much it
 * computes.
 *
 * On a fast device a step of a convolutional network is bound by memory, not by arithmetic. The
 * count assumes that norms are fused with the addition and the activation after them, that
 * convolutions are not fused, and that caches keep nothing. Bytes divided by a measured step time
 * and by the device's bandwidth are comparable between devices and batches. The quotient exceeds 1
 * where a backend fuses more.
 */
#ifndef STK_ENGINE_TRAFFIC_H
#define STK_ENGINE_TRAFFIC_H

#include "engine/graph.h"

typedef struct stk_traffic {
    double image_bytes;   /* per picture: activations and their gradients */
    double step_bytes;    /* per step: weights, their gradients, the optimiser's memory (SGD) */
    double multiply_adds; /* per picture, of the forward pass alone */
} stk_traffic;

/* Counts the bytes of a training step, or without `train` of an inference. `number_bytes` is the
 * size of one activation, 2 or 4. */
STK_CHECKED stk_status stk_graph_traffic(const stk_graph *graph, bool train, int number_bytes,
                                         stk_traffic *traffic, stk_error *err);

#endif
