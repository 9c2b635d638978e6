/*
 * io_threads.h - I/O threads: threads for calls that block and may never return.
 *
 * A read from a mount whose server is gone cannot be stopped; its caller can only stop waiting. So
 * a task has its own copy of everything it needs. When a task is cancelled its fetch is done at
 * once and the thread is abandoned; should the call ever return, the thread drops the result.
 *
 * There are as few threads as possible: one at first, and one more for each stk_io_threads_grow()
 * call during which a task waits. So the number of threads follows latency times rate, not the
 * number of cores. Threads: all calls are safe from any thread.
 */
#ifndef STK_STORAGE_IO_THREADS_H
#define STK_STORAGE_IO_THREADS_H

#include "storage/fetch.h"

typedef struct stk_io_threads stk_io_threads;

/* What a thread works on: a copy of the fetch's request, and the answer. */
typedef struct stk_io_task {
    stk_fetch_kind kind;
    const char *path;
    uint64_t offset;
    uint64_t length;
    uint64_t extra[2]; /* as given to stk_io_threads_begin */
    stk_bytes bytes;
    stk_fetch_result result; /* with OK only the verdict counts */
} stk_io_task;

/* Does the work and sets task->result. `user` is what stk_io_threads_begin was given. */
typedef void stk_io_work(void *user, stk_io_task *task);

STK_CHECKED stk_status stk_io_threads_open(stk_io_threads **io_threads, int most_threads,
                                           stk_error *err);

/*
 * Ends the threads that wait for work; no fetch may be under way. `after(arg)`, unless NULL, is
 * called when the last thread has ended: by this call or, if threads are stuck, by the last of them
 * when it returns.
 */
void stk_io_threads_close(stk_io_threads *io_threads, void (*after)(void *arg), void *arg);

/* Begins a fetch; extra may be NULL. False without memory: then nothing was begun. */
bool stk_io_threads_begin(stk_io_threads *io_threads, stk_fetch *fetch, stk_io_work *work,
                          void *user, const uint64_t *extra);

/* Cancels a fetch that was begun here: calls `done`, unless the fetch has ended already. */
void stk_io_threads_cancel(stk_io_threads *io_threads, stk_fetch *fetch);

/* Work that takes long calls this now and then, so that its task does not time out. */
void stk_io_task_is_alive(stk_io_task *task);

/* The caller lacks bytes: starts one more thread if a task waits and the limit allows it. */
void stk_io_threads_grow(stk_io_threads *io_threads);

/* Threads that work or wait for work; abandoned ones do not count. */
int stk_io_threads_count(const stk_io_threads *io_threads);

#endif
