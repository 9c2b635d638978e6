/*
 * loader_probe.c - a loader and decode-only measured in turns.
 *
 * Machines are shared and change their speed from second to second. So both sides get short slices
 * in turn, and a disturbance affects both. The loader must rest while decode-only is measured, and
 * it rests only when its ring is full. So a slice of the loader begins and ends with a full ring:
 * batches are taken for a while, then the loader fills the ring again, and all of that time counts.
 * The batches taken are then exactly the batches made in that time.
 *
 * Resident memory is measured in the warm-up, which ends with a full ring, before decode-only keeps
 * files in memory.
 */
#include "probe/loader_probe.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/machine.h"
#include "dataset/dataset.h"
#include "loader/loader.h"
#include "probe/decode_probe.h"
#include "probe/loader_device.h"
#include "probe/own_use.h"

#define WARM_UP_S 1.0
#define WARM_UP_BATCHES 2
#define SLICE_S 0.5

/* How often the loader is checked, and how long nothing must move until it rests. */
#define POLL_NS 500000
#define FULL_REST_NS INT64_C(2000000)
/* A stream with an end may never fill the ring: it rests after this long without progress. */
#define ANY_REST_NS INT64_C(1000000000)

/* Files of the decode-only side, and samples met in the warm-up from which they are chosen. */
#define MAX_FILES 512
#define MAX_SEEN 65536

typedef struct loader_probe {
    stk_loader_device device; /* owned */
    stk_loader *loader;
    const stk_stop *stop; /* borrowed */
    stk_decode_probe *decoder;
    size_t *seen; /* owned: numbers of samples met in the warm-up */
    size_t seen_count;
    size_t seen_capacity;
    int64_t rss_bytes;   /* the most that was seen */
    int cores;           /* of this process */
    uint64_t images;     /* taken in slices */
    double seconds;      /* of slices */
    double core_seconds; /* of slices, times the cores that workers could use */
    double cpu_seconds;  /* of slices: processor time of the process */
    /* In slices: only read_ns, decode_ns, augment_ns, read_wait_ns, images and device_images. */
    stk_loader_counters spent;
    stk_decode_tally decoded;
    double decode_cpu_seconds; /* processor time of decode-only slices */
} loader_probe;

static void note_memory(loader_probe *p) {
    int64_t bytes = stk_own_resident();
    p->rss_bytes = bytes > p->rss_bytes ? bytes : p->rss_bytes;
}

static stk_status check_stop(const loader_probe *p, stk_error *err) {
    return stk_stop_asked(p->stop) == STK_STOP_NONE
               ? STK_OK
               : STK_FAIL(err, STK_ERR_STOPPED, "stopped before the measurement was complete");
}

/* The next batch; a stream that has an end begins again. */
static stk_status take(loader_probe *p, const stk_batch **batch, stk_error *err) {
    stk_status status = check_stop(p, err);
    STK_THEN(status, stk_loader_next(p->loader, batch, err));
    if (status == STK_OK && *batch == NULL) {
        status = stk_loader_seek(p->loader, 0, 0, err);
        STK_THEN(status, stk_loader_next(p->loader, batch, err));
    }
    if (status == STK_OK && *batch == NULL) {
        status = STK_FAIL(err, STK_ERR_DATA, "the loader has no batch to measure");
    }
    return status;
}

/* Waits until the ring is full and nothing moves; *rest_ns is when the last thing moved. */
static stk_status settle(loader_probe *p, int64_t *rest_ns, stk_error *err) {
    stk_loader_counters before = {0};
    stk_loader_counters now = {0};
    const struct timespec poll = {.tv_nsec = POLL_NS};
    stk_status status = STK_OK;
    *rest_ns = stk_clock_ns();
    before = stk_loader_counters_of(p->loader);
    for (;;) {
        status = check_stop(p, err);
        if (status != STK_OK) {
            return status;
        }
        nanosleep(&poll, NULL);
        now = stk_loader_counters_of(p->loader);
        int64_t time = stk_clock_ns();
        if (now.images != before.images || now.read_bytes != before.read_bytes ||
            now.batches_ready != before.batches_ready) {
            *rest_ns = time;
        }
        before = now;
        bool full = now.batches_ready >= (uint64_t)now.slots && now.reads_in_flight == 0;
        if (time - *rest_ns >= (full ? FULL_REST_NS : ANY_REST_NS)) {
            return STK_OK;
        }
    }
}

/* ---- the warm-up ---- */

