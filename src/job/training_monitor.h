/*
 * training_monitor.h - inside the job room: a training looks at itself.
 *
 * Before a step, and once a second at most, what the machine did meanwhile is told as samples. Soon
 * after the first steps there is a quick verdict on why it is as fast as it is, after a minute of
 * steady work one that counts, and another whenever that changes. With --tune what a verdict asks
 * for is tried, and kept where it helps. Threads: the job's.
 */
#ifndef STK_JOB_TRAINING_MONITOR_H
#define STK_JOB_TRAINING_MONITOR_H

#include "job/job_state.h"

typedef struct stk_training_monitor stk_training_monitor;

/* Opens job->monitor. A machine that shows nothing of itself is no error: what it does not show is
 * told. */
STK_CHECKED stk_status stk_training_monitor_open(stk_job *job, stk_error *err);
void stk_training_monitor_close(stk_job *job);

/* Before a step of the running fold; may set what the loader is to have from now on. */
void stk_training_monitor_step(stk_job *job, const stk_train_progress *progress,
                               stk_train_pace *pace);

/* A fold's training has ended: the verdict on it, if there was none that counts. */
void stk_training_monitor_end_fold(stk_job *job);

/* Samples that were not told yet, with nothing of training in them. */
void stk_training_monitor_emit_samples(stk_job *job);

/* The last verdict's name; NULL: there was too little to judge by. */
const char *stk_training_monitor_verdict(const stk_job *job);

#endif
