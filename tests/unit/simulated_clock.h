/*
 * simulated_clock.h - clocks that go on only when the test says so. The program's clock_gettime()
 * takes the place of the C library's: to be included by one file of a program. Until a test holds
 * them the clocks are real; what waits for a time waits for the real one.
 */
#ifndef STK_TESTS_UNIT_SIMULATED_CLOCK_H
#define STK_TESTS_UNIT_SIMULATED_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t simulated_ns; /* 0: the clocks are real */

int clock_gettime(clockid_t clock, struct timespec *now) {
    int64_t ns = atomic_load(&simulated_ns);
    if (ns == 0) {
        return (int)syscall(SYS_clock_gettime, clock, now);
    }
    *now = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    return 0;
}

/* The clocks stand still at the present moment of the monotonic one, which is returned. */
static inline int64_t clocks_hold(void) {
    struct timespec now = {0};
    atomic_store(&simulated_ns, 0);
    clock_gettime(CLOCK_MONOTONIC, &now);
    atomic_store(&simulated_ns, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
    return atomic_load(&simulated_ns);
}

static inline void clocks_pass(int64_t ns) {
    atomic_fetch_add(&simulated_ns, ns);
}

static inline void clocks_release(void) {
    atomic_store(&simulated_ns, 0);
}

#endif
