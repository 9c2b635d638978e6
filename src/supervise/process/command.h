/*
 * command.h - a command line and its environment, which can be changed and shown.
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
    char **argv; /* owned; program and arguments, ended by NULL */
    char **envp; /* owned; NAME=value, ended by NULL */
} stk_command;

/* Makes a command from `count` words, or with count 0 from a line for /bin/sh -c. The environment
 * is a copy of this process's. Free it after an error too. */
STK_CHECKED stk_status stk_command_make(stk_command *command, const char *const *words,
                                        size_t count, const char *line, stk_error *err);
void stk_command_free(stk_command *command);

/* Sets an environment variable; with `only_missing` an existing one stays. */
STK_CHECKED stk_status stk_command_set_env(stk_command *command, const char *name,
                                           const char *value, bool only_missing, stk_error *err);
void stk_command_unset_env(stk_command *command, const char *name);
const char *stk_command_env(const stk_command *command, const char *name); /* or NULL */

/*
 * Sets the value of an argument, written as "--name value" or "--name=value". Of several, the last
 * one changes, since most programs use that; if there is none, it is added at the end.
 * STK_ERR_USAGE: its position is unclear, in a shell line or with a lone "--".
 */
STK_CHECKED stk_status stk_command_set_arg(stk_command *command, const char *name,
                                           const char *value, stk_error *err);

/* Whether stk_command_set_arg() would work. */
STK_CHECKED stk_status stk_command_check_arg(const stk_command *command, const char *name,
                                             stk_error *err);
void stk_command_unset_arg(stk_command *command,
                           const char *name); /* removes the last occurrence */
const char *stk_command_arg(const stk_command *command, const char *name); /* or NULL */

/* Appends the command as a user would type it, quoted where needed, secrets as ***. */
void stk_command_show(const stk_command *command, stk_str *text);

#endif
