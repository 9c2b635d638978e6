/*
 * loss_watch.h - detects a training that has gone wrong, from the losses of its steps.
 *
 * A loss that is no number is wrong at once. A loss explodes when its moving mean over about 20
 * steps is above four times the lowest that this mean has been, and above 2 ln(classes) + 3: twice
 * what guessing costs and a margin for few classes. One step counts as twice that limit at most,
 * so that a single bad batch, from which a network recovers by itself, is no explosion.
 *
 * The check at the end of an epoch also works after few steps. Training has exploded when the
 * moving mean is above the limit and the epoch's mean loss above ten times the limit, or when the
 * validation loss is above ten thousand times 2 ln(classes) + 3. First validations are bad because
 * the running statistics of norms are young, but they stay far below that.
 */
#ifndef STK_TRAIN_LOSS_WATCH_H
#define STK_TRAIN_LOSS_WATCH_H

#include <stdbool.h>
#include <stdint.h>

typedef enum stk_loss_verdict {
    STK_LOSS_FINE,
    STK_LOSS_NOT_FINITE,
    STK_LOSS_EXPLODED
} stk_loss_verdict;

/* Plain numbers: a saved copy continues as the original would. */
typedef struct stk_loss_watch {
    double floor;  /* a loss below it is never an explosion */
    double smooth; /* moving mean of the losses */
    double lowest; /* lowest value of `smooth` so far */
    int64_t steps; /* losses added */
} stk_loss_watch;

stk_loss_watch stk_loss_watch_new(int classes);

/* Whether the mean is below the limit: only such a state is worth saving. */
bool stk_loss_watch_is_calm(const stk_loss_watch *watch);

/* Adds a step; `loss` is the mean over its samples. */
stk_loss_verdict stk_loss_watch_add(stk_loss_watch *watch, double loss);

/* Whether an epoch's mean training loss, or its validation loss, shows an explosion. */
bool stk_loss_watch_is_absurd(const stk_loss_watch *watch, double train_loss);
bool stk_loss_watch_is_absurd_validation(const stk_loss_watch *watch, double val_loss);

#endif
