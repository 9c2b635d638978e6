/*
 * stop.c - the request to end; lock-free atomics only, so that a signal handler may call it. The
 * compiler's builtins work on the plain numbers of the public header.
 */
#include <stoker/stop.h>

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

void stk_stop_request(stk_stop *stop, stk_stop_level level, int deadline_s) {
    if (deadline_s > 0) {
        int none = 0;
        int64_t never = 0;
        /* The start is written first, so that a thread that sees the deadline finds its start. */
        __atomic_compare_exchange_n(&stop->asked_ns, &never, stk_clock_ns(), false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        __atomic_compare_exchange_n(&stop->deadline_s, &none, deadline_s, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
    }
    int seen = __atomic_load_n(&stop->level, __ATOMIC_SEQ_CST);
    while (seen < (int)level && !__atomic_compare_exchange_n(&stop->level, &seen, (int)level, true,
                                                             __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
}

stk_stop_level stk_stop_asked(const stk_stop *stop) {
    return stop != NULL ? (stk_stop_level)__atomic_load_n(&stop->level, __ATOMIC_SEQ_CST)
                        : STK_STOP_NONE;
}

int stk_stop_deadline_s(const stk_stop *stop) {
    return stop != NULL ? __atomic_load_n(&stop->deadline_s, __ATOMIC_SEQ_CST) : 0;
}

double stk_stop_left_s(const stk_stop *stop) {
    int deadline_s = stk_stop_deadline_s(stop);
    return deadline_s > 0
               ? deadline_s - stk_clock_since_s(__atomic_load_n(&stop->asked_ns, __ATOMIC_SEQ_CST))
               : INFINITY;
}
