/*
 * loader.c - worker threads over one ring of batch slots.
 *
 * Work is handed out sample by sample, in the order in which the samples will be needed: a cursor
 * (batch number, place in it) under one lock. A slot counts the samples that are still missing and
 * becomes ready with the last one. Slot s holds the batches whose number is s modulo the ring, so
 * a worker waits only when the ring is full and the consumer only when its batch is not complete.
 */
#include "loader/loader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "storage/storage.h"

typedef enum slot_state { SLOT_FREE, SLOT_FILLING, SLOT_READY, SLOT_HELD } slot_state;

typedef struct slot {
    stk_batch batch;  /* what the consumer sees; its arrays are the ones below */
    slot_state state; /* lock */
    size_t missing;   /* samples not there yet; lock */
    uint8_t *images;  /* owned by the loader's pixels */
    int *labels;
    size_t *samples;
    bool *bad;
} slot;

typedef struct bad_sample {
    size_t position; /* in the loader's list of samples */
    char *reason;    /* owned */
} bad_sample;

struct stk_loader {
    stk_loader_config config;
    size_t per_epoch;   /* batches */
    size_t image_bytes; /* of one sample in a batch */
    slot *slots;
    uint8_t *pixels; /* all slots' images */
    pthread_t *threads;
    int started;
    pthread_mutex_t lock;
    pthread_cond_t slot_free;  /* for workers */
    pthread_cond_t slot_ready; /* for the consumer */
    uint64_t fill_batch;       /* cursor of the workers; lock */
    size_t fill_place;         /* lock */
    uint64_t read_batch;       /* next batch for the consumer */
    bool quit;                 /* lock */
    stk_error failure;         /* what ended the loader; lock */
    bad_sample *bad;           /* lock */
    size_t bad_count;
    size_t bad_capacity;
    size_t bad_told;
    atomic_uchar *is_bad; /* per position: found bad before, so it is not read again */
    atomic_ullong images, bytes, read_ns, decode_ns;
    uint64_t wait_ns; /* consumer only */
};

static const stk_sample *sample_at(const stk_loader *l, size_t position) {
    return &l->config.samples[l->config.indices != NULL ? l->config.indices[position] : position];
}

static size_t batch_count(const stk_loader *l, uint64_t batch) {
    size_t first = (size_t)(batch % l->per_epoch) * l->config.batch;
    size_t left = l->config.count - first;
    return left < l->config.batch ? left : l->config.batch;
}

static bool is_past_end(const stk_loader *l, uint64_t batch) {
    return l->config.epochs > 0 && batch >= l->config.epochs * l->per_epoch;
}

/* Which sample stands at this place of an epoch's order. */
static size_t order(const stk_loader *l, uint64_t epoch, size_t place) {
    if (!l->config.shuffle) {
        return place;
    }
    stk_rng rng = stk_rng_make(l->config.seed, STK_RNG_ORDER, epoch, 0);
    return (size_t)stk_rng_permute(rng.key, l->config.count, place);
}

/* False when there is no memory for it; the sample then counts as not looked at. */
static bool remember_bad(stk_loader *l, size_t position, const char *reason) {
    bool remembered = true;
    pthread_mutex_lock(&l->lock);
    if (atomic_load(&l->is_bad[position]) == 0) {
        bad_sample *grown =
            stk_mem_grow(l->bad, &l->bad_capacity, l->bad_count + 1, sizeof *l->bad);
        char *copy = stk_mem_strdup(reason);
        remembered = grown != NULL && copy != NULL;
        l->bad = grown != NULL ? grown : l->bad;
        if (remembered) {
            l->bad[l->bad_count++] = (bad_sample){position, copy};
            atomic_store(&l->is_bad[position], 1);
        } else {
            stk_mem_free(copy);
        }
    }
    pthread_mutex_unlock(&l->lock);
    return remembered;
}

/* One sample into out; false when it cannot be used. Memory running out is not the picture's. */
static bool load_sample(stk_loader *l, size_t position, uint64_t epoch, size_t place, uint8_t *out,
                        stk_error *err) {
    const stk_sample *sample = sample_at(l, position);
    stk_error why = {0};
    uint8_t *bytes = NULL;
    size_t size = 0;
    if (sample->path == NULL || atomic_load(&l->is_bad[position]) != 0) {
        return false;
    }
    int64_t start = stk_clock_ns();
    stk_status status = stk_storage_read(l->config.root, sample->path, &bytes, &size, &why);
    int64_t read = stk_clock_ns();
    if (status == STK_OK) {
        stk_rng rng = stk_rng_make(l->config.seed, STK_RNG_AUGMENT, epoch, place);
        status = stk_transform_apply(&l->config.transform, bytes, size, rng, out, &why);
        stk_mem_free(bytes);
    }
    atomic_fetch_add(&l->read_ns, (uint64_t)(read - start));
    atomic_fetch_add(&l->decode_ns, (uint64_t)(stk_clock_ns() - read));
    atomic_fetch_add(&l->bytes, size);
    if (status == STK_OK) {
        atomic_fetch_add(&l->images, 1);
    } else if (status == STK_ERR_MEMORY) {
        STK_FAIL(err, status, "%s", why.message);
    } else if (!remember_bad(l, position, why.message)) {
        STK_FAIL_MEMORY(err, "the list of bad images");
    }
    return status == STK_OK;
}

