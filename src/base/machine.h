/* machine.h - what the machine lets this process use. Threads: safe. */
#ifndef STK_BASE_MACHINE_H
#define STK_BASE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Cores that affinity and cgroup limits leave to this process; at least 1. */
int stk_machine_cores(void);

/* Bytes of memory that this process may use: the machine's or the cgroups' limit. */
uint64_t stk_machine_memory(void);

/*
 * Whether the process may map so many more bytes now (ulimit -v). Ask before calling a library that
 * crashes or hangs without memory.
 */
bool stk_machine_can_map(size_t bytes);

/* The cache, the connections and the I/O threads each use at most 1/STK_FILES_SHARE of the limit of
 * open files. */
#define STK_FILES_SHARE 4

/* `wanted`, or the limit of open files (RLIMIT_NOFILE) divided by `parts` if that is less; but 1 if
 * the quotient is 0. */
int stk_machine_files(int wanted, int parts);

#define STK_GROUP_PATH_BYTES 1024

/* What control groups allow; INFINITY where they do not limit. */
typedef struct stk_machine_limits {
    double cores;
    double bytes;
    /* Folders of the groups that set the limits; their files also tell of use. "": no group sets
     * the limit, or its path is too long. */
    char cores_group[STK_GROUP_PATH_BYTES];
    char bytes_group[STK_GROUP_PATH_BYTES];
} stk_machine_limits;

/*
 * The limits of the groups that `membership` (/proc/self/cgroup) names and of all groups above
 * them, below `mount` (/sys/fs/cgroup); both versions of control groups are understood.
 */
stk_machine_limits stk_machine_group_limits(const char *membership, const char *mount);

#endif
