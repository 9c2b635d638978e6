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

void stk_events_start(const stk_events *events, const stk_event_start *event) {
    emit(events, STK_EVENT_START, event);
}

void stk_events_plan(const stk_events *events, const stk_event_plan *event) {
    emit(events, STK_EVENT_PLAN, event);
}

void stk_events_decision(const stk_events *events, const char *what, const char *why) {
    stk_event_decision event = {what, why};
    emit(events, STK_EVENT_DECISION, &event);
}

void stk_events_step(const stk_events *events, const stk_event_step *event) {
    emit(events, STK_EVENT_STEP, event);
}

void stk_events_epoch(const stk_events *events, const stk_event_epoch *event) {
    emit(events, STK_EVENT_EPOCH, event);
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

void stk_events_submission(const stk_events *events, const stk_event_submission *event) {
    emit(events, STK_EVENT_SUBMISSION, event);
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

void stk_events_stop(const stk_events *events, const stk_summary *summary) {
    emit(events, STK_EVENT_STOP, summary);
}

void stk_events_progress(const stk_events *events, const stk_event_progress *event) {
    emit(events, STK_EVENT_PROGRESS, event);
}

void stk_events_batch(const stk_events *events, const stk_event_batch *event) {
    emit(events, STK_EVENT_BATCH, event);
}

void stk_events_sample(const stk_events *events, const stk_event_sample *event) {
    emit(events, STK_EVENT_SAMPLE, event);
}

void stk_events_verdict(const stk_events *events, const stk_event_verdict *event) {
    emit(events, STK_EVENT_VERDICT, event);
}

void stk_events_attempt(const stk_events *events, const stk_event_attempt *event) {
    emit(events, STK_EVENT_ATTEMPT, event);
}
