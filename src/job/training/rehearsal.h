/*
 * rehearsal.h - a few steps of training on the real pictures, timed and thrown away.
 *
 * `stoker plan` predicts from them, and a training under a budget chooses by them what it will do
 * with its time. The weights are overwritten: whoever trains next sets them. Threads: the job's.
 */
#ifndef STK_JOB_TRAINING_REHEARSAL_H
#define STK_JOB_TRAINING_REHEARSAL_H

#include "job/training/job.h"

/* How long to measure: for `enough_s` seconds and `enough_steps` steps; slow steps end the
 * rehearsal after most_s seconds, once least_steps were timed, and fast steps after most_steps. */
typedef struct stk_rehearsal_length {
    double enough_s;
    int64_t enough_steps;
    double most_s;
    int64_t least_steps;
    int64_t most_steps;
    double halt_s; /* it is halted then, however few steps were timed; INFINITY: never */
} stk_rehearsal_length;

typedef struct stk_rehearsal {
    size_t batch;         /* pictures of a step */
    double setup_s;       /* seconds from the start of the run to the first step */
    double step_s;        /* seconds of a step; NaN: none could be timed */
    bool is_least;        /* it was halted before a step was timed: one takes step_s or more */
    bool out_of_time;     /* the budget was nearly over before a step was timed */
    double source_px;     /* typical side of a stored picture, in pixels; NaN: not known */
    double wait_fraction; /* share of the time in which steps waited for pictures */
} stk_rehearsal;

/*
 * Trains with the samples of `split`. A CPU takes few pictures a step, fewer of a large model: the
 * time of a picture hardly depends on the batch, and a small one is soon done. On a CPU pictures
 * are decoded only as they are needed: filling many slots first would take the cores away from the
 * few steps that are timed. A request to stop ends the rehearsal early.
 */
STK_CHECKED stk_status stk_job_rehearse(stk_job *job, const stk_split *split,
                                        const stk_rehearsal_length *length,
                                        stk_rehearsal *rehearsal, stk_error *err);

#endif
