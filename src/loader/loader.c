/*
 * loader.c - starts a loader; the consumer's side of the ring.
 *
 * Batch b, counted over all epochs, is in the slot ring[b mod room_slots]. The consumer waits only
 * when its batch is not complete, workers only when no slot is free or no bytes have arrived. At
 * most four times a second stk_loader_next() lets the tuner change the number of workers and slots.
 */
#include "loader/loader.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/threads/thread.h"
#include "loader/pipeline.h"

/* Reads under way at first; they double when workers have no bytes. There are enough that a reader
 * which waits for a core does not leave the workers without bytes. */
#define FIRST_WINDOW 16
#define FIRST_FAR_WINDOW 64
#define WINDOW_PER_WORKER 4

/* Pictures that are with the device count as under way, and it works on groups. */
#define DEVICE_WINDOW 256

/* Memory of a request over the network besides the picture: a connection and its buffers. */
#define REQUEST_BYTES 65536

/* How long the consumer watches before it tunes. */
#define TUNE_NS 250000000

/* How often a waiting consumer asks whether to go on waiting. */
#define HALT_NS 50000000

/* ---- starting ---- */

static stk_sampler_config sampler_config(const stk_loader_config *c) {
    return (stk_sampler_config){.count = c->count,
                                .weights = c->weights,
                                .sampling = c->sampling,
                                .shuffle = c->order.shuffle,
                                .seed = c->seed,
                                .rank = c->rank,
                                .world = c->world,
                                .equal_shares = c->order.drop_last};
}

static stk_status open_sampler(stk_loader *l, stk_error *err) {
    const stk_loader_config *c = &l->config;
    stk_sampler_config config = sampler_config(c);
    int *labels = NULL;
    if (stk_sampling_is_by_class(c->sampling)) {
        labels = stk_mem_raw(c->count, sizeof *labels);
        if (labels == NULL) {
            return STK_FAIL_MEMORY(err, "sampling");
        }
        for (size_t i = 0; i < c->count; i++) {
            labels[i] = stk_loader_sample(l, i)->label;
        }
        config.labels = labels;
    }
    stk_status status = stk_sampler_new(&l->sampler, &config, err);
    stk_mem_free(labels);
    l->config.weights = NULL;
    return status;
}

static void measure_epoch(stk_loader *l) {
    const stk_loader_config *c = &l->config;
    l->epoch_samples = stk_sampler_count(l->sampler);
    bool drop = c->order.drop_last && l->epoch_samples >= c->batch;
    l->epoch_batches = (l->epoch_samples + (drop ? 0 : c->batch - 1)) / c->batch;
}

static stk_status allocate(stk_loader *l, stk_error *err) {
    const stk_loader_config *c = &l->config;
    size_t slots = (size_t)c->sizing.room_slots;
    size_t tasks = c->sizing.most_reads;
    l->slots = stk_mem_new(slots, sizeof *l->slots);
    l->ring = stk_mem_new(slots, sizeof *l->ring);
    l->tasks = stk_mem_new(tasks, sizeof *l->tasks);
    l->workers = stk_mem_new((size_t)c->sizing.room_workers, sizeof *l->workers);
    l->is_bad = stk_mem_new(c->count, sizeof *l->is_bad);
    bool good = l->slots != NULL && l->ring != NULL && l->tasks != NULL && l->workers != NULL &&
                l->is_bad != NULL;
    for (size_t i = 0; i < tasks && good; i++) {
        l->tasks[i].loader = l;
        l->tasks[i].next = l->free_tasks;
        l->free_tasks = &l->tasks[i];
    }
    return good ? STK_OK
                : STK_FAIL_MEMORY(err, "the loader; a smaller --batch or --prefetch may help");
}

static int larger(int a, int b) {
    return a > b ? a : b;
}

/* Fills in the fields of a sizing that are zero. */
static void complete_sizing(stk_loader_sizing *sizing) {
    sizing->workers = larger(sizing->workers, 1);
    sizing->most_workers = larger(sizing->most_workers, sizing->workers);
    sizing->slots = larger(sizing->slots, STK_LOADER_LEAST_SLOTS);
    sizing->most_slots = larger(sizing->most_slots, sizing->slots);
    sizing->room_workers = larger(sizing->room_workers, sizing->most_workers);
    sizing->room_slots = larger(sizing->room_slots, sizing->most_slots);
    sizing->most_reads = sizing->most_reads > 0 ? sizing->most_reads : FIRST_WINDOW;
    sizing->read_memory = sizing->read_memory > 0 ? sizing->read_memory : UINT64_MAX;
}

