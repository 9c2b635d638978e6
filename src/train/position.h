/*
 * position.h - where the training of a fold stands, between two steps.
 *
 * With these numbers and the tensors of the state a later process continues exactly as this one
 * would have: everything random derives from the seed and from these numbers.
 */
#ifndef STK_TRAIN_POSITION_H
#define STK_TRAIN_POSITION_H

#include <stdbool.h>
#include <stdint.h>

#include <stoker/events.h>

#include "train/loss_watch.h"

typedef struct stk_train_position {
    int epoch;    /* whole epochs done */
    int64_t step; /* steps done of the epoch that follows; steps_per_epoch: only its validation is
                     missing */
    int64_t steps_per_epoch;
    int64_t batch;         /* pictures of a step; 0: not known, as in files of older versions */
    int64_t accumulate;    /* steps to an update */
    int64_t steps_waiting; /* steps since the last update: the state has their gradients */
    int64_t steps_done;    /* in all epochs */
    int64_t updates;       /* of the weights */
    int64_t total_steps;   /* last planned total; for people only */
    double schedule;       /* progress of the learning rate before the next step, 0 to 1 */
    double lr_scale;       /* 1, halved at every setback */
    int setbacks;          /* times the training went back and on with half the rate */
    int epochs_done;       /* epochs that count, the last one perhaps in part */
    int since_best;        /* epochs since the one with the highest metric */
    bool small;            /* the epoch that follows, if it was begun, has small pictures */
    bool has_best;
    bool best_small;      /* the best epoch had small pictures */
    stk_event_epoch best; /* figures of the best epoch; epoch 0: none yet */
    double best_metric;
    double top_metric; /* the highest of all epochs: the best epoch's is equal within its noise */
    int64_t top_epoch; /* its epoch; 0: none yet, or not known, as in files of older versions */
    stk_loss_watch watch;
    /* Sums of the running epoch. */
    double loss_sum;
    double correct;
    double images;
} stk_train_position;

/*
 * Converts a position to another batch: the same place in the same data. Within an epoch it goes
 * back to the last update, since gradients of larger batches cannot be completed with smaller ones.
 * A position of unknown batch stays as it is.
 */
void stk_train_position_rebatch(stk_train_position *position, int64_t batch, int64_t accumulate,
                                int64_t steps_per_epoch);

#endif
