/*
 * training_monitor.c - from counters of training and machine to samples, verdicts and tuning.
 *
 * All counters run from the start of a fold. Once a second they are stored as a snapshot; the
 * difference of two snapshots is what happened between them.
 */
#include "job/steering/training_monitor.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/mem.h"
#include "monitor/machine_sampler.h"
#include "monitor/shares.h"
#include "monitor/tune.h"
#include "monitor/verdict.h"
#include "train/times.h"

#define LOOK_GAP_S 1.0   /* seconds between two snapshots */
#define STRETCH_S 60.0   /* seconds of steady work that a verdict is about */
#define JUDGE_GAP_S 10.0 /* seconds between two verdicts: a change must last this long */
#define SNAPSHOTS 64     /* enough for STRETCH_S at one a second */

#define TUNE_S 4.0    /* least seconds for which --tune observes one setting */
#define TUNE_STEPS 10 /* least steps for which --tune observes one setting */

/* Passes of a CPU step over the weights per pass of its optimiser (13 / 5, see fixed_s()). */
#define WEIGHT_PASSES 2.6

#define QUICK_STEPS 5 /* least steps for a quick verdict */
#define QUICK_S 2.0   /* least seconds for a quick verdict */
#define WARM_STEPS 2  /* the first steps are slow and not counted */

/* Figures of samples that are summed. */
enum {
    SHOWN_UTIL,
    SHOWN_SM,
    SHOWN_JPEG,
    SHOWN_MEMORY,
    SHOWN_MEMORY_TOTAL,
    SHOWN_CLOCK,
    SHOWN_THROTTLED,
    SHOWN_CPU,
    SHOWN_OWN,
    SHOWN_IOWAIT,
    SHOWN_COUNT
};

typedef struct sample_sum {
    double total;
    double count;
} sample_sum;

/* All counters at one moment. */
typedef struct counter_snapshot {
    double at_s; /* seconds into the fold */
    int64_t steps;
    int epoch;
    stk_times times;
    double copy_s; /* seconds in which pictures were copied to the device */
    stk_loader_counters loader;
    stk_store_counters store;
    sample_sum shown[SHOWN_COUNT];
} counter_snapshot;

struct stk_training_monitor {
    stk_training_monitor_config config;
    stk_machine_sampler *sampler; /* samples the machine; NULL: it cannot be sampled */
    /* The running fold: */
    int64_t fold_ns;                  /* monotonic clock: when it began; 0: no fold is trained */
    counter_snapshot now;             /* running counters */
    counter_snapshot ring[SNAPSHOTS]; /* the last SNAPSHOTS snapshots */
    size_t snapshots;                 /* snapshots taken in this fold */
    double looked_s;                  /* seconds into the fold: the last snapshot */
    double verdict_s;                 /* seconds into the fold: the last verdict considered */
    bool steady_emitted;              /* a verdict on steady work was emitted in this fold */
    /* The run: */
    bool quick_emitted;            /* a quick verdict was emitted */
    bool notes_emitted;            /* the missing figures of the machine were emitted */
    char throttled[64];            /* last reason for which the GPU was throttled */
    int64_t largest_batch;         /* see stk_batch_search_largest(); -1: not computed yet */
    stk_verdict_kind last_emitted; /* the last verdict emitted on steady work */
    stk_verdict_kind last_seen;    /* the last verdict considered */
    stk_verdict verdict;           /* the last verdict emitted */
    bool told_loss;                /* that the device decodes no more */
    /* State of --tune: */
    stk_tune tune;
    counter_snapshot tuned; /* start of the interval that --tune judges next */
    int cached;             /* 1: --tune turned a cache on */
    int workers;            /* decode workers that --tune kept; 0: unchanged */
};