static void init_threads(stk_loader *l) {
    pthread_mutex_init(&l->lock, NULL);
    stk_cond_init(&l->heavy_ends);
    stk_cond_init(&l->work);
    pthread_cond_init(&l->parked, NULL);
    stk_cond_init(&l->ready);
}

/* Batches are counted over all epochs in 64 bits. */
static stk_status check_target(const stk_loader *l, uint64_t epoch, size_t batch, stk_error *err) {
    if (batch >= l->epoch_batches) {
        return STK_FAIL(err, STK_ERR_USAGE, "an epoch has %zu batches: there is no batch %zu",
                        l->epoch_batches, batch);
    }
    if (epoch >= UINT64_MAX / l->epoch_batches) {
        return STK_FAIL(err, STK_ERR_USAGE, "there is no epoch %llu", (unsigned long long)epoch);
    }
    return STK_OK;
}

/* The mean size of some samples; 0: the store does not know sizes before it reads. */
static double expect_bytes(const stk_loader *l) {
    size_t count = l->config.count < FIRST_WINDOW ? l->config.count : FIRST_WINDOW;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        const char *path = stk_loader_sample(l, i * l->config.count / count)->path;
        sum += path != NULL ? (double)stk_store_size(l->config.store, path) : 0;
    }
    return sum / (double)count;
}

static stk_status begin(stk_loader *l, stk_error *err) {
    const stk_loader_sizing *sizing = &l->config.sizing;
    bool remote = stk_store_is_remote(l->config.store);
    l->tuner = (stk_tuner){.most_workers = sizing->most_workers,
                           .most_slots = sizing->most_slots,
                           .fix_workers = !sizing->tune_workers,
                           .fix_slots = !sizing->tune_slots};
    atomic_store(&l->wanted, sizing->workers);
    atomic_store(&l->slot_count, sizing->slots);
    stk_loader_begin_sharing(l);
    size_t window = WINDOW_PER_WORKER * (size_t)sizing->workers;
    size_t least = remote ? FIRST_FAR_WINDOW : FIRST_WINDOW;
    least += l->config.decoder.state != NULL ? DEVICE_WINDOW : 0;
    stk_read_ahead_config reading = {.store = l->config.store,
                                     .lock = &l->lock,
                                     .work = &l->work,
                                     .window = window > least ? window : least,
                                     .most_window = sizing->most_reads,
                                     .memory = sizing->read_memory,
                                     .request_bytes = remote ? REQUEST_BYTES : 0,
                                     .arrived = stk_tasks_read_arrived,
                                     .issue = stk_tasks_issue,
                                     .user = l};
    l->issue_batch = l->config.order.first_epoch * l->epoch_batches + l->config.order.first_batch;
    l->next_batch = l->issue_batch;
    l->read_at_ns = stk_clock_ns();
    stk_status status =
        check_target(l, l->config.order.first_epoch, l->config.order.first_batch, err);
    if (status == STK_OK) {
        stk_store_bound(l->config.store, sizing->read_memory);
        status = stk_read_ahead_open(&l->ahead, &reading, expect_bytes(l), err);
    }
    if (status == STK_OK) {
        pthread_mutex_lock(&l->lock);
        stk_tasks_issue(l);
        status = stk_workers_start(l, err);
        pthread_mutex_unlock(&l->lock);
    }
    return status;
}

stk_status stk_loader_start(stk_loader **out, const stk_loader_config *config, stk_error *err) {
    stk_loader *l = stk_mem_new(1, sizeof *l);
    if (l == NULL) {
        return STK_FAIL_MEMORY(err, "the loader");
    }
    l->config = *config;
    l->references = 1;
    complete_sizing(&l->config.sizing);
    l->image_bytes = (size_t)config->transform.size * (size_t)config->transform.size *
                     (size_t)stk_transform_channels(&config->transform);
    init_threads(l);
    stk_status status = open_sampler(l, err);
    if (status == STK_OK) {
        measure_epoch(l);
        status = allocate(l, err);
    }
    STK_THEN(status, begin(l, err));
    if (status != STK_OK) {
        stk_loader_close(l);
        return status;
    }
    *out = l;
    return STK_OK;
}

/* ---- the consumer ---- */

