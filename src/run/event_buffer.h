/*
 * event_buffer.h - keeps warnings and decisions that are emitted before a run's first event.
 *
 * A run checks its data and its device before it emits its start event. Warnings and decisions of
 * that time go into this buffer, and are emitted to the real observers soon after the start. Other
 * events are not kept. Threads: one at a time.
 */
#ifndef STK_RUN_EVENT_BUFFER_H
#define STK_RUN_EVENT_BUFFER_H

#include "base/str.h"
#include "events/events.h"

typedef struct stk_event_buffer {
    stk_observer observer; /* to be added to a stk_events: it fills this buffer */
    stk_str text; /* per event 'w' or 'd', then the text and a NUL; a decision's reason and a NUL */
} stk_event_buffer;

/* Must stay at its address: the observer points to it. */
void stk_event_buffer_open(stk_event_buffer *buffer);
void stk_event_buffer_free(stk_event_buffer *buffer);

/* Emits everything in the order in which it came. */
void stk_event_buffer_emit(const stk_event_buffer *buffer, const stk_events *events);

/* Emits the warnings alone. For a run that fails before it begins: they may explain why. */
void stk_event_buffer_emit_warnings(const stk_event_buffer *buffer, const stk_events *events);

#endif
