/* own_use.h - memory and processor time that this process uses. Threads: safe. */
#ifndef STK_PROBE_OWN_USE_H
#define STK_PROBE_OWN_USE_H

#include <stdint.h>

/* Bytes of memory that are resident now; 0 where that is not known. */
int64_t stk_own_resident(void);

/* The peak since the process began; 0 where that is not known. */
int64_t stk_own_peak_resident(void);

/* Processor time of all threads, in seconds. */
double stk_own_processor_s(void);

#endif
