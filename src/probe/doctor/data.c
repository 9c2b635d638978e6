/*
 * data.c - measures the stages before the device: storage cold and warm, decoding, the loader.
 *
 * All phases work on the same pictures, drawn at random: they are read for the first time, then
 * again, and some are decoded out of memory. The loader gets pictures in the state in which most
 * epochs find them: those that were read where the data set stays near after the first epoch,
 * others elsewhere.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/numbers/rng.h"
#include "probe/cold_pages.h"
#include "probe/decode_probe.h"
#include "probe/doctor/phases.h"
#include "probe/own_use.h"
#include "probe/storage_probe.h"
#include "stage/recode.h"

/* Pictures that may be read, and those that are decoded out of memory. */
#define MOST_CHOSEN 16384
#define MOST_DECODED 64

/* Numbers of reads in flight to try; a loader also uses more where more are faster. */
static const int64_t in_flight[] = {4, 16, 64, 256};

/* A step with so many reads in flight reads at most this share of the pictures. */
#define FLIGHT_SHARE 4

/* Dropping pages may take this share of the time of reading. */
#define DROP_SHARE 0.3

/* A data set of up to this share of the memory stays in the page cache. */
#define MEMORY_SHARE 0.5

/* The loader warms up for this share of its time. Then it makes at least so many pictures, unless
 * that takes so many times as long. */
#define WARM_SHARE 0.25
#define LEAST_IMAGES 16
#define MOST_LENGTHS 3.0

/* Shares of the workers' time without bytes that count as small and as large. */
#define FEW_WAITS 0.1
#define MANY_WAITS 0.5

stk_status stk_doctor_choose(doctor *d, stk_error *err) {
    const stk_loader_config *data = &d->patient->data;
    uint64_t order =
        (uint64_t)stk_clock_ns(); /* random in every run: caches on the way know earlier orders */
    size_t count = data->count < MOST_CHOSEN ? data->count : MOST_CHOSEN;
    d->chosen = stk_mem_raw(count, sizeof *d->chosen);
    d->paths = stk_mem_raw(count, sizeof *d->paths);
    if (d->chosen == NULL || d->paths == NULL) {
        return STK_FAIL_MEMORY(err, "the list of pictures");
    }
    for (size_t i = 0; i < count; i++) {
        size_t place = (size_t)stk_rng_permute(order, data->count, i);
        d->chosen[i] = data->indices != NULL ? data->indices[place] : place;
        d->paths[i] = data->samples[d->chosen[i]].path;
    }
    d->chosen_count = count;
    return STK_OK;
}

/* ---- storage ---- */

/* Each picture is read once. With too many reads in flight for the pictures, only the beginning and
 * the end of the step would be measured. */
static stk_in_flight_list flights_for(const doctor *d, size_t pictures, bool once) {
    stk_in_flight_list list = {.numbers = {1}, .count = 1};
    int64_t most = once ? (int64_t)(pictures / FLIGHT_SHARE) : INT64_MAX;
    int64_t reads = (int64_t)d->patient->data.sizing.most_reads;
    most = reads > 0 && reads < most ? reads : most;
    for (size_t i = 0; i < STK_COUNT(in_flight) && in_flight[i] <= most; i++) {
        list.numbers[i] = in_flight[i];
        list.count = i + 1;
    }
    return list;
}

/* Reads the first `pictures` chosen ones. */
static stk_status read_pictures(const doctor *d, stk_storage_question *q, size_t pictures,
                                double *rate, double *bytes, int64_t *begun, stk_error *err) {
    stk_storage_findings findings;
    q->data = d->patient->root;
    q->storage = d->patient->storage;
    q->storage.cache = "off"; /* of a store that is opened for this */
    q->paths = d->paths;
    q->path_count = pictures;
    q->in_flight = flights_for(d, pictures, q->once);
    q->stop_when_flat = true;
    q->wanted = 1;
    stk_status status = stk_probe_storage(q, d->patient->stop, &findings, err);
    if (status != STK_OK) {
        return status;
    }
    *rate = NAN;
    *bytes = NAN;
    *begun = findings.begun;
    for (size_t i = 0; i < findings.step_count; i++) {
        const stk_storage_step *step = &findings.steps[i];
        if (step->objects_per_second > 0 && !(step->objects_per_second <= *rate)) {
            *rate = step->objects_per_second;
            *bytes = step->bytes_per_second;
        }
    }
    return STK_OK;
}

