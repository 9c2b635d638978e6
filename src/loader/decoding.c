/* decoding.c - decodes a sample's bytes into its slot, or notes why that cannot be done. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "loader/pipeline.h"

/*
 * Puts a sample on the list of bad ones, once. `limit_ns` above 0: it is only slow, and does not
 * count towards --max-bad. Takes the lock.
 */
static stk_status remember_bad(stk_loader *l, size_t entry, const char *reason, int64_t limit_ns,
                               stk_error *err) {
    stk_status status = STK_OK;
    pthread_mutex_lock(&l->lock);
    if (l->is_bad[entry] == 0) {
        char *copy = stk_mem_strdup(reason);
        if (copy == NULL || !STK_RESERVE(l->bad, l->bad_capacity, l->bad_count + 1)) {
            stk_mem_free(copy);
            status = STK_FAIL_MEMORY(err, "the list of bad images");
        } else {
            l->bad[l->bad_count++] = (bad_sample){entry, copy, limit_ns};
            l->is_bad[entry] = 1;
            l->slow_bad += limit_ns > 0;
            atomic_store(&l->bads, l->bad_count);
        }
    }
    if (status == STK_OK && l->config.stop_after_bad > 0 &&
        l->bad_count - l->slow_bad >= l->config.stop_after_bad) {
        status = STK_FAIL(err, STK_ERR_DATA,
                          "%zu of %zu images cannot be used, more than --max-bad allows (a higher "
                          "one goes on without them); the first is %s: %s",
                          l->bad_count - l->slow_bad, l->config.count,
                          stk_loader_sample(l, l->bad[0].entry)->path, l->bad[0].reason);
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}

static void enter_library(decode_worker *w) {
    atomic_store(&w->whereabouts, WORKER_IN_LIBRARY);
}

/* False: the loader was closed meanwhile, and nothing that it borrowed may be touched. */
STK_CHECKED static bool leave_library(decode_worker *w) {
    return atomic_exchange(&w->whereabouts, WORKER_OUTSIDE) != WORKER_ABANDONED;
}

/* With --cache decoded: larger pictures are neither decoded as a whole nor cached. */
#define MOST_RAW_PIXELS (4 << 20)

/*
 * With --cache decoded: decodes the whole picture and makes *bytes its pixels. That happens even
 * where the cache is full, so that the result does not depend on what is in the cache.
 * `is_own_sample`: the bytes are those of the task's own sample, not of one that replaces a bad
 * picture. Only those are cached.
 */
static stk_status decode_whole(decode_worker *w, const loader_task *t, bool is_own_sample,
                               const stk_bytes **bytes, const stk_image_limit *limit,
                               stk_error *why) {
    int width;
    int height;
    stk_image image = {0};
    const stk_bytes *from = *bytes;
    const stk_transform *transform = &w->loader->config.transform;
    if (stk_transform_channels(transform) != 3 || transform->window.channels > 0 ||
        !stk_store_caches_decoded(w->loader->config.store) ||
        stk_image_is_raw(from->data, from->size)) {
        return STK_OK;
    }
    stk_status status = stk_image_size(from->data, from->size, &width, &height, why);
    if (status != STK_OK || (int64_t)width * height > MOST_RAW_PIXELS) {
        return status;
    }
    enter_library(w);
    status = stk_image_decode_within(from->data, from->size, limit, &image, why);
    STK_THEN(status, stk_image_encode_raw(&image, &w->raw, why));
    stk_image_free(&image);
    if (!leave_library(w)) {
        return STK_ERR_STOPPED;
    }
    if (status == STK_OK) {
        *bytes = &w->raw;
        if (is_own_sample) {
            stk_store_keep(w->loader->config.store, &t->item.read, w->raw.data, w->raw.size);
        }
    }
    return status;
}

/* Decodes and transforms into `out`, which belongs to a slot. */
static stk_status transform(decode_worker *w, const stk_bytes *bytes, const stk_image_limit *limit,
                            stk_rng rng, uint8_t *out, int64_t *augment_ns, stk_error *why) {
    const stk_loader *l = w->loader;
    uint8_t *square = w->square != NULL ? w->square : out;
    stk_image_scratch_limit(w->scratch, limit);
    enter_library(w);
    stk_status status = stk_transform_apply(w->scratch, &l->config.transform, bytes->data,
                                            bytes->size, rng, square, augment_ns, why);
    if (!leave_library(w)) {
        return STK_ERR_STOPPED;
    }
    if (status == STK_OK && square != out) {
        memcpy(out, square, l->image_bytes);
    }
    return status;
}

/* Sets the limit of the picture. True: the picture exceeded such a limit before, so decoding it
 * again would give the same result, only later. */
static bool is_known_slow(decode_worker *w, size_t entry) {
    stk_loader *l = w->loader;
    w->limit_ns = stk_loader_picture_limit_ns(l);
    return w->limit_ns > 0 && l->config.order.replace_bad && atomic_load(&l->slow_total) > 0 &&
           stk_loader_is_slow(l, entry, w->limit_ns);
}

/* In training a slow picture is listed as bad, elsewhere it is put aside. */
static stk_status give_up_slow(decode_worker *w, size_t entry, stk_error *err) {
    stk_loader *l = w->loader;
    char reason[160];
    if (!l->config.order.replace_bad) {
        return stk_loader_put_aside(l, entry, err);
    }
    atomic_fetch_add(&l->slow_total, 1);
    snprintf(reason, sizeof reason,
             "it takes more than %.2g s to decode, too long for the time that there is: scale it "
             "down",
             (double)w->limit_ns / STK_NS_PER_S);
    return remember_bad(l, entry, reason, w->limit_ns, err);
}

stk_rng stk_worker_rng(const stk_loader *l, const loader_task *t) {
    size_t position = (size_t)(t->batch % l->epoch_batches) * l->config.batch + t->row;
    return stk_rng_make(l->config.seed, STK_RNG_AUGMENT, t->batch / l->epoch_batches,
                        stk_sampler_global(l->sampler, position));
}

stk_status stk_worker_decode(decode_worker *w, const loader_task *t, size_t entry,
                             const stk_bytes *bytes, stk_error *why, uint8_t *out, bool *good,
                             stk_error *err) {
    stk_loader *l = w->loader;
    *good = false;
    if (why->status == STK_OK && is_known_slow(w, entry)) {
        return STK_OK;
    }
    if (why->status == STK_OK) {
        stk_rng rng = stk_worker_rng(l, t);
        int64_t start = stk_clock_ns();
        int64_t cpu_ns = stk_clock_cpu_ns();
        int64_t augment_ns = 0;
        bool is_own_sample = bytes == &t->item.read.bytes;
        stk_image_limit limit = {
            .cancelled = &l->cancelled, .cpu_ns = w->limit_ns, .wall_ns = w->limit_ns};
        *good = decode_whole(w, t, is_own_sample, &bytes, &limit, why) == STK_OK &&
                transform(w, bytes, &limit, rng, out, &augment_ns, why) == STK_OK;
        uint64_t decode_ns = (uint64_t)(stk_clock_ns() - start - augment_ns);
        atomic_fetch_add(&l->decode_ns, decode_ns);
        atomic_fetch_add(&l->augment_ns, (uint64_t)augment_ns);
        atomic_fetch_add(&l->good_ns, *good ? (uint64_t)(stk_clock_cpu_ns() - cpu_ns) : 0);
        atomic_fetch_add(&l->source_px, *good ? stk_image_scratch_source_px(w->scratch) : 0);
    }
    if (*good) {
        atomic_fetch_add(&l->images, 1);
        return STK_OK;
    }
    bool cancelled = atomic_load(&l->cancelled);
    if (why->status == STK_ERR_STOPPED && !cancelled && w->limit_ns > 0) {
        return give_up_slow(w, entry, err);
    }
    if (why->status == STK_ERR_MEMORY || why->status == STK_ERR_INTERNAL || cancelled) {
        return STK_FAIL(err, cancelled ? STK_ERR_STOPPED : why->status, "%s", why->message);
    }
    return remember_bad(l, entry, why->message, 0, err);
}