stk_status stk_training_monitor_open(stk_training_monitor **opened,
                                     const stk_training_monitor_config *config, stk_error *err) {
    const stk_opened_device *device = &config->network->opened;
    stk_training_monitor *monitor = stk_mem_new(1, sizeof *monitor);
    if (monitor == NULL) {
        return STK_FAIL_MEMORY(err, "the monitor");
    }
    monitor->config = *config;
    monitor->largest_batch = -1;
    const char *gpu =
        device->backend->bus_id != NULL ? device->backend->bus_id(device->device) : NULL;
    stk_machine_sampler_config look = {
        .gpu_bus_ids = &gpu, .gpu_count = gpu != NULL ? 1 : 0, .start_ns = config->start_ns};
    stk_error why = {0};
    if (stk_machine_sampler_start(&monitor->sampler, &look, &why) != STK_OK) {
        stk_events_warning(config->events, "going on without a look at the machine: %s",
                           why.message);
    }
    *opened = monitor;
    return STK_OK;
}

void stk_training_monitor_close(stk_training_monitor *monitor) {
    if (monitor != NULL) {
        stk_machine_sampler_stop(monitor->sampler);
        stk_mem_free(monitor);
    }
}

/* ---- samples ---- */

static void add(sample_sum *s, double value) {
    if (!isnan(value)) {
        s->total += value;
        s->count++;
    }
}

static void count_sample(stk_training_monitor *monitor, const stk_event_sample *sample) {
    sample_sum *shown = monitor->now.shown;
    bool throttled = sample->gpu_throttled != NULL && sample->gpu_throttled[0] != '\0';
    add(&shown[SHOWN_UTIL], sample->gpu_util);
    add(&shown[SHOWN_SM], sample->sm_activity);
    add(&shown[SHOWN_JPEG], sample->jpeg_util);
    add(&shown[SHOWN_MEMORY], sample->gpu_memory_used);
    add(&shown[SHOWN_MEMORY_TOTAL], sample->gpu_memory_total);
    add(&shown[SHOWN_CLOCK], sample->gpu_clock_mhz / sample->gpu_clock_most_mhz);
    add(&shown[SHOWN_THROTTLED], sample->gpu_throttled != NULL ? throttled : NAN);
    add(&shown[SHOWN_CPU], sample->cpu);
    add(&shown[SHOWN_OWN], sample->cpu_own);
    add(&shown[SHOWN_IOWAIT], sample->iowait);
    if (throttled) {
        snprintf(monitor->throttled, sizeof monitor->throttled, "%s", sample->gpu_throttled);
    }
}

/* Emits all samples since the last call; `training` has the figures of training for that time. */
static void emit_samples(stk_training_monitor *monitor, const stk_event_sample *training) {
    stk_event_sample sample;
    while (stk_machine_sampler_take(monitor->sampler, &sample)) {
        sample.images_per_second = training->images_per_second;
        sample.wait_fraction = training->wait_fraction;
        sample.batches_ready = training->batches_ready;
        sample.slots = training->slots;
        sample.workers = training->workers;
        count_sample(monitor, &sample);
        stk_events_sample(monitor->config.events, &sample);
    }
    const char *notes = stk_machine_sampler_notes(monitor->sampler);
    if (!monitor->notes_emitted && notes[0] != '\0') {
        stk_events_decision(monitor->config.events, "not all of the machine can be watched", notes);
        monitor->notes_emitted = true;
    }
}

void stk_training_monitor_emit_samples(stk_training_monitor *monitor) {
    stk_event_sample nothing = {.images_per_second = NAN,
                                .wait_fraction = NAN,
                                .batches_ready = -1,
                                .slots = -1,
                                .workers = -1};
    if (monitor != NULL) {
        emit_samples(monitor, &nothing);
    }
}

/* ---- what happened between two snapshots ---- */

static double mean(const sample_sum *a, const sample_sum *b) {
    return b->count > a->count ? (b->total - a->total) / (b->count - a->count) : NAN;
}

static double seconds(uint64_t from_ns, uint64_t to_ns) {
    return (double)(to_ns - from_ns) * 1e-9;
}

