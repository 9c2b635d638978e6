/*
 * train.h - one fold: steps, schedule, validation, best weights.
 *
 * stk_train_fold() trains the state that it is handed and returns when the pace says so. It knows
 * neither deadlines nor folds nor files: how many steps there will be comes from the `pace` hook,
 * which is asked before every step and may change its mind; saving is the `checkpoint` hook's. The
 * learning rate follows progress from 0 to 1 over whatever steps are left, so it ends low however
 * often the total changes. When all steps are done and judged, the hook is asked once more: where
 * it finds time for others, training goes on with the learning rate of a longer training.
 *
 * A training that has gone wrong (loss_watch.h, or weights that are no numbers) goes back to the
 * last epoch that was kept, and on with half the learning rate, three times at most.
 */
#ifndef STK_TRAIN_TRAIN_H
#define STK_TRAIN_TRAIN_H

#include "engine/backend.h"
#include "events/events.h"
#include "loader/loader.h"
#include "train/evaluate.h"
#include "train/sample_results.h"
#include "train/metrics.h"
#include "train/position.h"

/* In the order of the options' choices; optimisers are stk_optimizer. */
typedef enum stk_schedule {
    STK_SCHEDULE_COSINE,  /* half a cosine down to 0 */
    STK_SCHEDULE_LINEAR,  /* a straight line down to 0 */
    STK_SCHEDULE_STEP,    /* a tenth at 30, 60 and 90 % of the training each */
    STK_SCHEDULE_CONSTANT /* after the warm-up */
} stk_schedule;

typedef struct stk_train_options {
    int64_t epochs;   /* STK_AUTO_INT */
    int64_t batch;    /* STK_AUTO_INT */
    int batch_policy; /* stk_batch_policy: how auto becomes a number */
    double lr;        /* STK_AUTO_DOUBLE: found by a test; STK_DEFAULT_DOUBLE: see job/recipe.c */
    int optimizer;    /* stk_optimizer */
    int schedule;     /* stk_schedule */
    double momentum;  /* of SGD; AdamW's beta1 */
    bool nesterov;    /* SGD */
    double beta2;     /* AdamW */
    double weight_decay; /* STK_AUTO_DOUBLE */
    double warmup;       /* share of the training during which the rate rises */
    double clip_grad;    /* greatest norm of the gradients; 0: any */
    double ema;          /* decay of the averaged weights; 0: none are kept */
    double head_lr;      /* STK_AUTO_DOUBLE: as lr */
    double backbone_lr_scale;
    int64_t freeze_epochs; /* during which only the head learns */
    double label_smoothing;
    int64_t accumulate;
    int64_t patience; /* epochs without a better one; 0: never stop early; STK_AUTO_INT */
    double mixup;
    double cutmix;
    int metric; /* stk_metric */
} stk_train_options;

extern const stk_option_table stk_train_option_table;

/* Where training stands, for whoever paces it. */
typedef struct stk_train_progress {
    int epoch;    /* from 1: the one that is being trained */
    int64_t step; /* steps done of this epoch */
    int64_t steps_per_epoch;
    int64_t steps_done;  /* of all epochs */
    int64_t steps_timed; /* by this process */
    double step_s;       /* recent seconds per step, see step_pace.h; NaN before the second one */
    double wait_s;       /* of these, waiting for pictures */
    int validations;     /* timed by this process */
    double val_s;        /* seconds of the last one; NaN before the first */
    double val_even_s;   /* the same, had its slowest batch been as fast as the others */
    /* All steps of the last pace are done and judged, and this is where training would go on: is
     * there time for more? */
    bool over;
    /* Of this fold by this process, up to now; stk_times_between() tells what came between two. */
    stk_times times;
    double copy_s; /* pictures travelled to the device that long, whether or not it waited */
    /* The training pictures' loader, now; it begins again when training goes back. */
    stk_loader_counters loader;
    const stk_store *store; /* where they come from, for stk_store_stats() */
} stk_train_progress;

typedef struct stk_train_pace {
    int epochs;          /* for people: of how many this epoch is one */
    int64_t total_steps; /* of this fold; steps_done reaching it ends the training */
    bool stop;           /* end now */
    int workers;         /* of the loader from here on, as far as it has room; 0: as they are */
    int slots;           /* the same */
} stk_train_pace;

