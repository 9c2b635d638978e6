/* fetch.c - why an attempt failed, for code and for people; the pause before another attempt. */
#include "storage/fetch.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define FIRST_PAUSE_S 0.1
#define LONGEST_PAUSE_S 5.0

stk_fetch_verdict stk_fetch_fail(stk_fetch_result *result, stk_fetch_verdict verdict,
                                 stk_status status, const char *format, ...) {
    va_list values;
    va_start(values, format);
    result->verdict = verdict;
    result->status = status;
    result->is_sentence = false;
    vsnprintf(result->cause, sizeof result->cause, format, values);
    va_end(values);
    return verdict;
}

void stk_fetch_explain(const stk_fetch_result *result, const char *where, const char *path,
                       stk_error *err) {
    size_t length = strlen(where);
    const char *slash = path[0] == '\0' || (length > 0 && where[length - 1] == '/') ? "" : "/";
    err->status = STK_OK;
    if (result->is_sentence) {
        (void)STK_FAIL(err, result->status, "%s", result->cause);
    } else if (result->status == STK_ERR_MEMORY) {
        (void)STK_FAIL_MEMORY(err, path[0] != '\0' ? path : where);
    } else {
        (void)STK_FAIL(err, result->status, "cannot read %.700s%s%.700s: %s", where, slash, path,
                       result->cause);
    }
}

double stk_backoff_s(stk_rng *rng, int failures, double asked_s) {
    double pause_s = FIRST_PAUSE_S;
    for (int i = 1; i < failures && pause_s < LONGEST_PAUSE_S; i++) {
        pause_s *= 2;
    }
    pause_s =
        (pause_s < LONGEST_PAUSE_S ? pause_s : LONGEST_PAUSE_S) * stk_rng_range(rng, 0.5, 1.0);
    return pause_s > asked_s ? pause_s : asked_s < LONGEST_PAUSE_S ? asked_s : LONGEST_PAUSE_S;
}
