/*
 * command_setting.h - a number that a command takes (batch size, workers), and how Stoker changes
 * it.
 *
 * A setting is an environment variable, an argument, or a key of a YAML or JSON file. In a file
 * only the number changes; comments, order and blanks stay. The run folder keeps a copy of the
 * original file, and stk_setting_restore() puts it back at the end of the run, unless somebody else
 * has changed the file meanwhile.
 *
 * The file and the run folder may lie on disks that hang. The supervisor uses the _within variants:
 * they give up after within_s with STK_ERR_STORAGE. Settings of the other kinds touch no disk.
 *
 * Threads: one at a time.
 */
#ifndef STK_SUPERVISE_SETTINGS_COMMAND_SETTING_H
#define STK_SUPERVISE_SETTINGS_COMMAND_SETTING_H

#include <stdint.h>

#include <stoker/status.h>

#include "supervise/process/command.h"

typedef enum stk_setting_kind {
    STK_SETTING_NONE, /* the user gave no way to change it */
    STK_SETTING_ENV,
    STK_SETTING_ARG,
    STK_SETTING_KEY
} stk_setting_kind;

/* As the user gave it; at most one of env, arg and key. Borrowed for the life of the setting. */
typedef struct stk_setting_config {
    const char *what; /* "batch" or "workers", for messages */
    const char *env;  /* name of a variable; NULL: none */
    const char *arg;  /* with its dashes; NULL: none */
    const char *key;  /* "batch_size", or a path: "train.batch_size"; NULL: none */
    const char *file; /* that has the key; ends in .json, .yaml or .yml */
} stk_setting_config;

typedef struct stk_command_setting {
    stk_setting_config config;
    stk_setting_kind kind;
    bool was_set;   /* variable or argument: set at least once, so `before` is valid */
    char *before;   /* owned: variable or argument before the first set; NULL: it did not exist */
    char *original; /* owned: path of the copy of the original file; NULL: never changed */
    char *changed;  /* owned: path of a copy of what we last wrote; NULL: never changed */
} stk_command_setting;

/* Checks that the options fit together and that the file has the key with a number. STK_ERR_USAGE
 * says what does not fit. */
STK_CHECKED stk_status stk_setting_open(stk_command_setting *setting,
                                        const stk_setting_config *config, stk_error *err);

/* The command's present value; -1: unknown. */
int64_t stk_setting_value(const stk_command_setting *setting, const stk_command *command);
int64_t stk_setting_value_within(const stk_command_setting *setting, const stk_command *command,
                                 double within_s);

/* Whether the value can be changed; STK_ERR_USAGE says why not. */
STK_CHECKED stk_status stk_setting_check(const stk_command_setting *setting,
                                         const stk_command *command, stk_error *err);

/* Sets the value for the command, or in its file. Copies the file into run_dir before its first
 * change. */
STK_CHECKED stk_status stk_setting_set(stk_command_setting *setting, stk_command *command,
                                       int64_t value, const char *run_dir, stk_error *err);
STK_CHECKED stk_status stk_setting_set_within(stk_command_setting *setting, stk_command *command,
                                              int64_t value, const char *run_dir, double within_s,
                                              stk_error *err);

/* Undoes all changes to a variable or argument. stk_setting_restore() restores a file. */
STK_CHECKED stk_status stk_setting_unset(stk_command_setting *setting, stk_command *command,
                                         stk_error *err);

/* Restores the original file if it is still as we wrote it. *mine: nobody else has changed it. */
STK_CHECKED stk_status stk_setting_restore(stk_command_setting *setting, bool *mine,
                                           stk_error *err);
STK_CHECKED stk_status stk_setting_restore_within(stk_command_setting *setting, bool *mine,
                                                  double within_s, stk_error *err);
void stk_setting_close(stk_command_setting *setting);

#endif
