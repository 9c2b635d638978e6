/*
 * pace.h - how far a fold goes: planned from measured times, again and again while it is trained,
 * and told in one line each time that the number of folds, epochs or views becomes another.
 */
#ifndef STK_JOB_PACE_H
#define STK_JOB_PACE_H

#include "budget/inference.h"
#include "job/job_state.h"

typedef struct stk_fold_pace {
    stk_job *job;
    double start_s;       /* on the job's clock: when the fold began */
    size_t val_images;    /* of its validation */
    stk_validations past; /* what those before took */
    bool by_measure;      /* the held plan, job->plan, rests on measured steps */
    int told_epochs;      /* that people know of; 0: none */
    int told_views;       /* the same of each test picture */
    int told_cut;         /* the epoch whose end before its last step was told; 0: none */
} stk_fold_pace;

/* A fold begins now; its val_images are set later. */
void stk_job_pace_open(stk_fold_pace *pace, stk_job *job);

/* Its steps are others from now on: nothing is planned, and nothing measured. */
void stk_job_pace_anew(stk_fold_pace *pace);

/* For stk_train_hooks: the plan that is held, or a new one; also sets what the job predicts with.
 */
stk_train_pace stk_job_pace(stk_fold_pace *pace, const stk_train_progress *progress);

#endif
