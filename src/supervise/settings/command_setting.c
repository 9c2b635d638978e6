/*
 * command_setting.c - changes a variable, an argument or a number in a file.
 *
 * Two settings may be keys of the same file. So the copies of the original and of the last written
 * file have fixed names in the run folder, which both settings share.
 */
#include "supervise/settings/command_setting.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/files/write_target.h"
#include "base/mem.h"
#include "supervise/settings/config_keys.h"

/* Largest file that is read; no configuration is near this. */
#define FILE_MOST (16 << 20)

/* Contents of a file; data is NULL where it could not be read. */
typedef struct file_contents {
    char *data; /* owned */
    size_t size;
} file_contents;

static stk_status read_file(const char *path, file_contents *file, stk_error *err) {
    *file = (file_contents){0};
    return stk_file_read(path, FILE_MOST, &file->data, &file->size, err);
}

/* Reads a file that may be missing. */
static file_contents read_if_there(const char *path) {
    file_contents file;
    if (read_file(path, &file, NULL) != STK_OK) {
        file = (file_contents){0};
    }
    return file;
}

static bool same(const file_contents *a, const file_contents *b) {
    return a->data != NULL && b->data != NULL && a->size == b->size &&
           memcmp(a->data, b->data, a->size) == 0;
}

/* "run/config.before.yaml"; NULL: out of memory. */
static char *copy_path(const stk_command_setting *setting, const char *run_dir, const char *which) {
    const char *ending = strrchr(setting->config.file, '.');
    return stk_str_format("%s/config.%s%s", run_dir, which, ending != NULL ? ending : "");
}

/* Finds the position and the value of the number. */
static stk_status find_number(const stk_command_setting *setting, const file_contents *file,
                              size_t *start, size_t *length, int64_t *value, stk_error *err) {
    stk_config_keys keys;
    const stk_config_key *entry = NULL;
    stk_status status = stk_config_scan(&keys, setting->config.file, file->data, file->size, err);
    STK_THEN(status, stk_config_keys_find(&keys, setting->config.key, &entry, value, err));
    if (status == STK_OK) {
        *start = entry->start;
        *length = entry->length;
    }
    stk_config_keys_free(&keys);
    return status;
}

/* Reads the number from the file. */
static stk_status read_number(const stk_command_setting *setting, int64_t *value, stk_error *err) {
    file_contents file;
    size_t start;
    size_t length;
    stk_status status = read_file(setting->config.file, &file, err);
    STK_THEN(status, find_number(setting, &file, &start, &length, value, err));
    stk_mem_free(file.data);
    return status;
}

/*
 * Makes the text with another number. Scans it again before it is written: the number must be found
 * at the same position with the new value.
 */
static stk_status replace(const stk_command_setting *setting, const file_contents *file,
                          int64_t value, file_contents *replaced, stk_error *err) {
    size_t start;
    size_t length;
    int64_t old;
    *replaced = (file_contents){0};
    stk_status status = find_number(setting, file, &start, &length, &old, err);
    if (status != STK_OK) {
        return status;
    }
    stk_str text = {0};
    stk_str_append_bytes(&text, file->data, start);
    stk_str_appendf(&text, "%" PRId64, value);
    size_t after = text.length;
    stk_str_append_bytes(&text, file->data + start + length, file->size - start - length);
    replaced->size = text.length;
    replaced->data = stk_str_take(&text);
    if (replaced->data == NULL) {
        return STK_FAIL_MEMORY(err, setting->config.file);
    }
    size_t place;
    status = find_number(setting, replaced, &place, &length, &old, err);
    if (status == STK_OK && (place != start || place + length != after || old != value)) {
        status = STK_FAIL(err, STK_ERR_INTERNAL, "changing %s would not give %s the value %" PRId64,
                          setting->config.file, setting->config.key, value);
    }
    return status;
}

/* Sets the paths of the two copies. */
static stk_status name_copies(stk_command_setting *setting, const char *run_dir, stk_error *err) {
    if (setting->original == NULL) {
        setting->original = copy_path(setting, run_dir, "before");
    }
    if (setting->changed == NULL) {
        setting->changed = copy_path(setting, run_dir, "changed");
    }
    return setting->original != NULL && setting->changed != NULL
               ? STK_OK
               : STK_FAIL_MEMORY(err, setting->config.file);
}

static void forget_copies(stk_command_setting *setting) {
    stk_mem_free(setting->original);
    stk_mem_free(setting->changed);
    setting->original = NULL;
    setting->changed = NULL;
}

/*
 * Before a change, copies the original file (first change only) and the text to be written. If
 * somebody else has changed the file since our last write, it must not be restored: the copy of our
 * text is removed, and without it nothing is restored.
 */
