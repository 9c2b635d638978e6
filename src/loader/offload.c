/*
 * offload.c - rows that a device decodes.
 *
 * A worker plans a picture and offers it with its bytes; the device's thread ends the task. The
 * bytes stay with the task, so that a picture that the device could not decode becomes ready once
 * more, for the CPU. Where the device has no room, a worker decodes the picture itself if the
 * consumer is out of batches; otherwise there is time to wait for the device, which takes less of
 * the machine. A device that decodes with the processors that the network needs gets pictures only
 * while there is no batch.
 */
#include "loader/pipeline.h"

#include "base/clock.h"
#include "base/threads/thread.h"

/* How long a worker waits before it offers a picture again. */
#define RETRY_NS 200000

/* How long a worker sleeps when the device has no room. A group of pictures takes it longer. */
#define DEVICE_WAIT_NS 1000000

/* Workers that at first only feed the device. */
#define FEEDERS 3

/* The device's thread: a square is complete, or was not made. */
static void end_picture(void *user, bool good) {
    loader_task *t = user;
    stk_loader *l = t->loader;
    pthread_mutex_lock(&l->lock);
    if (good) {
        batch_slot *s = l->ring[t->batch % (uint64_t)l->config.sizing.room_slots];
        atomic_fetch_add(&l->images, 1);
        atomic_fetch_add(&l->device_images, 1);
        atomic_fetch_add(&l->source_px, t->source_px);
        stk_tasks_finish(l, t, s, STK_OK, NULL);
    } else {
        atomic_fetch_add(&l->device_failed, 1);
        t->is_for_cpu = true;
        if (l->paused || l->quit) {
            stk_tasks_drop(l, t);
        } else {
            stk_read_ahead_make_ready(&l->ahead, &t->item);
        }
    }
    pthread_mutex_unlock(&l->lock);
}

/* Under the lock: whether the device has better things to do than decoding. */
static bool is_spared(const stk_loader *l) {
    return l->config.decoder.is_sparing && !l->config.device_first &&
           stk_loader_ready_batch(l) != NULL;
}

static bool is_spared_now(stk_loader *l) {
    if (!l->config.decoder.is_sparing) {
        return false;
    }
    pthread_mutex_lock(&l->lock);
    bool spared = is_spared(l);
    pthread_mutex_unlock(&l->lock);
    return spared;
}

/* Whether the task's own sample may be offered: it was read, and its bytes are those of a file. */
static bool may_offer(stk_loader *l, const loader_task *t) {
    const stk_device_decoder *decoder = &l->config.decoder;
    return decoder->state != NULL && !t->is_for_cpu && t->item.read.path != NULL &&
           t->item.read.error.status == STK_OK && t->item.read.bytes.size <= decoder->most_bytes &&
           !stk_store_caches_decoded(l->config.store) &&
           decoder->mood(decoder->state) != STK_OFFER_REFUSED && !is_spared_now(l);
}

/* Under the lock: whether one more worker may decode what the device has no room for. */
static bool has_core(const stk_loader *l) {
    return !l->config.device_first && l->on_cores < l->beside.cores &&
           stk_loader_ready_batch(l) == NULL;
}

/* Whether the worker decodes a picture that the device has no room for. */
static bool take_core(decode_worker *w) {
    stk_loader *l = w->loader;
    pthread_mutex_lock(&l->lock);
    w->has_core = has_core(l);
    l->on_cores += w->has_core;
    bool decodes = w->has_core || is_spared(l);
    pthread_mutex_unlock(&l->lock);
    return decodes;
}

void stk_loader_leave_core(decode_worker *w) {
    w->loader->on_cores -= w->has_core;
    w->has_core = false;
}

/* Under the lock: waits for room on the device. Signals for ready tasks may be lost meanwhile: the
 * worker looks for tasks soon. */
static void wait_for_room(stk_loader *l, int64_t ns) {
    int64_t start = stk_clock_ns();
    (void)stk_cond_wait_until(&l->work, &l->lock, start + ns);
    atomic_fetch_add(&l->slot_wait_ns, (uint64_t)(stk_clock_ns() - start));
}

static void wait_a_moment(stk_loader *l) {
    pthread_mutex_lock(&l->lock);
    wait_for_room(l, RETRY_NS);
    pthread_mutex_unlock(&l->lock);
}

