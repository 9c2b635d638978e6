/*
 * pool.c - a fork-join pool.
 *
 * A training step is hundreds of short runs, so threads spin for some microseconds before they
 * sleep: waking a sleeping thread costs more than most runs take. Tasks are taken from one atomic
 * word, which balances them when another thread of the machine holds a core for a while.
 *
 * A run ends when its tasks are done, even if some thread has not noticed the run yet: on a busy
 * machine a thread that was woken gets a core long after the others have done all the work. So the
 * word holds the number of the run beside its open tasks. A run lasts until every taken task is
 * done. A thread that has taken no task touches nothing of a run.
 */
#include "base/threads/pool.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/thread.h"

#define SPINS 4000

/* How often stk_pool_run_or_leave asks whether to halt. */
#define LOOK_NS 2000000

static atomic_bool any_left;

typedef struct pool_worker {
    stk_pool *pool;
    pthread_t thread;
    int index; /* 1 .. threads-1; the caller of run is 0 */
} pool_worker;

struct stk_pool {
    int threads;
    int started;          /* workers whose threads exist */
    pool_worker *workers; /* owned; threads-1 of them */
    pthread_mutex_t lock;
    pthread_cond_t wake; /* another run, or quit */
    pthread_cond_t done; /* finished became expected */
    atomic_bool quit;
    _Atomic uint64_t open;  /* number of the run << 32 | its tasks that nobody has taken */
    atomic_size_t finished; /* tasks of the run */
    atomic_size_t expected; /* tasks that end the run: all of them, fewer after a halt */
    /* tasks, task and context belong to a run while one of its tasks is open. */
    size_t tasks;
    stk_pool_task *task;
    void *context;
    /* Only the thread that calls run uses halted, user and was_halted. */
    bool (*halted)(void *user);
    void *user;
    bool was_halted;
};

/* Tasks of one run, at most: the low half of the word. */
#define MOST_TASKS ((size_t)UINT32_MAX)

static uint32_t run_of(uint64_t open) {
    return (uint32_t)(open >> 32);
}

static uint32_t tasks_of(uint64_t open) {
    return (uint32_t)open;
}

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool must_halt(stk_pool *pool) {
    if (!pool->was_halted && pool->halted != NULL) {
        pool->was_halted = pool->halted(pool->user);
    }
    return pool->was_halted;
}

/* Takes an open task; false: there is none. */
static bool take_task(stk_pool *pool, size_t *task) {
    uint64_t open = atomic_load(&pool->open);
    do {
        if (tasks_of(open) == 0) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&pool->open, &open, open - 1));
    *task = pool->tasks - tasks_of(open);
    return true;
}

/* Closes the run: no thread finds another task. Taken tasks are still waited for. */
static void close_run(stk_pool *pool) {
    uint64_t open = atomic_load(&pool->open);
    while (!atomic_compare_exchange_weak(&pool->open, &open, open - tasks_of(open))) {
    }
    atomic_store(&pool->expected, pool->tasks - tasks_of(open));
}

static void take_tasks(stk_pool *pool, int thread) {
    size_t task;
    for (;;) {
        if (thread == 0 && must_halt(pool)) {
            close_run(pool);
            return;
        }
        if (!take_task(pool, &task)) {
            return;
        }
        pool->task(pool->context, task, thread);
        /* The last task wakes the caller, which may have gone on already; that does no harm. */
        if (atomic_fetch_add(&pool->finished, 1) + 1 == atomic_load(&pool->expected) &&
            thread != 0) {
            pthread_mutex_lock(&pool->lock);
            pthread_cond_signal(&pool->done);
            pthread_mutex_unlock(&pool->lock);
        }
    }
}

/* Whether a run was opened after run `seen`, or the pool ends. */
static bool is_called(stk_pool *pool, uint32_t seen) {
    return run_of(atomic_load(&pool->open)) != seen || atomic_load(&pool->quit);
}

static void *work(void *argument) {
    pool_worker *self = argument;
    stk_pool *pool = self->pool;
    uint32_t seen = 0;
    while (!atomic_load(&pool->quit)) {
        for (int i = 0; i < SPINS && !is_called(pool, seen); i++) {
            relax();
        }
        if (!is_called(pool, seen)) {
            pthread_mutex_lock(&pool->lock);
            while (!is_called(pool, seen)) {
                pthread_cond_wait(&pool->wake, &pool->lock);
            }
            pthread_mutex_unlock(&pool->lock);
        }
        seen = run_of(atomic_load(&pool->open));
        take_tasks(pool, self->index);
    }
    return NULL;
}