typedef struct stk_train_hooks {
    void *user;
    stk_train_pace (*pace)(void *user, const stk_train_progress *progress);
    /* After an epoch was validated; best: it is the best so far. */
    stk_status (*checkpoint)(void *user, const stk_event_epoch *epoch, bool best, stk_error *err);
    /* Before and after a network is compiled, which may take long: a device that is halted
     * meanwhile ends the training as it stands. NULL: nobody wants to know. */
    void (*compiling)(void *user, bool begins);
    /* Whether a validation ends that has seen so many images in so many seconds: they may be
     * enough. NULL: it never does. */
    bool (*validation_must_end)(void *user, size_t seen, double seconds);
    /*
     * Keeps the tensors of the state and the position for later: before the first step, after every
     * epoch, when training ends between two steps, and every save_every_s. A hook that cannot is to
     * tell so itself: training goes on. NULL: nothing is kept.
     */
    void (*save_state)(void *user, const stk_train_position *position);
    /* Brings back what was kept last between epochs (position.step 0), the beginning included;
     * *there is false where nothing was. NULL: as if so. */
    stk_status (*load_state)(void *user, stk_train_position *position, bool *there, stk_error *err);
    double save_every_s;
} stk_train_hooks;

typedef struct stk_train_config {
    const stk_backend *backend;
    stk_state *state; /* initialised */
    const stk_graph *graph;
    const stk_train_options *options; /* its autos resolved: see lr and batch */
    double lr;                        /* highest; the head's may be another */
    stk_precision precision;
    bool plain;              /* compile without fusion */
    stk_loader_config train; /* samples, transform, batch, plan of training */
    stk_loader_config val;   /* the same of validation; count 0: none, the last weights are best */
    uint64_t seed;
    int fold;
    const stk_events *events;
    /* Filled by every validation, with room for all of val: the checkpoint hook finds there what
     * the epoch's said. NULL: nobody wants to know. */
    stk_sample_results *sample_results;
    stk_train_hooks hooks;
    const stk_train_position *resume; /* where `state` stands; NULL: at the beginning */
} stk_train_config;

typedef struct stk_train_result {
    int epochs_done; /* whole ones and a last part; those before a resume count */
    bool ran_out_of_patience;
    bool halted; /* in the middle of a step, while compiling, or while no pictures came */
    bool
        validating; /* what went on last, or failed, was validation: its compiling or its running */
    bool diverged;  /* going back did not help; nothing after the best is kept */
    char trouble[96]; /* what went wrong last; "" when nothing did */
    double lr_scale;  /* of the learning rate in the end: 1 unless something did */
    bool has_best;
    stk_event_epoch best;
    double best_metric; /* of the best epoch, by options->metric; NaN without validation */
    double images;      /* trained on */
    double train_s;     /* in steps, waiting included */
    double wait_s;      /* waiting for batches */
    double closing_s;   /* giving back what training needed */
    int workers;        /* that the loader ended with */
    int slots;
    stk_times times; /* from the first to the last moment */
} stk_train_result;

STK_CHECKED stk_status stk_train_fold(const stk_train_config *config, stk_train_result *result,
                                      stk_error *err);

/* Whether all parameters and what the optimiser keeps of them are numbers. */
STK_CHECKED stk_status stk_train_finite(const stk_backend *backend, stk_state *state,
                                        const stk_graph *graph, bool *finite, stk_error *err);

/* The share of the highest learning rate at progress 0 to 1: a linear warm-up, then the schedule.
 */
double stk_schedule_factor(stk_schedule schedule, double warmup, double progress);

/* How one batch is mixed, from (seed, step): mixup, CutMix or neither. */
stk_mix stk_mix_draw(double mixup, double cutmix, uint64_t seed, uint64_t step, int img_size);

/* What an update of the weights depends on beside the options. */
typedef struct stk_update_point {
    double lr;           /* of options->lr's kind, by the schedule */
    double head_lr;      /* of the head */
    int64_t micro_steps; /* batches whose gradients were added up */
    int64_t updates;     /* before this one */
    /* Of these, that only moved the head; may be more than there were yet. */
    int64_t frozen_updates;
} stk_update_point;

stk_update stk_update_make(const stk_train_options *options, const stk_update_point *moment);

/* Updates during the epochs in which only the head learns. */
int64_t stk_update_frozen_count(const stk_train_options *options, int64_t steps_per_epoch);

/* Sets the optimiser's memory to zero, the averages, where the state has them, to the values, and
 * all else that a training remembers to its start. */
STK_CHECKED stk_status stk_train_reset_state(const stk_backend *backend, stk_state *state,
                                             const stk_graph *graph, stk_error *err);

#endif
