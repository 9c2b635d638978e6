/*
 * command_setting.c - three ways to tell a command a number.
 *
 * Two knobs may be keys of one file. So the file as it was and as we last wrote it are known by
 * their names in the run folder, which both share, and not by what one of them remembers.
 */
#include "supervise/settings/command_setting.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/write_target.h"
#include "base/mem.h"
#include "supervise/settings/config_scan.h"

/* A configuration that somebody wrote is never near this. */
#define FILE_MOST (16 << 20)

/* The contents of a file; data is NULL where it could not be read. */
typedef struct contents {
    char *data; /* owned */
    size_t size;
} contents;

static stk_status read_file(const char *path, contents *file, stk_error *err) {
    *file = (contents){0};
    return stk_file_read(path, FILE_MOST, &file->data, &file->size, err);
}

/* A file that may be missing. */
static contents read_if_there(const char *path) {
    contents file;
    if (read_file(path, &file, NULL) != STK_OK) {
        file = (contents){0};
    }
    return file;
}

static bool same(const contents *a, const contents *b) {
    return a->data != NULL && b->data != NULL && a->size == b->size &&
           memcmp(a->data, b->data, a->size) == 0;
}

/* "run/config.before.yaml"; NULL without memory. */
static char *kept_path(const stk_command_setting *knob, const char *run_dir, const char *which) {
    const char *ending = strrchr(knob->config.file, '.');
    return stk_str_format("%s/config.%s%s", run_dir, which, ending != NULL ? ending : "");
}

/* Where the number stands in a text, and what it is. */
static stk_status find_number(const stk_command_setting *knob, const contents *file, size_t *start,
                              size_t *length, int64_t *value, stk_error *err) {
    stk_config_keys keys;
    const stk_config_key *entry = NULL;
    stk_status status = stk_config_scan(&keys, knob->config.file, file->data, file->size, err);
    if (status == STK_OK) {
        status = stk_config_keys_find(&keys, knob->config.key, &entry, value, err);
    }
    if (status == STK_OK) {
        *start = entry->start;
        *length = entry->length;
    }
    stk_config_keys_free(&keys);
    return status;
}

/* What the file has for the key. */
static stk_status read_number(const stk_command_setting *knob, int64_t *value, stk_error *err) {
    contents file;
    size_t start;
    size_t length;
    stk_status status = read_file(knob->config.file, &file, err);
    if (status == STK_OK) {
        status = find_number(knob, &file, &start, &length, value, err);
    }
    stk_mem_free(file.data);
    return status;
}

/*
 * The text with another number in it. It is read again before anybody sees it: the number must be
 * found at the same place and be the one that was meant.
 */
static stk_status replace(const stk_command_setting *knob, const contents *file, int64_t value,
                          contents *replaced, stk_error *err) {
    size_t start;
    size_t length;
    int64_t old;
    *replaced = (contents){0};
    stk_status status = find_number(knob, file, &start, &length, &old, err);
    if (status != STK_OK) {
        return status;
    }
    stk_str text = {0};
    stk_str_append_bytes(&text, file->data, start);
    stk_str_appendf(&text, "%" PRId64, value);
    size_t behind = text.length;
    stk_str_append_bytes(&text, file->data + start + length, file->size - start - length);
    replaced->size = text.length;
    replaced->data = stk_str_take(&text);
    if (replaced->data == NULL) {
        return STK_FAIL_MEMORY(err, knob->config.file);
    }
    size_t place;
    status = find_number(knob, replaced, &place, &length, &old, err);
    if (status == STK_OK && (place != start || place + length != behind || old != value)) {
        status = STK_FAIL(err, STK_ERR_INTERNAL, "%s would not have %s %" PRId64 " afterwards",
                          knob->config.file, knob->config.key, value);
    }
    return status;
}

/* Fills the names of what is kept. */
static stk_status name_kept(stk_command_setting *knob, const char *run_dir, stk_error *err) {
    if (knob->original == NULL) {
        knob->original = kept_path(knob, run_dir, "before");
    }
    if (knob->changed == NULL) {
        knob->changed = kept_path(knob, run_dir, "changed");
    }
    return knob->original != NULL && knob->changed != NULL
               ? STK_OK
               : STK_FAIL_MEMORY(err, knob->config.file);
}

