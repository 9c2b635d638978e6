/* time_parts.h - inside the report room: where training time went, by name. Threads: safe. */
#ifndef STK_REPORT_TEXT_TIME_PARTS_H
#define STK_REPORT_TEXT_TIME_PARTS_H

#include <stoker/events.h>

#define STK_TIME_PARTS 9

/* "read", "decode" and so on, in the order of stk_times. */
extern const char *const stk_time_part_names[STK_TIME_PARTS];

/* The share of a part in the total, 0 to 1; NaN where nothing was measured. */
double stk_time_share(const stk_times *times, int part);

#endif
