/*
 * machine.c - cores and memory, as far as this process may use them.
 *
 * A process is in one control group per hierarchy and every group above it limits it too. A
 * container may see its group as the root, or with the path that it has outside; so the path is
 * tried from its end upwards, and groups that do not exist are skipped.
 */
#include "base/machine.h"

#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PATH_MAX_BYTES 4096

/* The first numbers in a file of a group; false when it is absent or says "max". */
static bool read_numbers(const char *group, const char *name, double *first, double *second) {
    char path[PATH_MAX_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", group, name);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    int found = fscanf(file, "%lf %lf", first, second);
    fclose(file);
    return found >= 1;
}

/* A limit, if it is tighter than what was found before; `place` is where its group is noted. */
static void tighten(double found, const char *group, double *limit,
                    char place[STK_GROUP_PATH_BYTES]) {
    if (found < *limit) {
        size_t length = strlen(group);
        *limit = found;
        place[0] = '\0';
        if (length < STK_GROUP_PATH_BYTES) {
            memcpy(place, group, length + 1);
        }
    }
}

static void limit_by_group(const char *group, stk_machine_limits *limits) {
    double quota = 0;
    double period = 0;
    double bytes = 0;
    double unused = 0;
    bool cpu = read_numbers(group, "cpu.max", &quota, &period) ||
               (read_numbers(group, "cpu.cfs_quota_us", &quota, &unused) &&
                read_numbers(group, "cpu.cfs_period_us", &period, &unused));
    if (cpu && quota > 0 && period > 0) {
        tighten(quota / period, group, &limits->cores, limits->cores_group);
    }
    if ((read_numbers(group, "memory.max", &bytes, &unused) ||
         read_numbers(group, "memory.limit_in_bytes", &bytes, &unused)) &&
        bytes > 0) {
        tighten(bytes, group, &limits->bytes, limits->bytes_group);
    }
}

/* The group mount/hierarchy/path and all above it up to the hierarchy's root. */
static void limit_by_path(const char *mount, const char *hierarchy, const char *path,
                          stk_machine_limits *limits) {
    char group[PATH_MAX_BYTES];
    int root =
        snprintf(group, sizeof group, "%s%s%s", mount, hierarchy[0] != '\0' ? "/" : "", hierarchy);
    if (root < 0 || (size_t)root + strlen(path) >= sizeof group) {
        return; /* no such group can be named */
    }
    memcpy(group + root, path, strlen(path) + 1);
    for (;;) {
        limit_by_group(group, limits);
        char *slash = strrchr(group + root, '/');
        if (slash == NULL) {
            return;
        }
        *slash = '\0';
    }
}

/* Whether a control group can limit cores or memory. `controllers` is the list in
 * /proc/PID/cgroup: for example "cpu,cpuacct" in version 1, empty in version 2. */
static bool can_limit(const char *controllers) {
    for (const char *name = controllers; name != NULL; name = strchr(name, ',')) {
        name += *name == ',';
        size_t length = strcspn(name, ",");
        if ((length == 0 && name == controllers) ||
            (length == 3 && strncmp(name, "cpu", length) == 0) ||
            (length == 6 && strncmp(name, "memory", length) == 0)) {
            return true;
        }
    }
    return false;
}

stk_machine_limits stk_machine_group_limits(const char *membership, const char *mount) {
    stk_machine_limits limits = {.cores = INFINITY, .bytes = INFINITY};
    char line[PATH_MAX_BYTES];
    FILE *file = fopen(membership, "re");
    if (file == NULL) {
        limit_by_group(mount, &limits);
        return limits;
    }
    /* "4:cpu,cpuacct:/path" of version 1, "0::/path" of version 2. */
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (path == NULL) {
            continue;
        }
        *path++ = '\0';
        controllers++;
        if (!can_limit(controllers)) {
            continue;
        }
        limit_by_path(mount, controllers, path, &limits);
        if (controllers[0] == '\0') { /* where both versions are in use */
            limit_by_path(mount, "unified", path, &limits);
        }
        char *rest = NULL;
        for (char *name = strtok_r(controllers, ",", &rest); name != NULL;
             name = strtok_r(NULL, ",", &rest)) {
            limit_by_path(mount, name, path, &limits);
        }
    }
    fclose(file);
    return limits;
}

static stk_machine_limits own_limits(void) {
    return stk_machine_group_limits("/proc/self/cgroup", "/sys/fs/cgroup");
}

int stk_machine_cores(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        cores = CPU_COUNT(&set);
    }
    /* Part of a core more is worth a thread. */
    double allowed = ceil(own_limits().cores - 1e-6);
    cores = allowed < (double)cores ? (long)allowed : cores;
    return cores > 0 ? (int)cores : 1;
}

uint64_t stk_machine_memory(void) {
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
    return (uint64_t)fmin(bytes, own_limits().bytes);
}

bool stk_machine_can_map(size_t bytes) {
    void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return room != MAP_FAILED && munmap(room, bytes) == 0;
}

int stk_machine_files(int wanted, int parts) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / (rlim_t)parts >= (rlim_t)wanted) {
        return wanted;
    }
    int most = (int)(limit.rlim_cur / (rlim_t)parts);
    return most > 1 ? most : 1;
}
