/*
 * events.h - emitting events to observers.
 *
 * A stk_events is a short list of borrowed observers. Code that does work gets one as an argument
 * (NULL: there are no observers) and says what happens only through these calls. Observers are
 * called on the calling thread, in the order of the list. Threads: one at a time.
 */
#ifndef STK_EVENTS_EVENTS_H
#define STK_EVENTS_EVENTS_H

#include <stoker/events.h>

#include "base/map.h"

#define STK_EVENTS_MAX 8

typedef struct stk_events {
    const stk_observer *observers[STK_EVENTS_MAX]; /* borrowed */
    int count;
    /*
     * Borrowed, or NULL: paths of bad images whose event was emitted. With it each image has one
     * event, though every epoch and every model meets it again. The paths must outlive the map.
     */
    stk_map *bad_told;
} stk_events;

/* Adds an observer; NULL is skipped. More than STK_EVENTS_MAX are a fault of the programmer. */
void stk_events_add(stk_events *events, const stk_observer *observer);

void stk_events_start(const stk_events *events, const stk_event_start *event);
void stk_events_plan(const stk_events *events, const stk_event_plan *event);
void stk_events_decision(const stk_events *events, const char *what, const char *why);
void stk_events_step(const stk_events *events, const stk_event_step *event);
void stk_events_epoch(const stk_events *events, const stk_event_epoch *event);
void stk_events_checkpoint(const stk_events *events, const char *path, bool best);
void stk_events_bad_image(const stk_events *events, const char *path, const char *split,
                          const char *reason);
void stk_events_submission(const stk_events *events, const stk_event_submission *event);
void stk_events_warning(const stk_events *events, const char *format, ...) STK_PRINTF(2, 3);
void stk_events_stop(const stk_events *events, const stk_summary *event);
void stk_events_progress(const stk_events *events, const stk_event_progress *event);
void stk_events_batch(const stk_events *events, const stk_event_batch *event);
void stk_events_sample(const stk_events *events, const stk_event_sample *event);
void stk_events_verdict(const stk_events *events, const stk_event_verdict *event);
void stk_events_attempt(const stk_events *events, const stk_event_attempt *event);

#endif
