/* command.c - the argument list and the environment: two lists of texts, each ended by NULL. */
#include "supervise/process/command.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/hide.h"
#include "base/mem.h"

#define SHELL "/bin/sh"

static size_t count_of(char *const *list) {
    size_t count = 0;
    while (list != NULL && list[count] != NULL) {
        count++;
    }
    return count;
}

static void free_list(char **list) {
    for (size_t i = 0; list != NULL && list[i] != NULL; i++) {
        stk_mem_free(list[i]);
    }
    stk_mem_free(list);
}

/* A copy of `count` words; NULL: out of memory. */
static char **copy_list(const char *const *words, size_t count) {
    char **list = stk_mem_new(count + 1, sizeof *list);
    for (size_t i = 0; list != NULL && i < count; i++) {
        list[i] = stk_mem_strdup(words[i]);
        if (list[i] == NULL) {
            free_list(list);
            return NULL;
        }
    }
    return list;
}

/* Appends `word` and takes it over; NULL: out of memory. */
static stk_status add_word(char ***list, char *word, stk_error *err) {
    size_t count = count_of(*list);
    char **grown = word != NULL ? stk_mem_resize(*list, count + 2, sizeof *grown) : NULL;
    if (grown == NULL) {
        stk_mem_free(word);
        return STK_FAIL_MEMORY(err, "a command");
    }
    grown[count] = word;
    grown[count + 1] = NULL;
    *list = grown;
    return STK_OK;
}

/* Replaces a word by `word` and takes it over; NULL: out of memory. */
static stk_status put_word(char **place, char *word, stk_error *err) {
    if (word == NULL) {
        return STK_FAIL_MEMORY(err, "a command");
    }
    stk_mem_free(*place);
    *place = word;
    return STK_OK;
}

static void drop_words(char **list, size_t from, size_t count) {
    for (size_t i = from; i < from + count; i++) {
        stk_mem_free(list[i]);
    }
    memmove(list + from, list + from + count, (count_of(list + from + count) + 1) * sizeof *list);
}

/* The text after "name=", or NULL. */
static const char *after_equals(const char *word, const char *name) {
    size_t length = strlen(name);
    return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

/* Whether the command is `sh -c LINE`: its arguments are inside one text, which is not parsed. */
static bool runs_a_line(char *const *argv) {
    static const char *const shells[] = {"sh", "bash", "dash", "zsh", "ksh", "ash"};
    size_t count = count_of(argv);
    bool line = count > 2 && argv[1][0] == '-' && argv[1][strlen(argv[1]) - 1] == 'c';
    for (size_t i = 0; line && i < STK_COUNT(shells); i++) {
        if (stk_str_equal(stk_path_base(argv[0]), shells[i])) {
            return true;
        }
    }
    return false;
}

/* The first lone "--", or the end. */
static size_t lone_dashes(char *const *argv) {
    size_t i = 0;
    while (argv[i] != NULL && (i == 0 || !stk_str_equal(argv[i], "--"))) {
        i++;
    }
    return i;
}

/* Index of the last word in [from, to) that holds the argument's value; 0: none. */
static size_t last_of(char *const *argv, size_t from, size_t to, const char *name) {
    size_t found = 0;
    for (size_t i = from; i < to; i++) {
        if (after_equals(argv[i], name) != NULL) {
            found = i;
        } else if (stk_str_equal(argv[i], name) && i + 1 < to) {
            found = i++; /* the next word is the value, whatever it looks like */
        }
    }
    return found;
}

/*
 * Index of the word that holds the argument's value; 0: none. Words after a lone "--" count only
 * if no word before it matches: in `launcher -- program --name 1` the argument belongs to the
 * program.
 */
static size_t find_arg(const stk_command *command, const char *name) {
    size_t dashes = lone_dashes(command->argv);
    size_t found = last_of(command->argv, 1, dashes, name);
    return found > 0 ? found : last_of(command->argv, dashes + 1, count_of(command->argv), name);
}

stk_status stk_command_make(stk_command *command, const char *const *words, size_t count,
                            const char *line, stk_error *err) {
    const char *const shell[] = {SHELL, "-c", line};
    memset(command, 0, sizeof *command);
    if (count == 0 && (line == NULL || line[strspn(line, " \t\r\n")] == '\0')) {
        return STK_FAIL(err, STK_ERR_USAGE, "there is no command to run; put it after a lone --");
    }
    const void *environment = environ; /* read only */
    command->argv = count > 0 ? copy_list(words, count) : copy_list(shell, 3);
    command->envp = copy_list(environment, count_of(environ));
    return command->argv != NULL && command->envp != NULL ? STK_OK
                                                          : STK_FAIL_MEMORY(err, "a command");
}

void stk_command_free(stk_command *command) {
    free_list(command->argv);
    free_list(command->envp);
    memset(command, 0, sizeof *command);
}

/* Index of NAME=..., or SIZE_MAX. */
static size_t find_env(const stk_command *command, const char *name) {
    for (size_t i = 0; command->envp != NULL && command->envp[i] != NULL; i++) {
        if (after_equals(command->envp[i], name) != NULL) {
            return i;
        }
    }
    return SIZE_MAX;
}

stk_status stk_command_set_env(stk_command *command, const char *name, const char *value,
                               bool only_missing, stk_error *err) {
    size_t found = find_env(command, name);
    if (found != SIZE_MAX && only_missing) {
        return STK_OK;
    }
    char *word = stk_str_format("%s=%s", name, value);
    return found != SIZE_MAX ? put_word(&command->envp[found], word, err)
                             : add_word(&command->envp, word, err);
}

void stk_command_unset_env(stk_command *command, const char *name) {
    size_t found = find_env(command, name);
    if (found != SIZE_MAX) {
        drop_words(command->envp, found, 1);
    }
}

const char *stk_command_env(const stk_command *command, const char *name) {
    size_t found = find_env(command, name);
    return found != SIZE_MAX ? after_equals(command->envp[found], name) : NULL;
}

stk_status stk_command_check_arg(const stk_command *command, const char *name, stk_error *err) {
    if (find_arg(command, name) > 0) {
        return STK_OK;
    }
    if (runs_a_line(command->argv)) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "cannot give %s to a line that a shell runs: name the program and its "
                        "arguments after --, or use an environment variable (--batch-env, "
                        "--workers-env)",
                        name);
    }
    size_t count = count_of(command->argv);
    if (count > 1 && stk_str_equal(command->argv[count - 1], name)) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "%s has no value at the end of the command; give it one", name);
    }
    if (lone_dashes(command->argv) < count) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "the command has a lone -- and no %s, so that it is not clear where it "
                        "belongs; write %s with its value into the command",
                        name, name);
    }
    return STK_OK;
}

