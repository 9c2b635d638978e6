/*
 * command_setting.h - a number that a command takes, and how it is told another one: by an
 * environment variable, an argument, or a key of a YAML or JSON file.
 *
 * In a file only the number itself is replaced: comments, order and blanks stay. The file as it was
 * is kept in the run folder and put back when the run has ended, unless somebody else has changed
 * it meanwhile.
 */
#ifndef STK_SUPERVISE_SETTINGS_COMMAND_SETTING_H
#define STK_SUPERVISE_SETTINGS_COMMAND_SETTING_H

#include <stdint.h>

#include <stoker/status.h>

#include "supervise/process/command.h"

typedef enum stk_setting_kind {
    STK_SETTING_NONE,
    STK_SETTING_ENV,
    STK_SETTING_ARG,
    STK_SETTING_KEY
} stk_setting_kind;

/* As given; at most one of env, arg and key. Borrowed for the life of the knob. */
typedef struct stk_setting_config {
    const char *what; /* "batch" or "workers", for sentences */
    const char *env;  /* or NULL, as the next ones */
    const char *arg;  /* with its dashes */
    const char *key;  /* "batch_size", or a way to it: "train.batch_size" */
    const char *file; /* that has the key; ends in .json, .yaml or .yml */
} stk_setting_config;

typedef struct stk_command_setting {
    stk_setting_config config;
    stk_setting_kind kind;
    bool told;      /* it was set: `before` holds */
    char *before;   /* owned: what the variable or argument was before; NULL: it was not there */
    char *original; /* owned: where the file as it was is kept; NULL: it was not changed */
    char *changed;  /* owned: a copy of what we last wrote; NULL the same */
} stk_command_setting;

/* Looks that all fits together and that the file has the key with a number. STK_ERR_USAGE says what
 * does not. */
STK_CHECKED stk_status stk_setting_open(stk_command_setting *knob, const stk_setting_config *config,
                                        stk_error *err);

/* What the command has now; -1: it does not say. */
int64_t stk_setting_value(const stk_command_setting *knob, const stk_command *command);

/* Whether the command can be told so; STK_ERR_USAGE says why not. */
STK_CHECKED stk_status stk_setting_check(const stk_command_setting *knob,
                                         const stk_command *command, stk_error *err);

/* Tells the command (or its file) another value; the first time the file is kept in run_dir. */
STK_CHECKED stk_status stk_setting_set(stk_command_setting *knob, stk_command *command,
                                       int64_t value, const char *run_dir, stk_error *err);

/* The command has again what it had before the first set; a file is what stk_setting_restore is
 * for.
 */
STK_CHECKED stk_status stk_setting_unset(stk_command_setting *knob, stk_command *command,
                                         stk_error *err);

/* Puts the file back where it is still as we wrote it. *mine is false where somebody has changed
 * it. */
STK_CHECKED stk_status stk_setting_restore(stk_command_setting *knob, bool *mine, stk_error *err);
void stk_setting_close(stk_command_setting *knob);

#endif
