/* plain_loss.c - the formulas of losses, for one output. */
#include "train/plain_loss.h"

#include <math.h>

double stk_plain_loss(const stk_loss *loss, double output, double target) {
    double d = fabs(output - target);
    switch (loss->kind) {
    case STK_LOSS_SIGMOID:
        return fmax(output, 0) - output * target + log1p(exp(-fabs(output)));
    case STK_LOSS_ABSOLUTE:
        return d;
    case STK_LOSS_HUBER:
        return d <= loss->huber_delta ? d * d / 2 : loss->huber_delta * (d - loss->huber_delta / 2);
    default:
        return d * d / 2;
    }
}