static double per(double count, double time_s) {
    return time_s > 0 ? count / time_s : NAN;
}

/* Pictures that the device decoded between two snapshots. */
static double device_images(const counter_snapshot *a, const counter_snapshot *b) {
    return (double)(b->loader.device_images - a->loader.device_images);
}

/* Seconds of all decode workers: decoding and augmentation. Pictures that the device decoded take
 * none. */
static double decoded_s(const counter_snapshot *a, const counter_snapshot *b) {
    return seconds(a->loader.decode_ns, b->loader.decode_ns) +
           seconds(a->loader.augment_ns, b->loader.augment_ns);
}

/* Images trained on between two snapshots. */
static double trained_between(const stk_training_monitor *monitor, const counter_snapshot *a,
                              const counter_snapshot *b) {
    return (double)(b->steps - a->steps) * (double)monitor->config.recipe->batch;
}

/*
 * Least seconds of a step that do not grow with the batch. On a CPU the optimiser passes over the
 * weights about five times, forward and backward about eight times (packing included), whatever the
 * batch is. On a GPU it is the time in which kernels ran but multiprocessors were idle; larger
 * batches fill it.
 */
static double fixed_s(const stk_evidence *e) {
    double device_s = e->times.compute_s + e->times.update_s;
    bool seen = e->gpu_util > 0 && e->sm_activity >= 0;
    double idle = seen ? fmax(1 - e->sm_activity / e->gpu_util, 0) : NAN;
    double passes_s = fmin(WEIGHT_PASSES * e->times.update_s, device_s);
    return per(e->is_gpu ? idle * device_s : passes_s, (double)e->steps);
}

/*
 * The part of waiting that is storage's. While the device decodes, workers that wait for bytes say
 * little: the times know how long pictures were under way on the device.
 */
static double storage_share(const counter_snapshot *a, const counter_snapshot *b,
                            const stk_times *times) {
    double read_wait_s = seconds(a->loader.read_wait_ns, b->loader.read_wait_ns);
    return device_images(a, b) > 0 ? per(times->read_s, times->read_s + times->decode_s)
                                   : per(read_wait_s, read_wait_s + decoded_s(a, b));
}

/* The rate of each stage alone. A stage that did not limit training shows no rate. */
static stk_rates rates_between(const stk_training_monitor *monitor, const counter_snapshot *a,
                               const counter_snapshot *b, const stk_evidence *e) {
    const stk_loader_counters *x = &a->loader;
    const stk_loader_counters *y = &b->loader;
    double images = (double)(y->images - x->images);
    stk_decoded decoded = {.images = images,
                           .device_images = device_images(a, b),
                           .cores_s = decoded_s(a, b),
                           .seconds = b->at_s - a->at_s,
                           .jpeg_util = e->jpeg_util};
    double trained = trained_between(monitor, a, b);
    double copy_s = b->copy_s - a->copy_s;
    bool by_storage = e->storage_share > 0.5 && e->times.read_s > 0;
    stk_rates rates = {.storage = by_storage ? e->images_per_second : INFINITY,
                       .device_first = monitor->config.network->decoder.always,
                       .workers = y->workers,
                       .cores = stk_machine_cores(),
                       .copy = copy_s > 0 ? per(trained, copy_s) : INFINITY,
                       .step = per(trained, e->times.compute_s + e->times.update_s),
                       .on_host = !e->is_gpu,
                       .batch = (int64_t)monitor->config.recipe->batch,
                       .fixed_s = fixed_s(e),
                       .source_px = per((double)(y->source_px - x->source_px), images),
                       .native = monitor->config.recipe->native,
                       .img_size = monitor->config.recipe->img_size,
                       .images = (int64_t)monitor->config.search->facts.train_count};
    stk_rates_take_decoded(&rates, &decoded);
    return rates;
}

