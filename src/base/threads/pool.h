/*
 * pool.h - threads that share one piece of work.
 *
 * stk_pool_run() hands tasks 0 .. n-1 to the pool's threads and to the caller and returns when all
 * are done. Which thread takes which task is not fixed, so a task must not depend on it beyond
 * using the thread's own scratch memory. One run at a time per pool; tasks must not call run.
 */
#ifndef STK_BASE_THREADS_POOL_H
#define STK_BASE_THREADS_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

typedef struct stk_pool stk_pool;

/* thread is in 0 .. stk_pool_threads()-1, and no two tasks run with the same one at a time. */
typedef void stk_pool_task(void *context, size_t task, int thread);

/*
 * A pool of `threads` threads, the caller's included; threads >= 1. Where the system refuses some
 * there are fewer, at least the caller's.
 */
STK_CHECKED stk_status stk_pool_new(stk_pool **pool, int threads, stk_error *err);
void stk_pool_free(stk_pool *pool);
int stk_pool_threads(const stk_pool *pool); /* that were started, the caller included */
void stk_pool_run(stk_pool *pool, size_t tasks, stk_pool_task *task, void *context);

/*
 * From now on the thread that calls run asks `halted` before each of its tasks. Once that returns
 * true, no further task begins, in this run and in all later ones, and their results are useless:
 * callers must check stk_pool_was_halted(). NULL: all tasks run.
 */
void stk_pool_watch(stk_pool *pool, bool (*halted)(void *user), void *user);
bool stk_pool_was_halted(const stk_pool *pool); /* since the last stk_pool_watch() */

typedef enum stk_pool_end {
    STK_POOL_DONE,
    STK_POOL_HALTED, /* some tasks did not begin; none is running */
    STK_POOL_LEFT    /* some tasks did not begin; some are still running and were abandoned */
} stk_pool_end;

/* When stk_pool_run_or_leave ends early. */
typedef struct stk_pool_halt {
    /* Whether no time is left for work of next_s seconds. The caller's thread asks. NULL: never. */
    bool (*halted)(void *user, double next_s);
    void *user;
    /* The longest task of the caller's thread so far, in seconds; at first an estimate. */
    double longest_s;
} stk_pool_halt;

bool stk_pool_must_halt(const stk_pool_halt *halt, double next_s);

/* Records that the caller's thread worked from start_ns until now. */
void stk_pool_note(stk_pool_halt *halt, int64_t start_ns);

/*
 * As stk_pool_run, for long tasks that cannot be interrupted. In a pool with other threads the
 * caller takes no task: it waits and asks `halted` meanwhile. After a halt no further task begins,
 * and running tasks are abandoned: pool and context belong to them, and nobody may free or use
 * either again. A caller without other threads asks before each task, with the longest so far.
 */
stk_pool_end stk_pool_run_or_leave(stk_pool *pool, size_t tasks, stk_pool_task *task, void *context,
                                   stk_pool_halt *halt);

/* Notes that a thread of no pool was abandoned inside a library. */
void stk_pool_leave(void);

/* Whether any pool of this process has abandoned tasks, or stk_pool_leave() was called. Such a
 * process should end with _exit: the thread may be inside a library that exit() unloads. */
bool stk_pool_any_left(void);

#endif
