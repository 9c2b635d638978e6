/*
 * guard_process.h - the guardian's own side, and what it and its maker say to each other.
 *
 * They speak through a pair of sockets. The maker sends a stk_guard_order and the texts that it
 * announces, the guardian a stk_guard_answer. When the maker's socket closes without a
 * STK_GUARD_QUIT before it, the maker has died.
 */
#ifndef STK_SUPERVISE_PROCESS_GUARD_PROCESS_H
#define STK_SUPERVISE_PROCESS_GUARD_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#include "supervise/process/guardian.h"

typedef enum stk_guard_kind {
    STK_GUARD_LAUNCH,   /* texts: arguments, then surroundings; answered with LAUNCHED */
    STK_GUARD_ORPHANED, /* texts: none, or the three paths of stk_guardian_on_orphaned */
    STK_GUARD_QUIT,     /* end all, and yourself */
    STK_GUARD_LAUNCHED, /* the command runs (value 0), or an errno says why not */
    STK_GUARD_ENDED     /* the command's first process has: value is what waitpid said */
} stk_guard_kind;

typedef struct stk_guard_order {
    uint32_t kind;
    uint32_t first_texts; /* that follow, each with its NUL: arguments, or paths */
    uint32_t more_texts;  /* that follow these: surroundings */
    uint32_t bytes;       /* of all of them */
} stk_guard_order;

typedef struct stk_guard_answer {
    uint32_t kind;
    int32_t pid;
    int32_t value;
} stk_guard_answer;

/* Is the guardian in a forked process, and ends that. `socket` is its end; `maker` its parent. */
_Noreturn void stk_guard_run(int socket, const stk_guardian_config *config, pid_t maker);

#endif
