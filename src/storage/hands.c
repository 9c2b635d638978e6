/* hands.c - threads that work off one queue of jobs, any of which may never return. */
#include "storage/hands.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "storage/source.h"

/* Reading needs little: many threads must not cost much. */
#define STACK_BYTES ((size_t)256 * 1024)

/* Threads that are stuck do not count, but there is an end to them as well. */
#define STRAYS_PER_THREAD 2

typedef struct job {
    stk_job public;   /* first: what the work sees */
    stk_fetch *fetch; /* NULL once it was cancelled; lock */
    stk_hands_work *work;
    void *place;
    bool running;     /* lock */
    struct job *next; /* in the queue; lock */
    char path[];      /* the copy that public.path shows */
} job;

struct stk_hands {
    pthread_mutex_t lock;
    pthread_cond_t work; /* a job, or the end */
    pthread_cond_t left; /* a thread has ended */
    job *first;          /* the queue; lock */
    job *last;           /* lock; only meaningful while first is not NULL */
    int idle;            /* threads that wait for work; lock */
    int strays;          /* threads whose job was cancelled under them; lock */
    int most_threads;
    bool quit;                /* lock */
    atomic_int threads;       /* strays not counted */
    void (*after)(void *arg); /* lock; set once closing has left only strays */
    void *arg;
};

static void destroy(stk_hands *h) {
    void (*after)(void *) = h->after;
    void *arg = h->arg;
    pthread_cond_destroy(&h->left);
    pthread_cond_destroy(&h->work);
    pthread_mutex_destroy(&h->lock);
    stk_mem_free(h);
    if (after != NULL) {
        after(arg);
    }
}

static void free_job(job *j) {
    stk_bytes_free(&j->public.bytes);
    stk_mem_free(j);
}

/* Hands what a job brought to its fetch; nobody else has the fetch now. */
static void deliver(job *j, stk_fetch *fetch, int verdict) {
    fetch->bytes = j->public.bytes;
    fetch->error = j->public.error;
    fetch->verdict = (stk_fetch_verdict)verdict;
    memset(&j->public.bytes, 0, sizeof j->public.bytes);
    free_job(j);
    fetch->done(fetch);
}

/* Runs one job without the lock, and takes the lock again. False: this thread was given up. */
static bool run_job(stk_hands *h, job *j) {
    j->running = true;
    atomic_store(&j->fetch->started_ns, stk_clock_ns());
    pthread_mutex_unlock(&h->lock);
    int verdict = j->work(j->place, &j->public);
    pthread_mutex_lock(&h->lock);
    stk_fetch *fetch = j->fetch;
    if (fetch == NULL) {
        free_job(j);
        return false;
    }
    j->fetch = NULL;
    fetch->job = NULL; /* from here on it cannot be cancelled */
    pthread_mutex_unlock(&h->lock);
    deliver(j, fetch, verdict);
    pthread_mutex_lock(&h->lock);
    return true;
}

static void *loop(void *argument) {
    stk_hands *h = argument;
    bool stray = false;
    pthread_mutex_lock(&h->lock);
    while (!h->quit && !stray) {
        job *j = h->first;
        if (j != NULL) {
            h->first = j->next;
            stray = !run_job(h, j);
        } else {
            h->idle++;
            pthread_cond_wait(&h->work, &h->lock);
            h->idle--;
        }
    }
    if (stray) {
        h->strays--;
    } else {
        atomic_fetch_sub(&h->threads, 1);
    }
    bool last = h->after != NULL && h->strays == 0 && atomic_load(&h->threads) == 0;
    pthread_cond_broadcast(&h->left);
    pthread_mutex_unlock(&h->lock);
    if (last) {
        destroy(h);
    }
    return NULL;
}

/* Under the lock, or before there is anybody else; 0 or the system's reason. */
static int start_thread(stk_hands *h) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&thread, &attributes, loop, h);
    pthread_attr_destroy(&attributes);
    if (failed == 0) {
        atomic_fetch_add(&h->threads, 1);
    }
    return failed;
}

/* Under the lock: a job waits and nobody is there to take it. */
static void keep_going(stk_hands *h) {
    if (h->first != NULL && !h->quit && atomic_load(&h->threads) == 0 &&
        h->strays < STRAYS_PER_THREAD * h->most_threads) {
        (void)start_thread(h); /* without it the fetch is given up in its time */
    }
}

/* Every read has a file open: a part of the descriptors is for them, the others for others. */
static int limit_threads(int wanted) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 4 >= (rlim_t)wanted) {
        return wanted;
    }
    return limit.rlim_cur >= 8 ? (int)(limit.rlim_cur / 4) : 1;
}

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
    int failed = start_thread(h);
    pthread_mutex_unlock(&h->lock);
    if (failed != 0) {
        stk_hands_close(h, NULL, NULL);
        return STK_FAIL(err, STK_ERR_MEMORY, "cannot start a thread that reads: %s",
                        strerror(failed));
    }
    *out = h;
    return STK_OK;
}

static void nothing(void *arg) {
    (void)arg;
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
    h->after = after != NULL ? after : nothing;
    h->arg = arg;
    bool last = h->strays == 0;
    pthread_mutex_unlock(&h->lock);
    if (last) {
        destroy(h);
    }
}

static job *make_job(stk_fetch *fetch, stk_hands_work *work, void *place, const uint64_t *extra) {
    size_t length = strlen(fetch->path) + 1;
    job *j = stk_mem_new(1, sizeof *j + length);
    if (j == NULL) {
        return NULL;
    }
    memcpy(j->path, fetch->path, length);
    j->public = (stk_job){.kind = (int)fetch->kind,
                          .path = j->path,
                          .offset = fetch->offset,
                          .length = fetch->length,
                          .bytes = fetch->bytes};
    if (extra != NULL) {
        memcpy(j->public.extra, extra, sizeof j->public.extra);
    }
    memset(&fetch->bytes, 0, sizeof fetch->bytes);
    j->fetch = fetch;
    j->work = work;
    j->place = place;
    return j;
}

bool stk_hands_begin(stk_hands *h, stk_fetch *fetch, stk_hands_work *work, void *place,
                     const uint64_t *extra) {
    job *j = make_job(fetch, work, place, extra);
    if (j == NULL) {
        return false;
    }
    fetch->job = j;
    pthread_mutex_lock(&h->lock);
    if (h->first == NULL) {
        h->first = j;
    } else {
        h->last->next = j;
    }
    h->last = j;
    if (h->idle > 0) {
        pthread_cond_signal(&h->work);
    } else {
        keep_going(h);
    }
    pthread_mutex_unlock(&h->lock);
    return true;
}

/* Under the lock. */
static void unqueue(stk_hands *h, const job *j) {
    job *before = NULL;
    for (job *at = h->first; at != NULL && at != j; at = at->next) {
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
        free_job(j);
    }
    pthread_mutex_unlock(&h->lock);
    fetch->verdict = STK_FETCH_CANCELLED;
    fetch->done(fetch);
}

void stk_hands_hurry(stk_hands *h) {
    pthread_mutex_lock(&h->lock);
    if (h->first != NULL && h->idle == 0 && !h->quit &&
        atomic_load(&h->threads) < h->most_threads) {
        (void)start_thread(h); /* without it all goes on, only slower */
    }
    pthread_mutex_unlock(&h->lock);
}

int stk_hands_threads(const stk_hands *h) {
    return atomic_load(&h->threads);
}
