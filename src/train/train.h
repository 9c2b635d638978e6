/*
 * train.h - one fold: steps, schedule, validation, best weights.
 *
 * stk_train_fold() trains a state until the pace hook says that it is enough. The trainer knows no
 * deadlines or files. The `pace` hook says how many steps there will be; it is asked before
 * every step and may change its answer. The `checkpoint` hook saves weights. The learning rate
 * follows progress from 0 to 1 over the steps that are left, so it ends low however often the total
 * changes. After the last step and its validation the pace hook is asked once more: when it finds
 * time for more steps, training goes on with the learning rate of a longer training.
 *
 * A training that went wrong (loss_watch.h, or weights that are not finite) goes back to the last
 * saved epoch and continues with half the learning rate, three times at most. Threads: the
 * caller's.
 */
#ifndef STK_TRAIN_TRAIN_H
#define STK_TRAIN_TRAIN_H

#include "engine/exec_cache.h"
#include "events/events.h"
#include "loader/loader.h"
#include "train/evaluate.h"
#include "train/sample_results.h"
#include "metrics/metrics.h"
#include "metrics/pooling.h"
#include "train/position.h"
#include "weights/calibration.h"
#include "weights/outputs.h"

/* In the order of the options' choices; optimisers are stk_optimizer. */
typedef enum stk_schedule {
    STK_SCHEDULE_COSINE,  /* half a cosine down to 0 */
    STK_SCHEDULE_LINEAR,  /* a straight line down to 0 */
    STK_SCHEDULE_STEP,    /* a tenth at 30, 60 and 90 % of the training each */
    STK_SCHEDULE_CONSTANT /* after the warm-up */
} stk_schedule;

/* A step in which only the head learns takes about this part of a usual one. */
#define STK_FROZEN_PART (1.0 / 3)

/* What norms divide by in training; in the order of the option's choices. */
typedef enum stk_norm_stats {
    STK_NORM_STATS_AUTO,  /* as the recipe says */
    STK_NORM_STATS_BATCH, /* the batch's deviation */
    STK_NORM_STATS_KEPT   /* that of the first weights, always */
} stk_norm_stats;

/* In the order of the option's choices; recipe_loss.h of the job has their numbers. */
typedef enum stk_loss_choice {
    STK_LOSS_CHOICE_AUTO, /* by task and metric */
    STK_LOSS_CHOICE_CE,
    STK_LOSS_CHOICE_BCE,
    STK_LOSS_CHOICE_FOCAL,
    STK_LOSS_CHOICE_ASYMMETRIC,
    STK_LOSS_CHOICE_MSE,
    STK_LOSS_CHOICE_MAE,
    STK_LOSS_CHOICE_HUBER
} stk_loss_choice;

/* The choice "auto" of the option, after the optimisers: the recipe decides. */
#define STK_OPTIMIZER_AUTO 2

/* The most batches of one update. */
#define STK_MOST_ACCUMULATE 65536

typedef struct stk_train_options {
    int64_t epochs;   /* STK_AUTO_INT */
    int64_t batch;    /* STK_AUTO_INT */
    int batch_policy; /* stk_batch_policy: how auto becomes a number */
    double lr;        /* STK_AUTO_DOUBLE: found by a test; STK_DEFAULT_DOUBLE: see job's recipe */
    int optimizer;    /* stk_optimizer, or STK_OPTIMIZER_AUTO */
    int schedule;     /* stk_schedule */
    double momentum;  /* of SGD; AdamW's beta1 */
    bool nesterov;    /* SGD */
    double beta2;     /* AdamW */
    double weight_decay; /* STK_AUTO_DOUBLE */
    double warmup;       /* share of the training during which the rate rises */
    double clip_grad;    /* greatest norm of the gradients; 0: any */
    double ema;          /* decay of the averaged weights; 0: none are kept; STK_AUTO_DOUBLE */
    double head_lr;      /* STK_AUTO_DOUBLE: as lr */
    double backbone_lr_scale;
    int norm_stats;         /* stk_norm_stats */
    int64_t freeze_epochs;  /* during which only the head learns; STK_AUTO_INT */
    int loss;               /* stk_loss_choice */
    double positive_weight; /* of labels that hold; STK_AUTO_DOUBLE: by how rare each is */
    double label_smoothing; /* STK_AUTO_DOUBLE */
    int64_t accumulate;
    int64_t patience; /* epochs without a better one; 0: never stop early */
    double mixup;     /* STK_AUTO_DOUBLE */
    double cutmix;
    int metric;       /* stk_metric; while training never STK_METRIC_AUTO */
    bool calibrate;   /* fit temperature and label rule to the validation of the best epoch */
    bool class_means; /* where most classes have few pictures, means of classes may join the head */
    int pool;         /* stk_pooling: how the pictures of a row become its values */
} stk_train_options;

