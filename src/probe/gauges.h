/* gauges.h - memory and processor time that this process uses. Threads: safe. */
#ifndef STK_PROBE_GAUGES_H
#define STK_PROBE_GAUGES_H

#include <stdint.h>

/* Bytes of memory that are resident now; 0 where that is not known. */
int64_t stk_gauge_resident(void);

/* The peak since the process began; 0 where that is not known. */
int64_t stk_gauge_peak_resident(void);

/* Processor time of all threads, in seconds. */
double stk_gauge_processor_s(void);

#endif
