/* stop.c - the request to end; lock-free atomics only, so that a signal handler may call it. */
#include <stoker/stop.h>

#include <stddef.h>

void stk_stop_request(stk_stop *stop, stk_stop_level level, int deadline_s) {
    if (deadline_s > 0) {
        int none = 0;
        atomic_compare_exchange_strong(&stop->deadline_s, &none, deadline_s);
    }
    int seen = atomic_load(&stop->level);
    while (seen < (int)level && !atomic_compare_exchange_weak(&stop->level, &seen, (int)level)) {
    }
}

stk_stop_level stk_stop_asked(const stk_stop *stop) {
    return stop != NULL ? (stk_stop_level)atomic_load(&stop->level) : STK_STOP_NONE;
}
