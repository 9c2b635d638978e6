/*
 * timed_call.c - one thread and room for one call.
 *
 * Whoever comes last frees: the owner where the call has ended, the thread where it was abandoned.
 */
#include "base/threads/timed_call.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/thread.h"

/* A call makes system calls and little else. */
#define STACK_BYTES ((size_t)512 * 1024)

struct stk_timed_call {
    pthread_t thread;
    pthread_mutex_t lock;      /* guards all fields below */
    pthread_cond_t changed;    /* a call has begun or ended, or `quit` was set */
    void (*work)(void *state); /* NULL: no call is running */
    void (*drop)(void *state);
    void *state;
    bool quit; /* the owner has gone; if a call is running, the thread frees the struct */
};

static void destroy(stk_timed_call *a) {
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    stk_mem_free(a);
}

static void *loop(void *argument) {
    stk_timed_call *a = argument;
    pthread_mutex_lock(&a->lock);
    for (;;) {
        while (a->work == NULL && !a->quit) {
            pthread_cond_wait(&a->changed, &a->lock);
        }
        if (a->work == NULL) {
            pthread_mutex_unlock(&a->lock);
            return NULL; /* the owner waits for the thread and frees the struct */
        }
        pthread_mutex_unlock(&a->lock);
        a->work(a->state);
        pthread_mutex_lock(&a->lock);
        if (a->quit) {
            pthread_mutex_unlock(&a->lock);
            a->drop(a->state);
            destroy(a);
            return NULL;
        }
        a->work = NULL;
        pthread_cond_broadcast(&a->changed);
    }
}

stk_status stk_timed_call_open(stk_timed_call **timed, const char *what, stk_error *err) {
    const stk_thread_config config = {.what = what, .stack_bytes = STACK_BYTES, .no_signals = true};
    stk_timed_call *a = stk_mem_new(1, sizeof *a);
    if (a == NULL) {
        return STK_FAIL_MEMORY(err, "a thread");
    }
    pthread_mutex_init(&a->lock, NULL);
    stk_cond_init(&a->changed);
    stk_status status = stk_thread_start(&a->thread, &config, loop, a, err);
    if (status != STK_OK) {
        destroy(a);
        return status;
    }
    *timed = a;
    return STK_OK;
}

void stk_timed_call_begin(stk_timed_call *a, void (*work)(void *state), void *state,
                          void (*drop)(void *state)) {
    pthread_mutex_lock(&a->lock);
    a->work = work;
    a->state = state;
    a->drop = drop;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

bool stk_timed_call_has_ended(stk_timed_call *a) {
    pthread_mutex_lock(&a->lock);
    bool ended = a->work == NULL;
    pthread_mutex_unlock(&a->lock);
    return ended;
}

bool stk_timed_call_wait(stk_timed_call *a, int64_t until_ns) {
    pthread_mutex_lock(&a->lock);
    while (a->work != NULL && stk_cond_wait_until(&a->changed, &a->lock, until_ns)) {
    }
    bool ended = a->work == NULL;
    pthread_mutex_unlock(&a->lock);
    return ended;
}

bool stk_timed_call_close(stk_timed_call *a) {
    if (a == NULL) {
        return false;
    }
    pthread_t thread = a->thread;
    pthread_mutex_lock(&a->lock);
    bool left = a->work != NULL;
    a->quit = true;
    if (left) {
        pthread_detach(thread); /* under the lock: after it the thread may be gone */
    }
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    if (!left) {
        pthread_join(thread, NULL);
        destroy(a);
    }
    return left;
}

bool stk_timed_call_within(void (*work)(void *state), void *state, void (*drop)(void *state),
                           double within_s) {
    stk_timed_call *timed = NULL;
    int64_t until_ns = stk_clock_in(within_s);
    if (stk_timed_call_open(&timed, "waits for a disk", NULL) != STK_OK) {
        work(state);
        return true;
    }
    stk_timed_call_begin(timed, work, state, drop);
    (void)stk_timed_call_wait(timed, until_ns);
    return !stk_timed_call_close(timed);
}
