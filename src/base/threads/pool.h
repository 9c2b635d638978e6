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
int stk_pool_threads(const stk_pool *pool); /* that there are */
void stk_pool_run(stk_pool *pool, size_t tasks, stk_pool_task *task, void *context);

/*
 * From now on the thread that calls run asks `halted` before each of its tasks; once that says true
 * no further task is begun, in that run and in those that follow, and what they compute is of no
 * use. Whoever runs them has to look at stk_pool_was_halted(). NULL: nobody is asked, all tasks
 * run.
 */
void stk_pool_watch(stk_pool *pool, bool (*halted)(void *user), void *user);
bool stk_pool_was_halted(const stk_pool *pool); /* since the last stk_pool_watch() */

typedef enum stk_pool_end {
    STK_POOL_DONE,
    STK_POOL_HALTED, /* no task is under way, and some were not begun */
    STK_POOL_LEFT    /* the same, but some are under way still */
} stk_pool_end;

/* When such a run ends early. */
typedef struct stk_pool_halt {
    /* Whether there is no time for what takes next_s; asked by the caller's thread. NULL: never. */
    bool (*halted)(void *user, double next_s);
    void *user;
    double
        longest_s; /* that a task took the caller's thread; at first what one is thought to take */
} stk_pool_halt;

bool stk_pool_must_halt(const stk_pool_halt *halt, double next_s);

/* Notes that work which began at start_ns, and ends now, took the caller's thread. */
void stk_pool_note(stk_pool_halt *halt, int64_t start_ns);

/*
 * As stk_pool_run, for tasks that take long and that nothing can end. In a pool with other threads
 * the caller takes no task: he waits, and asks whether to halt meanwhile. Then no further task is
 * begun. Tasks that are under way are left behind: pool and context are theirs, and nobody may free
 * them or use them again. A caller who is alone asks before each task, for the longest so far.
 */
stk_pool_end stk_pool_run_or_leave(stk_pool *pool, size_t tasks, stk_pool_task *task, void *context,
                                   stk_pool_halt *halt);

/* Whether any pool of this process was left with tasks: then it should end with _exit, since what
 * they call may not stand that its library is unloaded. */
bool stk_pool_any_left(void);

#endif
