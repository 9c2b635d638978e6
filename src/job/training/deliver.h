/*
 * deliver.h - what a run hands over: its submission, its summary, its outcome or its error.
 */
#ifndef STK_JOB_TRAINING_DELIVER_H
#define STK_JOB_TRAINING_DELIVER_H

#include "job/training/job.h"

/*
 * Writes the submission from the ensemble as it stands; `status` is "prior", "partial" or
 * "complete". If there is no time to write another one, an existing submission stays, with a
 * warning.
 */
STK_CHECKED stk_status stk_job_submit(stk_job *job, const char *status, stk_error *err);

/*
 * Writes validation.csv when the running fold has a better epoch and there is time for it. If there
 * is no time at the `last` call of a fold, a warning says so.
 */
void stk_job_write_validation(stk_job *job, bool last);

/* Emits why no model was trained, where the budget was the reason. */
void stk_job_emit_untrained(stk_job *job);

/* Fills in the summary; `status` is that of the run. */
void stk_job_finish_summary(stk_job *job, stk_status status);

/* For a resumed run that has nothing left to do, instead of the calls above: emits that, and
 * delivers what the run folder has. */
STK_CHECKED stk_status stk_job_deliver_complete(stk_job *job, stk_error *err);

void stk_job_fill_outcome(const stk_run_outputs *out, stk_outcome *outcome);

/* Fails where the run has nothing to deliver, or an error was put off until now. */
STK_CHECKED stk_status stk_job_check_delivered(const stk_job *job, stk_error *err);

#endif
