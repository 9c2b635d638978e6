/*
 * guardian.h - runs one command after another so that nothing of them is left behind.
 *
 * The guardian is a process of its own, in a session of its own: the parent of the command, and the
 * one that all orphans below it are handed to. So everything that the command started, whatever it
 * did to hide, is found below the guardian, and nothing else is. It holds a pipe to the process
 * that made it: when that ends, even by kill -9, the guardian ends all that is below it and then
 * itself. The maker takes orphans over as well, so that a guardian that was killed leaves none
 * either.
 *
 * Threads: one at a time. Others may run when it is made: the forked process uses nothing that one
 * of them may have locked, but memory, which the C library keeps usable.
 */
#ifndef STK_SUPERVISE_PROCESS_GUARDIAN_H
#define STK_SUPERVISE_PROCESS_GUARDIAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <stoker/status.h>

typedef struct stk_guardian stk_guardian;

/* Borrowed for the call; what commands have as standard input, output and error. -1: /dev/null. */
typedef struct stk_guardian_config {
    int in;
    int out;
    int err;
    int64_t until_ns; /* the clock's reading at which the guardian ends all and itself, should the
                         maker be stopped or wait for a dead disk; 0: never */
} stk_guardian_config;

STK_CHECKED stk_status stk_guardian_start(stk_guardian **guardian,
                                          const stk_guardian_config *config, stk_error *err);

/* Ends all that is below the guardian, at once, and the guardian. What the kernel does not let go
 * of is waited for within_s at most, and as long again; a guardian that hangs a second. NULL is
 * fine. */
void stk_guardian_stop(stk_guardian *guardian, double within_s);

/* The root of the tree that all commands and what they start are in: see base/threads/proc_tree.h.
 */
pid_t stk_guardian_pid(const stk_guardian *guardian);

/* Readable when stk_guardian_poll may have news. */
int stk_guardian_fd(const stk_guardian *guardian);

/*
 * Starts a command, found as a shell finds it (by the PATH of `envp`), in a session and process
 * group of its own and with signals as for a new program. *code is 127 where there is no such
 * program and 126 where it cannot be executed, as shells say it, with STK_ERR_USAGE and a sentence.
 * STK_ERR_DEVICE: the guardian is lost.
 */
STK_CHECKED stk_status stk_guardian_launch(stk_guardian *guardian, char *const *argv,
                                           char *const *envp, pid_t *pid, int *code,
                                           stk_error *err);

/* How the command has ended. */
typedef struct stk_command_exit {
    int code;   /* exit code; -1: a signal has ended it */
    int signal; /* that did; 0: none */
} stk_command_exit;

typedef enum stk_guardian_report {
    STK_GUARDIAN_NOTHING,
    STK_GUARDIAN_ENDED, /* the command's first process has ended: *ended says how; told once */
    STK_GUARDIAN_LOST   /* the guardian itself was killed, or its time is over: call
                           stk_guardian_stop */
} stk_guardian_report;

/* Returns at once. */
stk_guardian_report stk_guardian_poll(stk_guardian *guardian, stk_command_exit *ended);

/* Of the processes of the tree, which the guardian is not counted to. */
typedef enum stk_guardian_target {
    STK_GUARDIAN_FIRST,  /* the command's first process; nobody once it has ended */
    STK_GUARDIAN_OTHERS, /* all but that one */
    STK_GUARDIAN_ALL
} stk_guardian_target;

/*
 * Sends a signal. A
 * process is known by more than its number: one that has ended meanwhile and whose number another
 * got is not meant. Each gets it once; who is forked at that moment may get none.
 */
void stk_guardian_signal(stk_guardian *guardian, int number, stk_guardian_target whom);

/* Processes of the tree that live, the guardian not counted. When there are none, here and after
 * stk_guardian_kill, stk_guardian_poll tells the command's end at once. */
size_t stk_guardian_alive(stk_guardian *guardian);

/*
 * Ends whatever lives in the tree with SIGKILL, also what is forked meanwhile (all are stopped
 * first), and waits within_s at most. Returns how many are left: those that the kernel does not let
 * go of, or that are another user's.
 */
size_t stk_guardian_kill(stk_guardian *guardian, double within_s);

/*
 * Should the maker end without a word, the guardian does this last, once: where the contents of
 * `path` are still those of `changed`, `original` (a file beside the run) is put in its place. NULL
 * takes the order back. Paths are absolute, copied.
 */
STK_CHECKED stk_status stk_guardian_on_orphaned(stk_guardian *guardian, const char *path,
                                                const char *changed, const char *original,
                                                stk_error *err);

#endif