/*
 * Fills place i of a batch. In training a bad sample is replaced by the one behind it in the
 * epoch's order, and so on; when all of them are bad there is nothing to train on.
 */
static stk_status fill(stk_loader *l, slot *s, uint64_t batch, size_t i, stk_error *err) {
    uint64_t epoch = batch / l->per_epoch;
    size_t place = (size_t)(batch % l->per_epoch) * l->config.batch + i;
    uint8_t *out = s->images + i * l->image_bytes;
    size_t tries = l->config.replace_bad ? l->config.count : 1;
    for (size_t t = 0; t < tries; t++) {
        size_t position = order(l, epoch, (place + t) % l->config.count);
        s->labels[i] = sample_at(l, position)->label;
        s->samples[i] = l->config.indices != NULL ? l->config.indices[position] : position;
        s->bad[i] = !load_sample(l, position, epoch, place, out, err);
        if (!s->bad[i] || (err->status != STK_OK)) {
            return err->status;
        }
    }
    memset(out, 0, l->image_bytes);
    if (l->config.replace_bad) {
        const char *first = sample_at(l, 0)->path;
        return STK_FAIL(err, STK_ERR_DATA,
                        "none of the %zu training images can be read; the first is %s",
                        l->config.count, first != NULL ? first : "missing");
    }
    return STK_OK;
}

static void begin_batch(const stk_loader *l, slot *s, uint64_t batch) {
    s->state = SLOT_FILLING;
    s->missing = batch_count(l, batch);
    s->batch.count = s->missing;
    s->batch.epoch = batch / l->per_epoch;
    s->batch.index = (size_t)(batch % l->per_epoch);
}

/* Under the lock: the next place to fill, or false when the loader ends. */
static bool take_place(stk_loader *l, uint64_t *batch, size_t *place) {
    for (;;) {
        if (l->quit || l->failure.status != STK_OK || is_past_end(l, l->fill_batch)) {
            return false;
        }
        slot *s = &l->slots[l->fill_batch % (uint64_t)l->config.slots];
        /* At place 0 a slot that is not free still belongs to the batch one ring earlier. */
        if (l->fill_place > 0 || s->state == SLOT_FREE) {
            if (l->fill_place == 0) {
                begin_batch(l, s, l->fill_batch);
            }
            *batch = l->fill_batch;
            *place = l->fill_place++;
            if (l->fill_place == s->batch.count) {
                l->fill_batch++;
                l->fill_place = 0;
            }
            return true;
        }
        pthread_cond_wait(&l->slot_free, &l->lock);
    }
}

