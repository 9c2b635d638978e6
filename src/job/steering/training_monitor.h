/*
 * training_monitor.h - watches a training: samples of the machine, verdicts, and --tune.
 *
 * Before a step, at most once a second, the monitor emits the new samples of the machine. After the
 * first steps it emits a quick verdict on what limits the speed, after a minute of steady work a
 * verdict that counts, and another one whenever the verdict changes. With --tune it tries what a
 * verdict advises and keeps what helps. Threads: the job's; the machine is sampled on a
 * thread of src/monitor.
 */
#ifndef STK_JOB_STEERING_TRAINING_MONITOR_H
#define STK_JOB_STEERING_TRAINING_MONITOR_H

#include "events/events.h"
#include "job/recipe/batch_search.h"
#include "job/recipe/network.h"
#include "job/recipe/recipe.h"
#include "storage/storage.h"
#include "train/train.h"

typedef struct stk_training_monitor stk_training_monitor;

/* Everything is borrowed until the monitor is closed. */
typedef struct stk_training_monitor_config {
    const stk_events *events;
    const stk_job_network *network;
    const stk_recipe *recipe;       /* the job's current one */
    const stk_batch_search *search; /* knows the memory, and how many images a fold trains on */
    stk_store *store;               /* where the pictures come from */
    int64_t start_ns;               /* monotonic clock: time 0 of the samples */
    bool tune;
} stk_training_monitor_config;

/* A machine that cannot be sampled is no error: the monitor emits a warning. */
STK_CHECKED stk_status stk_training_monitor_open(stk_training_monitor **monitor,
                                                 const stk_training_monitor_config *config,
                                                 stk_error *err);
void stk_training_monitor_close(stk_training_monitor *monitor);

/* Before a step of the running fold. With --tune it may set workers and slots in *orders. */
void stk_training_monitor_step(stk_training_monitor *monitor, const stk_train_standing *standing,
                               stk_train_orders *orders);

/* The training of a fold has ended: emits a verdict on it, if there was none on steady work. */
void stk_training_monitor_end_fold(stk_training_monitor *monitor);

/* Emits the samples that are left, with nothing of training in them; NULL is accepted. */
void stk_training_monitor_emit_samples(stk_training_monitor *monitor);

/* Name of the last verdict; NULL: there was too little to judge by, or no monitor. */
const char *stk_training_monitor_verdict(const stk_training_monitor *monitor);

/* Decode workers that --tune has kept; 0: it changed none. */
int stk_training_monitor_workers(const stk_training_monitor *monitor);

#endif
