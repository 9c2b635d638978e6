/* process.c - posix_spawn with what every caller wants. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "base/proc_tree.h"
#include "base/thread.h"

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
