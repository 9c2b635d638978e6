/*
 * object_timers.h - thousands of timers for the test server's loop: a binary heap.
 */
#ifndef OBJECT_TIMERS_H
#define OBJECT_TIMERS_H

#include <stddef.h>
#include <stdint.h>

/* Lies inside what it belongs to; all zero is a timer that is not set. */
typedef struct os_timer {
    int64_t due_ns;
    size_t place; /* in the heap, from 1; 0 when not set */
} os_timer;

typedef struct os_timers {
    os_timer **heap; /* from index 1; the earliest first */
    size_t count, room;
} os_timers;

void os_timers_set(os_timers *timers, os_timer *timer, int64_t due_ns);
void os_timers_unset(os_timers *timers, os_timer *timer);

/* The earliest timer, or NULL. */
os_timer *os_timers_first(const os_timers *timers);

void os_timers_free(os_timers *timers);

#endif
