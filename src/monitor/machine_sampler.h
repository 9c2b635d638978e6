/*
 * machine_sampler.h - samples host and GPUs once a second, in the background.
 *
 * One thread reads the host (host_sampler.h) and, where there are any, the GPUs (gpu_sampler.h),
 * and stores each sample in a ring until the caller takes it. It never slows training: taking a
 * sample does not wait for a reading in progress. Figures that the machine does not offer (a
 * container without /proc, no NVML) are unknown (NaN) in the samples; stk_machine_sampler_notes()
 * names them.
 *
 * Threads: one caller's thread takes samples while the sampler's thread reads.
 */
#ifndef STK_MONITOR_MACHINE_SAMPLER_H
#define STK_MONITOR_MACHINE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <stoker/events.h>
#include <stoker/status.h>

typedef struct stk_machine_sampler stk_machine_sampler;

/* Borrowed for the call of stk_machine_sampler_start(). */
typedef struct stk_machine_sampler_config {
    const char *const *gpu_bus_ids; /* PCI addresses of the GPUs: "0000:19:00.0" */
    size_t gpu_count;               /* 0 to 64 */
    pid_t root;         /* root of the process tree whose use is the run's own (cpu_own, resident,
                           gpu_memory_own); 0: this process and its ended children */
    int64_t start_ns;   /* moment that stk_event_sample.at_s counts from */
    double every_s;     /* interval; 0: one second */
    const char *proc;   /* NULL: /proc; tests pass a folder of their own */
    const char *groups; /* NULL: /sys/fs/cgroup; tests pass a folder of their own */
} stk_machine_sampler_config;

/* The first sample is there after `every_s`: rates need two readings. */
STK_CHECKED stk_status stk_machine_sampler_start(stk_machine_sampler **sampler,
                                                 const stk_machine_sampler_config *config,
                                                 stk_error *err);

/*
 * Stops the thread and frees the sampler. Waits at most a second for a driver that does not answer;
 * after that the thread is abandoned and frees the sampler itself when it ends. NULL is fine.
 */
void stk_machine_sampler_stop(stk_machine_sampler *sampler);

/*
 * Takes the oldest sample not taken yet; false: there is none. The ring holds ten minutes of
 * samples; older ones are dropped. What the sample says of training (rate, wait, batches, workers)
 * is unknown, for the caller to fill in. Its pointers are valid until the next call. A NULL sampler
 * has no samples.
 */
bool stk_machine_sampler_take(stk_machine_sampler *sampler, stk_event_sample *sample);

/*
 * One sentence that names the figures this machine does not offer; "" if it offers all, and until
 * the first reading. Valid until stk_machine_sampler_stop(). NULL: "".
 */
const char *stk_machine_sampler_notes(const stk_machine_sampler *sampler);

#endif
