/*
 * process.h - starting another program, and telling one process from all others. Threads: safe.
 */
#ifndef STK_BASE_THREADS_PROCESS_H
#define STK_BASE_THREADS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Starts a program, found as a shell finds it, with its standard output going to `out` and nothing
 * to read; `list` are its name and arguments, NULL behind the last. It leads a process group of its
 * own, so that all it starts can be ended with it, and signals are as for a new program. Returns an
 * errno; 0: it runs as *pid.
 */
int stk_process_start(char *const *list, int out, pid_t *pid);

/*
 * When a process began, in ticks since the machine did: a number that is used again for another
 * process comes with other ticks. False where no such process lives, or the system does not tell.
 */
bool stk_process_born(pid_t pid, uint64_t *ticks);

/* The stk_clock_ns() reading at which this process was started (exec), from the kernel. */
int64_t stk_process_own_start_ns(void);

#endif
