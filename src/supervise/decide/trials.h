/*
 * trials.h - whether a command is to be started again with a larger batch or more workers, and
 * whether what was tried stays. Pure: facts go in, one piece of advice comes out.
 *
 * A GPU that is neither full nor busy, and does not wait for its input, gets twice the batch, and
 * again while that brings a tenth or more and it is not half full; where
 * it waits for its input the workers become more, never the batch. What did not raise the images
 * per second by 3 %, ran out of memory, hung, or was not taken notice of, is taken back. No trial
 * is begun that there is no time for.
 */
#ifndef STK_SUPERVISE_DECIDE_TRIALS_H
#define STK_SUPERVISE_DECIDE_TRIALS_H

#include <stdbool.h>
#include <stdint.h>

#define STK_TRIALS_MOST 24

/* What one attempt has shown when it was looked at. NaN or -1: not known. */
typedef struct stk_trial_facts {
    int64_t batch;
    int64_t said_batch;  /* by the command itself, whatever it was told; 0 the same as -1 */
    int64_t epoch_steps; /* of its epochs, as it says them; the same */
    int workers;
    double images_per_second; /* or steps, where no batch is known: only compared with each other */
    double memory_share;      /* of the GPUs', 0 to 1 */
    double activity;          /* of the GPUs, percent */
    bool gpu_used;
    bool input_bound;
    bool out_of_memory; /* the command ended so */
    bool crashed;       /* it ended otherwise before it could be looked at */
    bool hung;          /* it did not, and was ended */
    /* What there is to work with */
    bool can_set_batch; /* the batch can be told */
    bool can_set_workers;
    int cores;
    double lost_s; /* training time that a start anew throws away, and starting takes */
    double left_s; /* until training is stopped; INFINITY: no budget */
    double
        fill; /* share of the memory to be reached; NaN: the rule of 50 % memory, 60 % activity */
} stk_trial_facts;

typedef enum stk_trial_action {
    STK_TRIAL_STAY,     /* it runs well, or nothing more is to be tried: go on */
    STK_TRIAL_RELAUNCH, /* stop, and start with what the advice says */
    STK_TRIAL_TAKE_BACK /* the same with what was best before; nothing more is tried */
} stk_trial_action;

/* What an attempt is started for. */
typedef enum stk_trial_setting {
    STK_TRIAL_SETTING_NONE,
    STK_TRIAL_SETTING_BATCH,
    STK_TRIAL_SETTING_WORKERS
} stk_trial_setting;

typedef struct stk_trial_advice {
    stk_trial_action act;
    stk_trial_setting of; /* what is to become another one */
    int64_t batch;        /* to start with; -1: as the command has it */
    int workers;
    bool kept;      /* what the last attempt tried was better, and stays */
    bool tried;     /* the last attempt was a trial */
    bool ignored;   /* the trial was of a batch that the command did not take: it used `batch` */
    char what[120]; /* "batch 64", "batch 32 stays" */
    char why[240];  /* with the numbers */
} stk_trial_advice;

typedef struct stk_trials {
    stk_trial_facts seen[STK_TRIALS_MOST];
    int count;
    int best;                 /* of them; -1: none could be looked at */
    stk_trial_setting trying; /* what was changed for the attempt that runs */
    int64_t value;            /* that it was given for this */
    bool batch_told;          /* the batch was changed once: from then on advice names it */
    bool workers_told;
    bool batch_done; /* no larger one is to be tried */
    bool workers_done;
} stk_trials;

void stk_trials_begin(stk_trials *trials);

/* After an attempt was looked at (or ended before that). */
stk_trial_advice stk_trials_after(stk_trials *trials, const stk_trial_facts *facts);

/* The command could not be told what the last advice said: nothing of its kind is tried again. */
void stk_trials_cancel(stk_trials *trials);

#endif
