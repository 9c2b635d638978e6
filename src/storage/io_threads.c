/* io_threads.c - threads that work off one queue of tasks, any of which may never return. */
#include "storage/io_threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/threads/thread.h"

/* Reading needs little: many threads must not cost much. */
#define STACK_BYTES ((size_t)256 * 1024)

/* The number of abandoned threads, whose task was cancelled under them, is limited, too. */
#define ABANDONED_PER_THREAD 2

/* A task passes on one sign of life in this time at most. */
#define SIGN_NS 50000000

/* A path's block grows to a multiple of this, so that it seldom grows. */
#define PATH_BYTES 256

typedef struct queued_task {
    stk_io_task shown;          /* first: what the work sees */
    stk_io_threads *io_threads; /* whose it is */
    stk_fetch *fetch;           /* NULL once it was cancelled or has ended; lock */
    stk_io_work *work;
    void *user;
    char *path; /* owned: the copy that shown.path is */
    size_t path_bytes;
    int64_t sign_ns;          /* when the work last gave a sign; its thread's */
    bool running;             /* lock */
    struct queued_task *next; /* in the queue, or among the spare ones; lock */
} queued_task;

struct stk_io_threads {
    pthread_mutex_t lock;
    pthread_cond_t work; /* a task, or the end */
    pthread_cond_t left; /* a thread has ended */
    queued_task *first;  /* the queue; lock */
    queued_task *last;   /* lock; only meaningful while first is not NULL */
    queued_task *spare;  /* tasks to be used again; lock */
    int idle;            /* threads that wait for work; lock */
    int abandoned;       /* threads whose task was cancelled under them; lock */
    int most_threads;
    bool quit;                /* lock */
    bool closed;              /* only abandoned threads are left; lock */
    atomic_int threads;       /* abandoned ones not counted; written under the lock */
    void (*after)(void *arg); /* from close; lock */
    void *arg;                /* for `after`; lock */
};

static void free_task(queued_task *t) {
    stk_bytes_free(&t->shown.bytes);
    stk_mem_free(t->path);
    stk_mem_free(t);
}

static void destroy(stk_io_threads *io) {
    void (*after)(void *) = io->after;
    void *arg = io->arg;
    while (io->spare != NULL) {
        queued_task *t = io->spare;
        io->spare = t->next;
        free_task(t);
    }
    pthread_cond_destroy(&io->left);
    pthread_cond_destroy(&io->work);
    pthread_mutex_destroy(&io->lock);
    stk_mem_free(io);
    if (after != NULL) {
        after(arg);
    }
}

/* ---- tasks ---- */

/* Under the lock. Frees the block that an abandoned thread brought: nobody waits for it. */
static void put_away(stk_io_threads *io, queued_task *t) {
    stk_bytes_free(&t->shown.bytes);
    t->next = io->spare;
    io->spare = t;
}

/* Under the lock: a task with room for a path; NULL without memory. */
static queued_task *take_spare(stk_io_threads *io, size_t path_bytes) {
    queued_task *t = io->spare;
    if (t != NULL) {
        io->spare = t->next;
    } else {
        t = stk_mem_new(1, sizeof *t);
    }
    if (t != NULL && t->path_bytes < path_bytes) {
        size_t room = (path_bytes / PATH_BYTES + 1) * PATH_BYTES;
        char *grown = stk_mem_resize(t->path, room, 1);
        if (grown == NULL) {
            put_away(io, t);
            return NULL;
        }
        t->path = grown;
        t->path_bytes = room;
    }
    return t;
}

