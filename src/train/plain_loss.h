/* plain_loss.h - what one output costs in validation. Pure arithmetic. */
#ifndef STK_TRAIN_PLAIN_LOSS_H
#define STK_TRAIN_PLAIN_LOSS_H

#include "engine/loss.h"

/* The loss of one output that has a target, as engine/loss.h has it without weights of positives
 * and without focus: so losses of runs that learn differently can be compared. */
double stk_plain_loss(const stk_loss *loss, double output, double target);

#endif
