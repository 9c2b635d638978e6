/*
 * gpu_sample.h - what one or several GPUs do, asked of NVIDIA's management library (NVML).
 *
 * The library comes with the driver and is opened at run time; CUDA is not needed. What it or the
 * GPU does not offer is not known (NaN) and no error.
 *
 * Threads: an eye belongs to one at a time.
 */
#ifndef STK_MONITOR_GPU_SAMPLE_H
#define STK_MONITOR_GPU_SAMPLE_H

#include <stddef.h>

#include <stoker/events.h>

#include "base/threads/proc_tree.h"
#include "monitor/parts.h"

typedef struct stk_gpu_eye stk_gpu_eye;

/*
 * The GPUs at places of the PCI bus ("0000:19:00.0"). Those that cannot be looked at are left out;
 * `why` says in a few words why not, and is "" where all can be. NULL: none can.
 */
stk_gpu_eye *stk_gpu_eye_open(const char *const *bus_ids, size_t count, char *why, size_t room);
void stk_gpu_eye_close(stk_gpu_eye *eye); /* NULL is fine */

/*
 * Fills in all that a sample has of the GPUs; without an eye nothing of it is known. Of several it
 * has the mean of shares and clocks, the sum of bytes and watts, the highest temperature and all
 * reasons of throttling; one that does not tell a figure is left out of it. The SM activity is of
 * the time since the last look, and not known after the first. `own` are the processes whose memory
 * is the run's own; NULL: this one. Where such processes have memory on some of the GPUs, the
 * sample is of these alone. sample->gpu_throttled lives as the eye does; NULL: not known.
 */
void stk_gpu_eye_look(stk_gpu_eye *eye, const stk_proc_tree *own, stk_event_sample *sample);

/* What the look that gave this sample saw and what not. */
void stk_gpu_eye_parts(const stk_gpu_eye *eye, const stk_event_sample *sample,
                       stk_part parts[STK_GPU_PARTS]);

#endif
