/*
 * steps.h - how one number becomes the logits of classes that are steps of a scale.
 *
 * STK_OP_STEPS takes a place x on the scale. 0 is its middle, and 1 is one standard deviation of
 * evenly frequent classes further up. With g, the same place in steps, class k has the logit
 *
 *     -(k - g)^2 / (2 * width^2)
 *
 * without the part that all classes share, which softmax cancels. So a class is the likelier the
 * nearer it is, and the gradient of cross-entropy is the expected class minus the label: the
 * network learns as if it were to predict the number, and still gives probabilities. A temperature
 * changes the width. Pure arithmetic.
 */
#ifndef STK_ENGINE_STEPS_H
#define STK_ENGINE_STEPS_H

#include <math.h>

/* Steps by which an answer is usually off. */
#define STK_STEPS_WIDTH 0.6

/* Longer scales have wider steps: logits of 16 bits stay exact. */
#define STK_STEPS_MOST 12.0

typedef struct stk_steps {
    double middle;    /* a class number */
    double deviation; /* of evenly frequent class numbers: 1 of a place, in steps */
    double pull;      /* what x counts for, per step above the middle */
    double fall;      /* what the square of the distance to the middle counts against a class */
    double span;      /* by how much the last logit is above the first one where x is 1 */
} stk_steps;

static inline stk_steps stk_steps_of(int classes) {
    double width = STK_STEPS_WIDTH * fmax(1, classes / STK_STEPS_MOST);
    double deviation = sqrt(fmax((double)classes * classes - 1, 1) / 12);
    double pull = deviation / (width * width);
    return (stk_steps){.middle = (classes - 1) / 2.0,
                       .deviation = deviation,
                       .pull = pull,
                       .fall = 1 / (2 * width * width),
                       .span = pull * (classes - 1)};
}

#endif
