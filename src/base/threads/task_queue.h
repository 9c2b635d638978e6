/*
 * task_queue.h - jobs for a disk that may hang, done in order by a thread that may be left behind.
 *
 * Whoever must not wait for a disk (a dead mount, a server that is gone) gives each call that
 * touches it as a job. Jobs are done one after another, in the order in which they were given. What
 * waits in the queue is bounded: where there is no room a job is refused, and its giver goes on
 * without it. Nobody waits longer than he says. A job owns all that it touches, since its giver may
 * be gone when the disk answers; what was taken is done even then, so that the last job can free
 * what all of them shared. timed_call.h does the same for one piece of work that its owner waits
 * for.
 *
 *     stk_task_queue_open(&queue, "writes the run folder", 1 << 20, &err);
 *     stk_task_queue_put(queue, &(stk_queue_task){write_it, text, size}, 0);
 *     ... something else ...
 *     if (!stk_task_queue_flush(queue, 2)) { ... the disk does not answer ... }
 *     stk_task_queue_close(queue, 0);
 *
 * Threads: jobs may be given by any; one owner opens and closes.
 */
#ifndef STK_BASE_THREADS_TASK_QUEUE_H
#define STK_BASE_THREADS_TASK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

typedef struct stk_task_queue stk_task_queue;

typedef struct stk_queue_task {
    void (*work)(void *user); /* called by the thread; frees `user` where that is to be freed */
    void *user;
    size_t bytes; /* what it holds in memory while it waits; 0: there is always room for it */
} stk_queue_task;

/* Jobs of `most_bytes` together may wait; `what` the thread does is for an error: "writes". */
STK_CHECKED stk_status stk_task_queue_open(stk_task_queue **queue, const char *what,
                                           size_t most_bytes, stk_error *err);

/*
 * Puts a job at the end of the queue. Without room it waits as long as jobs get done, but no longer
 * than patience_s for any one of them, and not again before the next one is done. A job that is
 * refused, with STK_ERR_STORAGE for lack of room and with STK_ERR_MEMORY, leaves `user` with its
 * giver.
 */
STK_CHECKED stk_status stk_task_queue_put(stk_task_queue *queue, const stk_queue_task *job,
                                          double patience_s);

/* The last job of all, once, before the close: it needs no memory and is never refused. */
void stk_task_queue_put_last(stk_task_queue *queue, const stk_queue_task *job);

/* Waits until all jobs that were given before are done, within_s at most; false: they are not. */
bool stk_task_queue_flush(stk_task_queue *queue, double within_s);

/*
 * Gives a job and waits for it, within_s at most. False: it was refused, or *taken is true and it
 * is done later; what it works on is its own then.
 */
bool stk_task_queue_call(stk_task_queue *queue, const stk_queue_task *job, double within_s,
                         bool *taken);

/* How long the job in work has taken so far; 0: there is none. */
double stk_task_queue_busy_s(stk_task_queue *queue);

/*
 * Settles within_s at most and ends the thread. One that is held is left behind; should it come
 * back it does what it was given and frees what is left. False: it was left. NULL is fine.
 */
bool stk_task_queue_close(stk_task_queue *queue, double within_s);

#endif