static stk_status read_cold(doctor *d, stk_error *err) {
    double seconds = stk_doctor_seconds(d, DOCTOR_COLD);
    size_t count = d->chosen_count;
    int64_t begun = 0;
    stk_status status = stk_cold_pages_drop(d->patient->data.store, d->paths, &count,
                                            DROP_SHARE * seconds, d->patient->stop, err);
    stk_storage_question q = {.once = true, .seconds = (1 - DROP_SHARE) * seconds};
    STK_THEN(status, stk_doctor_stopped(d, err));
    STK_THEN(status, read_pictures(d, &q, count > 0 ? count : 1, &d->found->storage_cold,
                                   &d->found->cold_bytes, &begun, err));
    d->read_count = (size_t)begun;
    return status;
}

/* Fills the training's cache, where it has one, before reading from it is measured. */
static bool has_cache(const doctor *d) {
    const char *cache = d->patient->storage.cache;
    return cache != NULL ? strcmp(cache, "off") != 0 : stk_store_is_remote(d->patient->data.store);
}

static stk_status read_warm(doctor *d, stk_error *err) {
    double seconds = stk_doctor_seconds(d, DOCTOR_WARM);
    size_t count = d->read_count;
    int64_t begun = 0;
    double rate = NAN;
    stk_status status = STK_OK;
    if (has_cache(d)) {
        stk_storage_question fill = {
            .store = d->patient->data.store, .once = true, .seconds = seconds / 2};
        status = read_pictures(d, &fill, count, &rate, &rate, &begun, err);
        count = begun > 0 ? (size_t)begun : count;
        seconds /= 2;
    }
    stk_storage_question again = {.store = d->patient->data.store, .seconds = seconds};
    STK_THEN(status, read_pictures(d, &again, count, &d->found->storage_warm, &d->found->warm_bytes,
                                   &begun, err));
    d->read_count = count;
    return status;
}

/* Whether every epoch but the first finds the pictures near. */
static bool is_kept(const doctor *d) {
    const stk_diagnosis *f = d->found;
    double bytes = f->cold_bytes / f->storage_cold * (double)f->images;
    return has_cache(d) || (!f->is_remote && bytes < MEMORY_SHARE * (double)stk_machine_memory());
}

stk_status stk_doctor_storage(doctor *d, stk_error *err) {
    stk_diagnosis *f = d->found;
    f->is_remote = stk_store_is_remote(d->patient->data.store);
    stk_status status = read_cold(d, err);
    STK_THEN(status, read_warm(d, err));
    f->pictures = (int64_t)d->read_count;
    f->is_kept = is_kept(d);
    d->rates.storage = f->is_kept || isnan(f->storage_cold) ? f->storage_warm : f->storage_cold;
    return status;
}

/* ---- decoding ---- */

static int decoding_threads(const doctor *d) {
    const stk_rates *r = &d->rates;
    return r->workers < r->cores ? r->workers : r->cores;
}

/* Images per second of one thread. */
static stk_status time_decoding(const doctor *d, stk_decode_probe *probe, int threads,
                                double seconds, double *rate, stk_error *err) {
    stk_decode_tally tally = {0};
    double before_s = stk_own_processor_s();
    stk_status status =
        stk_decode_probe_run(probe, threads, seconds, d->patient->stop, &tally, err);
    double ran_s = stk_own_processor_s() - before_s;
    d->found->core_share = fmin(d->found->core_share, ran_s / tally.thread_seconds);
    *rate = tally.images > 0 ? (double)tally.images / tally.thread_seconds : NAN;
    return status == STK_OK ? stk_doctor_stopped(d, err) : status;
}

