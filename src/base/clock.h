/* clock.h - monotonic time, wall time and CPU time. Threads: safe. */
#ifndef STK_BASE_CLOCK_H
#define STK_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define STK_NS_PER_S INT64_C(1000000000)

/* Nanoseconds of the monotonic clock; setting the wall clock does not move it. */
int64_t stk_clock_ns(void);

/* Nanoseconds since 1970 by the clock on the wall, which may be set while the process runs. */
int64_t stk_clock_wall_ns(void);

/* CPU time that the calling thread has used. */
int64_t stk_clock_cpu_ns(void);

/* Seconds between a stk_clock_ns() reading and now. */
double stk_clock_since_s(int64_t start_ns);

/* The stk_clock_ns() reading in so many seconds: now for fewer than 0, in 1e6 s at most, also for
 * INFINITY. */
int64_t stk_clock_in(double seconds);

/*
 * How long the calling thread has run on a core since it began, and how long it was ready to run
 * but waited for a core. False where the kernel does not tell.
 */
bool stk_clock_thread_ns(int64_t *ran_ns, int64_t *waited_ns);

#endif
