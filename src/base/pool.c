/*
 * pool.c - a fork-join pool.
 *
 * A training step is hundreds of short runs, so threads spin for some microseconds before they
 * sleep: waking a sleeping thread costs more than most runs take. Tasks are taken from one atomic
 * counter, which balances them when another thread of the machine holds a core for a while.
 */
#include "base/pool.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/thread.h"

#define SPINS 4000

typedef struct worker {
    stk_pool *pool;
    pthread_t thread;
    int index; /* 1 .. threads-1; the caller of run is 0 */
} worker;

struct stk_pool {
    int threads;
    int started;     /* workers whose threads exist */
    worker *workers; /* owned; threads-1 of them */
    pthread_mutex_t lock;
    pthread_cond_t wake;    /* generation changed or quit */
    pthread_cond_t done;    /* busy became 0 */
    atomic_uint generation; /* counts runs; written under lock */
    atomic_bool quit;
    atomic_int busy;    /* workers that have not finished this run */
    atomic_size_t next; /* next task to take */
    size_t tasks;
    stk_pool_task *task;
    void *context;
    bool (*halted)(void *user); /* this and the two below are the caller's of run alone */
    void *user;
    bool was_halted;
};

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

static void take_tasks(stk_pool *pool, int thread) {
    for (;;) {
        if (thread == 0 && must_halt(pool)) {
            atomic_store(&pool->next, pool->tasks); /* nobody finds another one */
            return;
        }
        size_t task = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (task >= pool->tasks) {
            return;
        }
        pool->task(pool->context, task, thread);
    }
}

static void *work(void *argument) {
    worker *self = argument;
    stk_pool *pool = self->pool;
    unsigned seen = 0;
    for (;;) {
        for (int i = 0; i < SPINS && atomic_load(&pool->generation) == seen; i++) {
            relax();
        }
        if (atomic_load(&pool->generation) == seen) {
            pthread_mutex_lock(&pool->lock);
            while (atomic_load(&pool->generation) == seen) {
                pthread_cond_wait(&pool->wake, &pool->lock);
            }
            pthread_mutex_unlock(&pool->lock);
        }
        seen = atomic_load(&pool->generation);
        if (atomic_load(&pool->quit)) {
            return NULL;
        }
        take_tasks(pool, self->index);
        if (atomic_fetch_sub(&pool->busy, 1) == 1) {
            pthread_mutex_lock(&pool->lock);
            pthread_cond_signal(&pool->done);
            pthread_mutex_unlock(&pool->lock);
        }
    }
}

static void start_generation(stk_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->generation, 1);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

stk_status stk_pool_new(stk_pool **out, int threads, stk_error *err) {
    stk_pool *pool = stk_mem_new(1, sizeof *pool);
    worker *workers = stk_mem_new((size_t)threads, sizeof *workers);
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
        worker *w = &workers[pool->started];
        w->pool = pool;
        w->index = i;
        if (stk_thread_start(&w->thread, &config, work, w, NULL) != STK_OK) {
            break; /* fewer do the same work */
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
    atomic_store(&pool->quit, true);
    start_generation(pool);
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

void stk_pool_run(stk_pool *pool, size_t tasks, stk_pool_task *task, void *context) {
    if (pool->was_halted) {
        return;
    }
    if (pool->started == 0 || tasks <= 1) {
        for (size_t i = 0; i < tasks && !must_halt(pool); i++) {
            task(context, i, 0);
        }
        return;
    }
    pool->tasks = tasks;
    pool->task = task;
    pool->context = context;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->busy, pool->started);
    start_generation(pool);
    take_tasks(pool, 0);
    for (int i = 0; i < SPINS && atomic_load(&pool->busy) > 0; i++) {
        relax();
    }
    if (atomic_load(&pool->busy) > 0) {
        pthread_mutex_lock(&pool->lock);
        while (atomic_load(&pool->busy) > 0) {
            pthread_cond_wait(&pool->done, &pool->lock);
        }
        pthread_mutex_unlock(&pool->lock);
    }
}

void stk_pool_watch(stk_pool *pool, bool (*halted)(void *user), void *user) {
    pool->halted = halted;
    pool->user = user;
    pool->was_halted = false;
}

bool stk_pool_was_halted(const stk_pool *pool) {
    return pool->was_halted;
}
