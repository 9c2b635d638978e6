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

#include "job/training/job.h"

/*
 * Rehearses, chooses, builds the network again if it has changed, and emits what was chosen.
 * `left_s` are the seconds from now to the end of the budget. Does nothing where no rehearsal is
 * needed, or in a resumed run, which keeps what was chosen. *train and *val become the number of
 * images of a fold.
 */
STK_CHECKED stk_status stk_job_fit(stk_job *job, double left_s, size_t *train, size_t *val,
                                   stk_error *err);

#endif
