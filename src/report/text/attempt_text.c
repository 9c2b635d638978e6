/* attempt_text.c - the words for attempts. */
#include "report/text/attempt_text.h"

#include <math.h>
#include <signal.h>

#define MOST_BYTES 1e18 /* more is a number of somebody else */

static const char *plural(int64_t count) {
    return count == 1 ? "" : "s";
}

static bool is_prediction(const stk_event_attempt *attempt) {
    return attempt->part != NULL && stk_str_equal(attempt->part, "predict");
}

/* Why an attempt ended, in words. If Stoker ended it, the exit code says nothing. */
typedef struct stop_words {
    const char *reason;
    const char *words;
    bool by_itself;
    bool may_save; /* it was asked to end, and given time for that */
} stop_words;

/* The words for a stop reason; an unknown reason stands for itself. */
static stop_words words_of(const char *reason) {
    static const stop_words all[] = {
        {"done", "it ended by itself", true, false},
        {"crash", "it failed", true, false},
        {"memory", "it ran out of memory", true, false},
        {"batch", "stopped to try another batch", false, false},
        {"workers", "stopped to try another number of workers", false, false},
        {"hang", "it hung", false, false},
        {"budget", "its time was up", false, true},
        {"signal", "it was asked to stop", false, true},
    };
    if (reason == NULL) {
        return (stop_words){NULL, "it ended", true, false};
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (stk_str_equal(reason, all[i].reason)) {
            return all[i];
        }
    }
    return (stop_words){reason, reason, true, false};
}

void stk_attempt_put_name(stk_str *out, const stk_event_attempt *attempt) {
    bool prediction = is_prediction(attempt);
    stk_str_append(out, prediction ? "prediction" : "attempt");
    if (attempt->number > 1 || !prediction) {
        stk_str_appendf(out, " %d", attempt->number);
    }
}

void stk_attempt_put_setting(stk_str *out, const char *between, const stk_event_attempt *attempt) {
    if (attempt->batch >= 0) {
        stk_str_appendf(out, "%sbatch %lld", between, (long long)attempt->batch);
        between = ", ";
    }
    if (attempt->workers >= 0) {
        stk_str_appendf(out, "%s%d worker%s", between, attempt->workers, plural(attempt->workers));
    }
}

void stk_attempt_put_memory(stk_str *out, const stk_event_attempt *attempt) {
    double used = attempt->gpu_memory_used;
    double total = attempt->gpu_memory_total;
    char text[2][32];
    if (used >= 0 && used < MOST_BYTES && total > 0 && total < MOST_BYTES) {
        stk_str_appendf(
            out, "%s of %s (%.0f %%)", stk_format_bytes(text[0], sizeof text[0], (uint64_t)used),
            stk_format_bytes(text[1], sizeof text[1], (uint64_t)total), 100 * used / total);
    }
}

void stk_attempt_put_end(stk_str *out, const stk_event_attempt *attempt) {
    if (!attempt->ended) {
        stk_str_append(out, "no end was written");
        return;
    }
    stop_words end = words_of(attempt->stop_reason);
    stk_str_append(out, end.words);
    if (end.by_itself && attempt->signal > 0) {
        stk_str_appendf(out, " (signal %d)", attempt->signal);
    } else if (end.by_itself && attempt->exit_code > 0) {
        stk_str_appendf(out, " (exit code %d)", attempt->exit_code);
    } else if (end.may_save && attempt->signal == SIGKILL) {
        stk_str_append(out, " (killed: it did not end within its grace)");
    }
}

/* Appends the results of the attempt, each after a comma. */
static void put_result(stk_str *out, const stk_event_attempt *attempt) {
    if (isfinite(attempt->images_per_second)) {
        stk_str_appendf(out, ", %.*f img/s", attempt->images_per_second < 100 ? 1 : 0,
                        attempt->images_per_second);
    }
    if (isfinite(attempt->gpu_util)) {
        stk_str_appendf(out, ", GPU %.0f %%", attempt->gpu_util);
    }
    stk_str memory = {0};
    stk_attempt_put_memory(&memory, attempt);
    if (memory.length > 0) {
        stk_str_appendf(out, ", GPU memory %s", memory.text);
    }
    stk_str_free_part(out, &memory);
    if (attempt->verdict != NULL) {
        stk_str_appendf(out, ", %s", attempt->verdict);
    }
    if (isfinite(attempt->seconds)) {
        stk_str_appendf(out, ", %s", stk_format_span(attempt->seconds).text);
    }
}

void stk_attempt_put_line(stk_str *out, const stk_event_attempt *attempt) {
    stk_attempt_put_name(out, attempt);
    stk_str_append(out, ": ");
    stk_attempt_put_end(out, attempt);
    stk_attempt_put_setting(out, "; ", attempt);
    put_result(out, attempt);
    stk_str_append(out, attempt->kept ? "; kept" : "");
}

const stk_event_attempt *stk_attempt_best(const stk_event_attempt *attempts, int count) {
    const stk_event_attempt *best = NULL;
    for (int i = 0; i < count; i++) {
        if (!is_prediction(&attempts[i]) && isfinite(attempts[i].images_per_second) &&
            (best == NULL || attempts[i].images_per_second > best->images_per_second)) {
            best = &attempts[i];
        }
    }
    return best;
}
