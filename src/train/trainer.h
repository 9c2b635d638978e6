/* trainer.h - inside the train room: the training of one fold while it runs. */
#ifndef STK_TRAIN_TRAINER_H
#define STK_TRAIN_TRAINER_H

#include "train/batch_times.h"
#include "train/step_pace.h"
#include "train/times.h"
#include "train/train.h"

/* A step whose result has not come yet. */
typedef struct stk_pending_step {
    size_t count; /* samples */
    int64_t step; /* of the epoch, from 1 */
    bool update;  /* the weights were to move */
} stk_pending_step;

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
    bool torn;               /* a step was halted: running statistics are those of no step */
    bool within_epoch;       /* the running epoch was begun before: by another process, say */
    int64_t saved_ns;        /* when the state was last kept */
    int64_t saved_steps;     /* steps_done then; -1: never */
    int64_t went_on_at;      /* steps_done when training last went on behind a plan; -1: never */
    bool epoch_again;        /* training went on in the middle of the running epoch */
    double epoch_before_s;   /* what that epoch had taken when training went on */
    bool epoch_counted;      /* result->epochs_done has the running epoch, or a part of it */
    bool epoch_judged;       /* it was validated since it was entered */
    int64_t step_before;     /* steps of the running epoch that it was entered with */
    stk_step_pace step_pace; /* of this process */
    int64_t micro_steps;     /* batches since the weights last moved */
    int since_best;          /* epochs */
    stk_metrics val;         /* of the running validation */
    int64_t val_start_ns;    /* when the running validation began */
    stk_batch_times val_times;
    stk_pending_step pending[STK_STEPS_AHEAD];
    int pending_count;
    const stk_batch *held; /* of the last step, which may still read it; NULL: none */
    int64_t arrived_ns;    /* when the last result came, or the first of those steps began */
    /* sums of the running epoch: of the steps whose results have come */
    double loss_sum;
    double correct;
    double images;
    double images_before; /* result->images when the epoch was entered */
    int64_t epoch_updates;
    int64_t epoch_skipped; /* of these, left out by the device: see stk_step_output */
    float loss_scale;      /* of the last result */
    bool told_skips;
    int64_t epoch_start_ns;
    double epoch_train_s;
    double epoch_busy_s;     /* the device computed */
    uint64_t wait_before_ns; /* the loader's counter when the epoch began */
    stk_account account;     /* its stretches end when an epoch is told */
    int asked_workers;       /* by the pace, last; 0: never */
    int asked_slots;
    bool told_batch; /* the first one */
} stk_trainer;

/* Asks how far to go; the next step moves the schedule by one of the steps that are left. */
void stk_trainer_ask_pace(stk_trainer *t);

/* Gives the loader as many workers and slots as the pace last asked for; 0: never. */
void stk_trainer_resize_loader(stk_trainer *t);

/* Whether no step is left of what the pace asked for, or something else has ended the training. */
bool stk_trainer_is_finished(const stk_trainer *t);

/*
 * Whether training goes on, also behind the epoch or the part of one that was planned as the last:
 * with what its validation has told there may be time for the rest of that epoch, or for others.
 * The learning rate becomes that of a training of so many steps.
 */
bool stk_trainer_goes_on(stk_trainer *t);

/* A step was begun at start_ns and counted; its result is to be collected. */
void stk_trainer_note_step(stk_trainer *t, size_t count, bool update, int64_t start_ns);

/* Uses the results that have come; with `wait` all of them. The weights may be read afterwards. */
STK_CHECKED stk_status stk_trainer_collect(stk_trainer *t, bool wait, stk_error *err);

/* Gives the batch of the last step back to the loader. */
void stk_trainer_let_go(stk_trainer *t);

/* At an epoch's end: tells of updates that were left out, or sets result->diverged. */
void stk_trainer_judge_skips(stk_trainer *t);

/* With the mean loss of the samples of a step of the epoch: sets result->diverged and the reason.
 */
void stk_trainer_judge_loss(stk_trainer *t, double loss, int64_t step);

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
