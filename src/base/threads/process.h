/*
 * process.h - starting another program, and the start times of processes. Threads: safe.
 */
#ifndef STK_BASE_THREADS_PROCESS_H
#define STK_BASE_THREADS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Starts a program, found by PATH. `list` holds its name and arguments and ends with NULL. Its
 * standard output is `out`, its standard input is empty. It leads a new process group, so that all
 * its children can be ended with it, and has the default signal mask. Returns 0 and *pid, or an
 * errno.
 */
int stk_process_start(char *const *list, int out, pid_t *pid);

/*
 * When a process began, in clock ticks since boot. With this a process is told from a later one
 * with the same id. False where no such process lives, or where /proc does not tell.
 */
bool stk_process_born(pid_t pid, uint64_t *ticks);

/* The stk_clock_ns() reading at which this process was started (exec), from the kernel. */
int64_t stk_process_own_start_ns(void);

#endif