static stk_status note_samples(loader_probe *p, const stk_batch *batch, stk_error *err) {
    if (p->seen_count >= MAX_SEEN) {
        return STK_OK;
    }
    if (!STK_RESERVE(p->seen, p->seen_capacity, p->seen_count + batch->count)) {
        return STK_FAIL_MEMORY(err, "the list of pictures");
    }
    for (size_t i = 0; i < batch->count; i++) {
        if (!batch->bad[i]) {
            p->seen[p->seen_count++] = batch->samples[i];
        }
    }
    return STK_OK;
}

static stk_status warm_up(loader_probe *p, stk_error *err) {
    int64_t start = stk_clock_ns();
    int64_t rest;
    stk_status status = STK_OK;
    for (int i = 0;
         status == STK_OK && (i < WARM_UP_BATCHES || stk_clock_since_s(start) < WARM_UP_S); i++) {
        const stk_batch *batch = NULL;
        status = take(p, &batch, err);
        if (status == STK_OK) {
            status = note_samples(p, batch, err);
            stk_loader_release(p->loader, batch);
            note_memory(p);
        }
    }
    STK_THEN(status, settle(p, &rest, err));
    note_memory(p);
    return status;
}

/* ---- the decode-only side ---- */

static int compare_numbers(const void *a, const void *b) {
    size_t x = *(const size_t *)a;
    size_t y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the samples that were seen and leaves each once. */
static void sort_seen(loader_probe *p) {
    size_t kept = 0;
    if (p->seen_count > 0) {
        qsort(p->seen, p->seen_count, sizeof *p->seen, compare_numbers);
    }
    for (size_t i = 0; i < p->seen_count; i++) {
        if (kept == 0 || p->seen[i] != p->seen[kept - 1]) {
            p->seen[kept++] = p->seen[i];
        }
    }
    p->seen_count = kept;
}

/* Reads files that the loader has shown, evenly spread over the data set. */
static stk_status open_decoder(loader_probe *p, const char *root, stk_error *err) {
    const char *paths[MAX_FILES];
    size_t count = 0;
    sort_seen(p);
    size_t most = p->seen_count < MAX_FILES ? p->seen_count : MAX_FILES;
    for (size_t i = 0; i < most; i++) {
        paths[count] = stk_loader_path(p->loader, p->seen[i * p->seen_count / most]);
        count += paths[count] != NULL ? 1 : 0;
    }
    if (count == 0) {
        return STK_FAIL(err, STK_ERR_DATA, "none of the pictures in %s can be used", root);
    }
    return stk_decode_probe_open(&p->decoder, stk_loader_store(p->loader), paths, count, p->cores,
                                 p->stop, err);
}

/* ---- slices ---- */

static int usable_cores(int cores, int workers) {
    int used = workers < cores ? workers : cores;
    return used < 1 ? 1 : used;
}

static void note_spent(loader_probe *p, const stk_loader_counters *before,
                       const stk_loader_counters *after) {
    p->spent.read_ns += after->read_ns - before->read_ns;
    p->spent.decode_ns += after->decode_ns - before->decode_ns;
    p->spent.augment_ns += after->augment_ns - before->augment_ns;
    p->spent.read_wait_ns += after->read_wait_ns - before->read_wait_ns;
    p->spent.images += after->images - before->images;
    p->spent.device_images += after->device_images - before->device_images;
}

/* From a full ring to a full ring; *seconds is what it took. */
static stk_status loader_slice(loader_probe *p, double least_s, double *seconds, stk_error *err) {
    stk_loader_counters before;
    stk_loader_counters after;
    int64_t rest = 0;
    uint64_t images = 0;
    stk_status status = STK_OK;
    before = stk_loader_counters_of(p->loader);
    double cpu = stk_own_processor_s();
    int64_t start = stk_clock_ns();
    do {
        const stk_batch *batch = NULL;
        status = take(p, &batch, err);
        if (status == STK_OK) {
            images += batch->count;
            stk_loader_release(p->loader, batch);
        }
    } while (status == STK_OK && stk_clock_since_s(start) < least_s);
    STK_THEN(status, settle(p, &rest, err));
    if (status != STK_OK) {
        return status;
    }
    after = stk_loader_counters_of(p->loader);
    *seconds = (double)(rest - start) * 1e-9;
    p->images += images;
    p->seconds += *seconds;
    p->core_seconds += *seconds * usable_cores(p->cores, after.workers);
    p->cpu_seconds += stk_own_processor_s() - cpu;
    note_spent(p, &before, &after);
    return STK_OK;
}

static stk_status measure(loader_probe *p, double seconds, stk_error *err) {
    stk_status status = STK_OK;
    double slice_s = seconds < SLICE_S ? seconds : SLICE_S;
    do {
        stk_loader_counters counters;
        double took = 0;
        status = loader_slice(p, slice_s, &took, err);
        counters = stk_loader_counters_of(p->loader);
        double cpu = stk_own_processor_s();
        STK_THEN(status, stk_decode_probe_run(p->decoder, usable_cores(p->cores, counters.workers),
                                              took, p->stop, &p->decoded, err));
        p->decode_cpu_seconds += stk_own_processor_s() - cpu;
        STK_THEN(status, check_stop(p, err));
    } while (status == STK_OK && p->seconds < seconds);
    return status;
}

/* ---- figures ---- */

static void note_bad(void *user, const char *path, const char *reason) {
    stk_loader_figures *f = user;
    if (f->first_bad[0] == '\0') {
        snprintf(f->first_bad, sizeof f->first_bad, "%s: %s", path, reason);
    }
}

void stk_loader_figures_describe(stk_loader *loader, stk_loader_figures *f) {
    stk_loader_info info;
    stk_loader_counters now;
    info = stk_loader_info_of(loader);
    now = stk_loader_counters_of(loader);
    f->workers = now.workers;
    f->readers = now.readers;
    f->slots = now.slots;
    f->cores = usable_cores(stk_machine_cores(), now.workers);
    f->samples = (int64_t)info.samples;
    f->batch = (int64_t)info.batch;
    f->img_size = info.img_size;
    f->bad = (int64_t)now.bad;
    stk_loader_take_bad(loader, note_bad, f);
}

static void sum_up(const loader_probe *p, stk_loader_figures *f) {
    double images = (double)p->images;
    stk_loader_figures_describe(p->loader, f);
    f->images_per_second = images / p->seconds;
    f->images_per_second_per_core = images / p->core_seconds;
    f->decode_only_per_second_per_core = (double)p->decoded.images / p->decoded.thread_seconds;
    f->ceiling_share = f->images_per_second_per_core / f->decode_only_per_second_per_core;
    f->rss_bytes = p->rss_bytes;
    f->cores_busy = p->cpu_seconds / p->seconds;
    f->images_per_cpu_second = images / p->cpu_seconds;
    f->cpu_seconds_per_image = p->cpu_seconds / images;
    stk_loader_device_sum_up(&p->device, p->spent.device_images, p->spent.images, f);
    f->decode_only_per_cpu_second = (double)p->decoded.images / p->decode_cpu_seconds;
    f->images = (int64_t)p->images;
    f->seconds = p->seconds;
    f->decode_images = (int64_t)p->decoded.images;
    f->decode_seconds = p->decoded.thread_seconds;
    f->read_us = (double)p->spent.read_ns * 1e-3 / images;
    f->decode_us = (double)p->spent.decode_ns * 1e-3 / images;
    f->augment_us = (double)p->spent.augment_ns * 1e-3 / images;
    f->read_wait_us = (double)p->spent.read_wait_ns * 1e-3 / images;
}

stk_status stk_probe_loader(stk_options *options, double seconds, const stk_stop *stop,
                            const stk_events *events, stk_loader_figures *figures, stk_error *err) {
    const stk_dataset_options *dataset = stk_options_values(options, &stk_dataset_option_table);
    loader_probe p = {.stop = stop, .cores = stk_machine_cores()};
    const stk_batch *first = NULL;
    stk_status status = stk_loader_device_open(&p.device, options, events, err);
    if (status == STK_OK && !(stk_storage_to_measure(options).outage_s > 0)) {
        status = stk_options_set(options, "outage", "0", err);
    }
    const stk_loader_place place = stk_loader_device_place(&p.device, stop, events);
    int64_t start = stk_clock_ns();
    STK_THEN(status, stk_loader_open_at(&p.loader, options, &place, err));
    STK_THEN(status, take(&p, &first, err));
    if (status == STK_OK) {
        figures->first_batch_ms = stk_clock_since_s(start) * 1e3;
        stk_loader_release(p.loader, first);
        status = warm_up(&p, err);
    }
    STK_THEN(status, open_decoder(&p, dataset->data, err));
    STK_THEN(status, measure(&p, seconds, err));
    if (status == STK_OK) {
        sum_up(&p, figures);
    }
    stk_decode_probe_close(p.decoder);
    stk_loader_close(p.loader);
    stk_loader_device_close(&p.device);
    stk_mem_free(p.seen);
    return status;
}