/* The device may have been idle, or at work for another loader, before this one began. */
void stk_loader_begin_sharing(stk_loader *l) {
    const stk_device_decoder *decoder = &l->config.decoder;
    stk_device_decoder_counts counts = {0};
    int workers = l->config.sizing.workers;
    if (decoder->state != NULL) {
        decoder->counts(decoder->state, &counts);
    }
    l->idle_ns = counts.idle_ns;
    l->beside.cores = workers > FEEDERS ? workers - FEEDERS : 1;
}

void stk_loader_share_cores(stk_loader *l, double seconds, double wait_s) {
    const stk_device_decoder *decoder = &l->config.decoder;
    stk_device_decoder_counts counts;
    if (decoder->state == NULL) {
        return;
    }
    decoder->counts(decoder->state, &counts);
    uint64_t images = atomic_load(&l->images);
    stk_core_reading reading = {.seconds = seconds,
                                .wait_s = wait_s,
                                .idle_s = (double)(counts.idle_ns - l->idle_ns) * 1e-9,
                                .images = (double)(images - l->judged_images),
                                .workers = atomic_load(&l->wanted)};
    l->idle_ns = counts.idle_ns;
    l->judged_images = images;
    pthread_mutex_lock(&l->lock);
    stk_core_share_judge(&l->beside, &reading);
    pthread_mutex_unlock(&l->lock);
}

stk_status stk_worker_offload(decode_worker *w, loader_task *t, batch_slot *s, bool *taken,
                              stk_error *err) {
    stk_loader *l = w->loader;
    const stk_device_decoder *decoder = &l->config.decoder;
    const stk_bytes *bytes = &t->item.read.bytes;
    stk_picture_plan plan;
    bool able = false;
    *taken = false;
    if (!may_offer(l, t)) {
        return STK_OK;
    }
    stk_status status = stk_transform_plan(w->scratch, &l->config.transform, bytes->data,
                                           bytes->size, stk_worker_rng(l, t), &plan, &able, err);
    if (status != STK_OK || !able) {
        return status;
    }
    status = stk_tasks_check_fingerprint(l, stk_loader_sample(l, t->entry), bytes, err);
    if (status != STK_OK) {
        return status;
    }
    stk_tasks_fill_beside(l, s, t->row, t->entry);
    s->bad[t->row] = false;
    stk_device_picture picture = {.bytes = bytes->data,
                                  .size = bytes->size,
                                  .plan = &plan,
                                  .out = s->images + t->row * l->image_bytes,
                                  .block = s->images,
                                  .done = end_picture,
                                  .user = t,
                                  .owner = l};
    t->source_px = stk_image_scratch_source_px(w->scratch);
    stk_offer answer = decoder->offer(decoder->state, &picture);
    while (answer == STK_OFFER_FULL && !atomic_load(&l->cancelled) && !take_core(w)) {
        wait_a_moment(l);
        answer = decoder->offer(decoder->state, &picture);
    }
    *taken = answer == STK_OFFER_TAKEN;
    return STK_OK;
}

/* Whether the CPU decodes a picture in any case, as far as that is known without its header. */
static bool is_for_cpu(const loader_task *t) {
    const stk_bytes *bytes = &t->item.read.bytes;
    bool is_jpeg = bytes->size > 2 && bytes->data[0] == 0xFF && bytes->data[1] == 0xD8;
    return t->is_for_cpu || !is_jpeg;
}

bool stk_loader_leave_to_device(stk_loader *l) {
    const stk_device_decoder *decoder = &l->config.decoder;
    const loader_task *next = stk_tasks_of(l->ahead.ready);
    bool waits = decoder->state != NULL && !l->paused && !(next != NULL && is_for_cpu(next)) &&
                 !is_spared(l) && !has_core(l) && decoder->mood(decoder->state) == STK_OFFER_FULL;
    if (waits) {
        wait_for_room(l, DEVICE_WAIT_NS);
    }
    return waits;
}

void stk_loader_check_device(const stk_loader *l) {
    const stk_device_decoder *decoder = &l->config.decoder;
    if (decoder->state != NULL) {
        decoder->check(decoder->state);
    }
}
