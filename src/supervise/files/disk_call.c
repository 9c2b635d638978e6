/* disk_call.c - one timed call (base/threads/timed_call.h). */
#include "supervise/files/disk_call.h"

#include <math.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/threads/timed_call.h"

#define LONGEST_S 1e6 /* also for INFINITY */

bool stk_disk_call(void (*work)(void *state), void *state, void (*drop)(void *state),
                   double within_s) {
    stk_timed_call *aside = NULL;
    int64_t until_ns = stk_clock_ns() + (int64_t)(fmin(fmax(within_s, 0), LONGEST_S) * 1e9);
    if (stk_timed_call_open(&aside, "waits for a disk", NULL) != STK_OK) {
        work(state);
        return true;
    }
    stk_timed_call_begin(aside, work, state, drop);
    (void)stk_timed_call_wait(aside, until_ns);
    return !stk_timed_call_close(aside);
}
