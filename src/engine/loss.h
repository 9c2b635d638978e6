/*
 * loss.h - what a network learns to make small.
 *
 * A loss belongs to a graph (stk_graph_set_loss()). The loss of a batch is the mean over its
 * samples. Softmax and steps have one label for each sample. All other kinds have a float target
 * for each output, and the loss of a sample is the sum over its outputs. A target of NaN is not
 * known: its output adds nothing, and its gradient is zero.
 */
#ifndef STK_ENGINE_LOSS_H
#define STK_ENGINE_LOSS_H

#include <stdbool.h>

typedef enum stk_loss_kind {
    STK_LOSS_SOFTMAX, /* cross-entropy of one class out of several */
    STK_LOSS_SIGMOID, /* binary cross-entropy of each output; targets 0 to 1 */
    STK_LOSS_SQUARED, /* half the square of the difference; targets are any numbers */
    STK_LOSS_ABSOLUTE,
    STK_LOSS_HUBER, /* squared up to huber_delta, linear beyond */
    STK_LOSS_STEPS  /* half the square of the distance on a scale whose steps are the classes */
} stk_loss_kind;

/*
 * With p, the sigmoid of a logit, STK_LOSS_SIGMOID is
 *
 *     - weight * t * (1 - p)^gamma_pos * log p - (1 - t) * m^gamma_neg * log(1 - m)
 *
 * where m = max(p - margin, 0). Two equal gammas make it the focal loss, different ones and a
 * margin the asymmetric loss of Ridnik et al. (2021), zeros plain cross-entropy.
 *
 * STK_LOSS_STEPS is for logits that STK_OP_STEPS made of a place x (engine/steps.h). With y, the
 * class number of the target, mixed but never smoothed, it is
 *
 *     (x - t)^2 / 2, where t = (y - middle) / deviation
 *
 * so the place is learned as a number is, with targets of mean 0 and deviation 1 where classes are
 * evenly frequent. x is found from the logits, of which the first and the last one get the gradient
 * that makes dloss/dx = x - t.
 */
typedef struct stk_loss {
    stk_loss_kind kind;
    float huber_delta; /* Huber: above 0 */
    float gamma_pos;   /* sigmoid: at least 0 */
    float gamma_neg;   /* sigmoid: at least 0 */
    float margin;      /* sigmoid: 0 to below 1 */
    /* Sigmoid: how much each output's targets of 1 count, (outputs); NULL: 1. In a graph it belongs
     * to the graph. */
    const float *positive_weights;
} stk_loss;

/* Whether a sample has one label, the number of its class; otherwise it has targets. */
static inline bool stk_loss_has_labels(stk_loss_kind kind) {
    return kind == STK_LOSS_SOFTMAX || kind == STK_LOSS_STEPS;
}

#endif
