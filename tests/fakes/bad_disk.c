/*
 * bad_disk.c - preloaded, the disk fills up or the process is killed at one certain call that
 * changes files. Settings, from the environment:
 *
 *     BAD_DISK_PATHS  which paths it is about: parts of their names, divided by colons; it is not
 *                     about a path with a part that has a minus sign before it here
 *     BAD_DISK_AT     the first call that meets it, counted from 1 over all calls with such paths
 *     BAD_DISK_DOES   kill: SIGKILL instead of the call; tear: after half of a write, otherwise as
 *                     kill; full: this call and all later ones that need room fail with ENOSPC;
 *                     hold: its thread waits there for good, and others go on;
 *                     dead: so does every thread from there on, also those that open to read;
 *                     lame: from there on no sync ends;
 *                     slow: from there on whoever syncs waits a second more;
 *                     pause: this call waits three seconds, and those behind it do not
 *     BAD_DISK_LOG    a file that gets a line per call: its number, its name, the path
 *
 * A file is known by the path that its descriptor has in /proc. What the C library calls inside
 * itself, as for streams, is not seen: the library under test writes files with write(2).
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REAL(function) ((__typeof__(&(function)))dlsym(RTLD_NEXT, #function))

#define PATH_BYTES 4096

static long calls; /* with paths that it is about */

static const char *setting(const char *name) {
    const char *text = getenv(name);
    return text != NULL ? text : "";
}

static bool is_about(const char *path) {
    char parts[PATH_BYTES];
    char *rest = NULL;
    bool about = false;
    snprintf(parts, sizeof parts, "%s", setting("BAD_DISK_PATHS"));
    for (char *p = strtok_r(parts, ":", &rest); p != NULL; p = strtok_r(NULL, ":", &rest)) {
        bool left_out = p[0] == '-';
        if (strstr(path, p + left_out) != NULL) {
            if (left_out) {
                return false;
            }
            about = true;
        }
    }
    return about;
}

static void note(long number, const char *call, const char *path) {
    const char *log = setting("BAD_DISK_LOG");
    char line[PATH_BYTES + 64];
    int size = snprintf(line, sizeof line, "%ld %s %s\n", number, call, path);
    int fd = log[0] != '\0' ? (int)syscall(SYS_openat, AT_FDCWD, log,
                                           O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)
                            : -1;
    if (fd >= 0) {
        (void)!syscall(SYS_write, fd, line, (size_t)size);
        close(fd);
    }
}

static pid_t loaded; /* the process that this was loaded into; its child may wait for the disk */

__attribute__((constructor)) static void note_process(void) {
    loaded = getpid();
}

/* For good; a child that waits for the disk ends with its process. */
static void hold(void) {
    while (getpid() == loaded || getppid() == loaded) {
        usleep(50000);
    }
    _exit(1);
}

static void die(void) {
    kill(getppid() == loaded ? loaded : getpid(), SIGKILL);
    hold();
}

/*
 * Called before each call. It does not return when the process ends here, and false when the call
 * is to fail; half is set where a part of it is to be done first.
 */
static bool may_go_on(const char *call, const char *path, bool needs_room, bool *half) {
    if (path == NULL || !is_about(path)) {
        return true;
    }
    long number = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    long at = strtol(setting("BAD_DISK_AT"), NULL, 10);
    const char *does = setting("BAD_DISK_DOES");
    note(number, call, path);
    if (at <= 0 || number < at) {
        return true;
    }
    if (strcmp(does, "full") == 0) {
        errno = ENOSPC;
        return !needs_room;
    }
    if (strcmp(does, "hold") == 0) {
        if (number == at) {
            hold();
        }
        return true;
    }
    if (strcmp(does, "dead") == 0) {
        hold();
    }
    if (strcmp(does, "lame") == 0) {
        if (strcmp(call, "fsync") == 0) {
            hold();
        }
        return true;
    }
    if (strcmp(does, "slow") == 0) {
        sleep(strcmp(call, "fsync") == 0 ? 1 : 0);
        return true;
    }
    if (strcmp(does, "pause") == 0) {
        sleep(number == at ? 3 : 0);
        return true;
    }
    if (strcmp(does, "tear") == 0 && half != NULL) {
        *half = true;
        return true;
    }
    die();
    return false;
}

static const char *path_of(int fd, char path[PATH_BYTES]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, PATH_BYTES - 1);
    if (size < 0) {
        return NULL;
    }
    path[size] = '\0';
    return path;
}

int open(const char *path, int flags, ...) {
    mode_t mode = 0;
    bool makes = (flags & O_CREAT) != 0;
    if (makes) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    bool counts = makes || strcmp(setting("BAD_DISK_DOES"), "dead") == 0;
    return !counts || may_go_on("open", path, true, NULL) ? REAL(open)(path, flags, mode) : -1;
}

ssize_t write(int fd, const void *data, size_t size) {
    char path[PATH_BYTES];
    bool half = false;
    if (!may_go_on("write", path_of(fd, path), true, &half)) {
        return -1;
    }
    ssize_t written = REAL(write)(fd, data, half ? size / 2 : size);
    if (half) {
        die();
    }
    return written;
}

int fsync(int fd) {
    char path[PATH_BYTES];
    return may_go_on("fsync", path_of(fd, path), false, NULL) ? REAL(fsync)(fd) : -1;
}

int ftruncate(int fd, off_t size) {
    char path[PATH_BYTES];
    return may_go_on("ftruncate", path_of(fd, path), false, NULL) ? REAL(ftruncate)(fd, size) : -1;
}

int rename(const char *from, const char *to) {
    return may_go_on("rename", to, false, NULL) ? REAL(rename)(from, to) : -1;
}

int link(const char *from, const char *to) {
    return may_go_on("link", to, true, NULL) ? REAL(link)(from, to) : -1;
}

int unlink(const char *path) {
    return may_go_on("unlink", path, false, NULL) ? REAL(unlink)(path) : -1;
}

int mkdir(const char *path, mode_t mode) {
    return may_go_on("mkdir", path, true, NULL) ? REAL(mkdir)(path, mode) : -1;
}
