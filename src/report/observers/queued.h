/*
 * queued.h - an observer on another thread, for who must not wait for what it does.
 *
 * Each event is copied with all of its texts and the moment at which it happened, and the thread of
 * a queue (base/threads/task_queue.h) tells it. Where the observer writes to a disk that hangs,
 * events that the queue has no room for are lost and counted, as are those without memory for a
 * copy; the next one that comes through says so. The last event, the stop, is never refused for
 * lack of room. Progress and batches of pictures are not passed on. Threads: that of the events.
 */
#ifndef STK_REPORT_OBSERVERS_QUEUED_H
#define STK_REPORT_OBSERVERS_QUEUED_H

#include <stdint.h>

#include <stoker/events.h>

#include "base/threads/task_queue.h"

typedef struct stk_observer_aside stk_observer_aside;

/* Who is told, on the queue's thread: all of it has to outlive what the queue was given. */
typedef struct stk_observer_told {
    const stk_observer *observer;
    void (*at)(void *user, int64_t moment_ns); /* called before each event, or NULL */
    void *user;                                /* of `at` */
} stk_observer_told;

STK_CHECKED stk_status stk_observer_aside_new(stk_observer_aside **aside, stk_task_queue *queue,
                                              const stk_observer_told *told, stk_error *err);
void stk_observer_aside_free(
    stk_observer_aside *aside); /* before or after the queue; NULL is fine */

/* Valid until stk_observer_aside_free. */
const stk_observer *stk_observer_aside_observer(stk_observer_aside *aside);

/* What was lost so far. */
typedef struct stk_observer_lost {
    uint64_t events;
    bool memory; /* some of them for lack of memory, not because the disk did not answer */
    bool stop;   /* the last event is one of them */
} stk_observer_lost;

stk_observer_lost stk_observer_aside_lost(const stk_observer_aside *aside);

#endif
