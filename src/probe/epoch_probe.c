/*
 * epoch_probe.c - a consumer with a rate.
 *
 * The consumer sleeps instead of working on a batch. On a busy machine a sleeper wakes up late,
 * which must not look like a slow loader. So the moments at which the consumer is free again are
 * computed from its waits and its work, and after a late wake-up the next sleep is shorter.
 */
#include "probe/epoch_probe.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "loader/folder_samples.h"
#include "loader/loader.h"
#include "probe/loader_device.h"
#include "probe/own_use.h"

/* How long a consumer sleeps without looking whether it should stop. */
#define NAP_NS 50000000

/* Readings from which an epoch's figures are differences. */
typedef struct counter_reading {
    int64_t ns;
    uint64_t read_bytes;
    stk_store_counters store;
} counter_reading;

typedef struct epoch_probe {
    stk_loader_device device; /* owned */
    stk_loader *loader;
    const stk_stop *stop; /* borrowed */
    double rate;
    int64_t start_ns;
    int64_t free_ns;        /* when the consumer has done its work so far */
    int64_t waited_ns;      /* in this epoch */
    uint64_t images;        /* of this epoch */
    counter_reading before; /* at its begin */
} epoch_probe;

static stk_status check_stop(const epoch_probe *p, stk_error *err) {
    return stk_stop_asked(p->stop) == STK_STOP_NONE
               ? STK_OK
               : STK_FAIL(err, STK_ERR_STOPPED, "stopped before the measurement was complete");
}

static counter_reading take_reading(const epoch_probe *p) {
    counter_reading r = {.ns = stk_clock_ns()};
    stk_loader_counters counters = stk_loader_counters_of(p->loader);
    stk_store_stats(stk_loader_store(p->loader), &r.store);
    r.read_bytes = counters.read_bytes;
    return r;
}

static stk_status sleep_until(const epoch_probe *p, int64_t end_ns, stk_error *err) {
    stk_status status = check_stop(p, err);
    for (int64_t now = stk_clock_ns(); status == STK_OK && now < end_ns; now = stk_clock_ns()) {
        int64_t until = end_ns - now < NAP_NS ? end_ns : now + NAP_NS;
        struct timespec at = {.tv_sec = until / STK_NS_PER_S, .tv_nsec = until % STK_NS_PER_S};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        status = check_stop(p, err);
    }
    return status;
}

/* Takes a batch and works on it; *last says whether it was the last one of its epoch. */
static stk_status consume(epoch_probe *p, int64_t asked_ns, bool *ended, bool *last,
                          stk_error *err) {
    const stk_batch *batch = NULL;
    stk_loader_info info;
    stk_status status = check_stop(p, err);
    STK_THEN(status, stk_loader_next(p->loader, &batch, err));
    *ended = batch == NULL;
    *last = false;
    if (status != STK_OK || batch == NULL) {
        return status;
    }
    int64_t waited = stk_clock_ns() - asked_ns;
    p->waited_ns += waited;
    p->images += batch->count;
    if (p->rate > 0) {
        p->free_ns += waited + (int64_t)((double)batch->count / p->rate * STK_NS_PER_S);
        status = sleep_until(p, p->free_ns, err);
    }
    info = stk_loader_info_of(p->loader);
    *last = batch->index + 1 == info.batches_per_epoch;
    stk_loader_release(p->loader, batch);
    return status;
}

/* Adds the epoch that has just ended. */
static stk_status close_epoch(epoch_probe *p, stk_epoch_list *list, stk_error *err) {
    if (!STK_RESERVE(list->items, list->capacity, list->count + 1)) {
        return STK_FAIL_MEMORY(err, "the figures");
    }
    counter_reading now = take_reading(p);
    const counter_reading *before = &p->before;
    double seconds = (double)(now.ns - before->ns) / STK_NS_PER_S;
    list->items[list->count] = (stk_epoch_figures){
        .epoch = (int64_t)list->count,
        .seconds = seconds,
        .images_per_second = (double)p->images / seconds,
        .wait_fraction = (double)p->waited_ns / STK_NS_PER_S / seconds,
        .images = (int64_t)p->images,
        .read_bytes = (int64_t)(now.read_bytes - before->read_bytes),
        .cache_hits = (int64_t)(now.store.cache_hits - before->store.cache_hits),
        .cache_misses = (int64_t)(now.store.cache_misses - before->store.cache_misses)};
    list->count++;
    p->before = now;
    p->waited_ns = 0;
    p->images = 0;
    return STK_OK;
}

