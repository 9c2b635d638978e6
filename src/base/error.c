/* error.c - status names, exit codes and error text. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hide.h"

static const struct {
    const char *name;
    int exit_code;
} statuses[] = {
    [STK_OK] = {"ok", 0},
    [STK_ERR_INTERNAL] = {"internal", 1},
    [STK_ERR_USAGE] = {"usage", 2},
    [STK_ERR_DATA] = {"data", 3},
    [STK_ERR_DEVICE] = {"device", 4},
    [STK_ERR_MEMORY] = {"memory", 4},
    [STK_ERR_STORAGE] = {"storage", 5},
    [STK_ERR_STOPPED] = {"stopped", 130},
};

static size_t status_index(stk_status status) {
    size_t i = (size_t)status;
    return i < sizeof statuses / sizeof *statuses ? i : (size_t)STK_ERR_INTERNAL;
}

stk_status stk_error_set(stk_error *err, stk_status status, const char *file, int line,
                         const char *format, ...) {
    if (err != NULL && err->status == STK_OK) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
        stk_hide_addresses(err->message); /* a sentence may be shown and kept anywhere */
        err->status = status;
        err->file = file;
        err->line = line;
    }
    return status;
}

void stk_error_cause(const stk_error *err, char *text, size_t room) {
    snprintf(text, room, "%.*s", (int)strcspn(err->message, ";"), err->message);
}

stk_status stk_error_pass(const stk_error *stored, stk_error *err) {
    if (err != NULL && err->status == STK_OK) {
        *err = *stored;
    }
    return stored->status;
}

void stk_error_clear(stk_error *err) {
    if (err != NULL) {
        memset(err, 0, sizeof *err);
    }
}

const char *stk_status_name(stk_status status) {
    return statuses[status_index(status)].name;
}

int stk_status_exit_code(stk_status status) {
    return statuses[status_index(status)].exit_code;
}

const char *stk_version(void) {
    return STK_VERSION;
}
