/* events.c - passes every event to every observer. */
#include "events/events.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/hide.h"
#include "events/any_event.h"

static void emit(const stk_events *events, stk_event_kind kind, const void *event) {
    for (int i = 0; events != NULL && i < events->count; i++) {
        stk_event_pass(events->observers[i], kind, event);
    }
}

void stk_events_add(stk_events *events, const stk_observer *observer) {
    if (observer != NULL) {
        assert(events->count < STK_EVENTS_MAX);
        events->observers[events->count++] = observer;
    }
}

/* stk_events_start() and the other calls that take an event. */
#define EMIT(kind, name, type)                                            \
    void stk_events_##name(const stk_events *events, const type *event) { \
        emit(events, kind, event);                                        \
    }
STK_PLAIN_EVENTS(EMIT)

void stk_events_decision(const stk_events *events, const char *what, const char *why) {
    stk_event_decision event = {what, why};
    emit(events, STK_EVENT_DECISION, &event);
}

void stk_events_checkpoint(const stk_events *events, const char *path, bool best) {
    stk_event_checkpoint event = {path, best};
    emit(events, STK_EVENT_CHECKPOINT, &event);
}

void stk_events_bad_image(const stk_events *events, const char *path, const char *split,
                          const char *reason) {
    stk_event_bad_image event = {path, split, reason};
    bool added = true;
    /* Without memory for the map an image may have two events, which is better than none. */
    if (events != NULL && events->bad_told != NULL && path != NULL &&
        stk_map_add(events->bad_told, path, 0, &added) && !added) {
        return;
    }
    emit(events, STK_EVENT_BAD_IMAGE, &event);
}

void stk_events_warning(const stk_events *events, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    stk_hide_addresses(text);
    emit(events, STK_EVENT_WARNING, &(stk_event_warning){text});
}
