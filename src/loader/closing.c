/*
 * closing.c - closes a loader without waiting for calls that cannot be interrupted.
 *
 * Decoders end soon after they are cancelled. A worker that does not is in a library that cannot be
 * interrupted: it is abandoned with all that it uses, and the last reference, the worker's or the
 * closer's, frees the loader. Borrowed memory is given back at once: an abandoned worker touches
 * none of it.
 */
#include "base/clock.h"
#include "base/threads/thread.h"
#include "loader/pipeline.h"

/* How long closing waits for workers that are inside a library. */
#define CLOSE_NS 100000000

/* Under the lock: waits until all workers have ended, but not for long. */
static void wait_for_workers(stk_loader *l) {
    int64_t end = stk_clock_ns() + CLOSE_NS;
    while (l->running > 0 && stk_cond_wait_until(&l->ready, &l->lock, end)) {
    }
}

/* Ends the workers, or abandons them. */
static void stop_threads(stk_loader *l) {
    pthread_mutex_lock(&l->lock);
    l->quit = true;
    atomic_store(&l->cancelled, true);
    pthread_cond_broadcast(&l->work);
    pthread_cond_broadcast(&l->parked);
    pthread_cond_broadcast(&l->heavy_ends);
    if (l->ahead.reader != NULL) {
        stk_read_ahead_cancel(&l->ahead); /* a worker may wait for a read */
    }
    wait_for_workers(l);
    for (int i = 0; i < l->started; i++) {
        int inside = WORKER_IN_LIBRARY;
        decode_worker *w = &l->workers[i];
        w->is_abandoned =
            atomic_compare_exchange_strong(&w->whereabouts, &inside, WORKER_ABANDONED);
        l->references += w->is_abandoned;
    }
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->started; i++) {
        if (l->workers[i].is_abandoned) {
            pthread_detach(l->workers[i].thread);
        } else {
            pthread_join(l->workers[i].thread, NULL);
        }
    }
    if (l->config.decoder.state != NULL) {
        l->config.decoder.withdraw(l->config.decoder.state, l);
    }
    stk_read_ahead_close(&l->ahead);
}

void stk_loader_close(stk_loader *l) {
    if (l == NULL) {
        return;
    }
    stop_threads(l);
    if (l->config.memory.take != NULL) {
        stk_loader_free_slots(l); /* borrowed memory; workers make pictures elsewhere */
    }
    stk_folder_samples_close(&l->folder);
    stk_loader_unref(l);
}