extern const stk_option_table stk_train_option_table;

/* Where training stands, for the pace hook. */
typedef struct stk_train_standing {
    int epoch;    /* the running epoch, from 1 */
    int64_t step; /* steps done of this epoch */
    int64_t steps_per_epoch;
    int64_t steps_done;  /* in all epochs */
    int64_t frozen_left; /* steps from here on in which only the head learns */
    double frozen_part;  /* such a step takes this part of step_s */
    int64_t steps_timed; /* steps that this process measured */
    /* Recent seconds per step, see typical_step.h; NaN before the second step. While only the head
     * learns, what a usual step is expected to take. */
    double step_s;
    double wait_s;   /* part of step_s spent waiting for pictures */
    bool expected;   /* few steps of this kind were timed: step_s is what to expect */
    int validations; /* validations that this process measured */
    double val_s;    /* seconds of the last validation; NaN before the first */
    /* Seconds of the last validation, had its slowest batch been as fast as the others; NaN before
     * the first validation. */
    double val_even_s;
    /* All planned steps are done and validated, and the hook is asked whether there is time for
     * more. `epoch` and `step` then say where training would go on. */
    bool over;
    /* Where the time of this fold in this process went so far; see stk_times_between(). */
    stk_times times;
    double copy_s; /* seconds of copying pictures to the device, whether or not it waited */
    /* Counters of the training loader; they start again when training goes back. */
    stk_loader_counters loader;
    const stk_store *store; /* the store that the loader reads from, for stk_store_stats() */
} stk_train_standing;

typedef struct stk_train_orders {
    int epochs;          /* planned epochs of this fold; for people only */
    int64_t total_steps; /* planned steps of this fold: training ends when steps_done reaches it */
    bool stop;           /* end now */
    int validate_every;  /* epochs from one validation, or without a validation set from one saving,
                            to the next; 0 means 1. The first and the last are never left out. */
    int workers;         /* decode workers from now on, as far as there is room; 0: no change */
    int slots;           /* slots from now on, as far as there is room; 0: no change */
} stk_train_orders;

typedef struct stk_train_hooks {
    void *user;
    stk_train_orders (*pace)(void *user, const stk_train_standing *standing);
    /* Called after an epoch was validated; `best`: it is the best so far. */
    stk_status (*checkpoint)(void *user, const stk_event_epoch *epoch, bool best, stk_error *err);
    /* Called before and after a network is compiled, which may take long. A device that is halted
     * meanwhile ends the training as it stands. May be NULL. */
    void (*compiling)(void *user, bool begins);
    /* Whether a validation that has seen so many images in so many seconds must end early. NULL:
     * never. */
    bool (*validation_must_end)(void *user, size_t seen, double seconds);
    /*
     * Saves the tensors of the state and the position: before the first step, after every validated
     * epoch, when training ends between two steps, and every save_every_s. A hook that fails
     * reports that itself, and training goes on. NULL: nothing is saved.
     */
    void (*save_state)(void *user, const stk_train_position *position);
    /* Restores the last state saved between epochs (position.step 0), or before the first step.
     * *there is false where there is none. NULL: there never is one. */
    stk_status (*load_state)(void *user, stk_train_position *position, bool *there, stk_error *err);
    double save_every_s;
    /*
     * Called after the weights of a fully validated epoch were saved as the best ones, if more
     * steps are planned. The state still has these weights, and `exec` is the executable that has
     * validated them. Whatever the hook does with them is no failure of the training, and its time
     * counts as that of a validation. NULL: nothing is done.
     */
    void (*improved)(void *user, const stk_train_standing *standing, stk_exec *exec);
} stk_train_hooks;

