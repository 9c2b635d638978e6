/*
 * fold_run.h - one fold of a run: split, training with checkpoints, prediction.
 */
#ifndef STK_JOB_TRAINING_FOLD_RUN_H
#define STK_JOB_TRAINING_FOLD_RUN_H

#include "job/training/job.h"

/*
 * Trains fold job->tally.fold and predicts with its best weights. When memory runs out, training
 * goes back to the last saved state with a smaller batch. An error that leaves something to deliver
 * is stored in job->out.late_error and is no failure of this call.
 */
STK_CHECKED stk_status stk_job_run_fold(stk_job *job, stk_error *err);

#endif
