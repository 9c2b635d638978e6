/*
 * lookout.h - looks at the machine once a second while something else works.
 *
 * A thread of its own asks /proc and, where there is one, the GPU's management library, and keeps
 * what it saw until it is taken. It never slows the work: taking waits for no look that is under
 * way. A machine that shows nothing of itself (a container without /proc, no NVML) gives samples
 * without it, and stk_lookout_notes says what is missing.
 *
 * Threads: one may take while the lookout looks.
 */
#ifndef STK_MONITOR_LOOKOUT_H
#define STK_MONITOR_LOOKOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <stoker/events.h>
#include <stoker/status.h>

typedef struct stk_lookout stk_lookout;

typedef struct stk_lookout_config {
    const char *const *gpu_bus_ids; /* "0000:19:00.0": which GPUs; for the call only */
    size_t gpu_count; /* 0: none; 64 at most. Of several a sample has shares as means, bytes and
                         watts as sums, the highest temperature */
    pid_t root; /* whose tree is the run's own: cpu_own, resident, gpu_memory_own; 0: this process
                   and its children that have ended */
    int64_t start_ns;   /* what the samples' times count from */
    double every_s;     /* 0: one second */
    const char *proc;   /* NULL: /proc; tests bring their own. For the call only */
    const char *groups; /* NULL: /sys/fs/cgroup; the same */
} stk_lookout_config;

/* The first sample is there after `every_s`: what it tells is of the time between two looks. */
STK_CHECKED stk_status stk_lookout_start(stk_lookout **lookout, const stk_lookout_config *config,
                                         stk_error *err);

/* Returns at once; a driver that does not answer is waited for no longer than a second. NULL is
 * fine. */
void stk_lookout_stop(stk_lookout *lookout);

/*
 * The oldest sample that was not taken; false: there is none. Those of the last ten minutes are
 * kept where nobody takes. What belongs to training in it (rate, wait, batches, workers) is not
 * known, and left for the caller to fill in. Its pointers are valid until the next call. NULL has
 * no samples, and no notes.
 */
bool stk_lookout_take(stk_lookout *lookout, stk_event_sample *sample);

/*
 * What cannot be seen on this machine, one sentence; "" when all can. It is known when the first
 * sample has been taken, and "" until then. Lives as the lookout does.
 */
const char *stk_lookout_notes(const stk_lookout *lookout);

#endif
