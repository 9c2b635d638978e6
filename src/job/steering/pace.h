/*
 * pace.h - how far the running fold goes: it makes and renews the plan that time_plan.h holds.
 *
 * The plan is made from measured times, again and again while the fold is trained. Each change in
 * the number of folds, epochs or views is emitted as one decision. Threads: the job's.
 */
#ifndef STK_JOB_STEERING_PACE_H
#define STK_JOB_STEERING_PACE_H

#include "budget/inference.h"
#include "job/saved/state_saver.h"
#include "job/steering/fold_tally.h"
#include "job/steering/time_plan.h"

typedef struct stk_fold_pace {
    /* Borrowed from the job. *recipe is the recipe that the job holds now. */
    const stk_recipe *recipe;
    stk_run_clock *clock;
    const stk_events *events;
    stk_time_plan *time; /* written: the plan that is held */
    const stk_fold_tally *tally;
    const stk_state_saver *saver; /* what saving takes */
    size_t test_images;           /* to predict after training; 0: none */
    size_t val_images;            /* of one validation of this fold */
    size_t means_images; /* pictures whose features are taken after training; 0: none are */
    /* Of this fold. */
    double start_s;       /* on the clock: when the fold began; seconds left out are added */
    bool asked;           /* the first step was asked for: no beginning is measured again */
    bool timed_before;    /* an earlier fold has timed a prediction */
    stk_validations past; /* times of its validations */
    double picture_s;     /* seconds per picture of an inference, as last estimated; 0: not known */
    double unread_s;      /* seconds per picture of its first validation, or without a validation
                             set of its first epoch, as inference; NaN: not yet */
    bool by_measure;      /* the plan that is held rests on measured steps */
    int epochs_emitted;   /* number of epochs that was last emitted; 0: none */
    int views_emitted;    /* number of views that was last emitted */
    int cut_emitted;      /* epoch whose early end was emitted; 0: none */
} stk_fold_pace;

/* A fold begins now. The borrowed fields are set, and val_images may still be set later. */
void stk_fold_pace_begin(stk_fold_pace *pace);

/* So many seconds were the whole run's: this fold's share is one of what is left then. The test
 * set was predicted early, the learning rate was looked for, or a network compiled that the folds
 * after this one use, too. */
void stk_fold_pace_leave_out(stk_fold_pace *pace, double seconds);

/* Training begins again with other steps: forgets the plan and what was measured. */
void stk_fold_pace_reset(stk_fold_pace *pace);

/* For stk_train_hooks: returns the plan that is held, or a new one. Also updates the views and
 * seconds of prediction in the time plan. */
stk_train_orders stk_fold_pace_step(stk_fold_pace *pace, const stk_train_standing *standing);

#endif
