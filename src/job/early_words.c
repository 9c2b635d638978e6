/* early_words.c - keeping words and saying them again. */
#include "job/early_words.h"

#include <string.h>

static void keep_warning(void *user, const char *text) {
    stk_early_words *words = user;
    stk_str_append(&words->text, "w");
    stk_str_append_bytes(&words->text, text, strlen(text) + 1);
}

static void keep_decision(void *user, const stk_event_decision *event) {
    stk_early_words *words = user;
    stk_str_append(&words->text, "d");
    stk_str_append_bytes(&words->text, event->what, strlen(event->what) + 1);
    stk_str_append_bytes(&words->text, event->why, strlen(event->why) + 1);
}

void stk_early_words_open(stk_early_words *words) {
    *words = (stk_early_words){
        .observer = {.user = words, .warning = keep_warning, .decision = keep_decision}};
}

void stk_early_words_free(stk_early_words *words) {
    stk_str_free(&words->text);
}

static void tell(const stk_early_words *words, bool decisions, const stk_events *events) {
    const char *p = words->text.text;
    const char *end = p != NULL ? p + words->text.length : NULL;
    while (p < end && stk_str_ok(&words->text)) {
        const char *what = p + 1;
        const char *why = what + strlen(what) + 1;
        if (*p == 'w') {
            stk_events_warning(events, "%s", what);
            p = why;
        } else {
            if (decisions) {
                stk_events_decision(events, what, why);
            }
            p = why + strlen(why) + 1;
        }
    }
}

void stk_early_words_tell(const stk_early_words *words, const stk_events *events) {
    tell(words, true, events);
}

void stk_early_words_warn(const stk_early_words *words, const stk_events *events) {
    tell(words, false, events);
}
