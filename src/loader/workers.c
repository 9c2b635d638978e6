/* workers.c - the threads that decode: each fills rows of batches. */
#include "loader/pipeline.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/thread.h"

/* ---- a row of a batch ---- */

/* Reads a sample that replaces a bad one, into w->extra. Here alone a worker waits for a read;
 * closing the loader ends the wait. */
static stk_status read_substitute(decode_worker *w, const char *path, stk_error *err) {
    stk_loader *l = w->loader;
    stk_read *read = &w->extra.read;
    stk_status status = STK_OK;
    int64_t start = stk_clock_ns();
    pthread_mutex_lock(&l->lock);
    read->path = path;
    if (l->quit || l->paused || l->failure.status != STK_OK) {
        status = STK_FAIL(err, STK_ERR_STOPPED, "the loader was closed");
    } else if (!stk_read_ahead_read_alone(&l->ahead, &w->extra)) {
        status = STK_FAIL_MEMORY(err, path);
    }
    pthread_mutex_unlock(&l->lock);
    atomic_fetch_add(&l->read_wait_ns, (uint64_t)(stk_clock_ns() - start));
    if (status == STK_OK && (read->lost || read->error.status == STK_ERR_STOPPED)) {
        status = STK_FAIL(err, read->error.status, "%s", read->error.message);
    }
    return status;
}

/*
 * Fills a task's row. In training the sample at the next position of the epoch replaces a bad one,
 * and so on; when all are bad there is nothing to train on.
 */
static stk_status fill(decode_worker *w, loader_task *t, batch_slot *s, stk_error *err) {
    stk_loader *l = w->loader;
    uint8_t *out = s->images + t->row * l->image_bytes;
    size_t position = s->batch.index * l->config.batch + t->row;
    size_t tries = l->config.order.replace_bad ? l->epoch_samples : 1;
    const stk_read *read = &t->item.read;
    bool good = false;
    for (size_t i = 0; i < tries && !good; i++) {
        size_t next = (position + i) % l->epoch_samples;
        size_t entry = i == 0 ? t->entry : stk_sampler_at(l->sampler, s->batch.epoch, next);
        const stk_sample *sample = stk_loader_sample(l, entry);
        stk_tasks_fill_beside(l, s, t->row, entry);
        if (sample->path == NULL) {
            continue;
        }
        stk_status status = i > 0 ? read_substitute(w, sample->path, err) : STK_OK;
        read = i > 0 ? &w->extra.read : read;
        if (status == STK_OK && read->error.status == STK_OK) {
            status = stk_tasks_check_fingerprint(l, sample, &read->bytes, err);
        }
        if (status == STK_OK) {
            stk_error why = read->error;
            status = stk_worker_decode(w, t, entry, &read->bytes, &why, out, &good, err);
        }
        if (status != STK_OK) {
            return status;
        }
    }
    s->bad[t->row] = !good;
    if (good) {
        return STK_OK;
    }
    memset(out, 0, l->image_bytes);
    if (l->config.order.replace_bad) {
        const char *path = stk_loader_sample(l, 0)->path;
        return STK_FAIL(err, STK_ERR_DATA,
                        "none of the %zu training images can be read; the first is %s",
                        l->config.count, path != NULL ? path : "missing");
    }
    return STK_OK;
}

/* ---- threads ---- */

static loader_task *take_ready(stk_loader *l) {
    stk_read_ahead_item *item = l->paused ? NULL : stk_read_ahead_take(&l->ahead);
    if (item != NULL) {
        stk_read_ahead_hold(&l->ahead, item, 0); /* only bytes that wait for a worker count */
    }
    return stk_tasks_of(item);
}

/*
 * Waits until there may be a task. The time with reads in flight counts as a wait for bytes, the
 * rest as a wait for a slot. full_wait_ns gets all of a wait that began when the ring was full: it
 * includes the reads that are issued once a slot is free.
 */
