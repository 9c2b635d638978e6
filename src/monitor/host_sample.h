/*
 * host_sample.h - what the host does: a look at /proc and at the control groups that limit us.
 *
 * The kernel counts; a look reads the counters, and what is told of the time between two looks are
 * differences. Files stay open from look to look and a look takes no memory. What a machine does
 * not tell, or tells in a way that is not understood, is not known (NaN) and no error.
 *
 * Threads: an eye belongs to one at a time.
 */
#ifndef STK_MONITOR_HOST_SAMPLE_H
#define STK_MONITOR_HOST_SAMPLE_H

#include <sched.h>
#include <stdint.h>

#include <stoker/events.h>
#include <stoker/status.h>

#include "base/threads/proc_tree.h"
#include "monitor/parts.h"

typedef struct stk_host_eye stk_host_eye;

/* For the call only. */
typedef struct stk_host_config {
    const char *proc;       /* NULL: /proc */
    const char *groups;     /* NULL: /sys/fs/cgroup */
    const cpu_set_t *cores; /* NULL: those that the calling thread may run on */
} stk_host_config;

STK_CHECKED stk_status stk_host_eye_open(stk_host_eye **eye, const stk_host_config *config,
                                         stk_error *err);
void stk_host_eye_close(stk_host_eye *eye); /* NULL is fine */

/* How many cores a sample has the shares of. */
int stk_host_eye_cores(const stk_host_eye *eye);

/*
 * Fills in what a sample has of the host, for the time since the last look; after the first one
 * only what needs no time is known. `own` are the processes whose CPU time and memory are the run's
 * own, as they are now; NULL: this one. sample->cores points into the eye until the next look.
 */
void stk_host_eye_look(stk_host_eye *eye, int64_t now_ns, const stk_proc_tree *own,
                       stk_event_sample *sample);

/* What the last look saw and what not. */
void stk_host_eye_parts(const stk_host_eye *eye, stk_part parts[STK_HOST_PARTS]);

#endif