stk_status stk_pool_new(stk_pool **out, int threads, stk_error *err) {
    stk_pool *pool = stk_mem_new(1, sizeof *pool);
    pool_worker *workers = stk_mem_new((size_t)threads, sizeof *workers);
    if (pool == NULL || workers == NULL) {
        stk_mem_free(pool);
        stk_mem_free(workers);
        return STK_FAIL_MEMORY(err, "a thread pool");
    }
    pool->threads = threads;
    pool->workers = workers;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    const stk_thread_config config = {.what = "computes"};
    for (int i = 1; i < threads; i++) {
        pool_worker *w = &workers[pool->started];
        w->pool = pool;
        w->index = i;
        if (stk_thread_start(&w->thread, &config, work, w, NULL) != STK_OK) {
            break; /* fewer threads do the same work */
        }
        pool->started++;
    }
    pool->threads = pool->started + 1;
    *out = pool;
    return STK_OK;
}

void stk_pool_free(stk_pool *pool) {
    if (pool == NULL) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->quit, true);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->started; i++) {
        pthread_join(pool->workers[i].thread, NULL);
    }
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    stk_mem_free(pool->workers);
    stk_mem_free(pool);
}

int stk_pool_threads(const stk_pool *pool) {
    return pool->threads;
}

static bool is_done(stk_pool *pool) {
    return atomic_load(&pool->finished) == atomic_load(&pool->expected);
}

/* Publishes the run: its fields are visible to whoever reads the new word. */
static void open_run(stk_pool *pool, size_t tasks, stk_pool_task *task, void *context) {
    uint32_t run = run_of(atomic_load(&pool->open)) + 1;
    pool->tasks = tasks;
    pool->task = task;
    pool->context = context;
    atomic_store(&pool->finished, 0);
    atomic_store(&pool->expected, tasks);
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->open, (uint64_t)run << 32 | tasks);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

void stk_pool_run(stk_pool *pool, size_t tasks, stk_pool_task *task, void *context) {
    if (pool->was_halted) {
        return;
    }
    if (pool->started == 0 || tasks <= 1 || tasks > MOST_TASKS) {
        for (size_t i = 0; i < tasks && !must_halt(pool); i++) {
            task(context, i, 0);
        }
        return;
    }
    open_run(pool, tasks, task, context);
    take_tasks(pool, 0);
    for (int i = 0; i < SPINS && !is_done(pool); i++) {
        relax();
    }
    if (!is_done(pool)) {
        pthread_mutex_lock(&pool->lock);
        while (!is_done(pool)) {
            pthread_cond_wait(&pool->done, &pool->lock);
        }
        pthread_mutex_unlock(&pool->lock);
    }
}

bool stk_pool_must_halt(const stk_pool_halt *halt, double next_s) {
    return halt->halted != NULL && halt->halted(halt->user, next_s);
}

void stk_pool_note(stk_pool_halt *halt, int64_t start_ns) {
    halt->longest_s = fmax(halt->longest_s, stk_clock_since_s(start_ns));
}

static stk_pool_end run_alone(size_t tasks, stk_pool_task *task, void *context,
                              stk_pool_halt *halt) {
    for (size_t i = 0; i < tasks; i++) {
        if (stk_pool_must_halt(halt, halt->longest_s)) {
            return STK_POOL_HALTED;
        }
        int64_t start = stk_clock_ns();
        task(context, i, 0);
        stk_pool_note(halt, start);
    }
    return STK_POOL_DONE;
}

stk_pool_end stk_pool_run_or_leave(stk_pool *pool, size_t tasks, stk_pool_task *task, void *context,
                                   stk_pool_halt *halt) {
    if (pool->started == 0 || tasks > MOST_TASKS) {
        return run_alone(tasks, task, context, halt);
    }
    bool asked = tasks > 0 && stk_pool_must_halt(halt, 0);
    if (tasks == 0 || asked) {
        return asked ? STK_POOL_HALTED : STK_POOL_DONE;
    }
    open_run(pool, tasks, task, context);
    while (!is_done(pool) && !asked) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        asked = stk_pool_must_halt(halt, 0);
    }
    if (is_done(pool)) {
        return STK_POOL_DONE;
    }
    close_run(pool);
    if (is_done(pool)) {
        return STK_POOL_HALTED;
    }
    atomic_store(&any_left, true);
    return STK_POOL_LEFT;
}

void stk_pool_leave(void) {
    atomic_store(&any_left, true);
}

bool stk_pool_any_left(void) {
    return atomic_load(&any_left);
}

void stk_pool_watch(stk_pool *pool, bool (*halted)(void *user), void *user) {
    pool->halted = halted;
    pool->user = user;
    pool->was_halted = false;
}

bool stk_pool_was_halted(const stk_pool *pool) {
    return pool->was_halted;
}
