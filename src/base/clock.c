/* clock.c - the monotonic clock, and when the process began. */
#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"

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

/*
 * The start comes in ticks since boot. Their grain is 10 ms, and sandboxes may show something odd
 * there: a start in the future or over a minute ago is not believed.
 */
int64_t stk_clock_process_start_ns(void) {
    int64_t now = stk_clock_ns();
    uint64_t ticks = 0;
    if (!stk_process_born(getpid(), &ticks)) {
        return now;
    }
    int64_t since_boot = (int64_t)((double)ticks / (double)sysconf(_SC_CLK_TCK) * 1e9);
    int64_t age = read_clock(CLOCK_BOOTTIME) - since_boot;
    return age >= 0 && age < (int64_t)60 * 1000000000 ? now - age : now;
}