static void set_size(stk_loader *l, int workers, int slots) {
    pthread_mutex_lock(&l->lock);
    atomic_store(&l->wanted, workers);
    atomic_store(&l->slot_count, slots);
    stk_error err = {0};
    if (stk_workers_start(l, &err) != STK_OK) {
        atomic_store(&l->wanted, l->started); /* the system refuses more: go on with these */
        l->tuner.most_workers = l->started;
    }
    pthread_cond_broadcast(&l->parked);
    stk_tasks_issue(l);
    pthread_mutex_unlock(&l->lock);
}

/* Reads the counters every quarter of a second at most, and follows the tuner's advice. */
static void tune(stk_loader *l) {
    int64_t now = stk_clock_ns();
    if (now - l->read_at_ns < TUNE_NS) {
        return;
    }
    stk_loader_counters c = stk_loader_counters_of(l);
    uint64_t full_ns = atomic_load(&l->full_wait_ns);
    double idle_s = (double)(c.read_wait_ns - l->last_reading.read_wait_ns) * 1e-9 +
                    (double)(c.slot_wait_ns - l->last_reading.slot_wait_ns) * 1e-9;
    double full_s = (double)(full_ns - l->last_full_ns) * 1e-9;
    stk_tuner_reading reading = {.seconds = (double)(now - l->read_at_ns) * 1e-9,
                                 .wait_s = (double)(c.wait_ns - l->last_reading.wait_ns) * 1e-9,
                                 .full_wait_s = full_s,
                                 .other_wait_s = idle_s > full_s ? idle_s - full_s : 0,
                                 .workers = c.workers,
                                 .slots = c.slots};
    stk_loader_share_cores(l, reading.seconds, reading.wait_s);
    stk_tuner_advice advice = stk_tuner_judge(&l->tuner, &reading);
    l->read_at_ns = now;
    l->last_reading = c;
    l->last_full_ns = full_ns;
    if (advice.workers != c.workers || advice.slots != c.slots) {
        set_size(l, advice.workers, advice.slots);
    }
}

/* Nothing can be filled until the consumer releases a batch. */
static bool holds_all_slots(const stk_loader *l) {
    int count = atomic_load(&l->slot_count);
    for (int i = 0; i < l->config.sizing.room_slots; i++) {
        bool held = l->slots[i].state == SLOT_HELD;
        if (!held && (i < count || l->slots[i].state != SLOT_FREE)) {
            return false;
        }
    }
    return true;
}

/* The loader's progress as a waiting consumer has seen it. */
typedef struct progress {
    uint64_t images;
    uint64_t read_bytes;
    int64_t since_ns; /* when it last changed */
} progress;

/* Whether config.halt ends the wait or, after a stop request, nothing has arrived for
 * STK_STORAGE_STOP_S. */
static bool must_halt(const stk_loader *l, progress *seen) {
    const stk_halt *halt = &l->config.halt;
    progress now = {.images = atomic_load(&l->images),
                    .read_bytes = atomic_load(&l->read_bytes),
                    .since_ns = stk_clock_ns()};
    if (now.images != seen->images || now.read_bytes != seen->read_bytes || seen->since_ns == 0) {
        *seen = now;
    }
    bool stuck = (double)(now.since_ns - seen->since_ns) * 1e-9 > STK_STORAGE_STOP_S;
    return (halt->asked != NULL && halt->asked(halt->user)) ||
           (stuck && stk_stop_asked(l->config.stop) != STK_STOP_NONE);
}

/* Under the lock: waits for a change; false when must_halt() says so. */
static bool wait_for_change(stk_loader *l, progress *seen) {
    if (l->config.halt.asked == NULL && l->config.stop == NULL && l->config.decoder.state == NULL &&
        !stk_store_tells(l->config.store)) {
        pthread_cond_wait(&l->ready, &l->lock);
        return true;
    }
    if (stk_cond_wait_until(&l->ready, &l->lock, stk_clock_ns() + HALT_NS)) {
        return true;
    }
    pthread_mutex_unlock(&l->lock); /* observers may write files */
    stk_store_tell_outage(l->config.store);
    stk_loader_check_device(l);
    pthread_mutex_lock(&l->lock);
    return !must_halt(l, seen);
}

/* Under the lock: waits for the consumer's next batch; NULL when it will not come. */
static batch_slot *wait_for_batch(stk_loader *l, bool *halted) {
    progress seen = {0};
    for (;;) {
        batch_slot *s = stk_loader_ready_batch(l);
        if (s != NULL) {
            return s;
        }
        if (l->failure.status != STK_OK || holds_all_slots(l) || *halted) {
            return NULL;
        }
        *halted = !wait_for_change(l, &seen);
    }
}