/* Under the lock; NULL without memory. */
static queued_task *make_task(stk_io_threads *io, stk_fetch *fetch, stk_io_work *work, void *user,
                              const uint64_t *extra) {
    size_t path_bytes = strlen(fetch->path) + 1;
    queued_task *t = take_spare(io, path_bytes);
    if (t == NULL) {
        return NULL;
    }
    memcpy(t->path, fetch->path, path_bytes);
    t->shown.kind = fetch->kind;
    t->shown.path = t->path;
    t->shown.offset = fetch->offset;
    t->shown.length = fetch->length;
    t->shown.extra[0] = extra != NULL ? extra[0] : 0;
    t->shown.extra[1] = extra != NULL ? extra[1] : 0;
    t->shown.bytes = fetch->bytes;
    t->shown.result.wait_s = 0;
    memset(&fetch->bytes, 0, sizeof fetch->bytes);
    t->io_threads = io;
    t->fetch = fetch;
    t->work = work;
    t->user = user;
    t->running = false;
    t->next = NULL;
    return t;
}

/* Runs one task without the lock, and takes the lock again. False: this thread was abandoned. */
static bool run_task(stk_io_threads *io, queued_task *t) {
    t->running = true;
    t->sign_ns = stk_clock_ns();
    atomic_store(&t->fetch->started_ns, t->sign_ns);
    pthread_mutex_unlock(&io->lock);
    t->work(t->user, &t->shown);
    pthread_mutex_lock(&io->lock);
    stk_fetch *fetch = t->fetch;
    if (fetch != NULL) {
        t->fetch = NULL;
        fetch->serving = NULL; /* from here on it cannot be cancelled */
        pthread_mutex_unlock(&io->lock);
        fetch->bytes = t->shown.bytes;
        memset(&t->shown.bytes, 0, sizeof t->shown.bytes);
        fetch->result.verdict = t->shown.result.verdict;
        if (fetch->result.verdict != STK_FETCH_OK) {
            fetch->result = t->shown.result;
        }
        fetch->done(fetch);
        pthread_mutex_lock(&io->lock);
    }
    put_away(io, t);
    return fetch != NULL;
}

/* ---- threads ---- */

/*
 * A thread that returns from a cancelled task goes on with other tasks, unless there are enough
 * threads by now.
 */
static bool rejoin(stk_io_threads *io) {
    io->abandoned--;
    if (io->quit || atomic_load(&io->threads) >= io->most_threads) {
        return false;
    }
    atomic_fetch_add(&io->threads, 1);
    return true;
}

static void *loop(void *argument) {
    stk_io_threads *io = argument;
    bool belongs = true;
    pthread_mutex_lock(&io->lock);
    while (belongs && !io->quit) {
        queued_task *t = io->first;
        if (t != NULL) {
            io->first = t->next;
            belongs = run_task(io, t) || rejoin(io);
        } else {
            io->idle++;
            pthread_cond_wait(&io->work, &io->lock);
            io->idle--;
        }
    }
    if (belongs) {
        atomic_fetch_sub(&io->threads, 1);
    }
    bool last = io->closed && io->abandoned == 0;
    pthread_cond_broadcast(&io->left);
    pthread_mutex_unlock(&io->lock);
    if (last) {
        destroy(io);
    }
    return NULL;
}

/* Under the lock. */
static stk_status start_thread(stk_io_threads *io, stk_error *err) {
    const stk_thread_config config = {
        .what = "reads", .stack_bytes = STACK_BYTES, .detached = true};
    stk_status status = stk_thread_start(NULL, &config, loop, io, err);
    if (status == STK_OK) {
        atomic_fetch_add(&io->threads, 1);
    }
    return status;
}

/* Under the lock: whether a task waits for a thread, and there may be one more. */
static bool may_grow(const stk_io_threads *io, int most_threads) {
    return io->first != NULL && io->idle == 0 && !io->quit &&
           atomic_load(&io->threads) < most_threads &&
           io->abandoned < ABANDONED_PER_THREAD * io->most_threads;
}

/* Under the lock: makes sure that there is one thread. Without it the fetches time out. */
static void keep_going(stk_io_threads *io) {
    if (may_grow(io, 1)) {
        bool one_more = start_thread(io, NULL) == STK_OK;
        (void)one_more;
    }
}

/* Every read opens a file, so reads may take only a part of the process's descriptors. */
static int limit_threads(int wanted) {
    return stk_machine_files(wanted, STK_FILES_SHARE);
}

