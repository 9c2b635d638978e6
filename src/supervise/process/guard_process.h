/*
 * guard_process.h - inside the folder: the guardian's own side, and its messages with the maker.
 *
 * Both sides talk through a pair of sockets. The maker sends a stk_guard_order followed by texts,
 * the guardian a stk_guard_answer. If the maker's socket closes without a STK_GUARD_QUIT, the maker
 * has died.
 */
#ifndef STK_SUPERVISE_PROCESS_GUARD_PROCESS_H
#define STK_SUPERVISE_PROCESS_GUARD_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#include "supervise/process/guardian.h"

typedef enum stk_guard_kind {
    STK_GUARD_LAUNCH,   /* order; texts: arguments, then environment; answered by LAUNCHED */
    STK_GUARD_ORPHANED, /* order; texts: none, or the three paths of stk_guardian_on_orphaned() */
    STK_GUARD_QUIT,     /* order: end all commands and the guardian */
    STK_GUARD_LAUNCHED, /* answer; value 0: the command runs, else the errno */
    STK_GUARD_ENDED     /* answer; the first process has ended, value: status of waitpid */
} stk_guard_kind;

typedef struct stk_guard_order {
    uint32_t kind;
    uint32_t first_texts; /* number of arguments or paths that follow, each with its NUL */
    uint32_t more_texts;  /* number of environment entries that follow them */
    uint32_t bytes;       /* of all texts */
} stk_guard_order;

typedef struct stk_guard_answer {
    uint32_t kind;
    int32_t pid;
    int32_t value;
} stk_guard_answer;

/* Runs the guardian in a forked process and ends that process. `socket` is the guardian's end. */
_Noreturn void stk_guard_run(int socket, const stk_guardian_config *config, pid_t maker);

#endif
