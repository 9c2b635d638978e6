/*
 * io_threads.h - I/O threads: threads for calls that block and may never return.
 *
 * A read from a mount whose server is gone cannot be stopped; one can only stop waiting for it. So
 * a task has its own copy of everything it needs. When a task is cancelled its fetch is done at
 * once and the thread is abandoned; should the call ever return, the thread drops the result.
 *
 * There are as few threads as possible: one, and one more whenever stk_io_threads_grow() says that
 * bytes are missing while tasks wait. Their number so follows latency times rate, not the number of
 * cores. Threads: all calls are safe from any thread.
 */
#ifndef STK_STORAGE_IO_THREADS_H
#define STK_STORAGE_IO_THREADS_H

#include <stoker/status.h>

#include "base/files/file.h"

typedef struct stk_io_threads stk_io_threads;
typedef struct stk_fetch stk_fetch;

/* What a thread works on: a copy of the fetch's request and the answer. */
typedef struct stk_io_task {
    int kind; /* stk_fetch_kind */
    const char *path;
    uint64_t offset;
    uint64_t length;
    uint64_t extra[2]; /* as given to stk_io_threads_begin */
    stk_bytes bytes;
    stk_error error; /* set where the verdict is neither OK nor CANCELLED */
} stk_io_task;

/* Does the work and returns the verdict (stk_fetch_verdict). */
typedef int stk_io_work(void *place, stk_io_task *task);

STK_CHECKED stk_status stk_io_threads_open(stk_io_threads **io_threads, int most_threads,
                                           stk_error *err);

/*
 * Ends the threads that wait for work; no fetch may be under way. `after(arg)`, unless NULL, is
 * called once no thread of these can touch anything any more: by this call, or, while there are
 * strays, by the last of them when it returns.
 */
void stk_io_threads_close(stk_io_threads *io_threads, void (*after)(void *arg), void *arg);

/* Begins a fetch; extra may be NULL. False without memory: then nothing was begun. */
bool stk_io_threads_begin(stk_io_threads *io_threads, stk_fetch *fetch, stk_io_work *work,
                          void *place, const uint64_t *extra);

/* Ends a fetch that these io_threads began: done is called before this returns, unless it was
 * before. */
void stk_io_threads_cancel(stk_io_threads *io_threads, stk_fetch *fetch);

/* For a work that takes long: tells the fetch that it moves on, so that it is waited for. */
void stk_io_task_is_alive(stk_io_task *task);

/* Bytes are missing: takes up one more task at once if there is one and it can be. */
void stk_io_threads_grow(stk_io_threads *io_threads);

/* Threads that work or wait for work; strays do not count. */
int stk_io_threads_count(const stk_io_threads *io_threads);

#endif
