/*
 * io_threads.h - threads for work that blocks and may never come back.
 *
 * A read of a mount whose server is gone cannot be stopped; all that can be done is to stop waiting
 * for it. So a job has its own copy of everything it needs: when it is cancelled its fetch is done
 * at once, and the thread, should it ever return, drops what it brought. Until then it is a stray.
 *
 * There are as few threads as will do: one, and one more whenever stk_hands_hurry() says that
 * bytes are missing while jobs wait, so that their number follows latency times rate and not the
 * number of cores. Threads: safe.
 */
#ifndef STK_STORAGE_READING_IO_THREADS_H
#define STK_STORAGE_READING_IO_THREADS_H

#include <stoker/status.h>

#include "base/files/file.h"

typedef struct stk_hands stk_hands;
typedef struct stk_fetch stk_fetch;

/* What a thread works on: a copy of the fetch's question and the answer. */
typedef struct stk_job {
    int kind; /* stk_fetch_kind */
    const char *path;
    uint64_t offset;
    uint64_t length;
    uint64_t extra[2]; /* as given to stk_hands_begin */
    stk_bytes bytes;
    stk_error error; /* set where the verdict is neither OK nor CANCELLED */
} stk_job;

/* Does the work and returns the verdict (stk_fetch_verdict). */
typedef int stk_hands_work(void *place, stk_job *job);

STK_CHECKED stk_status stk_hands_open(stk_hands **hands, int most_threads, stk_error *err);

/*
 * Ends the threads that wait for work; no fetch may be under way. `after(arg)`, unless NULL, is
 * called once no thread of these can touch anything any more: by this call, or, while there are
 * strays, by the last of them when it returns.
 */
void stk_hands_close(stk_hands *hands, void (*after)(void *arg), void *arg);

/* Begins a fetch; extra may be NULL. False without memory: then nothing was begun. */
bool stk_hands_begin(stk_hands *hands, stk_fetch *fetch, stk_hands_work *work, void *place,
                     const uint64_t *extra);

/* Ends a fetch that these hands began: done is called before this returns, unless it was before. */
void stk_hands_cancel(stk_hands *hands, stk_fetch *fetch);

/* For a work that takes long: tells the fetch that it moves on, so that it is waited for. */
void stk_hands_sign(stk_job *job);

/* Bytes are missing: takes up one more job at once if there is one and it can be. */
void stk_hands_hurry(stk_hands *hands);

/* Threads that work or wait for work; strays do not count. */
int stk_hands_threads(const stk_hands *hands);

#endif
