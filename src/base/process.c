/* process.c - posix_spawn with what every caller wants; what /proc says of a process. */
#include "base/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int stk_process_start(char *const *list, int out, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigset_t broken_pipe;
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

/* Field 22 of /proc/PID/stat; what has ended and only waits for its parent to notice is gone. */
bool stk_process_born(pid_t pid, uint64_t *ticks) {
    char path[32];
    char text[2048];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *p = strrchr(text, ')'); /* the command's name may hold blanks */
    char state = 'Z';
    unsigned long long born = 0;
    if (p == NULL || sscanf(p + 1,
                            " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                            "%*d %*d %llu",
                            &state, &born) != 2) {
        return false;
    }
    *ticks = born;
    return state != 'Z' && state != 'X';
}
