/*
 * timed_setting.c - the _within functions of command_setting.h.
 *
 * The thread that may be abandoned works on a copy of the setting with texts of its own.
 */
#include "supervise/settings/command_setting.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/threads/timed_call.h"

typedef enum setting_task_kind { READ_VALUE, SET_VALUE, RESTORE_FILE } setting_task_kind;

typedef struct setting_task {
    setting_task_kind kind;
    stk_command_setting setting; /* a copy; its texts are owned */
    int64_t value;               /* to set, or the value that was read */
    char *run_dir;               /* owned; SET_VALUE only */
    bool mine;                   /* RESTORE_FILE: nobody else has changed the file */
    stk_status status;
    stk_error why;
} setting_task;

static void free_task(void *state) {
    setting_task *t = state;
    stk_mem_free((void *)t->setting.config.key);
    stk_mem_free((void *)t->setting.config.file);
    stk_mem_free(t->run_dir);
    stk_setting_close(&t->setting); /* frees the other texts */
    stk_mem_free(t);
}

static bool copy_text(char **copy, const char *text) {
    *copy = text != NULL ? stk_mem_strdup(text) : NULL;
    return text == NULL || *copy != NULL;
}

/* NULL: out of memory. */
static setting_task *new_task(const stk_command_setting *setting, setting_task_kind kind,
                              int64_t value, const char *run_dir) {
    setting_task *t = stk_mem_new(1, sizeof *t);
    char *key = NULL;
    char *file = NULL;
    if (t == NULL) {
        return NULL;
    }
    t->setting =
        (stk_command_setting){.config = {.what = setting->config.what}, .kind = setting->kind};
    t->kind = kind;
    t->value = value;
    bool copied = copy_text(&key, setting->config.key) && copy_text(&file, setting->config.file) &&
                  copy_text(&t->setting.original, setting->original) &&
                  copy_text(&t->setting.changed, setting->changed) &&
                  copy_text(&t->run_dir, run_dir);
    t->setting.config.key = key;
    t->setting.config.file = file;
    if (!copied) {
        free_task(t);
        return NULL;
    }
    return t;
}

static void run_task(void *state) {
    setting_task *t = state;
    switch (t->kind) {
    case READ_VALUE:
        t->value = stk_setting_value(&t->setting, NULL);
        break;
    case SET_VALUE:
        t->status = stk_setting_set(&t->setting, NULL, t->value, t->run_dir, &t->why);
        break;
    case RESTORE_FILE:
        t->status = stk_setting_restore(&t->setting, &t->mine, &t->why);
        break;
    }
}

static void take_text(char **place, char **text) {
    stk_mem_free(*place);
    *place = *text;
    *text = NULL;
}

/* Runs the task, takes over the paths of the copies, and frees the task. */
static stk_status run_within(stk_command_setting *setting, setting_task *t, bool *mine,
                             double within_s, stk_error *err) {
    if (t == NULL) {
        return STK_FAIL_MEMORY(err, setting->config.file);
    }
    if (!stk_timed_call_within(run_task, t, free_task, within_s)) {
        return STK_FAIL(err, STK_ERR_STORAGE,
                        "the disk of %s, or of its copy in the run folder, has not answered for %s",
                        setting->config.file, stk_format_span(within_s).text);
    }
    take_text(&setting->original, &t->setting.original);
    take_text(&setting->changed, &t->setting.changed);
    *mine = t->mine;
    stk_status status =
        t->status == STK_OK ? STK_OK : STK_FAIL(err, t->status, "%s", t->why.message);
    free_task(t);
    return status;
}

int64_t stk_setting_value_within(const stk_command_setting *setting, const stk_command *command,
                                 double within_s) {
    setting_task *t =
        setting->kind == STK_SETTING_KEY ? new_task(setting, READ_VALUE, -1, NULL) : NULL;
    if (t == NULL) {
        return setting->kind != STK_SETTING_KEY ? stk_setting_value(setting, command) : -1;
    }
    if (!stk_timed_call_within(run_task, t, free_task, within_s)) {
        return -1;
    }
    int64_t value = t->value;
    free_task(t);
    return value;
}

stk_status stk_setting_set_within(stk_command_setting *setting, stk_command *command, int64_t value,
                                  const char *run_dir, double within_s, stk_error *err) {
    if (setting->kind != STK_SETTING_KEY) {
        return stk_setting_set(setting, command, value, run_dir, err);
    }
    bool mine = true;
    return run_within(setting, new_task(setting, SET_VALUE, value, run_dir), &mine, within_s, err);
}

stk_status stk_setting_restore_within(stk_command_setting *setting, bool *mine, double within_s,
                                      stk_error *err) {
    *mine = true;
    if (setting->original == NULL) {
        return STK_OK;
    }
    return run_within(setting, new_task(setting, RESTORE_FILE, 0, NULL), mine, within_s, err);
}
