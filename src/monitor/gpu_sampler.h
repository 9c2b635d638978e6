/*
 * gpu_sampler.h - reads the state of one or several GPUs from NVIDIA's management library (NVML).
 *
 * NVML comes with the driver and is opened at run time; CUDA is not needed. A figure that the
 * library or the GPU does not offer is unknown (NaN), never an error.
 *
 * Threads: a sampler belongs to one thread at a time.
 */
#ifndef STK_MONITOR_GPU_SAMPLER_H
#define STK_MONITOR_GPU_SAMPLER_H

#include <stddef.h>

#include <stoker/events.h>

#include "base/threads/proc_tree.h"

typedef struct stk_gpu_sampler stk_gpu_sampler;

/*
 * Opens the GPUs at these PCI addresses ("0000:19:00.0"). A GPU that NVML does not open is left
 * out, and `why` says the reason in a few words; `why` is "" when all could be opened. Returns NULL
 * when none could.
 */
stk_gpu_sampler *stk_gpu_sampler_open(const char *const *bus_ids, size_t count, char *why,
                                      size_t room);
void stk_gpu_sampler_close(stk_gpu_sampler *sampler); /* NULL is fine */

/*
 * Fills in the GPU figures of a sample; with a NULL sampler they are all unknown. Several GPUs are
 * merged: shares and clocks as means, bytes and watts as sums, the highest temperature, the union
 * of throttle reasons. A GPU that does not offer a figure is left out of it. SM activity covers the
 * time since the previous call and is unknown after the first.
 *
 * `own` are the processes whose GPU memory is the run's own; NULL: this process. If they hold
 * memory on some of the GPUs, the sample covers those GPUs only. sample->gpu_throttled is owned by
 * the sampler; NULL: unknown.
 */
void stk_gpu_sampler_read(stk_gpu_sampler *sampler, const stk_proc_tree *own,
                          stk_event_sample *sample);

enum { STK_GPU_FIGURES = 8 };

/* Writes the names of the figures that are missing from a sample just read; returns how many. */
int stk_gpu_sampler_missing(const stk_gpu_sampler *sampler, const stk_event_sample *sample,
                            const char *names[STK_GPU_FIGURES]);

#endif