stk_status stk_loader_next(stk_loader *l, const stk_batch **batch, stk_error *err) {
    *batch = NULL;
    if (stk_loader_is_past_end(l, l->next_batch)) {
        return STK_OK;
    }
    stk_status status = STK_OK;
    int64_t start = stk_clock_ns();
    pthread_mutex_lock(&l->lock);
    bool halted = false;
    batch_slot *s = wait_for_batch(l, &halted);
    int64_t ready_ns = stk_clock_ns();
    if (s != NULL) {
        ready_ns = s->ready_ns > start ? s->ready_ns : start;
        s->state = SLOT_HELD;
        atomic_fetch_sub(&l->batches_ready, 1);
        l->next_batch++;
    } else if (l->failure.status != STK_OK) {
        status = STK_FAIL(err, l->failure.status, "%s", l->failure.message);
    } else if (halted) {
        status = STK_FAIL(err, STK_ERR_STOPPED, "stopped while waiting for pictures");
    } else {
        status = STK_FAIL(err, STK_ERR_USAGE,
                          "all %d batches of the loader are held: release one before the next",
                          atomic_load(&l->slot_count));
    }
    pthread_mutex_unlock(&l->lock);
    int64_t end = stk_clock_ns();
    atomic_fetch_add(&l->wait_ns, (uint64_t)(end - start));
    atomic_fetch_add(&l->hand_over_ns, (uint64_t)(end - ready_ns));
    if (status == STK_OK) {
        *batch = &s->batch;
        atomic_fetch_add(&l->batches, 1);
        stk_store_tell_outage(l->config.store); /* an outage may have ended */
        tune(l);
    }
    return status;
}

void stk_loader_release(stk_loader *l, const stk_batch *batch) {
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < l->config.sizing.room_slots; i++) {
        if (&l->slots[i].batch == batch && l->slots[i].state == SLOT_HELD) {
            l->slots[i].state = SLOT_FREE;
            stk_tasks_issue(l);
        }
    }
    pthread_mutex_unlock(&l->lock);
}

/* Under the lock: ends everything that is under way. */
static void drain(stk_loader *l) {
    l->paused = true;
    atomic_store(&l->cancelled, true);
    pthread_cond_broadcast(&l->heavy_ends);
    stk_read_ahead_cancel(&l->ahead);
    for (stk_read_ahead_item *item = NULL; (item = stk_read_ahead_take(&l->ahead)) != NULL;) {
        stk_tasks_drop(l, stk_tasks_of(item));
    }
    while (l->ahead.under_way > 0 && l->failure.status == STK_OK) {
        if (!stk_cond_wait_until(&l->ready, &l->lock, stk_clock_ns() + HALT_NS)) {
            pthread_mutex_unlock(&l->lock);
            stk_loader_check_device(l);
            pthread_mutex_lock(&l->lock);
        }
    }
    atomic_store(&l->cancelled, false);
    l->paused = false;
}

