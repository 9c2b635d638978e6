/* io_threads.c - threads that work off one queue of jobs, any of which may never return. */
#include "storage/reading/io_threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/threads/thread.h"
#include "storage/source.h"

/* Reading needs little: many threads must not cost much. */
#define STACK_BYTES ((size_t)256 * 1024)

/* Strays do not count among the threads, but there is an end to them as well. */
#define STRAYS_PER_THREAD 2

/* Signs of life in between are not passed on. */
#define SIGN_NS 50000000

/* A path's block grows to a multiple of this, so that it seldom grows. */
#define PATH_BYTES 256

typedef struct job {
    stk_job shown;    /* first: what the work sees */
    stk_hands *hands; /* whose it is */
    stk_fetch *fetch; /* NULL once it was cancelled or has ended; lock */
    stk_hands_work *work;
    void *place;
    char *path; /* owned: the copy that shown.path is */
    size_t path_bytes;
    int64_t sign_ns;  /* when the work last gave a sign; its thread's */
    bool running;     /* lock */
    struct job *next; /* in the queue, or among the spare ones; lock */
} job;

struct stk_hands {
    pthread_mutex_t lock;
    pthread_cond_t work; /* a job, or the end */
    pthread_cond_t left; /* a thread has ended */
    job *first;          /* the queue; lock */
    job *last;           /* lock; only meaningful while first is not NULL */
    job *spare;          /* jobs to be used again; lock */
    int idle;            /* threads that wait for work; lock */
    int strays;          /* threads whose job was cancelled under them; lock */
    int most_threads;
    bool quit;                /* lock */
    bool closed;              /* only strays are left; lock */
    atomic_int threads;       /* strays not counted; written under the lock */
    void (*after)(void *arg); /* lock, as the next: from close */
    void *arg;
};

static void free_job(job *j) {
    stk_bytes_free(&j->shown.bytes);
    stk_mem_free(j->path);
    stk_mem_free(j);
}

static void destroy(stk_hands *h) {
    void (*after)(void *) = h->after;
    void *arg = h->arg;
    while (h->spare != NULL) {
        job *j = h->spare;
        h->spare = j->next;
        free_job(j);
    }
    pthread_cond_destroy(&h->left);
    pthread_cond_destroy(&h->work);
    pthread_mutex_destroy(&h->lock);
    stk_mem_free(h);
    if (after != NULL) {
        after(arg);
    }
}

/* ---- jobs ---- */

/* Under the lock. A block that a stray brought is nobody's. */
static void put_away(stk_hands *h, job *j) {
    stk_bytes_free(&j->shown.bytes);
    j->next = h->spare;
    h->spare = j;
}

/* Under the lock: a job with room for a path; NULL without memory. */
static job *take_spare(stk_hands *h, size_t path_bytes) {
    job *j = h->spare;
    if (j != NULL) {
        h->spare = j->next;
    } else {
        j = stk_mem_new(1, sizeof *j);
    }
    if (j != NULL && j->path_bytes < path_bytes) {
        size_t room = (path_bytes / PATH_BYTES + 1) * PATH_BYTES;
        char *grown = stk_mem_resize(j->path, room, 1);
        if (grown == NULL) {
            put_away(h, j);
            return NULL;
        }
        j->path = grown;
        j->path_bytes = room;
    }
    return j;
}

/* Under the lock; NULL without memory. The error is big and stays as it is: it is not looked at. */
static job *make_job(stk_hands *h, stk_fetch *fetch, stk_hands_work *work, void *place,
                     const uint64_t *extra) {
    size_t path_bytes = strlen(fetch->path) + 1;
    job *j = take_spare(h, path_bytes);
    if (j == NULL) {
        return NULL;
    }
    memcpy(j->path, fetch->path, path_bytes);
    j->shown.kind = (int)fetch->kind;
    j->shown.path = j->path;
    j->shown.offset = fetch->offset;
    j->shown.length = fetch->length;
    j->shown.extra[0] = extra != NULL ? extra[0] : 0;
    j->shown.extra[1] = extra != NULL ? extra[1] : 0;
    j->shown.bytes = fetch->bytes;
    j->shown.error.status = STK_OK;
    memset(&fetch->bytes, 0, sizeof fetch->bytes);
    j->hands = h;
    j->fetch = fetch;
    j->work = work;
    j->place = place;
    j->running = false;
    j->next = NULL;
    return j;
}

/* Runs one job without the lock, and takes the lock again. False: this thread became a stray. */
static bool run_job(stk_hands *h, job *j) {
    j->running = true;
    j->sign_ns = stk_clock_ns();
    atomic_store(&j->fetch->started_ns, j->sign_ns);
    pthread_mutex_unlock(&h->lock);
    int verdict = j->work(j->place, &j->shown);
    pthread_mutex_lock(&h->lock);
    stk_fetch *fetch = j->fetch;
    if (fetch != NULL) {
        j->fetch = NULL;
        fetch->job = NULL; /* from here on it cannot be cancelled */
        pthread_mutex_unlock(&h->lock);
        fetch->bytes = j->shown.bytes;
        memset(&j->shown.bytes, 0, sizeof j->shown.bytes);
        fetch->verdict = (stk_fetch_verdict)verdict;
        if (verdict != STK_FETCH_OK) {
            fetch->error = j->shown.error;
        }
        fetch->done(fetch);
        pthread_mutex_lock(&h->lock);
    }
    put_away(h, j);
    return fetch != NULL;
}

/* ---- threads ---- */

/*
 * A thread that comes back from a job that was cancelled goes on with others, as long as it is not
 * one too many by now.
 */
