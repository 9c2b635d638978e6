/*
 * training_monitor.c - from what training and the machine count to samples and verdicts.
 *
 * Everything is counted from the start of a fold. Once a second the counts are kept, so that the
 * difference of two such glances is what a stretch of training showed.
 */
#include "job/training_monitor.h"

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

#define LOOK_GAP_S 1.0
#define STRETCH_S 60.0   /* that a verdict which counts is about */
#define JUDGE_GAP_S 10.0 /* between two of them: a change has to last so long */
#define GLANCES 64       /* a stretch, and some more */

/* What --tune judges by. */
#define TUNE_S 4.0
#define TUNE_STEPS 10

/* How often a step goes through the weights, by how often its optimiser does. */
#define WEIGHT_PASSES 2.6

/* A quick verdict needs so much at least; the first steps warm everything up. */
#define QUICK_STEPS 5
#define QUICK_S 2.0
#define WARM_STEPS 2

/* What samples show, added up. */
enum {
    SHOWN_UTIL,
    SHOWN_SM,
    SHOWN_MEMORY,
    SHOWN_MEMORY_TOTAL,
    SHOWN_CLOCK,
    SHOWN_THROTTLED,
    SHOWN_CPU,
    SHOWN_OWN,
    SHOWN_IOWAIT,
    SHOWN_COUNT
};

typedef struct sum {
    double total;
    double count;
} sum;

/* The counts at one moment. */
typedef struct glance {
    double at_s; /* of the fold */
    int64_t steps;
    int epoch;
    stk_times times;
    double copy_s; /* pictures travelled to the device */
    stk_loader_counters loader;
    stk_store_counters store;
    sum shown[SHOWN_COUNT];
} glance;

struct stk_training_monitor {
    stk_machine_sampler *sampler; /* NULL: the machine is not looked at */
    glance now;                   /* running */
    glance ring[GLANCES];         /* the last ones */
    size_t kept;                  /* all that there were of this fold */
    int64_t fold_ns;              /* when the fold began; 0: none is trained */
    double looked_s;              /* of the fold: the last look */
    double judged_s;              /* the same: the last verdict that was thought of */
    glance tuned;                 /* where the stretch began that --tune judges next */
    int cached;                   /* 1: --tune has turned a cache on */
    bool quick;                   /* a quick verdict was told */
    bool counted;                 /* one that counts was told in this fold */
    bool warned;                  /* what the machine does not show was told */
    char throttled[64];           /* what last held the GPU's clock down */
    int64_t largest_batch;        /* that the memory has room for */
    stk_verdict_kind told;        /* the last verdict that counts */
    stk_verdict_kind before;      /* the last that was thought of */
    stk_verdict verdict;
    stk_tune tune;
};

static const char *bus_id(const stk_job *job) {
    const stk_opened_device *opened = &job->choice.opened;
    return opened->backend->bus_id != NULL ? opened->backend->bus_id(opened->device) : NULL;
}

/* The largest batch that fits, as if it were asked for. */
static int64_t largest_batch(const stk_job *job) {
    stk_batch_facts facts = job->batch.facts;
    facts.given = 0;
    facts.accumulate = 1;
    facts.policy = STK_BATCH_FILL;
    return (int64_t)stk_batch_plan(&facts).batch;
}

stk_status stk_training_monitor_open(stk_job *job, stk_error *err) {
    stk_training_monitor *monitor = stk_mem_new(1, sizeof *monitor);
    if (monitor == NULL) {
        return STK_FAIL_MEMORY(err, "the monitor");
    }
    job->monitor = monitor;
    monitor->largest_batch = -1;
    const char *gpu = bus_id(job);
    stk_machine_sampler_config config = {.gpu_bus_ids = &gpu,
                                         .gpu_count = gpu != NULL ? 1 : 0,
                                         .start_ns = job->clock.start_ns -
                                                     (int64_t)(job->resume.used_s * 1e9)};
    stk_error why = {0};
    if (stk_machine_sampler_start(&monitor->sampler, &config, &why) != STK_OK) {
        stk_events_warning(&job->events, "going on without samples of the machine: %s",
                           why.message);
    }
    return STK_OK;
}

