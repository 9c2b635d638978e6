/*
 * fitting.h - fits what a run does to the time that it has.
 *
 * Where a budget decides on the number of epochs, a rehearsal of a few steps shows how many fit.
 * From that follow the model, where several are on this machine (job/recipe/model_search.h), the
 * size of the pictures and refits (budget/training_choice.h), then the row of the table of
 * recipes, the batch and the learning rate. Threads: the job's.
 */
#ifndef STK_JOB_TRAINING_FITTING_H
#define STK_JOB_TRAINING_FITTING_H

#include "budget/fold_choice.h"
#include "budget/model_choice.h"
#include "budget/training_choice.h"
#include "job/training/job.h"
#include "job/training/rehearsal.h"

/* Share of the time that is left for training, once predictions are paid for: the rest is for
 * validations, files and what the rehearsal did not see. */
#define STK_FIT_TRAINING_SHARE 0.85

/* What was found, and what was chosen by it. */
typedef struct stk_fit {
    bool done; /* there was something to choose; otherwise nothing else is set */
    stk_rehearsal rehearsal;
    stk_training_facts facts;   /* of the chosen model */
    stk_training_choice choice; /* size, epochs, refits */
    stk_model_choice model;     /* where several are on this machine */
    stk_fold_choice fewer;      /* folds, if fewer than were asked for are trained */
    int models;                 /* that there is time for */
    size_t train;               /* pictures of a fold */
} stk_fit;

/*
 * Rehearses, chooses, and builds the network again if it has changed. `left_s` are the seconds from
 * now to the end of the budget. Does nothing where no rehearsal is needed, or in a resumed run,
 * which keeps what was chosen. *train and *val become the number of images of a fold.
 */
STK_CHECKED stk_status stk_job_fit(stk_job *job, double left_s, stk_fit *fit, size_t *train,
                                   size_t *val, stk_error *err);

/* Emits what was chosen, and a warning where the budget is hopeless. */
void stk_job_emit_fit(const stk_job *job, const stk_fit *fit);

#endif