static stk_status run(epoch_probe *p, bool endless, double seconds, stk_loader_figures *figures,
                      stk_epoch_list *list, stk_error *err) {
    stk_status status = STK_OK;
    int64_t asked_ns = p->start_ns; /* the consumer waits while the loader is being opened */
    bool ended = false;
    while (status == STK_OK) {
        bool last = false;
        status = consume(p, asked_ns, &ended, &last, err);
        if (status != STK_OK || ended) {
            break;
        }
        if (figures->first_batch_ms == 0) {
            figures->first_batch_ms = (double)p->waited_ns * 1e-6;
        }
        if (last) {
            status = close_epoch(p, list, err);
            if (endless && stk_clock_since_s(p->start_ns) >= seconds) {
                break;
            }
        }
        asked_ns = stk_clock_ns();
    }
    return status;
}

static void sum_up(const epoch_probe *p, const stk_epoch_list *list, double cpu_s,
                   stk_loader_figures *f) {
    stk_loader_counters spent = stk_loader_counters_of(p->loader);
    stk_loader_figures_describe(p->loader, f);
    f->seconds = (double)(p->before.ns - p->start_ns) / STK_NS_PER_S;
    for (size_t i = 0; i < list->count; i++) {
        f->images += list->items[i].images;
    }
    double images = (double)f->images;
    double made = (double)spent.images; /* includes pictures in batches that nobody took */
    f->images_per_second = images / f->seconds;
    f->images_per_second_per_core = f->images_per_second / (double)f->cores;
    f->decode_only_per_second_per_core = NAN;
    f->ceiling_share = NAN;
    f->decode_only_per_cpu_second = NAN;
    f->cores_busy = cpu_s / f->seconds;
    f->images_per_cpu_second = made / cpu_s;
    f->cpu_seconds_per_image = cpu_s / made;
    stk_loader_device_sum_up(&p->device, spent.device_images, spent.images, f);
    f->rss_bytes = stk_own_peak_resident();
    f->read_us = (double)spent.read_ns * 1e-3 / made;
    f->decode_us = (double)spent.decode_ns * 1e-3 / made;
    f->augment_us = (double)spent.augment_ns * 1e-3 / made;
    f->read_wait_us = (double)spent.read_wait_ns * 1e-3 / made;
}

stk_status stk_probe_epochs(stk_options *options, double rate, double seconds, const stk_stop *stop,
                            const stk_events *events, stk_loader_figures *figures,
                            stk_epoch_list *list, stk_error *err) {
    const stk_folder_options *feed = stk_options_values(options, &stk_folder_option_table);
    epoch_probe p = {.stop = stop, .rate = rate};
    *figures = (stk_loader_figures){0};
    memset(list, 0, sizeof *list);
    stk_status status = stk_loader_device_open(&p.device, options, events, err);
    const stk_loader_place place = stk_loader_device_place(&p.device, stop, events);
    double cpu_s = stk_own_processor_s();
    p.start_ns = stk_clock_ns();
    p.free_ns = p.start_ns;
    p.before.ns = p.start_ns;
    STK_THEN(status, stk_loader_open_at(&p.loader, options, &place, err));
    STK_THEN(status, run(&p, feed->epochs == 0, seconds, figures, list, err));
    if (status == STK_OK) {
        sum_up(&p, list, stk_own_processor_s() - cpu_s, figures);
    }
    stk_loader_close(p.loader);
    stk_loader_device_close(&p.device);
    return status;
}

void stk_epoch_list_free(stk_epoch_list *list) {
    stk_mem_free(list->items);
    memset(list, 0, sizeof *list);
}
