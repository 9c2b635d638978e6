/* parts.h - inside the monitor: what a machine may show of itself, and whether it does. */
#ifndef STK_MONITOR_PARTS_H
#define STK_MONITOR_PARTS_H

#include <stdbool.h>

typedef struct stk_part {
    bool seen;
    const char *name; /* "disks (/proc/diskstats)" */
} stk_part;

enum { STK_HOST_PARTS = 7, STK_GPU_PARTS = 8 };

#endif
