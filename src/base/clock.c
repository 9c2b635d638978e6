/* clock.c - the clocks of the system, in nanoseconds. */
#include "base/clock.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LONGEST_S 1e6 /* of stk_clock_in */

static int64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t stk_clock_ns(void) {
    return read_clock(CLOCK_MONOTONIC);
}

int64_t stk_clock_wall_ns(void) {
    return read_clock(CLOCK_REALTIME);
}

int64_t stk_clock_cpu_ns(void) {
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

double stk_clock_since_s(int64_t start_ns) {
    return (double)(stk_clock_ns() - start_ns) * 1e-9;
}

int64_t stk_clock_in(double seconds) {
    return stk_clock_ns() + (int64_t)(fmin(fmax(seconds, 0), LONGEST_S) * STK_NS_PER_S);
}

bool stk_clock_thread_ns(int64_t *ran_ns, int64_t *waited_ns) {
    char text[96];
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    text[length > 0 ? length : 0] = '\0';
    long long ran = 0;
    long long waited = 0;
    bool told = sscanf(text, "%lld %lld", &ran, &waited) == 2;
    *ran_ns = ran;
    *waited_ns = waited;
    return told;
}
