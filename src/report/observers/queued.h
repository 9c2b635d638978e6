/*
 * queued.h - passes events to an observer on another thread, so that the caller never waits for it.
 *
 * Each event is copied with its texts and the time at which it happened; the thread of a queue
 * (base/threads/task_queue.h) emits the copy. When the observer's disk hangs, events for which
 * the queue has no room are lost and counted, and so are events without memory for a copy; a
 * warning before the next event that arrives says so. The stop event always has room.
 * Progress and batches of pictures are not passed on. Threads: that of the events.
 */
#ifndef STK_REPORT_OBSERVERS_QUEUED_H
#define STK_REPORT_OBSERVERS_QUEUED_H

#include <stdint.h>

#include <stoker/events.h>

#include "base/threads/task_queue.h"

typedef struct stk_queued stk_queued;

/* Who receives the events, on the queue's thread. It must outlive everything in the queue. */
typedef struct stk_queued_target {
    const stk_observer *observer;
    void (*at)(void *user, int64_t moment_ns); /* called before each event with its time; or NULL */
    void *user;                                /* the first argument of `at` */
} stk_queued_target;

STK_CHECKED stk_status stk_queued_new(stk_queued **queued, stk_task_queue *queue,
                                      const stk_queued_target *target, stk_error *err);
void stk_queued_free(stk_queued *queued); /* NULL is harmless; before or after the queue */

/* Valid until stk_queued_free. */
const stk_observer *stk_queued_observer(stk_queued *queued);

/* Events that were lost so far. */
typedef struct stk_queued_lost {
    uint64_t events;
    bool memory; /* some of them for lack of memory, not because the disk hangs */
    bool stop;   /* the stop is one of them */
} stk_queued_lost;

stk_queued_lost stk_queued_lost_of(const stk_queued *queued);

#endif
