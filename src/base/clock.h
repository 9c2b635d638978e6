/* clock.h - monotonic time. Threads: safe. */
#ifndef STK_BASE_CLOCK_H
#define STK_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of the monotonic clock; setting the wall clock does not move it. */
int64_t stk_clock_ns(void);

/* Nanoseconds since 1970 by the clock on the wall, which may be set while the process runs. */
int64_t stk_clock_wall_ns(void);

/* Seconds between a stk_clock_ns() reading and now. */
double stk_clock_since_s(int64_t start_ns);

/* The stk_clock_ns() reading at which this process was started (exec), from the kernel. */
int64_t stk_clock_process_start_ns(void);

#endif
