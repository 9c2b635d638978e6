/*
 * command.h - a command with its arguments and surroundings, which can be changed and shown.
 *
 * Threads: one at a time.
 */
#ifndef STK_SUPERVISE_PROCESS_COMMAND_H
#define STK_SUPERVISE_PROCESS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

#include "base/str.h"

typedef struct stk_command {
    char **argv; /* owned, NULL behind the last */
    char **envp; /* the same */
} stk_command;

/* From words (at least one), or, with `count` 0, from a line that /bin/sh is given; the
 * surroundings are those of this process. Freed with stk_command_free also after an error. */
STK_CHECKED stk_status stk_command_make(stk_command *command, const char *const *words,
                                        size_t count, const char *line, stk_error *err);
void stk_command_free(stk_command *command);

/* Sets or replaces NAME=value among the surroundings; `only_missing` leaves one that is there. */
STK_CHECKED stk_status stk_command_set_env(stk_command *command, const char *name,
                                           const char *value, bool only_missing, stk_error *err);
void stk_command_unset_env(stk_command *command, const char *name);
const char *stk_command_env(const stk_command *command, const char *name); /* or NULL */

/*
 * Replaces the value of an argument, given as "--name value" or "--name=value" (the last one
 * counts, as in most programs); adds it at the end where there is none. STK_ERR_USAGE where it is
 * not clear where it belongs: in a line that a shell runs, or behind a lone "--".
 */
STK_CHECKED stk_status stk_command_set_arg(stk_command *command, const char *name,
                                           const char *value, stk_error *err);

/* Whether that can be done: known before anything runs. */
STK_CHECKED stk_status stk_command_check_arg(const stk_command *command, const char *name,
                                             stk_error *err);
void stk_command_unset_arg(stk_command *command, const char *name);        /* the last one */
const char *stk_command_arg(const stk_command *command, const char *name); /* or NULL */

/* As one would type it, with quotes where they are needed and *** in place of secrets. */
void stk_command_show(const stk_command *command, stk_str *text);

#endif
