/* reader.c - threads that read, each one object at a time, from one queue. */
#include "storage/reader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"

/* Reading needs little: many threads must not cost much. */
#define STACK_BYTES ((size_t)256 * 1024)

struct stk_reader {
    stk_reader_config config;
    pthread_mutex_t lock;
    pthread_cond_t work;
    stk_read *first; /* lock */
    stk_read *last;  /* lock; only meaningful while first is not NULL */
    int idle;        /* threads that wait for work; lock */
    bool quit;       /* lock */
    atomic_int threads;
    pthread_t *handles; /* owned; most_threads of them */
};

static stk_read *take(stk_reader *r) {
    stk_read *read = r->first;
    r->first = read->next;
    read->next = NULL;
    return read;
}

static void serve(const stk_reader *r, stk_read *read) {
    int64_t start = stk_clock_ns();
    stk_error_clear(&read->error);
    (void)(stk_storage_read(r->config.root, read->path, &read->bytes, &read->error) == STK_OK);
    read->ns = stk_clock_ns() - start;
    r->config.done(r->config.user, read);
}

static void *work(void *argument) {
    stk_reader *r = argument;
    pthread_mutex_lock(&r->lock);
    while (!r->quit) {
        if (r->first == NULL) {
            r->idle++;
            pthread_cond_wait(&r->work, &r->lock);
            r->idle--;
            continue;
        }
        stk_read *read = take(r);
        pthread_mutex_unlock(&r->lock);
        serve(r, read);
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* Under the lock, or before there is anybody else; 0 or the system's reason. */
static int start_thread(stk_reader *r) {
    int count = atomic_load(&r->threads);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int failed = pthread_create(&r->handles[count], &attributes, work, r);
    pthread_attr_destroy(&attributes);
    if (failed == 0) {
        atomic_store(&r->threads, count + 1);
    }
    return failed;
}

/* Every read has a file open: a part of the descriptors is for them, the others for others. */
static int limit_threads(int wanted) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 4 >= (rlim_t)wanted) {
        return wanted;
    }
    return limit.rlim_cur >= 8 ? (int)(limit.rlim_cur / 4) : 1;
}

stk_status stk_reader_open(stk_reader **out, const stk_reader_config *config, stk_error *err) {
    stk_reader *r = stk_mem_new(1, sizeof *r);
    pthread_t *handles = stk_mem_new((size_t)config->most_threads, sizeof *handles);
    if (r == NULL || handles == NULL) {
        stk_mem_free(handles);
        stk_mem_free(r);
        return STK_FAIL_MEMORY(err, "reading");
    }
    r->config = *config;
    r->config.most_threads = limit_threads(config->most_threads);
    r->handles = handles;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->work, NULL);
    int failed = start_thread(r);
    if (failed != 0) {
        stk_reader_close(r);
        return STK_FAIL(err, STK_ERR_MEMORY, "cannot start a thread that reads: %s",
                        strerror(failed));
    }
    *out = r;
    return STK_OK;
}

void stk_reader_close(stk_reader *r) {
    if (r == NULL) {
        return;
    }
    pthread_mutex_lock(&r->lock);
    r->quit = true;
    pthread_cond_broadcast(&r->work);
    pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < atomic_load(&r->threads); i++) {
        pthread_join(r->handles[i], NULL);
    }
    pthread_cond_destroy(&r->work);
    pthread_mutex_destroy(&r->lock);
    stk_mem_free(r->handles);
    stk_mem_free(r);
}

void stk_reader_submit(stk_reader *r, stk_read *read) {
    read->next = NULL;
    pthread_mutex_lock(&r->lock);
    if (r->first == NULL) {
        r->first = read;
    } else {
        r->last->next = read;
    }
    r->last = read;
    if (r->idle > 0) {
        pthread_cond_signal(&r->work);
    }
    pthread_mutex_unlock(&r->lock);
}

void stk_reader_hurry(stk_reader *r) {
    pthread_mutex_lock(&r->lock);
    if (r->first != NULL && r->idle == 0 && !r->quit &&
        atomic_load(&r->threads) < r->config.most_threads) {
        (void)start_thread(r); /* without it all goes on, only slower */
    }
    pthread_mutex_unlock(&r->lock);
}

stk_read *stk_reader_take_back(stk_reader *r) {
    pthread_mutex_lock(&r->lock);
    stk_read *list = r->first;
    r->first = NULL;
    pthread_mutex_unlock(&r->lock);
    return list;
}

int stk_reader_threads(const stk_reader *r) {
    return atomic_load(&r->threads);
}