static stk_evidence evidence_between(const stk_training_monitor *monitor, const counter_snapshot *a,
                                     const counter_snapshot *b) {
    const stk_job_network *network = monitor->config.network;
    double hits = (double)(b->store.cache_hits - a->store.cache_hits);
    double misses = (double)(b->store.cache_misses - a->store.cache_misses);
    stk_evidence e = {
        .seconds = b->at_s - a->at_s,
        .steps = b->steps - a->steps,
        .times = stk_times_between(&a->times, &b->times),
        .is_gpu = !stk_opened_device_is_cpu(&network->opened),
        .may_tune_workers = monitor->config.recipe->loader.tune_workers,
        .prefetch = monitor->config.recipe->loader.prefetch,
        .is_remote = stk_store_is_remote(monitor->config.store),
        .has_cache = hits + misses > 0,
        .is_staged = stk_store_has_shards(monitor->config.store),
        .first_epoch = a->epoch <= 1,
        .cache_hits = per(hits, hits + misses),
        .cache_room = (double)stk_storage_memory_room(),
        .device_decodes = network->decoder.could || network->decoder.decoder.state != NULL,
        .device_used = network->decoder.decoder.state != NULL,
        .decode_engines = stk_opened_decoder_engines(&network->decoder),
        .gpu_util = mean(&a->shown[SHOWN_UTIL], &b->shown[SHOWN_UTIL]),
        .jpeg_util = mean(&a->shown[SHOWN_JPEG], &b->shown[SHOWN_JPEG]),
        .sm_activity = mean(&a->shown[SHOWN_SM], &b->shown[SHOWN_SM]),
        .gpu_memory_used = mean(&a->shown[SHOWN_MEMORY], &b->shown[SHOWN_MEMORY]),
        .gpu_memory_total = mean(&a->shown[SHOWN_MEMORY_TOTAL], &b->shown[SHOWN_MEMORY_TOTAL]),
        .gpu_clock = mean(&a->shown[SHOWN_CLOCK], &b->shown[SHOWN_CLOCK]),
        .throttled = monitor->throttled,
        .throttled_share = mean(&a->shown[SHOWN_THROTTLED], &b->shown[SHOWN_THROTTLED]),
        .cpu = mean(&a->shown[SHOWN_CPU], &b->shown[SHOWN_CPU]),
        .cpu_own = mean(&a->shown[SHOWN_OWN], &b->shown[SHOWN_OWN]),
        .iowait = mean(&a->shown[SHOWN_IOWAIT], &b->shown[SHOWN_IOWAIT]),
        .precision = stk_precision_name(monitor->config.network->opened.precision),
        .largest_batch = monitor->largest_batch};
    e.storage_share = storage_share(a, b, &e.times);
    e.images_per_second = per(trained_between(monitor, a, b), stk_shares_of(&e.times).training_s);
    e.rates = rates_between(monitor, a, b, &e);
    e.device_decoded = e.rates.device_share;
    return e;
}

/* The snapshot from about `seconds` ago, or the first one. */
static const counter_snapshot *snapshot_before(const stk_training_monitor *monitor, double at_s) {
    size_t first = monitor->snapshots > SNAPSHOTS ? monitor->snapshots - SNAPSHOTS : 0;
    size_t i = first;
    while (i + 1 < monitor->snapshots && monitor->ring[(i + 1) % SNAPSHOTS].at_s <= at_s) {
        i++;
    }
    return &monitor->ring[i % SNAPSHOTS];
}

/* ---- verdicts ---- */

static void emit_verdict(stk_training_monitor *monitor, const stk_evidence *evidence, bool first) {
    stk_verdict_judge(evidence, first, &monitor->verdict);
    if (monitor->verdict.kind != STK_VERDICT_UNKNOWN) {
        stk_events_verdict(monitor->config.events, &monitor->verdict.event);
    }
}

