/* trainer.h - inside the train room: the training of one fold while it runs. */
#ifndef STK_TRAIN_TRAINER_H
#define STK_TRAIN_TRAINER_H

#include "train/train.h"

typedef struct stk_trainer {
    const stk_train_config *config;
    stk_train_result *result;
    stk_exec *train_exec;
    bool frozen;          /* it moves the head only */
    stk_exec *infer_exec; /* NULL without validation */
    stk_loader *loader;
    stk_train_progress progress;
    stk_train_pace pace;
    double schedule;      /* 0 to 1: before the next step */
    double schedule_next; /* behind it */
    double lr_factor;     /* share of the highest rate */
    double lr;            /* of the last step */
    double lr_scale;      /* halved at every setback */
    int setbacks;
    int64_t updates; /* times the weights have moved */
    stk_loss_watch watch;
    bool torn;            /* a step was halted: running statistics are those of no step */
    bool within_epoch;    /* the running epoch was begun before: by another process, say */
    int64_t saved_ns;     /* when the state was last kept */
    int64_t saved_steps;  /* steps_done then; -1: never */
    int64_t step_before;  /* steps of the running epoch that it was entered with */
    double images_before; /* and its images */
    int64_t micro_steps;  /* batches since the weights last moved */
    int since_best;       /* epochs */
    stk_metrics val;      /* of the running validation */
    /* sums of the running epoch */
    double loss_sum;
    double correct;
    double images;
    int64_t epoch_start_ns;
    double epoch_train_s;
    uint64_t wait_before_ns; /* the loader's counter when the epoch began */
} stk_trainer;

/* After every step, with the mean loss of its samples: sets result->diverged and the reason. */
void stk_trainer_judge_loss(stk_trainer *t, double loss);

/* At an epoch's end, with its mean loss and that of its validation: sets the same. */
void stk_trainer_judge_epoch(stk_trainer *t, double train_loss, double val_loss);

/* Weights that are no numbers must not be kept as if they were: sets the same. */
STK_CHECKED stk_status stk_trainer_judge_weights(stk_trainer *t, stk_error *err);

/* Goes to where another process was, or this one before. */
void stk_trainer_put(stk_trainer *t, const stk_train_position *from);

/*
 * Keeps the state for a later process, or for going back: not when it may be going wrong. `whole`:
 * the running epoch is over and counted.
 */
void stk_trainer_save(stk_trainer *t, bool whole);

/* The same within an epoch, unless the weights are of no use or nothing has changed. */
STK_CHECKED stk_status stk_trainer_save_within(stk_trainer *t, stk_error *err);

/* Within an epoch, after hooks.save_every_s. */
bool stk_trainer_save_is_due(const stk_trainer *t);

#endif
