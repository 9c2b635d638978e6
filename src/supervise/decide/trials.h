/*
 * trials.h - decides whether a command is restarted with a larger batch or more workers.
 *
 * Pure: the facts of one attempt go in, one piece of advice comes out. A GPU with little memory in
 * use and little activity, which does not wait for its input, gets twice the batch, and again while
 * that gains a tenth or more and the memory is less than half full. A GPU that waits for its input
 * gets more workers, never a larger batch. A trial is taken back if it did not raise images per
 * second by 3 %, ran out of memory, hung, or was ignored by the command. No trial begins without
 * enough time left for it.
 */
#ifndef STK_SUPERVISE_DECIDE_TRIALS_H
#define STK_SUPERVISE_DECIDE_TRIALS_H

#include <stdbool.h>
#include <stdint.h>

#define STK_TRIALS_MOST 24

/* What one attempt showed when it was checked, or when it ended before. NaN or -1: unknown. */
typedef struct stk_trial_facts {
    int64_t batch;            /* images per step that the command was given, or printed */
    int64_t printed_batch;    /* batch that the command printed; 0 or -1: unknown */
    int64_t epoch_steps;      /* steps per epoch that the command printed; 0 or -1: unknown */
    int workers;              /* loader workers */
    double images_per_second; /* as printed, or computed from steps and batch */
    double memory_share;      /* of the GPUs' memory in use, 0 to 1 */
    double activity;          /* mean utilisation of the GPUs, percent */
    bool gpu_used;
    bool input_bound;   /* the GPUs wait for data */
    bool out_of_memory; /* the attempt ended for lack of memory */
    bool crashed;       /* the attempt ended otherwise before it could be checked */
    bool hung;          /* it hung and was ended */
    /* Circumstances: */
    bool can_set_batch; /* the user said how to set the batch */
    bool can_set_workers;
    int cores;
    double lost_s; /* training time that a restart throws away, starting included */
    double left_s; /* until training is stopped; INFINITY: no budget */
    double fill;   /* target share of memory (--fill); NaN: 50 % memory, 60 % activity */
} stk_trial_facts;

typedef enum stk_trial_action {
    STK_TRIAL_STAY,     /* let the command run: it runs well, or nothing more can be tried */
    STK_TRIAL_RELAUNCH, /* restart with the advised values */
    STK_TRIAL_TAKE_BACK /* restart with the best values so far; this setting is not tried again */
} stk_trial_action;

/* Which setting a trial changes. */
typedef enum stk_trial_setting {
    STK_TRIAL_SETTING_NONE,
    STK_TRIAL_SETTING_BATCH,
    STK_TRIAL_SETTING_WORKERS
} stk_trial_setting;

typedef struct stk_trial_advice {
    stk_trial_action action;
    stk_trial_setting setting; /* to change */
    int64_t batch;             /* to start with; -1: leave it as the command has it */
    int workers;               /* to start with; -1: leave it as the command has it */
    bool kept;                 /* the last attempt was a trial that helped */
    bool tried;                /* the last attempt was a trial */
    bool ignored;              /* the command ignored the requested batch and ran with `batch` */
    char what[120];            /* "batch 64", "batch 32 stays" */
    char why[240];             /* the reason, with its numbers */
} stk_trial_advice;

typedef struct stk_trials {
    stk_trial_facts seen[STK_TRIALS_MOST]; /* attempts so far */
    int count;                             /* of `seen` */
    int best;                              /* index into `seen`; -1: no attempt could be checked */
    stk_trial_setting trying;              /* setting that was changed for the running attempt */
    int64_t value;                         /* value of `trying` in the running attempt */
    bool batch_set;                        /* the batch was changed once: advice names it */
    bool workers_set;                      /* the workers were changed once */
    bool batch_done;                       /* no larger batch will be tried */
    bool workers_done;                     /* no more workers will be tried */
} stk_trials;

void stk_trials_begin(stk_trials *trials);

/* Takes in the facts of an attempt that was checked, or that ended before its check. */
stk_trial_advice stk_trials_after(stk_trials *trials, const stk_trial_facts *facts);

/* The last advice could not be carried out: its setting is not tried again. */
void stk_trials_cancel(stk_trials *trials);

#endif
