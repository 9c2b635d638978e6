/*
 * slow_rules.c - see the header.
 *
 * Nothing in here may call a function that slow_files.c replaces, since it would come back; where
 * one is needed, the system call is made by itself.
 */
#include "slow_rules.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_FILES 65536

/* How often a thread that hangs looks whether the mount came back. */
#define LOOK_NS 5000000

static struct {
    char root[PATH_MAX];      /* as it was given, without a slash at its end; "": no rule holds */
    char real_root[PATH_MAX]; /* the same with links followed */
    double ms[SLOW_KINDS];
    const char *hang, *eio;  /* parts of paths, or NULL */
    bool hangs_at_read;      /* and not at open */
    long hang_times;         /* so many calls hang; -1: all */
    long dead_after;         /* opens; -1: never */
    const char *dead_while;  /* a file that kills the mount while it exists, or NULL */
    const char *report_path; /* where the counts go at the end, or NULL */
} rules;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* What was counted; `waiting` are calls that wait now. */
static atomic_long calls[SLOW_KINDS], hangs, waiting, max_waiting;

static struct {
    unsigned flags;
    dev_t device;
    ino_t inode;
} files[MAX_FILES];

void *slow_real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        static const char text[] =
            "slow_files: a function that the program wants is in no library\n";
        (void)!syscall(SYS_write, STDERR_FILENO, text, sizeof text - 1);
        abort();
    }
    return found;
}

static double read_number(const char *name, double otherwise) {
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? strtod(text, NULL) : otherwise;
}

