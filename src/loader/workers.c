/* workers.c - issues tasks and fills rows of batches; the threads that decode. */
#include "loader/pipeline.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/threads/thread.h"

void stk_workers_drop(stk_loader *l, loader_task *t) {
    stk_read_ahead_release(&l->ahead, &t->item);
    t->next = l->free_tasks;
    l->free_tasks = t;
    if (l->paused) {
        pthread_cond_broadcast(&l->ready);
    }
}

/* How long a worker sleeps when the device has no room. A group of pictures takes it longer. */
#define DEVICE_WAIT_NS 1000000

/* ---- issue ---- */

/* Memory of a slot that is used for the first time. */
static bool equip_slot(const stk_loader *l, batch_slot *s) {
    const stk_loader_memory *memory = &l->config.memory;
    size_t batch = l->config.batch;
    size_t bytes = batch * l->image_bytes;
    s->images = memory->take != NULL ? memory->take(memory->user, bytes) : stk_mem_aligned(bytes);
    s->labels = stk_mem_new(batch, sizeof *s->labels);
    s->samples = stk_mem_new(batch, sizeof *s->samples);
    s->entries = stk_mem_new(batch, sizeof *s->entries);
    s->bad = stk_mem_new(batch, sizeof *s->bad);
    bool whole = s->images != NULL && s->labels != NULL && s->samples != NULL &&
                 s->entries != NULL && s->bad != NULL;
    if (l->config.targets != NULL) {
        s->targets = stk_mem_new(batch, (size_t)l->config.targets->outputs * sizeof *s->targets);
        whole = whole && s->targets != NULL;
    }
    if (l->config.features != NULL) {
        s->features = stk_mem_new(batch, (size_t)l->config.features->count * sizeof *s->features);
        whole = whole && s->features != NULL;
    }
    s->batch = (stk_batch){.images = s->images,
                           .labels = s->labels,
                           .samples = s->samples,
                           .bad = s->bad,
                           .targets = s->targets,
                           .features = s->features};
    if (!whole) {
        stk_loader_free_slot(l, s);
    }
    return whole;
}

/*
 * A free slot, or NULL. Slots are first used in order. Where there is no memory for one, the slots
 * before it are enough if there are two.
 */
static batch_slot *find_free_slot(stk_loader *l) {
    int count = atomic_load(&l->slot_count);
    int i = 0;
    while (i < count && l->slots[i].state != SLOT_FREE) {
        i++;
    }
    if (i == count || l->slots[i].images != NULL || equip_slot(l, &l->slots[i])) {
        return i < count ? &l->slots[i] : NULL;
    }
    if (i >= STK_LOADER_LEAST_SLOTS) {
        atomic_store(&l->slot_count, i);
        return NULL;
    }
    stk_error err = {0};
    (void)STK_FAIL(&err, STK_ERR_MEMORY,
                   "out of memory for batches of %zu pictures of %d px; use a smaller --batch or "
                   "--img-size",
                   l->config.batch, l->config.transform.size);
    stk_loader_fail(l, &err);
    return NULL;
}

static void begin_batch(stk_loader *l, batch_slot *s) {
    uint64_t batch = l->issue_batch;
    size_t index = (size_t)(batch % l->epoch_batches);
    size_t left = l->epoch_samples - index * l->config.batch;
    s->state = SLOT_FILLING;
    s->number = batch;
    s->missing = left < l->config.batch ? left : l->config.batch;
    s->batch.count = s->missing;
    s->batch.epoch = batch / l->epoch_batches;
    s->batch.index = index;
    l->ring[batch % (uint64_t)l->config.sizing.room_slots] = s;
}

void stk_workers_issue(void *user) {
    stk_loader *l = user;
    while (!l->quit && !l->paused && l->failure.status == STK_OK &&
           !stk_loader_is_past_end(l, l->issue_batch) &&
           stk_read_ahead_has_room(&l->ahead, (size_t)atomic_load(&l->wanted))) {
        batch_slot *s = l->ring[l->issue_batch % (uint64_t)l->config.sizing.room_slots];
        if (l->issue_row == 0) {
            s = find_free_slot(l);
            if (s == NULL) {
                return;
            }
            begin_batch(l, s);
        }
        loader_task *t = l->free_tasks;
        l->free_tasks = t->next;
        t->batch = l->issue_batch;
        t->row = l->issue_row++;
        t->is_for_cpu = false;
        t->entry =
            stk_sampler_at(l->sampler, s->batch.epoch, s->batch.index * l->config.batch + t->row);
        if (l->issue_row == s->batch.count) {
            l->issue_batch++;
            l->issue_row = 0;
        }
        t->item.read.path = stk_loader_sample(l, t->entry)->path;
        if (t->item.read.path == NULL) {
            stk_read_ahead_skip(&l->ahead, &t->item);
        } else if (!stk_read_ahead_submit(&l->ahead, &t->item)) {
            stk_error err = {0};
            (void)STK_FAIL_MEMORY(&err, t->item.read.path);
            stk_loader_fail(l, &err);
        }
    }
}

