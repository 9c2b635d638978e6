/*
 * task_queue.h - tasks that one thread does in order, for a disk that may hang.
 *
 * A caller that must not wait for a disk (a dead mount, a server that is gone) puts each call that
 * touches it into the queue as a task. The queue is bounded: without room it refuses a task, and
 * the caller goes on without it. Every wait has a limit. A task owns all that it touches, since the
 * queue may be abandoned before the disk answers. Tasks that were accepted run even then, so the
 * last task can free what all tasks share. timed_call.h is the same for one call.
 *
 *     stk_task_queue_open(&queue, "writes the run folder", 1 << 20, &err);
 *     stk_task_queue_put(queue, &(stk_queue_task){write_it, text, size}, 0);
 *     ...
 *     if (!stk_task_queue_flush(queue, 2)) { the disk does not answer }
 *     stk_task_queue_close(queue, 0);
 *
 * Threads: any may put tasks; one owner opens and closes.
 */
#ifndef STK_BASE_THREADS_TASK_QUEUE_H
#define STK_BASE_THREADS_TASK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

typedef struct stk_task_queue stk_task_queue;

typedef struct stk_queue_task {
    void (*work)(void *user); /* called by the thread; frees `user` where that is needed */
    void *user;
    size_t bytes; /* memory that the task holds while it waits; 0: there is always room */
} stk_queue_task;

/* The waiting tasks hold `most_bytes` at most. `what` the thread does is for an error: "writes". */
STK_CHECKED stk_status stk_task_queue_open(stk_task_queue **queue, const char *what,
                                           size_t most_bytes, stk_error *err);

/*
 * Puts a task at the end of the queue. Without room it waits while tasks get done, up to wait_s for
 * any one of them. After such a wait has run out, later calls fail at once until a task is done.
 * STK_ERR_STORAGE: no room. STK_ERR_MEMORY: no memory. In both cases `user` stays with the caller.
 */
STK_CHECKED stk_status stk_task_queue_put(stk_task_queue *queue, const stk_queue_task *task,
                                          double wait_s);

/* Puts the very last task, once, before the close. Needs no memory and is never refused. */
void stk_task_queue_put_last(stk_task_queue *queue, const stk_queue_task *task);

/* Waits until all tasks put so far are done, within_s at most; false: some are not. */
bool stk_task_queue_flush(stk_task_queue *queue, double within_s);

/* How long the running task has taken so far, in seconds; 0: none is running. */
double stk_task_queue_busy_s(stk_task_queue *queue);

/*
 * Flushes, within_s at most, and ends the thread. A thread whose task still runs is abandoned; if
 * the task returns, the thread does the remaining tasks and frees the queue. False: it was
 * abandoned. NULL is fine.
 */
bool stk_task_queue_close(stk_task_queue *queue, double within_s);

#endif
