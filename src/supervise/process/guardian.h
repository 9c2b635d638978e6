/*
 * guardian.h - runs one command after another and leaves none of their processes behind.
 *
 * The guardian is a process of its own, in its own session, between this process (its maker) and
 * the commands. It is the parent of each command, and orphans below it become its children. So
 * every process that a command started, however it hides, is below the guardian, and nothing else
 * is. A socket connects guardian and maker: when the maker ends, even by kill -9, the guardian ends
 * all processes below it and then itself. If the guardian is killed, its processes become children
 * of the maker, which ends them.
 *
 * Threads: one at a time. Other threads may run during stk_guardian_start(): after the fork the
 * guardian takes no lock but malloc's, which the C library keeps usable.
 */
#ifndef STK_SUPERVISE_PROCESS_GUARDIAN_H
#define STK_SUPERVISE_PROCESS_GUARDIAN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <stoker/status.h>

typedef struct stk_guardian stk_guardian;

/* Borrowed for the call. */
typedef struct stk_guardian_config {
    int in;           /* standard input of commands; -1: /dev/null */
    int out;          /* standard output of commands; -1: /dev/null */
    int err;          /* standard error of commands; -1: /dev/null */
    int64_t until_ns; /* monotonic time at which the guardian ends all and itself, in case the maker
                         is stopped or waits for a dead disk; 0: never */
} stk_guardian_config;

STK_CHECKED stk_status stk_guardian_start(stk_guardian **guardian,
                                          const stk_guardian_config *config, stk_error *err);

/* Kills all processes below the guardian, and ends the guardian. Waits at most 2 * within_s for
 * processes that the kernel holds, and a second for a guardian that hangs. NULL is fine. */
void stk_guardian_stop(stk_guardian *guardian, double within_s);

/* Root of the tree of all commands and their processes; see base/threads/proc_tree.h. */
pid_t stk_guardian_pid(const stk_guardian *guardian);

/* Readable when stk_guardian_poll() may have something to report. */
int stk_guardian_fd(const stk_guardian *guardian);

/*
 * Starts a command in a session and process group of its own, with default signals. The program is
 * found through the PATH of `envp`. STK_ERR_USAGE: *code is 127 if there is no such program and 126
 * if it cannot be executed, as in a shell. STK_ERR_DEVICE: the guardian is lost.
 */
STK_CHECKED stk_status stk_guardian_launch(stk_guardian *guardian, char *const *argv,
                                           char *const *envp, pid_t *pid, int *code,
                                           stk_error *err);

/* How the command has ended. */
typedef struct stk_command_exit {
    int code;   /* exit code; -1: ended by a signal */
    int signal; /* signal that ended the command; 0: none */
} stk_command_exit;

typedef enum stk_guardian_report {
    STK_GUARDIAN_NOTHING,
    STK_GUARDIAN_ENDED, /* the command's first process has ended; reported once */
    STK_GUARDIAN_LOST   /* the guardian was killed or its time is over: call stk_guardian_stop() */
} stk_guardian_report;

/* What has happened; does not wait. *ended is set with STK_GUARDIAN_ENDED. */
stk_guardian_report stk_guardian_poll(stk_guardian *guardian, stk_command_exit *ended);

/* Which processes below the guardian get a signal. */
typedef enum stk_guardian_target {
    STK_GUARDIAN_FIRST,  /* the command's first process; none once it has ended */
    STK_GUARDIAN_OTHERS, /* all but the first */
    STK_GUARDIAN_ALL
} stk_guardian_target;

/*
 * Sends a signal once to each process. A process is identified by its id and start time, so a
 * reused id is never hit. A process forked at that moment may get none.
 */
void stk_guardian_signal(stk_guardian *guardian, int number, stk_guardian_target whom);

/* Number of live processes below the guardian. Once it is 0, here or after stk_guardian_kill(),
 * stk_guardian_poll() reports the command's end at once. */
size_t stk_guardian_alive(stk_guardian *guardian);

/*
 * Kills all processes below the guardian with SIGKILL. Stops them first, so that none can fork
 * meanwhile. Waits at most within_s. Returns how many are left: held by the kernel, or another
 * user's.
 */
size_t stk_guardian_kill(stk_guardian *guardian, double within_s);

/*
 * Tells the guardian to restore a file if the maker dies: if `path` still has the contents of
 * `changed`, it gets those of `original`. NULL cancels the order. Paths are absolute and copied.
 */
STK_CHECKED stk_status stk_guardian_on_orphaned(stk_guardian *guardian, const char *path,
                                                const char *changed, const char *original,
                                                stk_error *err);

#endif