static void judge(stk_training_monitor *monitor) {
    const counter_snapshot *from = snapshot_before(monitor, monitor->now.at_s - STRETCH_S);
    stk_evidence evidence = evidence_between(monitor, from, &monitor->now);
    if (monitor->largest_batch < 0) {
        monitor->largest_batch = stk_batch_search_largest(monitor->config.search);
        evidence.largest_batch = monitor->largest_batch;
    }
    if (!monitor->quick_emitted && evidence.steps >= QUICK_STEPS && evidence.seconds >= QUICK_S) {
        monitor->quick_emitted = true;
        emit_verdict(monitor, &evidence, true);
    }
    bool due = evidence.seconds >= STRETCH_S - LOOK_GAP_S &&
               monitor->now.at_s - monitor->verdict_s >= JUDGE_GAP_S;
    if (!due) {
        return;
    }
    stk_verdict seen;
    stk_verdict_judge(&evidence, false, &seen);
    bool news = !monitor->steady_emitted ||
                (seen.kind != monitor->last_emitted && seen.kind == monitor->last_seen);
    monitor->verdict_s = monitor->now.at_s;
    monitor->last_seen = seen.kind;
    if (news) {
        monitor->last_emitted = seen.kind;
        monitor->steady_emitted = true;
        emit_verdict(monitor, &evidence, false);
    }
}

/* ---- tuning ---- */

static void apply(stk_training_monitor *monitor, const stk_tune_advice *advice,
                  stk_train_orders *orders) {
    switch (advice->setting) {
    case STK_TUNE_WORKERS:
        orders->workers = advice->value;
        break;
    case STK_TUNE_SLOTS:
        orders->slots = advice->value;
        break;
    default:
        monitor->cached = advice->value;
        (void)stk_store_use_cache(monitor->config.store, advice->value > 0);
        break;
    }
}

/* The interval for --tune. Settings that the loader tunes by itself are left to the loader. */
static stk_tune_interval stretch_of(const stk_training_monitor *monitor,
                                    const stk_evidence *evidence) {
    const stk_loader_sizing *plan = &monitor->config.recipe->loader;
    const stk_loader_counters *loader = &monitor->now.loader;
    int cached = monitor->cached;
    int waits = stk_store_cache_waits(monitor->config.store);
    stk_verdict verdict;
    stk_verdict_judge(evidence, false, &verdict);
    return (stk_tune_interval){.seconds = evidence->seconds,
                               .images_per_second = evidence->images_per_second,
                               .verdict = verdict.kind,
                               .epoch = monitor->now.epoch,
                               .now = {loader->workers, loader->slots, cached},
                               .most = {plan->tune_workers ? loader->workers : plan->room_workers,
                                        plan->tune_slots ? loader->slots : plan->room_slots,
                                        cached + waits}};
}

static void tune(stk_training_monitor *monitor, stk_train_orders *orders) {
    if (monitor->tuned.steps == 0) {
        monitor->tuned = monitor->now;
    }
    stk_evidence evidence = evidence_between(monitor, &monitor->tuned, &monitor->now);
    if (evidence.seconds < TUNE_S || evidence.steps < TUNE_STEPS) {
        return;
    }
    stk_tune_interval stretch = stretch_of(monitor, &evidence);
    stk_tune_advice advice = stk_tune_after(&monitor->tune, &stretch);
    monitor->tuned = monitor->now;
    if (advice.action == STK_TUNE_TRY || advice.action == STK_TUNE_TAKE_BACK) {
        apply(monitor, &advice, orders);
    }
    if (advice.action == STK_TUNE_KEEP && advice.setting == STK_TUNE_WORKERS) {
        monitor->workers = advice.value;
    }
    if (advice.action != STK_TUNE_NOTHING) {
        stk_events_decision(monitor->config.events, advice.what, advice.why);
    }
}

/* ---- looking ---- */

