/*
 * wall_back.c - preloaded, the clock on the wall is set back by an hour in the middle of a run: a
 * second after the process has first looked at any clock. All other clocks go on as they are.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SET_BACK_S 3600

static int64_t first_s; /* of the monotonic clock; 0: not looked at yet */

static int64_t monotonic_s(void) {
    struct timespec now = {0};
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int64_t none = 0;
    int64_t seen = monotonic_s();
    __atomic_compare_exchange_n(&first_s, &none, seen, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    long result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && clock == CLOCK_REALTIME &&
        seen > __atomic_load_n(&first_s, __ATOMIC_SEQ_CST) + 1) {
        now->tv_sec -= SET_BACK_S;
    }
    return (int)result;
}

time_t time(time_t *out) {
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL) {
        *out = now.tv_sec;
    }
    return now.tv_sec;
}
