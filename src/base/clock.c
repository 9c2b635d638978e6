/* clock.c - the monotonic clock, and when the process began. */
#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

double stk_clock_since_s(int64_t start_ns) {
    return (double)(stk_clock_ns() - start_ns) * 1e-9;
}

/*
 * Field 22 of /proc/self/stat is the start in ticks since boot. Its grain is 10 ms, and sandboxes
 * may show something odd there: a start in the future or over a minute ago is not believed.
 */
int64_t stk_clock_process_start_ns(void) {
    int64_t now = stk_clock_ns();
    char text[2048];
    FILE *file = fopen("/proc/self/stat", "r");
    if (file == NULL) {
        return now;
    }
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *p = strrchr(text, ')'); /* the command's name may hold blanks */
    unsigned long long ticks = 0;
    if (p == NULL || sscanf(p + 1,
                            " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                            "%*d %*d %llu",
                            &ticks) != 1) {
        return now;
    }
    int64_t since_boot = (int64_t)((double)ticks / (double)sysconf(_SC_CLK_TCK) * 1e9);
    int64_t age = read_clock(CLOCK_BOOTTIME) - since_boot;
    return age >= 0 && age < (int64_t)60 * 1000000000 ? now - age : now;
}