static void begin_fold(stk_training_monitor *monitor) {
    monitor->fold_ns = stk_clock_ns();
    monitor->snapshots = 0;
    monitor->looked_s = 0;
    monitor->verdict_s = 0;
    monitor->quick_emitted = monitor->quick_emitted || monitor->steady_emitted;
    monitor->steady_emitted = false;
    monitor->now = (counter_snapshot){0};
    monitor->tuned = (counter_snapshot){0};
}

static void take_counts(stk_training_monitor *monitor, const stk_train_standing *standing) {
    counter_snapshot *now = &monitor->now;
    now->at_s = stk_clock_since_s(monitor->fold_ns);
    now->steps = standing->steps_timed;
    now->epoch = standing->epoch;
    now->times = standing->times;
    now->copy_s = standing->copy_s;
    now->loader = standing->loader;
    stk_store_stats(monitor->config.store, &now->store);
}

static stk_event_sample training_between(const stk_training_monitor *monitor,
                                         const counter_snapshot *a, const counter_snapshot *b) {
    stk_times times = stk_times_between(&a->times, &b->times);
    stk_shares shares = stk_shares_of(&times);
    double rate = per(trained_between(monitor, a, b), shares.training_s);
    return (stk_event_sample){.images_per_second = rate,
                              .wait_fraction = shares.wait,
                              .batches_ready = (int)b->loader.batches_ready,
                              .slots = b->loader.slots,
                              .workers = b->loader.workers};
}

/* Tells once that the device decodes no more. */
static void look_for_loss(stk_training_monitor *monitor) {
    if (!monitor->told_loss) {
        monitor->told_loss =
            stk_opened_decoder_warn_lost(&monitor->config.network->decoder, monitor->config.events);
    }
}

void stk_training_monitor_step(stk_training_monitor *monitor, const stk_train_standing *standing,
                               stk_train_orders *orders) {
    bool anew = standing->steps_timed < monitor->now.steps ||
                standing->loader.batches < monitor->now.loader.batches;
    if (monitor->fold_ns == 0 || anew) {
        begin_fold(monitor);
    }
    if (anew) { /* training went back, or to another size: times go on, steps begin again */
        take_counts(monitor, standing);
    }
    double now_s = stk_clock_since_s(monitor->fold_ns);
    if (standing->steps_timed < WARM_STEPS || now_s - monitor->looked_s < LOOK_GAP_S) {
        return;
    }
    counter_snapshot before = monitor->now;
    monitor->looked_s = now_s;
    look_for_loss(monitor);
    take_counts(monitor, standing);
    stk_event_sample training = training_between(monitor, &before, &monitor->now);
    emit_samples(monitor, &training);
    if (standing->frozen_left > 0) { /* steps in which only the head learns say little */
        return;
    }
    monitor->ring[monitor->snapshots++ % SNAPSHOTS] = monitor->now;
    judge(monitor);
    if (monitor->config.tune && !orders->stop) {
        tune(monitor, orders);
    }
}

static void conclude(stk_training_monitor *monitor) {
    stk_evidence evidence = evidence_between(monitor, snapshot_before(monitor, 0), &monitor->now);
    if (evidence.steps >= QUICK_STEPS && evidence.seconds >= LOOK_GAP_S) {
        monitor->steady_emitted = true;
        emit_verdict(monitor, &evidence, false);
        monitor->last_emitted = monitor->verdict.kind;
    }
}

void stk_training_monitor_end_fold(stk_training_monitor *monitor) {
    if (monitor->fold_ns != 0 && monitor->snapshots > 0 && !monitor->steady_emitted) {
        conclude(monitor);
    }
    stk_tune_fold_ended(&monitor->tune);
    monitor->fold_ns = 0;
}

const char *stk_training_monitor_verdict(const stk_training_monitor *monitor) {
    return monitor != NULL && monitor->verdict.kind != STK_VERDICT_UNKNOWN
               ? stk_verdict_name(monitor->verdict.kind)
               : NULL;
}

int stk_training_monitor_workers(const stk_training_monitor *monitor) {
    return monitor->workers;
}