static stk_status write_copies(stk_command_setting *setting, bool first, const file_contents *now,
                               const file_contents *next, stk_error *err) {
    file_contents before = read_if_there(setting->original);
    file_contents changed = read_if_there(setting->changed);
    bool fresh = before.data == NULL || same(now, &before) || (first && changed.data == NULL);
    bool ours = fresh || same(now, &changed);
    const stk_file_how how = {.owner_only = true}; /* the original may be private */
    stk_status status = STK_OK;
    if (fresh && !same(now, &before)) {
        status = stk_file_write_how(setting->original, now->data, now->size, &how, err);
    }
    if (status == STK_OK && ours) {
        status = stk_file_write_how(setting->changed, next->data, next->size, &how, err);
    } else if (status == STK_OK) {
        (void)stk_disk_remove(setting->changed);
    }
    stk_mem_free(before.data);
    stk_mem_free(changed.data);
    return status;
}

static stk_status set_in_file(stk_command_setting *setting, int64_t value, const char *run_dir,
                              stk_error *err) {
    const char *path = setting->config.file;
    bool first = setting->original == NULL;
    file_contents next = {0};
    file_contents written = {0};
    file_contents now;
    stk_status status = read_file(path, &now, err);
    STK_THEN(status, replace(setting, &now, value, &next, err));
    if (status != STK_OK || same(&now, &next)) {
        goto done;
    }
    status = name_copies(setting, run_dir, err);
    STK_THEN(status, write_copies(setting, first, &now, &next, err));
    STK_THEN(status, stk_file_rewrite(path, next.data, next.size, err));
    if (status != STK_OK && first) {
        forget_copies(setting); /* the file is unchanged: nothing to restore */
    }
    STK_THEN(status, read_file(path, &written, err));
    if (status == STK_OK && !same(&written, &next)) {
        status = STK_FAIL(err, STK_ERR_STORAGE,
                          "%s is not as Stoker wrote it; does another program write it?", path);
    }
done:
    stk_mem_free(now.data);
    stk_mem_free(next.data);
    stk_mem_free(written.data);
    return status;
}

static stk_status check_options(const stk_setting_config *config, stk_error *err) {
    const char *given_names[] = {config->env, config->arg, config->key};
    static const char *const names[] = {"env", "arg", "key"};
    int given = -1;
    for (int i = 0; i < 3; i++) {
        if (given_names[i] == NULL) {
            continue;
        }
        if (given >= 0) {
            return STK_FAIL(err, STK_ERR_USAGE,
                            "--%s-%s and --%s-%s name the same number twice; give one of them",
                            config->what, names[given], config->what, names[i]);
        }
        given = i;
        if (given_names[i][0] == '\0' ||
            (i < 2 && given_names[i][strcspn(given_names[i], "= \t")] != '\0')) {
            return STK_FAIL(err, STK_ERR_USAGE,
                            "--%s-%s '%s' is no name; it must not be empty or contain = or blanks",
                            config->what, names[i], given_names[i]);
        }
    }
    if (config->key != NULL && config->file == NULL) {
        return STK_FAIL(err, STK_ERR_USAGE,
                        "--%s-key %s needs the file that has this key: give --config-file",
                        config->what, config->key);
    }
    return STK_OK;
}

/* A missing file is an error of the user, not of the storage. */
static stk_status check_file(const stk_command_setting *setting, stk_error *err) {
    const char *path = setting->config.file;
    char *target = realpath(path, NULL);
    int64_t value;
    if (target == NULL || stk_path_is_dir(target)) {
        free(target);
        return STK_FAIL(err, STK_ERR_USAGE, "--config-file %s: there is no such file", path);
    }
    /* The file at the end of all links will be replaced. */
    stk_status status = access(target, W_OK) == 0
                            ? stk_write_target_check("--config-file", target, err)
                            : STK_FAIL(err, STK_ERR_USAGE, "--config-file %s: cannot write it: %s",
                                       path, strerror(errno));
    free(target);
    return status == STK_OK ? read_number(setting, &value, err) : status;
}

stk_status stk_setting_open(stk_command_setting *setting, const stk_setting_config *config,
                            stk_error *err) {
    *setting = (stk_command_setting){.config = *config};
    stk_status status = check_options(config, err);
    if (status != STK_OK) {
        return status;
    }
    if (config->env != NULL) {
        setting->kind = STK_SETTING_ENV;
    } else if (config->arg != NULL) {
        setting->kind = STK_SETTING_ARG;
    } else if (config->key != NULL) {
        setting->kind = STK_SETTING_KEY;
        status = check_file(setting, err);
    }
    return status;
}

/* The variable or argument as text; NULL: it does not exist. */
static const char *text_of(const stk_command_setting *setting, const stk_command *command) {
    return setting->kind == STK_SETTING_ENV   ? stk_command_env(command, setting->config.env)
           : setting->kind == STK_SETTING_ARG ? stk_command_arg(command, setting->config.arg)
                                              : NULL;
}