static stk_status decode_plain(doctor *d, stk_decode_probe *probe, stk_error *err) {
    double seconds = stk_doctor_seconds(d, DOCTOR_DECODE);
    stk_transform view = d->patient->data.transform;
    int threads = decoding_threads(d);
    bool others = threads != d->rates.cores;
    stk_status status = stk_decode_probe_view(probe, &view, err);
    double each = seconds / (others ? 3 : 2);
    STK_THEN(status, time_decoding(d, probe, threads, each, &d->rates.decode, err));
    d->changes.all_cores = d->rates.decode;
    if (status == STK_OK && others) {
        status = time_decoding(d, probe, d->rates.cores, each, &d->changes.all_cores, err);
    }
    if (status == STK_OK && d->changes.small_size > 0) {
        view.size = d->changes.small_size;
        status = stk_decode_probe_view(probe, &view, err);
        STK_THEN(status, time_decoding(d, probe, threads, each, &d->changes.small_decode, err));
        view.size = d->patient->data.transform.size;
        STK_THEN(status, stk_decode_probe_view(probe, &view, err));
    }
    return status;
}

/* As `stoker stage --max-side` does. */
static stk_status stage_picture(void *user, stk_image_scratch *scratch, const stk_bytes *from,
                                stk_bytes *to, stk_error *err) {
    const stk_recode *how = user;
    stk_recoded recoded = {0};
    stk_status status = stk_recode_picture(scratch, how, from->data, from->size, &recoded, err);
    if (status == STK_OK && recoded.bytes != NULL) {
        *to = (stk_bytes){recoded.bytes, recoded.size, recoded.size};
        recoded.bytes = NULL;
    }
    stk_mem_free(recoded.bytes);
    return status;
}

/* As a loader with --cache decoded does. */
static stk_status decode_whole(void *user, stk_image_scratch *scratch, const stk_bytes *from,
                               stk_bytes *to, stk_error *err) {
    stk_image image = {0};
    (void)user;
    (void)scratch;
    stk_status status = stk_image_decode(from->data, from->size, &image, err);
    STK_THEN(status, stk_image_encode_raw(&image, to, err));
    stk_image_free(&image);
    return status;
}

static stk_status decode_remade(doctor *d, stk_decode_probe *probe, stk_error *err) {
    double seconds = stk_doctor_seconds(d, DOCTOR_REMADE);
    doctor_changes *c = &d->changes;
    stk_recode how = {.max_side = stk_rates_max_side(c->stage_side_px)};
    double bytes = NAN;
    const stk_stop *stop = d->patient->stop;
    int threads = decoding_threads(d);
    stk_status status = stk_decode_probe_remake(probe, stage_picture, &how, stop, &bytes, err);
    if (status == STK_OK) {
        c->staging_shrinks = bytes < d->found->picture_bytes && !d->patient->data.transform.native;
        status = time_decoding(d, probe, threads, seconds / 3, &c->staged, err);
    }
    STK_THEN(status, stk_decode_probe_remake(probe, decode_whole, NULL, stop, &bytes, err));
    STK_THEN(status, time_decoding(d, probe, threads, seconds / 3, &c->decoded, err));
    return status;
}

stk_status stk_doctor_decode(doctor *d, stk_error *err) {
    stk_decode_probe *probe = NULL;
    size_t count = d->read_count < MOST_DECODED ? d->read_count : MOST_DECODED;
    stk_status status = stk_decode_probe_open(&probe, d->patient->data.store, d->paths, count,
                                              d->rates.cores, d->patient->stop, err);
    if (status == STK_OK) {
        stk_decode_mean mean = stk_decode_probe_mean(probe);
        d->found->picture_bytes = mean.bytes;
        d->found->picture_px = mean.pixels;
        d->rates.source_px = mean.pixels;
    }
    bool decoded = status == STK_OK && stk_store_caches_decoded(d->patient->data.store);
    if (decoded) { /* workers find pictures that were decoded before */
        double bytes;
        status = stk_decode_probe_remake(probe, decode_whole, NULL, d->patient->stop, &bytes, err);
    }
    STK_THEN(status, decode_plain(d, probe, err));
    if (status == STK_OK) {
        d->found->decode_worker = d->rates.decode;
        d->found->decode = stk_rates_of(&d->rates, STK_STAGE_DECODE);
        status = decoded ? STK_OK : decode_remade(d, probe, err);
    }
    stk_decode_probe_close(probe);
    return status;
}

