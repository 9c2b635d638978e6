/* events.c - each event goes to every observer that has a callback for it. */
#include "events/events.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/hide.h"

#define TELL(events, callback, ...)                                 \
    for (int i = 0; (events) != NULL && i < (events)->count; i++) { \
        const stk_observer *observer = (events)->observers[i];      \
        if (observer->callback != NULL) {                           \
            observer->callback(observer->user, __VA_ARGS__);        \
        }                                                           \
    }

void stk_events_add(stk_events *events, const stk_observer *observer) {
    if (observer != NULL) {
        assert(events->count < STK_EVENTS_MAX);
        events->observers[events->count++] = observer;
    }
}

void stk_events_start(const stk_events *events, const stk_event_start *event) {
    TELL(events, start, event);
}

void stk_events_plan(const stk_events *events, const stk_event_plan *event) {
    TELL(events, plan, event);
}

void stk_events_decision(const stk_events *events, const char *what, const char *why) {
    stk_event_decision event = {what, why};
    TELL(events, decision, &event);
}

void stk_events_step(const stk_events *events, const stk_event_step *event) {
    TELL(events, step, event);
}

void stk_events_epoch(const stk_events *events, const stk_event_epoch *event) {
    TELL(events, epoch, event);
}

void stk_events_checkpoint(const stk_events *events, const char *path, bool best) {
    stk_event_checkpoint event = {path, best};
    TELL(events, checkpoint, &event);
}

void stk_events_bad_image(const stk_events *events, const char *path, const char *split,
                          const char *reason) {
    stk_event_bad_image event = {path, split, reason};
    bool added = true;
    /* Without memory for the map an image is rather told twice than not at all. */
    if (events != NULL && events->bad_told != NULL && path != NULL &&
        stk_map_add(events->bad_told, path, 0, &added) && !added) {
        return;
    }
    TELL(events, bad_image, &event);
}

void stk_events_submission(const stk_events *events, const stk_event_submission *event) {
    TELL(events, submission, event);
}

void stk_events_warning(const stk_events *events, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    stk_hide_addresses(text);
    TELL(events, warning, text);
}

void stk_events_stop(const stk_events *events, const stk_summary *summary) {
    TELL(events, stop, summary);
}

void stk_events_progress(const stk_events *events, const stk_event_progress *event) {
    TELL(events, progress, event);
}

void stk_events_batch(const stk_events *events, const stk_event_batch *event) {
    TELL(events, batch, event);
}

void stk_events_sample(const stk_events *events, const stk_event_sample *event) {
    TELL(events, sample, event);
}

void stk_events_verdict(const stk_events *events, const stk_event_verdict *event) {
    TELL(events, verdict, event);
}

void stk_events_attempt(const stk_events *events, const stk_event_attempt *event) {
    TELL(events, attempt, event);
}