static bool rejoin(stk_hands *h) {
    h->strays--;
    if (h->quit || atomic_load(&h->threads) >= h->most_threads) {
        return false;
    }
    atomic_fetch_add(&h->threads, 1);
    return true;
}

static void *loop(void *argument) {
    stk_hands *h = argument;
    bool belongs = true;
    pthread_mutex_lock(&h->lock);
    while (belongs && !h->quit) {
        job *j = h->first;
        if (j != NULL) {
            h->first = j->next;
            belongs = run_job(h, j) || rejoin(h);
        } else {
            h->idle++;
            pthread_cond_wait(&h->work, &h->lock);
            h->idle--;
        }
    }
    if (belongs) {
        atomic_fetch_sub(&h->threads, 1);
    }
    bool last = h->closed && h->strays == 0;
    pthread_cond_broadcast(&h->left);
    pthread_mutex_unlock(&h->lock);
    if (last) {
        destroy(h);
    }
    return NULL;
}

/* Under the lock. */
static stk_status start_thread(stk_hands *h, stk_error *err) {
    const stk_thread_config config = {
        .what = "reads", .stack_bytes = STACK_BYTES, .detached = true};
    stk_status status = stk_thread_start(NULL, &config, loop, h, err);
    if (status == STK_OK) {
        atomic_fetch_add(&h->threads, 1);
    }
    return status;
}

/* Under the lock: whether a job waits for a thread, and there may be one more. */
static bool may_grow(const stk_hands *h, int most_threads) {
    return h->first != NULL && h->idle == 0 && !h->quit &&
           atomic_load(&h->threads) < most_threads &&
           h->strays < STRAYS_PER_THREAD * h->most_threads;
}

/* Under the lock: there is always one; without it a fetch is given up in its time. */
static void keep_going(stk_hands *h) {
    if (may_grow(h, 1)) {
        bool one_more = start_thread(h, NULL) == STK_OK;
        (void)one_more;
    }
}

/* Every read has a file open: a part of the descriptors is for them, the others for others. */
static int limit_threads(int wanted) {
    return stk_machine_files(wanted, STK_FILES_SHARE);
}

/* ---- their users ---- */

stk_status stk_hands_open(stk_hands **out, int most_threads, stk_error *err) {
    stk_hands *h = stk_mem_new(1, sizeof *h);
    if (h == NULL) {
        return STK_FAIL_MEMORY(err, "reading");
    }
    h->most_threads = limit_threads(most_threads);
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->work, NULL);
    pthread_cond_init(&h->left, NULL);
    pthread_mutex_lock(&h->lock);
    stk_status status = start_thread(h, err);
    pthread_mutex_unlock(&h->lock);
    if (status != STK_OK) {
        stk_hands_close(h, NULL, NULL);
        return status;
    }
    *out = h;
    return STK_OK;
}

void stk_hands_close(stk_hands *h, void (*after)(void *arg), void *arg) {
    if (h == NULL) {
        return;
    }
    pthread_mutex_lock(&h->lock);
    h->quit = true;
    pthread_cond_broadcast(&h->work);
    while (atomic_load(&h->threads) > 0) {
        pthread_cond_wait(&h->left, &h->lock);
    }
    h->after = after;
    h->arg = arg;
    h->closed = true;
    bool last = h->strays == 0;
    pthread_mutex_unlock(&h->lock);
    if (last) {
        destroy(h);
    }
}

bool stk_hands_begin(stk_hands *h, stk_fetch *fetch, stk_hands_work *work, void *place,
                     const uint64_t *extra) {
    pthread_mutex_lock(&h->lock);
    job *j = make_job(h, fetch, work, place, extra);
    if (j != NULL) {
        fetch->job = j;
        *(h->first == NULL ? &h->first : &h->last->next) = j;
        h->last = j;
        if (h->idle > 0) {
            pthread_cond_signal(&h->work);
        } else {
            keep_going(h);
        }
    }
    pthread_mutex_unlock(&h->lock);
    return j != NULL;
}

/* Under the lock. */
static void unqueue(stk_hands *h, const job *j) {
    job *before = NULL;
    for (job *at = h->first; at != j; at = at->next) {
        before = at;
    }
    *(before != NULL ? &before->next : &h->first) = j->next;
    h->last = h->last == j ? before : h->last;
}

void stk_hands_cancel(stk_hands *h, stk_fetch *fetch) {
    pthread_mutex_lock(&h->lock);
    job *j = fetch->job;
    if (j == NULL) {
        pthread_mutex_unlock(&h->lock);
        return;
    }
    j->fetch = NULL;
    fetch->job = NULL;
    if (j->running) {
        atomic_fetch_sub(&h->threads, 1);
        h->strays++;
        keep_going(h);
    } else {
        unqueue(h, j);
        put_away(h, j);
    }
    pthread_mutex_unlock(&h->lock);
    fetch->verdict = STK_FETCH_CANCELLED;
    fetch->done(fetch);
}

void stk_hands_sign(stk_job *shown) {
    job *j = (job *)(void *)shown;
    int64_t now = stk_clock_ns();
    if (now - j->sign_ns < SIGN_NS) {
        return;
    }
    j->sign_ns = now;
    pthread_mutex_lock(&j->hands->lock);
    if (j->fetch != NULL) {
        atomic_store(&j->fetch->heard_ns, now);
    }
    pthread_mutex_unlock(&j->hands->lock);
}

void stk_hands_hurry(stk_hands *h) {
    pthread_mutex_lock(&h->lock);
    if (may_grow(h, h->most_threads)) {
        bool faster = start_thread(h, NULL) == STK_OK; /* without it all goes on, only slower */
        (void)faster;
    }
    pthread_mutex_unlock(&h->lock);
}

int stk_hands_threads(const stk_hands *h) {
    return atomic_load(&h->threads);
}