static stk_status set_text(const stk_command_setting *setting, stk_command *command,
                           const char *text, stk_error *err) {
    return setting->kind == STK_SETTING_ENV
               ? stk_command_set_env(command, setting->config.env, text, false, err)
               : stk_command_set_arg(command, setting->config.arg, text, err);
}

/* Stores the value from before the first change. */
static stk_status remember(stk_command_setting *setting, const stk_command *command,
                           stk_error *err) {
    const char *text = text_of(setting, command);
    if (!setting->was_set && text != NULL) {
        setting->before = stk_mem_strdup(text);
        if (setting->before == NULL) {
            return STK_FAIL_MEMORY(err, setting->config.what);
        }
    }
    setting->was_set = true;
    return STK_OK;
}

stk_status stk_setting_check(const stk_command_setting *setting, const stk_command *command,
                             stk_error *err) {
    return setting->kind == STK_SETTING_ARG
               ? stk_command_check_arg(command, setting->config.arg, err)
               : STK_OK;
}

int64_t stk_setting_value(const stk_command_setting *setting, const stk_command *command) {
    int64_t value = -1;
    if (setting->kind == STK_SETTING_KEY) {
        return read_number(setting, &value, NULL) == STK_OK ? value : -1;
    }
    const char *text = text_of(setting, command);
    return text != NULL && stk_parse_int(text, &value) && value >= 0 ? value : -1;
}

stk_status stk_setting_set(stk_command_setting *setting, stk_command *command, int64_t value,
                           const char *run_dir, stk_error *err) {
    char text[24];
    if (setting->kind == STK_SETTING_NONE) {
        return STK_FAIL(err, STK_ERR_USAGE, "no option says how to set the command's %s",
                        setting->config.what);
    }
    if (setting->kind == STK_SETTING_KEY) {
        return set_in_file(setting, value, run_dir, err);
    }
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    stk_status status = remember(setting, command, err);
    return status == STK_OK ? set_text(setting, command, text, err) : status;
}

stk_status stk_setting_unset(stk_command_setting *setting, stk_command *command, stk_error *err) {
    stk_status status = STK_OK;
    if (!setting->was_set) {
        return STK_OK;
    }
    if (setting->before != NULL) {
        status = set_text(setting, command, setting->before, err);
    } else if (setting->kind == STK_SETTING_ENV) {
        stk_command_unset_env(command, setting->config.env);
    } else {
        stk_command_unset_arg(command, setting->config.arg);
    }
    return status;
}

stk_status stk_setting_restore(stk_command_setting *setting, bool *mine, stk_error *err) {
    *mine = true;
    if (setting->original == NULL) {
        return STK_OK;
    }
    file_contents now = read_if_there(setting->config.file);
    file_contents changed = read_if_there(setting->changed);
    file_contents before;
    stk_status status = read_file(setting->original, &before, err);
    if (status == STK_OK && !same(&now, &before)) {
        *mine = same(&now, &changed);
        if (*mine) {
            status = stk_file_rewrite(setting->config.file, before.data, before.size, err);
        }
    }
    if (status == STK_OK && *mine) {
        /* So the other setting of this file restores nothing. */
        (void)stk_disk_remove(setting->changed);
    }
    stk_mem_free(now.data);
    stk_mem_free(changed.data);
    stk_mem_free(before.data);
    return status;
}

/* ---- on disks that may hang ---- */

/* Leaves the disk; after a time-out that is the error, whatever failed because of it. */
static stk_status leave(stk_disk *disk, const stk_command_setting *setting, double within_s,
                        stk_status status, stk_error *err) {
    if (stk_disk_leave(disk)) {
        return status;
    }
    stk_error_clear(err);
    return STK_FAIL(err, STK_ERR_STORAGE,
                    "the disk of %s, or of its copy in the run folder, has not answered for %s",
                    setting->config.file, stk_format_span(within_s).text);
}

int64_t stk_setting_value_within(const stk_command_setting *setting, const stk_command *command,
                                 double within_s) {
    stk_disk *disk = stk_disk_enter_within(within_s);
    int64_t value = stk_setting_value(setting, command);
    stk_disk_leave(disk);
    return value;
}

stk_status stk_setting_set_within(stk_command_setting *setting, stk_command *command, int64_t value,
                                  const char *run_dir, double within_s, stk_error *err) {
    stk_disk *disk = stk_disk_enter_within(within_s);
    stk_status status = stk_setting_set(setting, command, value, run_dir, err);
    return leave(disk, setting, within_s, status, err);
}

stk_status stk_setting_restore_within(stk_command_setting *setting, bool *mine, double within_s,
                                      stk_error *err) {
    stk_disk *disk = stk_disk_enter_within(within_s);
    stk_status status = stk_setting_restore(setting, mine, err);
    return leave(disk, setting, within_s, status, err);
}

void stk_setting_close(stk_command_setting *setting) {
    forget_copies(setting);
    stk_mem_free(setting->before);
    memset(setting, 0, sizeof *setting);
}