stk_status stk_command_set_arg(stk_command *command, const char *name, const char *value,
                               stk_error *err) {
    stk_status status = stk_command_check_arg(command, name, err);
    if (status != STK_OK) {
        return status;
    }
    size_t found = find_arg(command, name);
    /* A name without dashes is set as name=value, as Hydra expects. */
    bool equals = found > 0 ? after_equals(command->argv[found], name) != NULL : name[0] != '-';
    char *word = equals ? stk_str_format("%s=%s", name, value) : stk_mem_strdup(value);
    if (found > 0) {
        return put_word(&command->argv[equals ? found : found + 1], word, err);
    }
    if (!equals) {
        status = add_word(&command->argv, stk_mem_strdup(name), err);
        if (status != STK_OK) {
            stk_mem_free(word);
            return status;
        }
    }
    return add_word(&command->argv, word, err);
}

void stk_command_unset_arg(stk_command *command, const char *name) {
    size_t found = find_arg(command, name);
    if (found > 0) {
        drop_words(command->argv, found, after_equals(command->argv[found], name) != NULL ? 1 : 2);
    }
}

const char *stk_command_arg(const stk_command *command, const char *name) {
    size_t found = find_arg(command, name);
    if (found == 0) {
        return NULL;
    }
    const char *value = after_equals(command->argv[found], name);
    return value != NULL ? value : command->argv[found + 1];
}

/* Whether a shell takes the word as it is. A first word with = would be an assignment. */
static bool is_plain(const char *word, bool first) {
    size_t plain = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_@%+=:,./-*");
    return plain > 0 && word[plain] == '\0' && !(first && strchr(word, '=') != NULL);
}

/* Appends a word, quoted if needed. A star needs no quotes where it hides a secret. */
static void show_word(const char *word, bool hidden, bool first, stk_str *text) {
    if (is_plain(word, first) && (hidden || strchr(word, '*') == NULL)) {
        stk_str_append(text, word);
        return;
    }
    stk_str_append(text, "'");
    for (const char *p = word; *p != '\0'; p++) {
        stk_str_append_bytes(text, *p == '\'' ? "'\\''" : p, *p == '\'' ? 4 : 1);
    }
    stk_str_append(text, "'");
}

/* A word without secrets. It may hold the value of a variable whose name says that it is secret. */
static stk_str hide_word(const stk_command *command, stk_hider *hider, const char *word) {
    stk_str shown = {0};
    stk_hide_word(hider, word, &shown);
    stk_hide_values(command->envp, &shown);
    return shown;
}

void stk_command_show(const stk_command *command, stk_str *text) {
    size_t count = count_of(command->argv);
    /* The line of `sh -c LINE` is shown as it is. */
    bool line = count == 3 && stk_str_equal(command->argv[0], SHELL) &&
                stk_str_equal(command->argv[1], "-c");
    stk_hider hider = {.arguments = !line};
    for (size_t i = line ? 2 : 0; i < count; i++) {
        stk_str shown = hide_word(command, &hider, command->argv[i]);
        const char *word = stk_str_text(&shown);
        text->failed = text->failed || !stk_str_ok(&shown);
        if (line) {
            stk_str_append(text, word);
        } else {
            stk_str_append(text, i > 0 ? " " : "");
            show_word(word, !stk_str_equal(word, command->argv[i]), i == 0, text);
        }
        stk_str_free(&shown);
    }
}