void stk_training_monitor_close(stk_job *job) {
    if (job->monitor != NULL) {
        stk_machine_sampler_stop(job->monitor->sampler);
        stk_mem_free(job->monitor);
        job->monitor = NULL;
    }
}

/* ---- samples ---- */

static void add(sum *s, double value) {
    if (!isnan(value)) {
        s->total += value;
        s->count++;
    }
}

static void count_sample(stk_training_monitor *monitor, const stk_event_sample *sample) {
    sum *shown = monitor->now.shown;
    bool throttled = sample->gpu_throttled != NULL && sample->gpu_throttled[0] != '\0';
    add(&shown[SHOWN_UTIL], sample->gpu_util);
    add(&shown[SHOWN_SM], sample->sm_activity);
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

/* All that came since the last look; `training` has what training did meanwhile. */
static void tell_samples(stk_job *job, const stk_event_sample *training) {
    stk_training_monitor *monitor = job->monitor;
    stk_event_sample sample;
    while (stk_machine_sampler_take(monitor->sampler, &sample)) {
        sample.images_per_second = training->images_per_second;
        sample.wait_fraction = training->wait_fraction;
        sample.batches_ready = training->batches_ready;
        sample.slots = training->slots;
        sample.workers = training->workers;
        count_sample(monitor, &sample);
        stk_events_sample(&job->events, &sample);
    }
    const char *notes = stk_machine_sampler_notes(monitor->sampler);
    if (!monitor->warned && notes[0] != '\0') {
        stk_events_decision(&job->events, "not all of the machine can be watched", notes);
        monitor->warned = true;
    }
}

void stk_training_monitor_emit_samples(stk_job *job) {
    stk_event_sample nothing = {.images_per_second = NAN,
                                .wait_fraction = NAN,
                                .batches_ready = -1,
                                .slots = -1,
                                .workers = -1};
    if (job->monitor != NULL) {
        tell_samples(job, &nothing);
    }
}

/* ---- a stretch ---- */

static double mean(const sum *a, const sum *b) {
    return b->count > a->count ? (b->total - a->total) / (b->count - a->count) : NAN;
}

static double seconds(uint64_t from_ns, uint64_t to_ns) {
    return (double)(to_ns - from_ns) * 1e-9;
}

static double per(double count, double time_s) {
    return time_s > 0 ? count / time_s : NAN;
}

/* Of all workers: decoding and what comes behind it. */
static double decoded_s(const glance *a, const glance *b) {
    return seconds(a->loader.decode_ns, b->loader.decode_ns) +
           seconds(a->loader.augment_ns, b->loader.augment_ns);
}

/* Images of the steps. */
static double trained_between(const stk_job *job, const glance *a, const glance *b) {
    return (double)(b->steps - a->steps) * (double)job->choice.batch;
}

/*
 * Of a step: what does not grow with the batch, at least. On a CPU the weights are gone through by
 * the optimiser (about five times) and by forward and backward (about eight times, packing
 * included) whatever the batch is; on a GPU it is the time in which kernels ran and multiprocessors
 * had nothing to do, which larger batches fill.
 */
static double fixed_s(const stk_evidence *e) {
    double device_s = e->times.compute_s + e->times.update_s;
    bool seen = e->gpu_util > 0 && e->sm_activity >= 0;
    double idle = seen ? fmax(1 - e->sm_activity / e->gpu_util, 0) : NAN;
    double passes_s = fmin(WEIGHT_PASSES * e->times.update_s, device_s);
    return per(e->is_gpu ? idle * device_s : passes_s, (double)e->steps);
}

/* How fast each stage was by itself. What did not limit shows no rate of its own. */
static stk_rates rates_between(const stk_job *job, const glance *a, const glance *b,
                               const stk_evidence *e) {
    const stk_loader_counters *x = &a->loader;
    const stk_loader_counters *y = &b->loader;
    double images = (double)(y->images - x->images);
    double trained = trained_between(job, a, b);
    double copy_s = b->copy_s - a->copy_s;
    bool by_storage = e->storage_share > 0.5 && e->times.read_s > 0;
    return (stk_rates){.storage = by_storage ? e->images_per_second : INFINITY,
                       .decode = per(images, decoded_s(a, b)),
                       .workers = y->workers,
                       .cores = stk_machine_cores(),
                       .copy = copy_s > 0 ? per(trained, copy_s) : INFINITY,
                       .step = per(trained, e->times.compute_s + e->times.update_s),
                       .on_host = !e->is_gpu,
                       .batch = (int64_t)job->choice.batch,
                       .fixed_s = fixed_s(e),
                       .source_px = per((double)(y->source_px - x->source_px), images),
                       .img_size = job->choice.img_size,
                       .images = (int64_t)job->batch.facts.train_count};
}

static stk_evidence evidence_between(const stk_job *job, const glance *a, const glance *b) {
    const stk_training_monitor *monitor = job->monitor;
    double hits = (double)(b->store.cache_hits - a->store.cache_hits);
    double misses = (double)(b->store.cache_misses - a->store.cache_misses);
    double starved_s = seconds(a->loader.read_wait_ns, b->loader.read_wait_ns);
    stk_evidence e = {
        .seconds = b->at_s - a->at_s,
        .steps = b->steps - a->steps,
        .times = stk_times_between(&a->times, &b->times),
        .is_gpu = !stk_opened_device_is_cpu(&job->choice.opened),
        .may_tune_workers = job->choice.loader.tune_workers,
        .prefetch = job->choice.loader.prefetch,
        .storage_share = per(starved_s, starved_s + decoded_s(a, b)),
        .is_remote = stk_store_is_remote(job->dataset->source),
        .has_cache = hits + misses > 0,
        .is_staged = stk_store_has_shards(job->dataset->source),
        .first_epoch = a->epoch <= 1,
        .cache_hits = per(hits, hits + misses),
        .cache_room = (double)stk_storage_memory_room(),
        .gpu_util = mean(&a->shown[SHOWN_UTIL], &b->shown[SHOWN_UTIL]),
        .sm_activity = mean(&a->shown[SHOWN_SM], &b->shown[SHOWN_SM]),
        .gpu_memory_used = mean(&a->shown[SHOWN_MEMORY], &b->shown[SHOWN_MEMORY]),
        .gpu_memory_total = mean(&a->shown[SHOWN_MEMORY_TOTAL], &b->shown[SHOWN_MEMORY_TOTAL]),
        .gpu_clock = mean(&a->shown[SHOWN_CLOCK], &b->shown[SHOWN_CLOCK]),
        .throttled = monitor->throttled,
        .throttled_share = mean(&a->shown[SHOWN_THROTTLED], &b->shown[SHOWN_THROTTLED]),
        .cpu = mean(&a->shown[SHOWN_CPU], &b->shown[SHOWN_CPU]),
        .cpu_own = mean(&a->shown[SHOWN_OWN], &b->shown[SHOWN_OWN]),
        .iowait = mean(&a->shown[SHOWN_IOWAIT], &b->shown[SHOWN_IOWAIT]),
        .precision = stk_precision_name(job->choice.opened.precision),
        .largest_batch = monitor->largest_batch};
    e.images_per_second = per(trained_between(job, a, b), stk_shares_of(&e.times).training_s);
    e.rates = rates_between(job, a, b, &e);
    return e;
}

/* The glance that is about so long ago, or the first one. */
static const glance *glance_before(const stk_training_monitor *monitor, double at_s) {
    size_t first = monitor->kept > GLANCES ? monitor->kept - GLANCES : 0;
    size_t i = first;
    while (i + 1 < monitor->kept && monitor->ring[(i + 1) % GLANCES].at_s <= at_s) {
        i++;
    }
    return &monitor->ring[i % GLANCES];
}

/* ---- verdicts ---- */

static void tell_verdict(stk_job *job, const stk_evidence *evidence, bool first) {
    stk_training_monitor *monitor = job->monitor;
    stk_verdict_judge(evidence, first, &monitor->verdict);
    if (monitor->verdict.kind != STK_VERDICT_UNKNOWN) {
        stk_events_verdict(&job->events, &monitor->verdict.event);
    }
}

static void judge(stk_job *job) {
    stk_training_monitor *monitor = job->monitor;
    const glance *from = glance_before(monitor, monitor->now.at_s - STRETCH_S);
    stk_evidence evidence = evidence_between(job, from, &monitor->now);
    if (monitor->largest_batch < 0) {
        monitor->largest_batch = largest_batch(job);
        evidence.largest_batch = monitor->largest_batch;
    }
    if (!monitor->quick && evidence.steps >= QUICK_STEPS && evidence.seconds >= QUICK_S) {
        monitor->quick = true;
        tell_verdict(job, &evidence, true);
    }
    bool due = evidence.seconds >= STRETCH_S - LOOK_GAP_S &&
               monitor->now.at_s - monitor->judged_s >= JUDGE_GAP_S;
    if (!due) {
        return;
    }
    stk_verdict seen;
    stk_verdict_judge(&evidence, false, &seen);
    bool news = !monitor->counted || (seen.kind != monitor->told && seen.kind == monitor->before);
    monitor->judged_s = monitor->now.at_s;
    monitor->before = seen.kind;
    if (news) {
        monitor->told = seen.kind;
        monitor->counted = true;
        tell_verdict(job, &evidence, false);
    }
}

/* ---- tuning ---- */

static void apply(stk_job *job, const stk_tune_advice *advice, stk_train_pace *pace) {
    switch (advice->setting) {
    case STK_TUNE_WORKERS:
        pace->workers = advice->value;
        break;
    case STK_TUNE_SLOTS:
        pace->slots = advice->value;
        break;
    default:
        job->monitor->cached = advice->value;
        (void)stk_store_use_cache(job->dataset->source, advice->value > 0);
        break;
    }
}

/* A number that the loader tunes by itself is left to it. */
static stk_tune_interval stretch_of(const stk_job *job, const stk_evidence *evidence) {
    const stk_loader_sizing *plan = &job->choice.loader;
    const stk_loader_counters *loader = &job->monitor->now.loader;
    int cached = job->monitor->cached;
    int waits = stk_store_cache_waits(job->dataset->source);
    stk_verdict verdict;
    stk_verdict_judge(evidence, false, &verdict);
    return (stk_tune_interval){.seconds = evidence->seconds,
                               .images_per_second = evidence->images_per_second,
                               .verdict = verdict.kind,
                               .epoch = job->monitor->now.epoch,
                               .now = {loader->workers, loader->slots, cached},
                               .most = {plan->tune_workers ? loader->workers : plan->room_workers,
                                        plan->tune_slots ? loader->slots : plan->room_slots,
                                        cached + waits}};
}

static void tune(stk_job *job, stk_train_pace *pace) {
    stk_training_monitor *monitor = job->monitor;
    if (monitor->tuned.steps == 0) {
        monitor->tuned = monitor->now;
    }
    stk_evidence evidence = evidence_between(job, &monitor->tuned, &monitor->now);
    if (evidence.seconds < TUNE_S || evidence.steps < TUNE_STEPS) {
        return;
    }
    stk_tune_interval stretch = stretch_of(job, &evidence);
    stk_tune_advice advice = stk_tune_after(&monitor->tune, &stretch);
    monitor->tuned = monitor->now;
    if (advice.action == STK_TUNE_TRY || advice.action == STK_TUNE_TAKE_BACK) {
        apply(job, &advice, pace);
    }
    if (advice.action == STK_TUNE_KEEP && advice.setting == STK_TUNE_WORKERS) {
        job->choice.loader.workers = advice.value; /* for folds and predictions to come */
    }
    if (advice.action != STK_TUNE_NOTHING) {
        stk_events_decision(&job->events, advice.what, advice.why);
    }
}

/* ---- looking ---- */

static void begin_fold(stk_training_monitor *monitor) {
    monitor->fold_ns = stk_clock_ns();
    monitor->kept = 0;
    monitor->looked_s = 0;
    monitor->judged_s = 0;
    monitor->quick = monitor->quick || monitor->counted;
    monitor->counted = false;
    monitor->now = (glance){0};
    monitor->tuned = (glance){0};
}

static void take_counts(stk_job *job, const stk_train_progress *progress) {
    glance *now = &job->monitor->now;
    now->at_s = stk_clock_since_s(job->monitor->fold_ns);
    now->steps = progress->steps_timed;
    now->epoch = progress->epoch;
    now->times = progress->times;
    now->copy_s = progress->copy_s;
    now->loader = progress->loader;
    stk_store_stats(job->dataset->source, &now->store);
}

static stk_event_sample training_between(const stk_job *job, const glance *a, const glance *b) {
    stk_times times = stk_times_between(&a->times, &b->times);
    stk_shares shares = stk_shares_of(&times);
    double rate = per(trained_between(job, a, b), shares.training_s);
    return (stk_event_sample){.images_per_second = rate,
                              .wait_fraction = shares.wait,
                              .batches_ready = (int)b->loader.batches_ready,
                              .slots = b->loader.slots,
                              .workers = b->loader.workers};
}

void stk_training_monitor_step(stk_job *job, const stk_train_progress *progress,
                               stk_train_pace *pace) {
    stk_training_monitor *monitor = job->monitor;
    bool anew = progress->steps_timed < monitor->now.steps ||
                progress->loader.batches < monitor->now.loader.batches; /* training went back */
    if (monitor->fold_ns == 0 || anew) {
        begin_fold(monitor);
    }
    double now_s = stk_clock_since_s(monitor->fold_ns);
    if (progress->steps_timed < WARM_STEPS || now_s - monitor->looked_s < LOOK_GAP_S) {
        return;
    }
    glance before = monitor->now;
    monitor->looked_s = now_s;
    take_counts(job, progress);
    stk_event_sample training = training_between(job, &before, &monitor->now);
    tell_samples(job, &training);
    monitor->ring[monitor->kept++ % GLANCES] = monitor->now;
    judge(job);
    if (job->job_options->tune && !pace->stop) {
        tune(job, pace);
    }
}

static void conclude(stk_job *job) {
    stk_training_monitor *monitor = job->monitor;
    stk_evidence evidence = evidence_between(job, glance_before(monitor, 0), &monitor->now);
    if (evidence.steps >= QUICK_STEPS && evidence.seconds >= LOOK_GAP_S) {
        monitor->counted = true;
        tell_verdict(job, &evidence, false);
        monitor->told = monitor->verdict.kind;
    }
}

void stk_training_monitor_end_fold(stk_job *job) {
    stk_training_monitor *monitor = job->monitor;
    if (monitor->fold_ns != 0 && monitor->kept > 0 && !monitor->counted) {
        conclude(job);
    }
    stk_tune_fold_ended(&monitor->tune);
    monitor->fold_ns = 0;
}

const char *stk_training_monitor_verdict(const stk_job *job) {
    return job->monitor != NULL && job->monitor->verdict.kind != STK_VERDICT_UNKNOWN
               ? stk_verdict_name(job->monitor->verdict.kind)
               : NULL;
}