/* ---- the loader ---- */

stk_loader_config stk_doctor_data(const doctor *d) {
    stk_loader_config data = d->patient->data;
    size_t batch = (size_t)d->found->measured_batch;
    size_t others = d->chosen_count - d->read_count;
    data.batch = batch;
    data.order = STK_LOADER_TRAINING;
    data.stop_after_bad = 0;
    if (d->found->is_kept) {
        data.indices = d->chosen;
        data.count = d->read_count;
    } else if (others >= d->read_count) {
        data.indices = d->chosen + d->read_count;
        data.count = others;
    }
    return data;
}

/* What the loader did in some time. */
typedef struct drained {
    double images;  /* that were made */
    double seconds; /* that it took */
    double waited;  /* share of the workers' time in which they had no bytes, 0 to 1 */
} drained;

/* Takes batches and gives them back until enough time has passed. */
static stk_status drain(const doctor *d, stk_loader *loader, double seconds, double least,
                        drained *result, stk_error *err) {
    stk_loader_counters before;
    stk_loader_counters now;
    int64_t start = stk_clock_ns();
    stk_status status = STK_OK;
    before = stk_loader_counters_of(loader);
    do {
        const stk_batch *batch = NULL;
        status = stk_loader_next(loader, &batch, err);
        if (status == STK_OK) {
            stk_loader_release(loader, batch);
            status = stk_doctor_stopped(d, err);
        }
        now = stk_loader_counters_of(loader);
        result->seconds = stk_clock_since_s(start);
        result->images = (double)(now.images - before.images);
    } while (status == STK_OK && (result->seconds < seconds || result->images < least) &&
             result->seconds < MOST_LENGTHS * seconds);
    double waited_s = (double)(now.read_wait_ns - before.read_wait_ns) * 1e-9;
    result->waited = waited_s / (result->seconds * (now.workers > 0 ? now.workers : 1));
    return status;
}

/*
 * Workers that never lack bytes show the loader's overhead per picture. Workers that mostly lack
 * bytes show the rate of storage, since the loader has its own way of keeping reads in flight. In
 * any case storage is at least as fast as the loader was. What a device decodes makes the workers
 * faster.
 */
static void take_loader(doctor *d, const drained *result) {
    double rate = result->images / result->seconds;
    d->found->loader = rate;
    if (d->patient->data.decoder.state != NULL && result->waited < FEW_WAITS) {
        d->rates.decode = fmax(d->rates.decode, rate / decoding_threads(d));
    }
    if (result->waited < FEW_WAITS) {
        d->overhead_s = fmax(decoding_threads(d) / rate - 1 / d->rates.decode, 0);
    }
    if (result->waited > MANY_WAITS || !(d->rates.storage >= rate)) {
        d->rates.storage = rate;
    }
}

stk_status stk_doctor_loader(doctor *d, stk_error *err) {
    double seconds = stk_doctor_seconds(d, DOCTOR_LOADER);
    stk_loader_config data = stk_doctor_data(d);
    stk_loader *loader = NULL;
    drained result = {0};
    stk_status status = stk_loader_start(&loader, &data, err);
    STK_THEN(status, drain(d, loader, WARM_SHARE * seconds, 0, &result, err));
    STK_THEN(status, drain(d, loader, (1 - WARM_SHARE) * seconds, LEAST_IMAGES, &result, err));
    stk_loader_close(loader);
    if (status == STK_OK && result.images > 0) {
        take_loader(d, &result);
    }
    return status;
}