loader_task *stk_workers_task(stk_read_ahead_item *item) {
    return (loader_task *)(void *)item;
}

void stk_workers_read_arrived(void *user, stk_read_ahead_item *item) {
    stk_loader *l = user;
    const stk_read *read = &item->read;
    atomic_fetch_add(&l->read_ns, (uint64_t)read->ns);
    atomic_fetch_add(&l->read_bytes, read->bytes.size);
    if (read->lost) {
        stk_loader_fail(l, &read->error);
    }
    if (item->is_alone) {
        return;
    }
    if (l->paused || read->error.status == STK_ERR_STOPPED) {
        stk_workers_drop(l, stk_workers_task(item));
    } else {
        stk_read_ahead_make_ready(&l->ahead, item);
    }
}

/* ---- a row of a batch ---- */

/* Bytes of each piece of a picture that a fingerprint covers. */
#define FINGERPRINT_PIECE ((size_t)4096)

static uint64_t fingerprint(const stk_bytes *bytes) {
    const uint8_t *data = bytes->data;
    size_t size = bytes->size;
    size_t piece = size < FINGERPRINT_PIECE ? size : FINGERPRINT_PIECE;
    uint64_t sum = stk_checksum_seeded(data, piece, size);
    if (size > piece) {
        sum = stk_checksum_seeded(data + (size - piece) / 2, piece, sum);
        sum = stk_checksum_seeded(data + size - piece, piece, sum);
    }
    return sum != 0 ? sum : 1;
}

/* Pictures that a cache keeps decoded have no bytes of their own to look at. */
stk_status stk_workers_check_fingerprint(const stk_loader *l, const stk_sample *sample,
                                         const stk_bytes *bytes, stk_error *err) {
    const stk_fingerprints *prints = &l->config.fingerprints;
    size_t index = (size_t)(sample - l->config.samples);
    if (prints->now == NULL || stk_image_is_raw(bytes->data, bytes->size)) {
        return STK_OK;
    }
    uint64_t now = fingerprint(bytes);
    uint64_t before = prints->before != NULL ? prints->before[index] : 0;
    atomic_store_explicit(&prints->now[index], now, memory_order_relaxed);
    return before == 0 || before == now
               ? STK_OK
               : STK_FAIL(err, STK_ERR_DATA,
                          "%s is not the picture that the run was begun with: its contents "
                          "changed; put it back, or begin a new run",
                          sample->path);
}

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

void stk_workers_fill_beside(const stk_loader *l, batch_slot *s, size_t row, size_t entry) {
    const stk_sample *sample = stk_loader_sample(l, entry);
    const stk_targets *targets = l->config.targets;
    const stk_features *features = l->config.features;
    size_t record = (size_t)sample->record; /* -1 is beyond all records */
    s->samples[row] = (size_t)(sample - l->config.samples);
    s->entries[row] = entry;
    s->labels[row] = sample->label;
    if (targets != NULL) {
        float *out = s->targets + row * (size_t)targets->outputs;
        stk_targets_learned(targets, record, out);
    }
    if (features != NULL) {
        size_t bytes = (size_t)features->count * sizeof *s->features;
        float *out = s->features + row * (size_t)features->count;
        const float *numbers = stk_features_row(features, record);
        if (numbers != NULL) {
            memcpy(out, numbers, bytes);
        } else {
            memset(out, 0, bytes); /* every column at its mean */
        }
    }
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
        stk_workers_fill_beside(l, s, t->row, entry);
        if (sample->path == NULL) {
            continue;
        }
        stk_status status = i > 0 ? read_substitute(w, sample->path, err) : STK_OK;
        read = i > 0 ? &w->extra.read : read;
        if (status == STK_OK && read->error.status == STK_OK) {
            status = stk_workers_check_fingerprint(l, sample, &read->bytes, err);
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
    return stk_workers_task(item);
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

void stk_workers_finish(stk_loader *l, loader_task *t, batch_slot *s, stk_status status,
                        const stk_error *err) {
    /* A batch without one of its samples stays incomplete, and nobody gets it. */
    if (status == STK_OK && --s->missing == 0 && !l->paused) {
        s->state = SLOT_READY;
        s->ready_ns = stk_clock_ns();
        atomic_fetch_add(&l->batches_ready, 1);
        pthread_cond_broadcast(&l->ready);
    }
    if (status != STK_OK && status != STK_ERR_STOPPED) {
        stk_loader_fail(l, err);
    }
    stk_workers_drop(l, t);
    /* Not after every task: issuing several at a time wakes fewer threads. */
    if (l->ahead.under_way <= l->ahead.window - l->ahead.window / 4) {
        stk_workers_issue(l);
    }
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
        if (stk_loader_waits_for_device(l)) {
            (void)stk_cond_wait_until(&l->work, &l->lock, stk_clock_ns() + DEVICE_WAIT_NS);
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
            stk_workers_finish(l, t, s, status, &err);
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
