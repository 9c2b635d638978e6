/* own_use.c - reads the kernel's counters of this process. */
#include "probe/own_use.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

int64_t stk_own_resident(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL) {
        if (fscanf(file, "%*s %ld", &pages) != 1) {
            pages = 0;
        }
        fclose(file);
    }
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

/* Not getrusage(): its peak includes that of the program that this process was before exec. */
int64_t stk_own_peak_resident(void) {
    long long kilobytes = 0;
    char line[256];
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "VmHWM: %lld", &kilobytes) == 1) {
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kilobytes * 1024;
}

double stk_own_processor_s(void) {
    struct timespec time = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}
