/* event_buffer.c - an observer that stores events as text, and emits them again. */
#include "run/event_buffer.h"

#include <string.h>

static void store_warning(void *user, const char *text) {
    stk_event_buffer *buffer = user;
    stk_str_append(&buffer->text, "w");
    stk_str_append_bytes(&buffer->text, text, strlen(text) + 1);
}

static void store_decision(void *user, const stk_event_decision *event) {
    stk_event_buffer *buffer = user;
    stk_str_append(&buffer->text, "d");
    stk_str_append_bytes(&buffer->text, event->what, strlen(event->what) + 1);
    stk_str_append_bytes(&buffer->text, event->why, strlen(event->why) + 1);
}

void stk_event_buffer_open(stk_event_buffer *buffer) {
    *buffer = (stk_event_buffer){
        .observer = {.user = buffer, .warning = store_warning, .decision = store_decision}};
}

void stk_event_buffer_free(stk_event_buffer *buffer) {
    stk_str_free(&buffer->text);
}

static void emit(const stk_event_buffer *buffer, bool decisions, const stk_events *events) {
    const char *p = buffer->text.text;
    const char *end = p != NULL ? p + buffer->text.length : NULL;
    while (p < end && stk_str_ok(&buffer->text)) {
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

void stk_event_buffer_emit(const stk_event_buffer *buffer, const stk_events *events) {
    emit(buffer, true, events);
}

void stk_event_buffer_emit_warnings(const stk_event_buffer *buffer, const stk_events *events) {
    emit(buffer, false, events);
}
