/*
 * position.h - where the training of a fold stands, between two steps.
 *
 * Together with the tensors of the state this is all that a later process needs to go on as if
 * nothing had happened: everything random derives from the seed and from these numbers.
 */
#ifndef STK_TRAIN_POSITION_H
#define STK_TRAIN_POSITION_H

#include <stdbool.h>
#include <stdint.h>

#include <stoker/events.h>

#include "train/loss_watch.h"

typedef struct stk_train_position {
    int epoch;    /* whole epochs that are done */
    int64_t step; /* steps done of the one behind them; all of them: not validated yet */
    int64_t steps_per_epoch;
    int64_t batch;       /* pictures of a step; 0: not known, as in files of older versions */
    int64_t accumulate;  /* steps to an update */
    int64_t micro_steps; /* of these, whose gradients wait to be used: they belong to the state */
    int64_t steps_done;  /* of all epochs */
    int64_t updates;     /* times the weights have moved */
    int64_t total_steps; /* as planned last; for people */
    double schedule;     /* progress of the learning rate before the next step, 0 to 1 */
    double lr_scale;     /* 1, halved at every setback */
    int setbacks;        /* times the training went back and on with half the rate */
    int epochs_done;
    int since_best; /* epochs */
    bool has_best;
    stk_event_epoch best; /* only its figures; epoch 0 without one */
    double best_metric;
    stk_loss_watch watch;
    /* sums of the running epoch */
    double loss_sum;
    double correct;
    double images;
} stk_train_position;

/*
 * The same place in the same data when a step has `batch` pictures instead and an epoch so many
 * steps. Within an epoch it goes back to the last update, since gradients of other batches cannot
 * be added to; a position of no known batch is left alone.
 */
void stk_train_position_rebatch(stk_train_position *position, int64_t batch, int64_t accumulate,
                                int64_t steps_per_epoch);

#endif