static void forget_kept(stk_command_setting *knob) {
    stk_mem_free(knob->original);
    stk_mem_free(knob->changed);
    knob->original = NULL;
    knob->changed = NULL;
}

/*
 * Keeps the file as it is before our first change, and a copy of what will be written. Where
 * somebody has changed it since we did, it is not ours to put back: then the copy goes, and with it
 * goes the order to restore.
 */
static stk_status keep(stk_command_setting *knob, bool first, const contents *now,
                       const contents *next, stk_error *err) {
    contents before = read_if_there(knob->original);
    contents changed = read_if_there(knob->changed);
    bool fresh = before.data == NULL || same(now, &before) || (first && changed.data == NULL);
    bool ours = fresh || same(now, &changed);
    const stk_file_how how = {.owner_only = true}; /* the file may be so, and hold secrets */
    stk_status status = STK_OK;
    if (fresh && !same(now, &before)) {
        status = stk_file_write_how(knob->original, now->data, now->size, &how, err);
    }
    if (status == STK_OK && ours) {
        status = stk_file_write_how(knob->changed, next->data, next->size, &how, err);
    } else if (status == STK_OK) {
        (void)unlink(knob->changed);
    }
    stk_mem_free(before.data);
    stk_mem_free(changed.data);
    return status;
}

static stk_status set_in_file(stk_command_setting *knob, int64_t value, const char *run_dir,
                              stk_error *err) {
    const char *path = knob->config.file;
    bool first = knob->original == NULL;
    contents next = {0};
    contents written = {0};
    contents now;
    stk_status status = read_file(path, &now, err);
    if (status == STK_OK) {
        status = replace(knob, &now, value, &next, err);
    }
    if (status != STK_OK || same(&now, &next)) {
        goto done;
    }
    status = name_kept(knob, run_dir, err);
    if (status == STK_OK) {
        status = keep(knob, first, &now, &next, err);
    }
    if (status == STK_OK) {
        status = stk_file_rewrite(path, next.data, next.size, err);
    }
    if (status != STK_OK && first) {
        forget_kept(knob); /* nothing was changed: there is nothing to put back */
    }
    if (status == STK_OK) {
        status = read_file(path, &written, err);
    }
    if (status == STK_OK && !same(&written, &next)) {
        status = STK_FAIL(err, STK_ERR_STORAGE, "%s is not as it was written; is it in use?", path);
    }
done:
    stk_mem_free(now.data);
    stk_mem_free(next.data);
    stk_mem_free(written.data);
    return status;
}

static stk_status check_ways(const stk_setting_config *config, stk_error *err) {
    const char *ways[] = {config->env, config->arg, config->key};
    static const char *const names[] = {"env", "arg", "key"};
    int given = -1;
    for (int i = 0; i < 3; i++) {
        if (ways[i] == NULL) {
            continue;
        }
        if (given >= 0) {
            return STK_FAIL(err, STK_ERR_USAGE,
                            "--%s-%s and --%s-%s are two ways to say the same; give one of them",
                            config->what, names[given], config->what, names[i]);
        }
        given = i;
        if (ways[i][0] == '\0' || (i < 2 && ways[i][strcspn(ways[i], "= \t")] != '\0')) {
            return STK_FAIL(err, STK_ERR_USAGE,
                            "--%s-%s '%s' is no name; it must not be empty or have = or blanks in "
                            "it",
                            config->what, names[i], ways[i]);
        }
    }
    if (config->key != NULL && config->file == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--%s-key %s needs the file that has this key: give --config-file",
                        config->what, config->key);
    }
    return STK_OK;
}

/* A file that is missing is one of the wrong name, not of storage that fails. */
static stk_status check_file(const stk_command_setting *knob, stk_error *err) {
    const char *path = knob->config.file;
    char *target = realpath(path, NULL);
    int64_t value;
    if (target == NULL || stk_path_is_dir(target)) {
        free(target);
        return STK_FAIL(err, STK_ERR_USAGE, "--config-file %s: there is no such file", path);
    }
    /* It will be replaced where it is, at the end of all links. */
    stk_status status = access(target, W_OK) == 0
                            ? stk_write_target_check("--config-file", target, err)
                            : STK_FAIL(err, STK_ERR_USAGE, "--config-file %s: cannot write it: %s",
                                       path, strerror(errno));
    free(target);
    return status == STK_OK ? read_number(knob, &value, err) : status;
}

