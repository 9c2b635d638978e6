/* process.c - starts programs with posix_spawn; reads from /proc when a process began. */
#include "base/threads/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/threads/proc_tree.h"
#include "base/threads/thread.h"

int stk_process_start(char *const *list, int out, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigset_t broken_pipe;
    if (stk_start_must_fail(STK_START_PROCESS)) {
        return EAGAIN;
    }
    sigemptyset(&none);
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    error = posix_spawnattr_init(&attributes);
    if (error != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    error = error != 0 ? error : posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    error = error != 0 ? error
                       : posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                                          O_WRONLY, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &broken_pipe);
    error = error != 0 ? error : posix_spawnp(pid, list[0], &actions, &attributes, list, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

bool stk_process_born(pid_t pid, uint64_t *ticks) {
    stk_proc proc;
    if (!stk_proc_read(&proc, pid)) {
        return false;
    }
    *ticks = proc.born;
    return !stk_proc_is_dead(&proc);
}

static int64_t since_boot_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/*
 * The start comes in ticks since boot. Their grain is 10 ms, and sandboxes may show something odd
 * there: a start in the future or over a minute ago is not believed.
 */
int64_t stk_process_own_start_ns(void) {
    int64_t now = stk_clock_ns();
    uint64_t ticks = 0;
    if (!stk_process_born(getpid(), &ticks)) {
        return now;
    }
    int64_t started = (int64_t)((double)ticks / (double)sysconf(_SC_CLK_TCK) * 1e9);
    int64_t age = since_boot_ns() - started;
    return age >= 0 && age < (int64_t)60 * 1000000000 ? now - age : now;
}