static void wait_for_task(stk_loader *l) {
    bool ended = stk_loader_is_past_end(l, l->issue_batch);
    bool is_full = !ended && atomic_load(&l->ahead.in_flight) == 0;
    int64_t start = stk_clock_ns();
    int64_t flight_ns = stk_read_ahead_flight_ns(&l->ahead);
    stk_read_ahead_wait(&l->ahead);
    int64_t waited = stk_clock_ns() - start;
    int64_t reading = stk_read_ahead_flight_ns(&l->ahead) - flight_ns;
    reading = reading < waited ? reading : waited;
    atomic_fetch_add(&l->read_wait_ns, (uint64_t)reading);
    atomic_fetch_add(&l->slot_wait_ns, ended ? 0 : (uint64_t)(waited - reading));
    atomic_fetch_add(&l->full_wait_ns, is_full ? (uint64_t)waited : 0);
}

static void *work(void *argument) {
    decode_worker *w = argument;
    stk_loader *l = w->loader;
    pthread_mutex_lock(&l->lock);
    while (!l->quit && l->failure.status == STK_OK) {
        if (w->index >= atomic_load(&l->wanted)) {
            pthread_cond_signal(&l->work); /* the signal was meant for a wanted worker */
            pthread_cond_wait(&l->parked, &l->lock);
            continue;
        }
        if (stk_loader_leave_to_device(l)) {
            continue;
        }
        loader_task *t = take_ready(l);
        if (t == NULL) {
            wait_for_task(l);
            continue;
        }
        batch_slot *s = l->ring[t->batch % (uint64_t)l->config.sizing.room_slots];
        stk_error err = {0};
        bool taken = false;
        pthread_mutex_unlock(&l->lock);
        stk_status status = stk_worker_offload(w, t, s, &taken, &err);
        if (status == STK_OK && !taken) {
            status = fill(w, t, s, &err);
        }
        pthread_mutex_lock(&l->lock);
        stk_loader_leave_core(w);
        stk_read_ahead_trim(&l->ahead, &w->extra.read.bytes);
        if (!taken) {
            stk_tasks_finish(l, t, s, status, &err);
        }
    }
    l->running--;
    pthread_cond_broadcast(&l->ready);
    bool abandoned = w->is_abandoned;
    pthread_mutex_unlock(&l->lock);
    if (abandoned) {
        stk_loader_unref(l);
    }
    return NULL;
}

/* Allocates a worker's memory; a start that failed may have left some of it. */
static stk_status equip_worker(stk_loader *l, decode_worker *w, stk_error *err) {
    stk_heavy_gate gate = stk_loader_heavy_gate(w);
    w->loader = l;
    w->index = l->started;
    if (w->square == NULL && l->config.memory.take != NULL) {
        w->square = stk_mem_raw(l->image_bytes, 1);
        if (w->square == NULL) {
            return STK_FAIL_MEMORY(err, "decoding pictures");
        }
    }
    return w->scratch == NULL ? stk_image_scratch_new(&w->scratch, &gate, err) : STK_OK;
}

stk_status stk_workers_start(stk_loader *l, stk_error *err) {
    while (l->started < atomic_load(&l->wanted)) {
        decode_worker *w = &l->workers[l->started];
        stk_status status = equip_worker(l, w, err);
        if (status != STK_OK) {
            return status;
        }
        const stk_thread_config config = {.what = "decodes pictures"};
        stk_error why = {0};
        status = stk_thread_start(&w->thread, &config, work, w, &why);
        if (status != STK_OK && l->started == 0) {
            return STK_FAIL(err, status, "%s", why.message);
        }
        if (status != STK_OK) { /* the system refuses more: go on with these */
            atomic_store(&l->wanted, l->started);
            l->tuner.most_workers = l->started;
            break;
        }
        l->started++;
        l->running++;
    }
    return STK_OK;
}