static void *work(void *argument) {
    stk_loader *l = argument;
    uint64_t batch;
    size_t place;
    pthread_mutex_lock(&l->lock);
    while (take_place(l, &batch, &place)) {
        pthread_mutex_unlock(&l->lock);
        slot *s = &l->slots[batch % (uint64_t)l->config.slots];
        stk_error err = {0};
        stk_status status = fill(l, s, batch, place, &err);
        pthread_mutex_lock(&l->lock);
        if (status != STK_OK) { /* the batch stays incomplete: nobody must get it */
            l->failure = l->failure.status == STK_OK ? err : l->failure;
            pthread_cond_broadcast(&l->slot_free);
            pthread_cond_signal(&l->slot_ready);
        } else if (--s->missing == 0) {
            s->state = SLOT_READY;
            pthread_cond_signal(&l->slot_ready);
        }
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static stk_status allocate(stk_loader *l, stk_error *err) {
    const stk_loader_config *c = &l->config;
    size_t slots = (size_t)c->slots;
    l->slots = stk_mem_new(slots, sizeof *l->slots);
    l->pixels = stk_mem_aligned(slots * c->batch * l->image_bytes);
    l->threads = stk_mem_new((size_t)c->workers, sizeof *l->threads);
    l->is_bad = stk_mem_new(c->count, sizeof *l->is_bad);
    bool good = l->slots != NULL && l->pixels != NULL && l->threads != NULL && l->is_bad != NULL;
    for (size_t i = 0; i < slots && good; i++) {
        slot *s = &l->slots[i];
        s->images = l->pixels + i * c->batch * l->image_bytes;
        s->labels = stk_mem_new(c->batch, sizeof *s->labels);
        s->samples = stk_mem_new(c->batch, sizeof *s->samples);
        s->bad = stk_mem_new(c->batch, sizeof *s->bad);
        s->batch = (stk_batch){
            .images = s->images, .labels = s->labels, .samples = s->samples, .bad = s->bad};
        good = s->labels != NULL && s->samples != NULL && s->bad != NULL;
    }
    return good ? STK_OK : STK_FAIL_MEMORY(err, "batches; a smaller --loader-memory may help");
}

stk_status stk_loader_start(stk_loader **out, const stk_loader_config *config, stk_error *err) {
    stk_loader *l = stk_mem_new(1, sizeof *l);
    if (l == NULL) {
        return STK_FAIL_MEMORY(err, "the loader");
    }
    l->config = *config;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->slot_free, NULL);
    pthread_cond_init(&l->slot_ready, NULL);
    bool drop = config->drop_last && config->count >= config->batch;
    l->per_epoch = (config->count + (drop ? 0 : config->batch - 1)) / config->batch;
    l->image_bytes = (size_t)config->transform.size * (size_t)config->transform.size * 3;
    stk_status status = allocate(l, err);
    for (int i = 0; i < config->workers && status == STK_OK; i++) {
        int failed = pthread_create(&l->threads[i], NULL, work, l);
        if (failed != 0) {
            status = STK_FAIL(err, STK_ERR_MEMORY, "cannot start %d loader threads: %s",
                              config->workers, strerror(failed));
        } else {
            l->started++;
        }
    }
    if (status != STK_OK) {
        stk_loader_close(l);
        return status;
    }
    *out = l;
    return STK_OK;
}

void stk_loader_close(stk_loader *l) {
    if (l == NULL) {
        return;
    }
    pthread_mutex_lock(&l->lock);
    l->quit = true;
    pthread_cond_broadcast(&l->slot_free);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->started; i++) {
        pthread_join(l->threads[i], NULL);
    }
    for (int i = 0; l->slots != NULL && i < l->config.slots; i++) {
        stk_mem_free(l->slots[i].labels);
        stk_mem_free(l->slots[i].samples);
        stk_mem_free(l->slots[i].bad);
    }
    for (size_t i = 0; i < l->bad_count; i++) {
        stk_mem_free(l->bad[i].reason);
    }
    pthread_cond_destroy(&l->slot_ready);
    pthread_cond_destroy(&l->slot_free);
    pthread_mutex_destroy(&l->lock);
    stk_mem_free(l->bad);
    stk_mem_free(l->is_bad);
    stk_mem_free(l->threads);
    stk_mem_free(l->pixels);
    stk_mem_free(l->slots);
    stk_mem_free(l);
}

stk_status stk_loader_next(stk_loader *l, const stk_batch **batch, stk_error *err) {
    *batch = NULL;
    if (is_past_end(l, l->read_batch)) {
        return STK_OK;
    }
    slot *s = &l->slots[l->read_batch % (uint64_t)l->config.slots];
    int64_t start = stk_clock_ns();
    pthread_mutex_lock(&l->lock);
    while (s->state != SLOT_READY && l->failure.status == STK_OK) {
        pthread_cond_wait(&l->slot_ready, &l->lock);
    }
    stk_status status = STK_OK;
    if (s->state == SLOT_READY) {
        s->state = SLOT_HELD;
    } else {
        status = STK_FAIL(err, l->failure.status, "%s", l->failure.message);
    }
    pthread_mutex_unlock(&l->lock);
    l->wait_ns += (uint64_t)(stk_clock_ns() - start);
    if (status == STK_OK) {
        l->read_batch++;
        *batch = &s->batch;
    }
    return status;
}

void stk_loader_release(stk_loader *l, const stk_batch *batch) {
    for (int i = 0; i < l->config.slots; i++) {
        if (&l->slots[i].batch == batch) {
            pthread_mutex_lock(&l->lock);
            l->slots[i].state = SLOT_FREE;
            pthread_cond_broadcast(&l->slot_free);
            pthread_mutex_unlock(&l->lock);
        }
    }
}

void stk_loader_describe(const stk_loader *l, stk_loader_info *info) {
    *info = (stk_loader_info){.samples = l->config.count,
                              .batches_per_epoch = l->per_epoch,
                              .batch = l->config.batch,
                              .size = l->config.transform.size};
}

void stk_loader_stats(const stk_loader *l, stk_loader_counters *counters) {
    *counters = (stk_loader_counters){.images = atomic_load(&l->images),
                                      .read_bytes = atomic_load(&l->bytes),
                                      .read_ns = atomic_load(&l->read_ns),
                                      .decode_ns = atomic_load(&l->decode_ns),
                                      .wait_ns = l->wait_ns,
                                      .bad = l->bad_count,
                                      .workers = l->config.workers,
                                      .slots = l->config.slots};
}

void stk_loader_take_bad(stk_loader *l,
                         void (*tell)(void *user, const char *path, const char *reason),
                         void *user) {
    for (;;) {
        bad_sample bad = {0};
        pthread_mutex_lock(&l->lock);
        bool more = l->bad_told < l->bad_count;
        if (more) {
            bad = l->bad[l->bad_told++];
        }
        pthread_mutex_unlock(&l->lock);
        if (!more) {
            return;
        }
        /* Outside of the lock: who is told may write files. The reason lives as the loader does. */
        tell(user, sample_at(l, bad.position)->path, bad.reason);
    }
}
