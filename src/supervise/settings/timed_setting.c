/* timed_setting.c - a copy of the knob for the thread that may be left behind. */
#include "supervise/settings/timed_setting.h"

#include "base/error.h"
#include "base/mem.h"
#include "supervise/files/disk_call.h"

typedef enum what_to_do { LOOK, SET, RESTORE } what_to_do;

typedef struct turning {
    what_to_do what;
    stk_command_setting knob; /* its texts are owned */
    int64_t value;            /* to be set, or what was found */
    char *run_dir;            /* owned; of a knob that is set */
    bool mine;
    stk_status status;
    stk_error why;
} turning;

static void free_turning(void *state) {
    turning *t = state;
    stk_mem_free((void *)t->knob.config.key);
    stk_mem_free((void *)t->knob.config.file);
    stk_mem_free(t->run_dir);
    stk_setting_close(&t->knob); /* its other texts */
    stk_mem_free(t);
}

static bool copy_text(char **copy, const char *text) {
    *copy = text != NULL ? stk_mem_strdup(text) : NULL;
    return text == NULL || *copy != NULL;
}

/* NULL without memory. */
static turning *new_turning(const stk_command_setting *knob, what_to_do what, int64_t value,
                            const char *run_dir) {
    turning *t = stk_mem_new(1, sizeof *t);
    char *key = NULL;
    char *file = NULL;
    if (t == NULL) {
        return NULL;
    }
    t->knob = (stk_command_setting){.config = {.what = knob->config.what}, .kind = knob->kind};
    t->what = what;
    t->value = value;
    bool copied = copy_text(&key, knob->config.key) && copy_text(&file, knob->config.file) &&
                  copy_text(&t->knob.original, knob->original) &&
                  copy_text(&t->knob.changed, knob->changed) && copy_text(&t->run_dir, run_dir);
    t->knob.config.key = key;
    t->knob.config.file = file;
    if (!copied) {
        free_turning(t);
        return NULL;
    }
    return t;
}

static void turn(void *state) {
    turning *t = state;
    switch (t->what) {
    case LOOK:
        t->value = stk_setting_value(&t->knob, NULL);
        break;
    case SET:
        t->status = stk_setting_set(&t->knob, NULL, t->value, t->run_dir, &t->why);
        break;
    case RESTORE:
        t->status = stk_setting_restore(&t->knob, &t->mine, &t->why);
        break;
    }
}

static void take_text(char **place, char **text) {
    stk_mem_free(*place);
    *place = *text;
    *text = NULL;
}

/* Does it, takes over what the knob remembers afterwards, and frees the copy. */
static stk_status turn_within(stk_command_setting *knob, turning *t, bool *mine, double within_s,
                              stk_error *err) {
    if (t == NULL) {
        return STK_FAIL_MEMORY(err, knob->config.file);
    }
    if (!stk_disk_call(turn, t, free_turning, within_s)) {
        return STK_FAIL(err, STK_ERR_STORAGE,
                        "%s, or the copy of it in the run folder, is on a disk that has not "
                        "answered for %s",
                        knob->config.file, stk_format_span(within_s).text);
    }
    take_text(&knob->original, &t->knob.original);
    take_text(&knob->changed, &t->knob.changed);
    *mine = t->mine;
    stk_status status =
        t->status == STK_OK ? STK_OK : STK_FAIL(err, t->status, "%s", t->why.message);
    free_turning(t);
    return status;
}

int64_t stk_setting_value_within(const stk_command_setting *knob, const stk_command *command,
                                 double within_s) {
    turning *t = knob->kind == STK_SETTING_KEY ? new_turning(knob, LOOK, -1, NULL) : NULL;
    if (t == NULL) {
        return knob->kind != STK_SETTING_KEY ? stk_setting_value(knob, command) : -1;
    }
    if (!stk_disk_call(turn, t, free_turning, within_s)) {
        return -1;
    }
    int64_t value = t->value;
    free_turning(t);
    return value;
}

stk_status stk_setting_set_within(stk_command_setting *knob, stk_command *command, int64_t value,
                                  const char *run_dir, double within_s, stk_error *err) {
    if (knob->kind != STK_SETTING_KEY) {
        return stk_setting_set(knob, command, value, run_dir, err);
    }
    bool mine = true;
    return turn_within(knob, new_turning(knob, SET, value, run_dir), &mine, within_s, err);
}

stk_status stk_setting_restore_within(stk_command_setting *knob, bool *mine, double within_s,
                                      stk_error *err) {
    *mine = true;
    if (knob->original == NULL) {
        return STK_OK;
    }
    return turn_within(knob, new_turning(knob, RESTORE, 0, NULL), mine, within_s, err);
}
