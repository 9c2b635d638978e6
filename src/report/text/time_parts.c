/* time_parts.c - where the time went, as shares. */
#include "report/text/time_parts.h"

#include <math.h>

const char *const stk_time_part_names[STK_TIME_PARTS] = {
    "read", "decode", "queue", "copy", "compute", "update", "validate", "checkpoint", "other",
};

double stk_time_share(const stk_times *times, int part) {
    const double seconds[STK_TIME_PARTS] = {
        times->read_s,   times->decode_s,   times->queue_s,      times->copy_s,  times->compute_s,
        times->update_s, times->validate_s, times->checkpoint_s, times->other_s,
    };
    return times->total_s > 0 ? seconds[part] / times->total_s : NAN;
}
