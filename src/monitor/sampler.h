/*
 * sampler.h - looks at the machine once a second while something else works.
 *
 * A thread of its own asks /proc and, where there is one, the GPU's management library, and keeps
 * what it saw until it is taken. It never slows the work: taking waits for no look that is under
 * way. A machine that shows nothing of itself (a container without /proc, no NVML) gives samples
 * without it, and stk_sampler_notes says what is missing.
 *
 * Threads: one may take while the sampler looks.
 */
#ifndef STK_MONITOR_SAMPLER_H
#define STK_MONITOR_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/events.h>
#include <stoker/status.h>

typedef struct stk_sampler stk_sampler;

typedef struct stk_sampler_config {
    const char *gpu_bus_id; /* "0000:19:00.0": which GPU; NULL: none. For the call only */
    int64_t start_ns;       /* what the samples' times count from */
    double every_s;         /* 0: one second */
    const char *proc;       /* NULL: /proc; tests bring their own */
} stk_sampler_config;

STK_CHECKED stk_status stk_sampler_start(stk_sampler **sampler, const stk_sampler_config *config,
                                         stk_error *err);
void stk_sampler_stop(stk_sampler *sampler); /* NULL is fine */

/*
 * The oldest sample that was not taken; false: there is none. What belongs to training in it (rate,
 * wait, batches, workers) is left for the caller to fill in. Its pointers are valid until the next
 * call.
 */
bool stk_sampler_take(stk_sampler *sampler, stk_event_sample *sample);

/* What cannot be seen on this machine, one sentence; "" when all can. Lives as the sampler does. */
const char *stk_sampler_notes(const stk_sampler *sampler);

#endif
