/*
 * host_sampler.h - reads CPU, memory, disk and network use from /proc and from the control groups
 * that limit this process.
 *
 * The kernel keeps counters; a sample has the difference between two readings. The files stay open
 * between readings, and a reading allocates nothing. A figure that the machine does not offer, or
 * that is written in an unknown form, is unknown (NaN), never an error.
 *
 * Threads: a sampler belongs to one thread at a time.
 */
#ifndef STK_MONITOR_HOST_SAMPLER_H
#define STK_MONITOR_HOST_SAMPLER_H

#include <sched.h>
#include <stdint.h>

#include <stoker/events.h>
#include <stoker/status.h>

#include "base/threads/proc_tree.h"

typedef struct stk_host_sampler stk_host_sampler;

/* Borrowed for the call of stk_host_sampler_open(). */
typedef struct stk_host_sampler_config {
    const char *proc;       /* NULL: /proc */
    const char *groups;     /* NULL: /sys/fs/cgroup */
    const cpu_set_t *cores; /* NULL: the cores that the calling thread may run on */
} stk_host_sampler_config;

STK_CHECKED stk_status stk_host_sampler_open(stk_host_sampler **sampler,
                                             const stk_host_sampler_config *config, stk_error *err);
void stk_host_sampler_close(stk_host_sampler *sampler); /* NULL is fine */

/* Number of cores whose use each sample lists. */
int stk_host_sampler_cores(const stk_host_sampler *sampler);

/*
 * Fills in the host figures of a sample for the time since the previous call. After the first call
 * rates are unknown; amounts (memory in use) are known. `own` are the processes whose CPU time and
 * memory are the run's own, as they are now; NULL: this process. sample->cores points into the
 * sampler until the next call.
 */
void stk_host_sampler_read(stk_host_sampler *sampler, int64_t now_ns, const stk_proc_tree *own,
                           stk_event_sample *sample);

enum { STK_HOST_FIGURES = 7 };

/* Writes the names of the figures that the last reading lacked; returns how many. */
int stk_host_sampler_missing(const stk_host_sampler *sampler, const char *names[STK_HOST_FIGURES]);

#endif