typedef struct stk_train_config {
    const stk_backend *backend;
    stk_state *state; /* with weights to start from */
    const stk_graph *graph;
    /* "auto" resolved, except in head_lr; epochs, batch and lr in it are not read. */
    const stk_train_options *options;
    double lr;                        /* highest learning rate; the head may have its own */
    stk_compile_config train_compile; /* of training; the trainer sets `frozen` */
    stk_compile_config val_compile;   /* of validation */
    /* The same network for the smaller pictures of the first part of the training, and of
     * validations then. Many steps are worth more than detail at first, where training starts from
     * scratch. NULL: pictures have one size. */
    const stk_graph *small_graph;
    const stk_graph *small_val_graph;
    /* The training samples. The trainer sets batch and order. */
    stk_loader_config train_data;
    /* The validation samples, as stk_evaluation.data. The trainer sets batch and, with
     * hooks.validation_must_end, halt. count 0: no validation, and the last weights are best. */
    stk_loader_config val_data;
    uint64_t seed;
    int fold;
    const stk_events *events;
    /* Filled by every validation, for the checkpoint hook; has room for all of `val_data`. May be
     * NULL. */
    stk_sample_results *sample_results;
    /* Filled with options->calibrate when an epoch has become the best one, before the checkpoint
     * hook; freed by the caller. With a rule for its answers an epoch is rated by them. Without
     * validation it stays as it is. May be NULL. */
    stk_calibration *calibration;
    const stk_outputs *outputs; /* what the network's outputs mean; NULL: a single class */
    int ranked;                 /* names in a ranked list; 0: 5 */
    /* What a calibration needs to know: class of strangers, labels that stand alone. Its metric is
     * options->metric. */
    int stranger;          /* below 0: there is none */
    const bool *exclusive; /* (outputs); NULL: none is */
    /* The validation samples have rows as the submission has (stk_sample.row), and rows are rated
     * instead of pictures. */
    bool by_rows;
    stk_pooling pool; /* that of the models before, or as options->pool */
    stk_train_hooks hooks;
    const stk_train_position *resume; /* where training continues; NULL: at the beginning */
    /* Borrowed: the executables of `state` that earlier folds have left, and that later ones find.
     * NULL: none are kept. */
    stk_exec_cache *execs;
    /* Predictions follow: the network that validates is compiled without a validation, too, and
     * waits in `execs`. */
    bool predicts;
} stk_train_config;

typedef struct stk_train_result {
    int epochs_done; /* including a last part, and epochs before a resume */
    bool ran_out_of_patience;
    bool halted;      /* within a step, while compiling, or while waiting for pictures */
    bool validating;  /* the last activity, or the one that failed, was validation */
    bool diverged;    /* going back did not help; the best weights stay */
    char trouble[96]; /* what went wrong last; "" when nothing did */
    double lr_scale;  /* of the learning rate at the end; 1 unless something went wrong */
    bool small;       /* training has the small pictures now */
    bool has_best;
    bool best_small; /* the best weights were validated with the small pictures */
    stk_event_epoch best;
    double best_metric; /* of the best epoch, by options->metric; NaN without validation */
    size_t best_scored; /* pictures, or rows of pictures, that this metric is of; 0: an earlier
                           process validated it */
    /* Loss and accuracy (percent) to rate the best weights by. They are those of the best epoch. If
     * its validation ran out of time, they are those of the best epoch before, changed by what the
     * same images differ: a few images alone may be hard ones. */
    double rated_loss;
    double rated_acc1;
    double images;    /* trained on */
    double train_s;   /* seconds in steps, waiting included */
    double wait_s;    /* seconds of waiting for batches */
    double starved_s; /* the same, as steps saw it, a last one that was halted included */
    double closing_s; /* seconds of closing the loader, and networks that are not kept */
    int workers;      /* decode workers that the loader ended with */
    int slots;        /* slots that it ended with */
    stk_times times;  /* where all the time went */
} stk_train_result;

STK_CHECKED stk_status stk_train_fold(const stk_train_config *config, stk_train_result *result,
                                      stk_error *err);

/* Whether all parameters and the optimiser's tensors are finite. */
STK_CHECKED stk_status stk_train_finite(const stk_backend *backend, stk_state *state,
                                        const stk_graph *graph, bool *finite, stk_error *err);

/* The share of the highest learning rate at progress 0 to 1: a linear warm-up, then the schedule.
 */
double stk_schedule_factor(stk_schedule schedule, double warmup, double progress);

/* How one batch is mixed, from (seed, step): mixup, CutMix or neither. */
stk_mix stk_mix_draw(double mixup, double cutmix, uint64_t seed, uint64_t step, int img_size);

/* What one update of the weights depends on besides the options. */
typedef struct stk_update_point {
    double lr;              /* learning rate of the backbone, before backbone_lr_scale */
    double head_lr;         /* learning rate of the head */
    int64_t steps;          /* whose gradients were added up */
    int64_t updates;        /* before this one */
    int64_t frozen_updates; /* planned for the frozen phase; may exceed `updates` */
} stk_update_point;

stk_update stk_update_make(const stk_train_options *options, const stk_update_point *point);

/* Updates during the epochs in which only the head learns. */
int64_t stk_update_frozen_count(const stk_train_options *options, int64_t steps_per_epoch);

/* Prepares a state for a new training: the optimiser's tensors become zero, averaged weights (if
 * the state has them) equal the weights, and the loss scale returns to its start. */
STK_CHECKED stk_status stk_train_reset_state(const stk_backend *backend, stk_state *state,
                                             const stk_graph *graph, stk_error *err);

#endif
