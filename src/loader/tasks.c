/*
 * tasks.c - tasks from their issue to their end: rows of batches become tasks, bytes arrive, rows
 * get everything but their picture, and batches become complete.
 */
#include "loader/pipeline.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/numbers/checksum.h"
#include "base/threads/thread.h"

void stk_tasks_drop(stk_loader *l, loader_task *t) {
    stk_read_ahead_release(&l->ahead, &t->item);
    t->next = l->free_tasks;
    l->free_tasks = t;
    if (l->paused) {
        pthread_cond_broadcast(&l->ready);
    }
}

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

void stk_tasks_issue(void *user) {
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

loader_task *stk_tasks_of(stk_read_ahead_item *item) {
    return (loader_task *)(void *)item;
}

void stk_tasks_read_arrived(void *user, stk_read_ahead_item *item) {
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
        stk_tasks_drop(l, stk_tasks_of(item));
    } else {
        stk_read_ahead_make_ready(&l->ahead, item);
    }
}

/* ---- a row, apart from its picture ---- */

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
stk_status stk_tasks_check_fingerprint(const stk_loader *l, const stk_sample *sample,
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

void stk_tasks_fill_beside(const stk_loader *l, batch_slot *s, size_t row, size_t entry) {
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

/* ---- the end ---- */

void stk_tasks_finish(stk_loader *l, loader_task *t, batch_slot *s, stk_status status,
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
    stk_tasks_drop(l, t);
    /* Not after every task: issuing several at a time wakes fewer threads. */
    if (l->ahead.under_way <= l->ahead.window - l->ahead.window / 4) {
        stk_tasks_issue(l);
    }
}