/* Goes on from a batch, counted over all epochs, with *sampler; *sampler becomes the old one. */
static stk_status restart(stk_loader *l, uint64_t batch, stk_sampler **sampler, stk_error *err) {
    stk_status status = STK_OK;
    pthread_mutex_lock(&l->lock);
    drain(l);
    if (l->failure.status != STK_OK) {
        status = STK_FAIL(err, l->failure.status, "%s", l->failure.message);
    } else {
        stk_sampler *old = l->sampler;
        l->sampler = *sampler;
        *sampler = old;
        for (int i = 0; i < l->config.sizing.room_slots; i++) {
            l->slots[i].state = SLOT_FREE;
            l->ring[i] = NULL;
        }
        atomic_store(&l->batches_ready, 0);
        l->next_batch = batch;
        l->issue_batch = batch;
        l->issue_row = 0;
        stk_tasks_issue(l);
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}

stk_status stk_loader_seek(stk_loader *l, uint64_t epoch, size_t batch, stk_error *err) {
    stk_sampler *same = l->sampler;
    stk_status status = check_target(l, epoch, batch, err);
    return status == STK_OK ? restart(l, epoch * l->epoch_batches + batch, &same, err) : status;
}

stk_status stk_loader_weigh(stk_loader *l, const double *weights, size_t count, stk_error *err) {
    stk_sampler_config config = sampler_config(&l->config);
    stk_sampler *sampler = NULL;
    stk_status status = STK_OK;
    double *chosen = stk_mem_raw(l->config.count, sizeof *chosen);
    if (chosen == NULL) {
        return STK_FAIL_MEMORY(err, "sampling");
    }
    for (size_t i = 0; i < l->config.count && status == STK_OK; i++) {
        size_t number = (size_t)(stk_loader_sample(l, i) - l->config.samples);
        if (number < count) {
            chosen[i] = weights[number];
        } else {
            status = STK_FAIL(err, STK_ERR_USAGE, "sample %zu has no weight: there are %zu weights",
                              number, count);
        }
    }
    config.sampling = STK_SAMPLING_WEIGHTED;
    config.weights = chosen;
    STK_THEN(status, stk_sampler_new(&sampler, &config, err));
    STK_THEN(status, restart(l, 0, &sampler, err));
    stk_sampler_free(sampler);
    stk_mem_free(chosen);
    return status;
}

/* The number asked for, within least and most; 0: the present one. */
static int fit(int asked, int least, int most, int now) {
    int wanted = asked > least ? asked : least;
    return asked <= 0 ? now : wanted < most ? wanted : most;
}

void stk_loader_resize(stk_loader *l, int *workers, int *slots) {
    const stk_loader_sizing *sizing = &l->config.sizing;
    int now_workers = atomic_load(&l->wanted);
    int now_slots = atomic_load(&l->slot_count);
    l->tuner.fix_workers = l->tuner.fix_workers || *workers > 0;
    l->tuner.fix_slots = l->tuner.fix_slots || *slots > 0;
    *workers = fit(*workers, 1, sizing->room_workers, now_workers);
    *slots = fit(*slots, STK_LOADER_LEAST_SLOTS, sizing->room_slots, now_slots);
    if (*workers != now_workers || *slots != now_slots) {
        set_size(l, *workers, *slots);
    }
    *workers = atomic_load(&l->wanted);
    *slots = atomic_load(&l->slot_count);
}

/* ---- accessors ---- */

stk_loader_info stk_loader_info_of(const stk_loader *l) {
    return (stk_loader_info){.size = sizeof(stk_loader_info),
                             .samples = l->epoch_samples,
                             .batches_per_epoch = l->epoch_batches,
                             .batch = l->config.batch,
                             .img_size = l->config.transform.size,
                             .channels = stk_transform_channels(&l->config.transform),
                             .classes =
                                 l->folder.dataset != NULL ? l->folder.dataset->class_count : 0};
}

const size_t *stk_loader_entries(const stk_batch *batch) {
    return ((const batch_slot *)(const void *)batch)->entries;
}

stk_store *stk_loader_store(const stk_loader *l) {
    return l->config.store;
}

stk_loader_counters stk_loader_counters_of(const stk_loader *l) {
    return (stk_loader_counters){.size = sizeof(stk_loader_counters),
                                 .images = atomic_load(&l->images),
                                 .batches = atomic_load(&l->batches),
                                 .bad = atomic_load(&l->bads),
                                 .read_bytes = atomic_load(&l->read_bytes),
                                 .read_ns = atomic_load(&l->read_ns),
                                 .decode_ns = atomic_load(&l->decode_ns),
                                 .augment_ns = atomic_load(&l->augment_ns),
                                 .read_wait_ns = atomic_load(&l->read_wait_ns),
                                 .slot_wait_ns = atomic_load(&l->slot_wait_ns),
                                 .wait_ns = atomic_load(&l->wait_ns),
                                 .hand_over_ns = atomic_load(&l->hand_over_ns),
                                 .source_px = atomic_load(&l->source_px),
                                 .reads_in_flight = atomic_load(&l->ahead.in_flight),
                                 .reads_ready = atomic_load(&l->ahead.ready_count),
                                 .batches_ready = atomic_load(&l->batches_ready),
                                 .workers = atomic_load(&l->wanted),
                                 .readers = stk_store_threads(l->config.store),
                                 .slots = atomic_load(&l->slot_count),
                                 .device_images = atomic_load(&l->device_images),
                                 .device_failed = atomic_load(&l->device_failed)};
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
        /* Outside of the lock: `tell` may write files. */
        tell(user, stk_loader_sample(l, bad.entry)->path, bad.reason);
    }
}
