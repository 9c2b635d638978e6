/*
 * closing.c - the end of a loader, which does not wait for what cannot be interrupted.
 *
 * Decoders end soon after they are told. A worker that does not come back is in a library that
 * cannot be interrupted: it is left there with all that it uses, and whoever comes last, the worker
 * or the one who closes, frees the loader. What is borrowed goes at once: a worker that comes back
 * touches none of it.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "loader/pipeline.h"

#define NS_PER_S 1000000000

/* How long closing waits for workers that are inside a library. */
#define CLOSE_NS 100000000

static void free_slots(stk_loader *l) {
    for (int i = 0; l->slots != NULL && i < l->config.sizing.room_slots; i++) {
        stk_workers_free_slot(l, &l->slots[i]);
    }
}

/* What only a worker inside a library still uses: nothing of it is borrowed. */
static void free_loader(stk_loader *l) {
    free_slots(l);
    stk_mem_free(l->ring);
    stk_mem_free(l->slots);
    for (size_t i = 0; l->tasks != NULL && i < l->config.sizing.most_reads; i++) {
        stk_bytes_free(&l->tasks[i].read.bytes);
    }
    for (int i = 0; l->workers != NULL && i < l->config.sizing.room_workers; i++) {
        stk_image_scratch_free(l->workers[i].scratch);
        stk_bytes_free(&l->workers[i].extra.read.bytes);
        stk_bytes_free(&l->workers[i].raw);
        stk_mem_free(l->workers[i].square);
    }
    for (size_t i = 0; i < l->bad_count; i++) {
        stk_mem_free(l->bad[i].reason);
    }
    pthread_cond_destroy(&l->extra);
    pthread_cond_destroy(&l->ready);
    pthread_cond_destroy(&l->parked);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->heavy_ends);
    pthread_mutex_destroy(&l->lock);
    stk_mem_free(l->bad);
    stk_mem_free(l->late.items);
    stk_mem_free(l->is_bad);
    stk_mem_free(l->workers);
    stk_mem_free(l->tasks);
    stk_sampler_free(l->sampler);
    stk_mem_free(l);
}

void stk_loader_let_go(stk_loader *l) {
    pthread_mutex_lock(&l->lock);
    bool last = --l->references == 0;
    pthread_mutex_unlock(&l->lock);
    if (last) {
        free_loader(l);
    }
}

/* Under the lock: waits until all workers have ended, but not for long. */
static void wait_for_workers(stk_loader *l) {
    int64_t end = stk_clock_ns() + CLOSE_NS;
    struct timespec at = {.tv_sec = end / NS_PER_S, .tv_nsec = end % NS_PER_S};
    while (l->running > 0 && pthread_cond_timedwait(&l->ready, &l->lock, &at) != ETIMEDOUT) {
    }
}

/* Ends the workers, or leaves them where they are. */
static void stop_threads(stk_loader *l) {
    pthread_mutex_lock(&l->lock);
    l->quit = true;
    atomic_store(&l->cancelled, true);
    pthread_cond_broadcast(&l->work);
    pthread_cond_broadcast(&l->parked);
    pthread_cond_broadcast(&l->heavy_ends);
    if (l->reader != NULL) {
        stk_reader_cancel(l->reader); /* a worker may wait for a read */
    }
    wait_for_workers(l);
    for (int i = 0; i < l->started; i++) {
        int inside = WORKER_INSIDE;
        worker *w = &l->workers[i];
        w->is_left = atomic_compare_exchange_strong(&w->place, &inside, WORKER_LEFT);
        l->references += w->is_left;
    }
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->started; i++) {
        if (l->workers[i].is_left) {
            pthread_detach(l->workers[i].thread);
        } else {
            pthread_join(l->workers[i].thread, NULL);
        }
    }
    stk_reader_close(l->reader);
}

void stk_loader_close(stk_loader *l) {
    if (l == NULL) {
        return;
    }
    stop_threads(l);
    if (l->config.memory.take != NULL) {
        free_slots(l); /* whose memory is borrowed; no worker makes its picture there */
    }
    stk_feed_samples_close(&l->feed);
    stk_loader_let_go(l);
}