stk_status stk_setting_open(stk_command_setting *knob, const stk_setting_config *config,
                            stk_error *err) {
    *knob = (stk_command_setting){.config = *config};
    stk_status status = check_ways(config, err);
    if (status != STK_OK) {
        return status;
    }
    if (config->env != NULL) {
        knob->kind = STK_SETTING_ENV;
    } else if (config->arg != NULL) {
        knob->kind = STK_SETTING_ARG;
    } else if (config->key != NULL) {
        knob->kind = STK_SETTING_KEY;
        status = check_file(knob, err);
    }
    return status;
}

/* What the command has of a variable or an argument, as text; NULL: nothing. */
static const char *text_of(const stk_command_setting *knob, const stk_command *command) {
    return knob->kind == STK_SETTING_ENV   ? stk_command_env(command, knob->config.env)
           : knob->kind == STK_SETTING_ARG ? stk_command_arg(command, knob->config.arg)
                                           : NULL;
}

static stk_status set_text(const stk_command_setting *knob, stk_command *command, const char *text,
                           stk_error *err) {
    return knob->kind == STK_SETTING_ENV
               ? stk_command_set_env(command, knob->config.env, text, false, err)
               : stk_command_set_arg(command, knob->config.arg, text, err);
}

/* Before the first change: what was there. */
static stk_status remember(stk_command_setting *knob, const stk_command *command, stk_error *err) {
    const char *text = text_of(knob, command);
    if (!knob->told && text != NULL) {
        knob->before = stk_mem_strdup(text);
        if (knob->before == NULL) {
            return STK_FAIL_MEMORY(err, knob->config.what);
        }
    }
    knob->told = true;
    return STK_OK;
}

stk_status stk_setting_check(const stk_command_setting *knob, const stk_command *command,
                             stk_error *err) {
    return knob->kind == STK_SETTING_ARG ? stk_command_check_arg(command, knob->config.arg, err)
                                         : STK_OK;
}

int64_t stk_setting_value(const stk_command_setting *knob, const stk_command *command) {
    int64_t value = -1;
    if (knob->kind == STK_SETTING_KEY) {
        return read_number(knob, &value, NULL) == STK_OK ? value : -1;
    }
    const char *text = text_of(knob, command);
    return text != NULL && stk_parse_int(text, &value) && value >= 0 ? value : -1;
}

stk_status stk_setting_set(stk_command_setting *knob, stk_command *command, int64_t value,
                           const char *run_dir, stk_error *err) {
    char text[24];
    if (knob->kind == STK_SETTING_NONE) {
        return STK_FAIL(err, STK_ERR_USAGE, "nothing says how the command is told its %s",
                        knob->config.what);
    }
    if (knob->kind == STK_SETTING_KEY) {
        return set_in_file(knob, value, run_dir, err);
    }
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    stk_status status = remember(knob, command, err);
    return status == STK_OK ? set_text(knob, command, text, err) : status;
}

stk_status stk_setting_unset(stk_command_setting *knob, stk_command *command, stk_error *err) {
    stk_status status = STK_OK;
    if (!knob->told) {
        return STK_OK;
    }
    if (knob->before != NULL) {
        status = set_text(knob, command, knob->before, err);
    } else if (knob->kind == STK_SETTING_ENV) {
        stk_command_unset_env(command, knob->config.env);
    } else {
        stk_command_unset_arg(command, knob->config.arg);
    }
    return status;
}

stk_status stk_setting_restore(stk_command_setting *knob, bool *mine, stk_error *err) {
    *mine = true;
    if (knob->original == NULL) {
        return STK_OK;
    }
    contents now = read_if_there(knob->config.file);
    contents changed = read_if_there(knob->changed);
    contents before;
    stk_status status = read_file(knob->original, &before, err);
    if (status == STK_OK && !same(&now, &before)) {
        *mine = same(&now, &changed);
        if (*mine) {
            status = stk_file_rewrite(knob->config.file, before.data, before.size, err);
        }
    }
    if (status == STK_OK && *mine) {
        (void)unlink(knob->changed); /* the other knob of this file finds that nothing is left */
    }
    stk_mem_free(now.data);
    stk_mem_free(changed.data);
    stk_mem_free(before.data);
    return status;
}

void stk_setting_close(stk_command_setting *knob) {
    forget_kept(knob);
    stk_mem_free(knob->before);
    memset(knob, 0, sizeof *knob);
}
