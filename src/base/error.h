/* error.h - raising errors. Threads: an error belongs to the thread that owns it. */
#ifndef STK_BASE_ERROR_H
#define STK_BASE_ERROR_H

#include <stddef.h>

#include <stoker/status.h>

/*
 * Fills err, if it is not NULL and not set yet, and returns the status, so that a failing function
 * ends with `return STK_FAIL(err, STK_ERR_DATA, "cannot read %s: %s", path, why);`. User and
 * password of an address in the sentence are hidden.
 */
#define STK_FAIL(err, status, ...) \
    stk_error_same(stk_error_set((err), (status), __FILE__, __LINE__, __VA_ARGS__), (status))

/* The same for lack of memory; `what` says what the memory was for. */
#define STK_FAIL_MEMORY(err, what) \
    STK_FAIL((err), STK_ERR_MEMORY, "out of memory for %s; free some memory and run again", (what))

/* The next step of several: `call` is made only if all steps before it went well. */
#define STK_THEN(status, call) ((status) = (status) == STK_OK ? (call) : (status))

stk_status stk_error_set(stk_error *err, stk_status status, const char *file, int line,
                         const char *format, ...) STK_PRINTF(5, 6);

/* Shows compilers and analysers, which do not look into error.c, that a failure is never STK_OK. */
static inline stk_status stk_error_same(stk_status set, stk_status status) {
    (void)set;
    return status;
}

/*
 * The sentence up to its remedy ("no memory for 8 pictures; use fewer"), for a caller that applies
 * the remedy itself.
 */
void stk_error_cause(const stk_error *err, char *text, size_t room);

/* The status of an error that was stored earlier; *err becomes that error unless it has one. */
STK_CHECKED stk_status stk_error_pass(const stk_error *stored, stk_error *err);

/* Makes err usable for another attempt. */
void stk_error_clear(stk_error *err);

#endif
