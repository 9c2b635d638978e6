/*
 * stop.c - the request to end; lock-free atomics only, so that a signal handler may call it. The
 * compiler's builtins work on the plain numbers of the public header.
 */
#include <stoker/stop.h>

#include <stdbool.h>
#include <stddef.h>

void stk_stop_request(stk_stop *stop, stk_stop_level level, int deadline_s) {
    if (deadline_s > 0) {
        int none = 0;
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
