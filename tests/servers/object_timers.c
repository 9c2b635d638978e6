/*
 * object_timers.c - see the header.
 */
#include "object_timers.h"

#include <stdlib.h>

#include "object_text.h"

static void put(os_timers *timers, size_t place, os_timer *timer) {
    timers->heap[place] = timer;
    timer->place = place;
}

/* Moves a timer up or down from a free place to where it belongs. */
static void settle(os_timers *timers, size_t place, os_timer *timer) {
    while (place > 1 && timers->heap[place / 2]->due_ns > timer->due_ns) {
        put(timers, place, timers->heap[place / 2]);
        place /= 2;
    }
    for (size_t child = 2 * place; child <= timers->count; child = 2 * place) {
        if (child < timers->count &&
            timers->heap[child + 1]->due_ns < timers->heap[child]->due_ns) {
            child++;
        }
        if (timers->heap[child]->due_ns >= timer->due_ns) {
            break;
        }
        put(timers, place, timers->heap[child]);
        place = child;
    }
    put(timers, place, timer);
}

void os_timers_unset(os_timers *timers, os_timer *timer) {
    if (timer->place > 0) {
        os_timer *last = timers->heap[timers->count--];
        if (last != timer) {
            settle(timers, timer->place, last);
        }
        timer->place = 0;
    }
}

void os_timers_set(os_timers *timers, os_timer *timer, int64_t due_ns) {
    os_timers_unset(timers, timer);
    if (timers->count + 2 > timers->room) {
        timers->room = timers->room > 0 ? 2 * timers->room : 256;
        timers->heap = os_resize(timers->heap, timers->room * sizeof *timers->heap);
    }
    timer->due_ns = due_ns;
    timers->count++;
    settle(timers, timers->count, timer);
}

os_timer *os_timers_first(const os_timers *timers) {
    return timers->count > 0 ? timers->heap[1] : NULL;
}

void os_timers_free(os_timers *timers) {
    free(timers->heap);
    *timers = (os_timers){0};
}