/* ---- their users ---- */

stk_status stk_io_threads_open(stk_io_threads **out, int most_threads, stk_error *err) {
    stk_io_threads *io = stk_mem_new(1, sizeof *io);
    if (io == NULL) {
        return STK_FAIL_MEMORY(err, "reading");
    }
    io->most_threads = limit_threads(most_threads);
    pthread_mutex_init(&io->lock, NULL);
    pthread_cond_init(&io->work, NULL);
    pthread_cond_init(&io->left, NULL);
    pthread_mutex_lock(&io->lock);
    stk_status status = start_thread(io, err);
    pthread_mutex_unlock(&io->lock);
    if (status != STK_OK) {
        stk_io_threads_close(io, NULL, NULL);
        return status;
    }
    *out = io;
    return STK_OK;
}

void stk_io_threads_close(stk_io_threads *io, void (*after)(void *arg), void *arg) {
    if (io == NULL) {
        return;
    }
    pthread_mutex_lock(&io->lock);
    io->quit = true;
    pthread_cond_broadcast(&io->work);
    while (atomic_load(&io->threads) > 0) {
        pthread_cond_wait(&io->left, &io->lock);
    }
    io->after = after;
    io->arg = arg;
    io->closed = true;
    bool last = io->abandoned == 0;
    pthread_mutex_unlock(&io->lock);
    if (last) {
        destroy(io);
    }
}

bool stk_io_threads_begin(stk_io_threads *io, stk_fetch *fetch, stk_io_work *work, void *user,
                          const uint64_t *extra) {
    pthread_mutex_lock(&io->lock);
    queued_task *t = make_task(io, fetch, work, user, extra);
    if (t != NULL) {
        fetch->serving = t;
        *(io->first == NULL ? &io->first : &io->last->next) = t;
        io->last = t;
        if (io->idle > 0) {
            pthread_cond_signal(&io->work);
        } else {
            keep_going(io);
        }
    }
    pthread_mutex_unlock(&io->lock);
    return t != NULL;
}

/* Under the lock. */
static void unqueue(stk_io_threads *io, const queued_task *t) {
    queued_task *before = NULL;
    for (queued_task *at = io->first; at != t; at = at->next) {
        before = at;
    }
    *(before != NULL ? &before->next : &io->first) = t->next;
    io->last = io->last == t ? before : io->last;
}

void stk_io_threads_cancel(stk_io_threads *io, stk_fetch *fetch) {
    pthread_mutex_lock(&io->lock);
    queued_task *t = fetch->serving;
    if (t == NULL) {
        pthread_mutex_unlock(&io->lock);
        return;
    }
    t->fetch = NULL;
    fetch->serving = NULL;
    if (t->running) {
        atomic_fetch_sub(&io->threads, 1);
        io->abandoned++;
        keep_going(io);
    } else {
        unqueue(io, t);
        put_away(io, t);
    }
    pthread_mutex_unlock(&io->lock);
    fetch->result.verdict = STK_FETCH_CANCELLED;
    fetch->done(fetch);
}

void stk_io_task_is_alive(stk_io_task *shown) {
    queued_task *t = (queued_task *)(void *)shown;
    int64_t now = stk_clock_ns();
    if (now - t->sign_ns < SIGN_NS) {
        return;
    }
    t->sign_ns = now;
    pthread_mutex_lock(&t->io_threads->lock);
    if (t->fetch != NULL) {
        atomic_store(&t->fetch->heard_ns, now);
    }
    pthread_mutex_unlock(&t->io_threads->lock);
}

void stk_io_threads_grow(stk_io_threads *io) {
    pthread_mutex_lock(&io->lock);
    if (may_grow(io, io->most_threads)) {
        bool faster = start_thread(io, NULL) == STK_OK; /* without it all goes on, only slower */
        (void)faster;
    }
    pthread_mutex_unlock(&io->lock);
}

int stk_io_threads_count(const stk_io_threads *io) {
    return atomic_load(&io->threads);
}