static const char *read_text(const char *name) {
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* The path of an open file; false when there is none. */
static bool path_of(int fd, char path[PATH_MAX]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long size = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    path[size > 0 ? size : 0] = '\0';
    return path[0] == '/';
}

/* Takes `.`, `..` and double slashes out of an absolute path, without following links. */
static void straighten(char *path) {
    char *to = path;
    for (const char *from = path; *from != '\0';) {
        from += strspn(from, "/");
        size_t size = strcspn(from, "/");
        if (size == 2 && from[0] == '.' && from[1] == '.') {
            while (to > path && *--to != '/') {
            }
        } else if (size > 0 && !(size == 1 && from[0] == '.')) {
            *to++ = '/';
            memmove(to, from, size);
            to += size;
        }
        from += size;
    }
    *to = '\0';
}

static void read_rules(void) {
    const char *root = read_text("SLOW_FILES_ROOT");
    if (root == NULL) {
        return;
    }
    int fd = (int)syscall(SYS_openat, AT_FDCWD, root, O_PATH | O_CLOEXEC);
    bool found = fd >= 0 && path_of(fd, rules.real_root);
    if (fd >= 0) {
        syscall(SYS_close, fd);
    }
    snprintf(rules.root, sizeof rules.root, "%s", found && root[0] != '/' ? rules.real_root : root);
    straighten(rules.root);
    rules.ms[SLOW_OPEN] = read_number("SLOW_FILES_OPEN_MS", 0);
    rules.ms[SLOW_READ] = read_number("SLOW_FILES_READ_MS", 0);
    rules.ms[SLOW_STAT] = read_number("SLOW_FILES_STAT_MS", 0);
    rules.hang = read_text("SLOW_FILES_HANG");
    rules.eio = read_text("SLOW_FILES_EIO");
    const char *at = read_text("SLOW_FILES_HANG_AT");
    rules.hangs_at_read = at != NULL && strcmp(at, "read") == 0;
    rules.hang_times = (long)read_number("SLOW_FILES_HANG_TIMES", -1);
    rules.dead_after = (long)read_number("SLOW_FILES_DEAD_AFTER", -1);
    rules.dead_while = read_text("SLOW_FILES_DEAD_WHILE");
    rules.report_path = read_text("SLOW_FILES_REPORT");
}

static bool is_below(const char *path, const char *root) {
    size_t size = strlen(root);
    return size > 0 && strncmp(path, root, size) == 0 && (path[size] == '/' || path[size] == '\0');
}

unsigned slow_path(int folder_fd, const char *path) {
    pthread_once(&once, read_rules);
    if (rules.root[0] == '\0' || path == NULL) {
        return 0;
    }
    int error = errno;
    char full[2 * PATH_MAX];
    full[0] = '\0';
    if (path[0] != '/') {
        if (folder_fd == AT_FDCWD) {
            full[0] = syscall(SYS_getcwd, full, PATH_MAX) > 0 ? full[0] : '\0';
        } else {
            path_of(folder_fd, full);
        }
    }
    size_t size = strlen(full);
    snprintf(full + size, sizeof full - size, "/%s", path);
    straighten(full);
    errno = error;
    if (!is_below(full, rules.root) && !is_below(full, rules.real_root)) {
        return 0;
    }
    return SLOW_BELOW | (rules.hang != NULL && strstr(full, rules.hang) != NULL ? SLOW_HANG : 0) |
           (rules.eio != NULL && strstr(full, rules.eio) != NULL ? SLOW_EIO : 0);
}

/* Device and inode of an open file. */
static bool identify(int fd, dev_t *device, ino_t *inode) {
    static int (*real_fstat)(int, struct stat *);
    if (real_fstat == NULL) {
        real_fstat = (int (*)(int, struct stat *))slow_real("fstat");
    }
    int error = errno;
    struct stat info;
    bool good = real_fstat(fd, &info) == 0;
    *device = good ? info.st_dev : 0;
    *inode = good ? info.st_ino : 0;
    errno = error;
    return good;
}

void slow_remember(int fd, unsigned flags) {
    if (fd >= 0 && fd < MAX_FILES) {
        files[fd].flags =
            flags != 0 && identify(fd, &files[fd].device, &files[fd].inode) ? flags : 0;
    }
}

unsigned slow_fd(int fd) {
    if (fd < 0 || fd >= MAX_FILES || files[fd].flags == 0) {
        return 0;
    }
    dev_t device;
    ino_t inode;
    if (!identify(fd, &device, &inode) || device != files[fd].device || inode != files[fd].inode) {
        files[fd].flags = 0;
    }
    return files[fd].flags;
}

static void wait_ns(int64_t ns) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    ns += until.tv_nsec;
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

static bool is_dead(void) {
    return (rules.dead_after >= 0 && atomic_load(&calls[SLOW_OPEN]) > rules.dead_after) ||
           (rules.dead_while != NULL &&
            syscall(SYS_faccessat, AT_FDCWD, rules.dead_while, F_OK) == 0);
}

/* Whether this call is one that hangs by its path. */
static bool takes_a_hang(slow_kind kind, unsigned flags) {
    static atomic_long tries;
    if ((flags & SLOW_HANG) == 0 || kind != (rules.hangs_at_read ? SLOW_READ : SLOW_OPEN) ||
        (rules.hang_times >= 0 && atomic_fetch_add(&tries, 1) >= rules.hang_times)) {
        return false;
    }
    atomic_fetch_add(&hangs, 1);
    return true;
}

bool slow_call(slow_kind kind, unsigned flags) {
    if ((flags & SLOW_BELOW) == 0) {
        return true;
    }
    int error = errno;
    long now = atomic_fetch_add(&waiting, 1) + 1;
    long most = atomic_load(&max_waiting);
    while (now > most && !atomic_compare_exchange_weak(&max_waiting, &most, now)) {
    }
    atomic_fetch_add(&calls[kind], 1);
    bool for_ever = takes_a_hang(kind, flags);
    while (for_ever || is_dead()) {
        wait_ns(LOOK_NS);
    }
    if (rules.ms[kind] > 0) {
        wait_ns((int64_t)(rules.ms[kind] * 1e6));
    }
    atomic_fetch_sub(&waiting, 1);
    bool fails = kind == SLOW_READ && (flags & SLOW_EIO) != 0;
    errno = fails ? EIO : error;
    return !fails;
}

/* Writes the counts when the program ends, if it touched a file below the root. */
__attribute__((destructor)) static void report(void) {
    long opens = atomic_load(&calls[SLOW_OPEN]);
    long reads = atomic_load(&calls[SLOW_READ]);
    long stats = atomic_load(&calls[SLOW_STAT]);
    if (rules.report_path == NULL || opens + reads + stats == 0) {
        return;
    }
    int fd = (int)syscall(SYS_openat, AT_FDCWD, rules.report_path,
                          O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd >= 0) {
        dprintf(fd,
                "{\n  \"opens\": %ld,\n  \"reads\": %ld,\n  \"stats\": %ld,\n  \"hangs\": %ld,\n"
                "  \"max_waiting\": %ld\n}\n",
                opens, reads, stats, atomic_load(&hangs), atomic_load(&max_waiting));
        syscall(SYS_close, fd);
    }
}
