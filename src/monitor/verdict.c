/*
 * verdict.c - the table of rules, in the order in which they are tried.
 *
 * An early stage hides the later ones: while a GPU waits for data, its batch size does not matter.
 * So the rules follow the data from storage to the device and then judge the device. Other programs
 * on the cores come before the stage that they slow down. If no rule fits, the run is fine.
 */
#include "monitor/verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "monitor/remedies.h"
#include "monitor/shares.h"

/* Thresholds, explained to users in docs/verdicts.md. Shares are 0 to 1, percentages 0 to 100. */
#define LEAST_STEPS 3          /* fewest steps to judge by; seconds where steps are unknown */
#define INPUT_WAIT 0.05        /* share of training time from which on the input limits */
#define COPY_WAIT 0.05         /* share of training time from which on copies limit */
#define THROTTLED_SHARE 0.3333 /* of the samples */
#define CLOCK_LOW 0.90         /* of the highest clock */
#define LAUNCH_OTHER 0.20      /* share of training time in launching and the like */
#define FIXED_LARGE 0.30       /* share of a step that does not grow with the batch */
#define SM_LOW 40.0            /* percent */
#define UTIL_WARN 70.0         /* percent */
#define BATCHES_WARN 100.0     /* a minute */
#define CPU_BUSY 85.0          /* percent */
#define OTHERS_NOISY 25.0      /* percentage points of the cores that others use */
#define ENGINES_BUSY 90.0      /* percent */
#define ENGINES_SHARE 0.5      /* of the pictures that the device decodes */

/* Shares of all time that validations take. Above the first, mean utilisation says little of
 * training; above the second, faster training helps the run little. */
#define ASIDE_SHARE 0.20
#define ASIDE_MOST 0.50

/* Share of time computing from which on a supervised command depends on cores. */
#define FOREIGN_COMPUTES 0.25

/* The evidence and the figures derived from it. */
typedef struct verdict_findings {
    const stk_evidence *e;
    bool first; /* the first steps' preparations distort other_s and the samples */
    stk_shares shares;
    bool is_read;           /* reading is a larger part of the wait than decoding */
    stk_rates rates;        /* from which gains are predicted */
    double fixed;           /* share of a step that does not grow with the batch; NaN: unknown */
    double per_minute;      /* batches */
    stk_larger_batch batch; /* best larger batch, whether it fits in memory or not */
} verdict_findings;

/* A sentence that is written piece by piece and cut to the size of its buffer. */
typedef struct sentence {
    char *text;
    size_t size;
    size_t length;
} sentence;

static STK_PRINTF(2, 3) void say(sentence *w, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(w->text + w->length, w->size - w->length, format, args);
    va_end(args);
    size_t room = w->size - w->length - 1;
    w->length += (size_t)length < room ? (size_t)length : room;
}

/* "2.1x"; small gains get two digits: "1.04x". */
static stk_rate_text times(double gain) {
    stk_rate_text s;
    snprintf(s.text, sizeof s.text, gain < 1.095 ? "%.2fx" : "%.1fx", gain);
    return s;
}

static double percent(double share) {
    return 100 * share;
}

static bool is_rate(double value) {
    return value > 0 && isfinite(value);
}

/* ---- The evidence ---- */

static bool reads_more_than_it_decodes(const stk_evidence *e, const stk_shares *s) {
    double both = s->read + s->decode;
    return both > 0 ? s->read > s->decode : e->storage_share > 0.5;
}

/* The share of the pictures that the device decoded; 0 where it is not known. */
static double decoded_there(const stk_evidence *e) {
    return e->device_decoded > 0 ? fmin(e->device_decoded, 1) : 0;
}

/* Where its use is not known, the device is taken to be busy. */
static bool has_busy_engines(const stk_evidence *e) {
    return !(e->jpeg_util <= ENGINES_BUSY);
}

/*
 * What cores and device decode when training waited for both. An idle device waits for pictures
 * that it can decode, so that more of them are not to be had. A busy one decoded all that it can;
 * so did the cores, where whoever has time decodes.
 */
static void hold_both(stk_rates *r, const verdict_findings *v, int busy) {
    double measured = v->e->images_per_second;
    double share = decoded_there(v->e);
    bool by_device = share == 1 || has_busy_engines(v->e);
    if (by_device) {
        r->device_decode = fmin(r->device_decode, measured * share);
    } else {
        r->device_share = share;
    }
    if (share < 1 && busy > 0 && !(by_device && r->device_first)) {
        r->decode = fmin(r->decode, measured * (1 - share) / busy);
    }
}

/*
 * The stage that limits cannot be faster than training was: counters that say so miss a part of its
 * cost. Not for decoding on cores that also compute the step, where decoding alone is faster.
 */
static void hold_to_measured(stk_rates *r, const verdict_findings *v) {
    double measured = v->e->images_per_second;
    if (v->shares.wait < INPUT_WAIT || !is_rate(measured)) {
        return;
    }
    int busy = r->workers < r->cores ? r->workers : r->cores;
    if (v->is_read) {
        r->storage = fmin(r->storage, measured);
    } else if (decoded_there(v->e) > 0) {
        hold_both(r, v, busy);
    } else if (busy > 0 && !(r->on_host && r->decode > 0)) {
        r->decode = fmin(r->decode, measured / busy);
    }
}

/* Launching is a part of every step and does not grow with the batch. */
static void add_launching(stk_rates *r, const verdict_findings *v) {
    double other_s = v->shares.other * v->shares.training_s / (double)v->e->steps;
    if (v->first || v->e->steps < 1 || !(other_s > 0) || !is_rate(r->step) || r->batch < 1) {
        return;
    }
    r->step = (double)r->batch / ((double)r->batch / r->step + other_s);
    r->fixed_s = (r->fixed_s > 0 ? r->fixed_s : 0) + other_s;
}

static verdict_findings findings_of(const stk_evidence *e, bool first) {
    /* The first interval of a supervised command begins after its preparations. */
    verdict_findings v = {.e = e,
                          .first = first && !e->is_foreign,
                          .shares = stk_shares_of(&e->times),
                          .rates = e->rates};
    v.is_read = reads_more_than_it_decodes(e, &v.shares);
    /* Unless pictures of other kinds are known to be many, the device may decode all. */
    v.rates.device_share = decoded_there(e) == 0 ? 0 : e->rates.device_first ? decoded_there(e) : 1;
    v.per_minute = v.shares.training_s > 0 && e->steps >= 0
                       ? 60 * (double)e->steps / v.shares.training_s
                       : NAN;
    hold_to_measured(&v.rates, &v);
    add_launching(&v.rates, &v);
    v.fixed = v.rates.fixed_s * v.rates.step / (double)v.rates.batch;
    v.batch = stk_remedies_batch(e, &v.rates, false);
    return v;
}

/* ---- The rules ---- */

static bool is_unknown(const verdict_findings *v) {
    bool uncounted = v->e->is_foreign && v->e->steps < 0;
    double seen = uncounted ? v->e->seconds : (double)v->e->steps;
    return !(seen >= LEAST_STEPS) || v->shares.training_s == 0;
}

static bool waits(const verdict_findings *v) {
    return v->shares.wait >= INPUT_WAIT;
}

static bool has_noisy_others(const verdict_findings *v) {
    return v->e->cpu > CPU_BUSY && v->e->cpu - v->e->cpu_own > OTHERS_NOISY;
}

/* The device decodes most pictures, and its engines can do no more. */
static bool is_engines(const verdict_findings *v) {
    return waits(v) && !v->is_read && v->e->device_decoded >= ENGINES_SHARE &&
           v->e->jpeg_util > ENGINES_BUSY;
}

/* Other programs slow down decoding on the cores; reading does not need them. */
static bool is_neighbour_of_decoding(const verdict_findings *v) {
    return waits(v) && !v->is_read && !is_engines(v) && has_noisy_others(v);
}

/* Other programs slow down a step on the host. A supervised command may not compute at all. */
static bool is_neighbour_of_step(const verdict_findings *v) {
    bool computes = !v->e->is_foreign || v->shares.compute > FOREIGN_COMPUTES;
    return !v->e->is_gpu && computes && has_noisy_others(v);
}

static bool is_copy(const verdict_findings *v) {
    const stk_shares *s = &v->shares;
    return s->copy > COPY_WAIT && s->copy > s->read && s->copy > s->decode && s->copy > s->queue;
}

static bool is_storage(const verdict_findings *v) {
    return waits(v) && v->is_read;
}

static bool is_warming(const verdict_findings *v) {
    return is_storage(v) && v->e->first_epoch && v->e->has_cache &&
           !(v->e->cache_hits >= STK_CACHE_FULL);
}

static bool is_decode(const verdict_findings *v) {
    return waits(v) && !v->is_read;
}

static bool is_throttled(const verdict_findings *v) {
    return v->e->throttled != NULL && v->e->throttled[0] != '\0' &&
           v->e->throttled_share > THROTTLED_SHARE && v->e->gpu_clock < CLOCK_LOW;
}

static bool is_memory(const verdict_findings *v) {
    return v->batch.gain >= STK_BATCH_WORTH && stk_remedies_memory_full(v->e);
}

/* The GPU was hardly busy; not judged where validations and checkpoints take long. */
static bool is_underused(const verdict_findings *v) {
    const stk_times *t = &v->e->times;
    return !v->first && v->e->gpu_util < UTIL_WARN &&
           v->shares.training_s > (1 - ASIDE_SHARE) * t->total_s;
}

static bool is_launch(const verdict_findings *v) {
    bool by_fixed = v->fixed > FIXED_LARGE && v->batch.gain >= STK_BATCH_WORTH;
    if (!v->e->is_gpu) {
        return by_fixed;
    }
    bool by_other = !v->first && v->shares.other > LAUNCH_OTHER;
    bool by_activity = !v->first && v->e->sm_activity < SM_LOW && !(v->fixed <= FIXED_LARGE);
    return by_fixed || by_other || by_activity || is_underused(v);
}

static bool is_slow(const verdict_findings *v) {
    return v->per_minute < BATCHES_WARN;
}

static bool is_compute(const verdict_findings *v) {
    return is_slow(v) || v->batch.gain >= STK_BATCH_WORTH;
}

static bool is_fine(const verdict_findings *v) {
    (void)v;
    return true;
}

/* ---- The sentences ---- */

static const char *who(const verdict_findings *v) {
    return v->e->is_gpu ? "GPU" : "training";
}

static const char *taker(const verdict_findings *v) {
    return v->e->is_gpu ? "the GPU" : "the step";
}

/* Warnings on low utilisation and few steps, only where there is a remedy. */
static void say_warnings(sentence *w, const verdict_findings *v) {
    if (v->e->is_gpu && is_underused(v)) {
        say(w, "; GPU utilisation is only %.0f %%", v->e->gpu_util);
    }
    if (is_slow(v)) {
        say(w, "; only %s batches a minute", stk_rates_text(v->per_minute).text);
    }
}

/* A verdict is about training; says so where most of the time goes elsewhere. */
static void say_aside(sentence *w, const verdict_findings *v) {
    double total_s = v->e->times.total_s;
    if (!v->first && v->shares.training_s > 0 &&
        v->shares.training_s < (1 - ASIDE_MOST) * total_s) {
        say(w, "; validations and checkpoints take %.0f %% of all time",
            percent(1 - v->shares.training_s / total_s));
    }
}

static void say_taken(sentence *w, const verdict_findings *v) {
    if (is_rate(v->e->rates.step)) {
        say(w, ", %s takes %s", taker(v), stk_rates_text(v->e->rates.step).text);
    }
}

/* Who decodes, where it is not the workers alone. */
static void say_device(sentence *w, const verdict_findings *v) {
    if (decoded_there(v->e) > 0) {
        say(w, "; %.0f %% of the pictures are decoded by the GPU%s", percent(decoded_there(v->e)),
            v->e->decode_engines > 0 ? "'s engines" : "");
    }
}

static void say_unknown(sentence *w, const verdict_findings *v) {
    (void)v;
    say(w, "too little was seen");
}

static void say_fine(sentence *w, const verdict_findings *v) {
    say(w, "%s waits %.0f %% for data; %s img/s, %s batches a minute", who(v),
        percent(v->shares.wait), stk_rates_text(v->e->images_per_second).text,
        stk_rates_text(v->per_minute).text);
    if (v->e->gpu_util >= 0) {
        say(w, ", GPU utilisation %.0f %%", v->e->gpu_util);
    }
    say_device(w, v);
}

static void say_storage(sentence *w, const verdict_findings *v) {
    say(w, "%s waits %.0f %% (storage)", who(v), percent(v->shares.wait));
    if (is_rate(v->e->rates.storage)) {
        say(w, "; storage gives %s img/s", stk_rates_text(v->e->rates.storage).text);
        say_taken(w, v);
    }
}

/* What device and workers decode together. */
static void say_both(sentence *w, const verdict_findings *v) {
    double given = stk_rates_of(&v->rates, STK_STAGE_DECODE);
    say_device(w, v);
    if (is_engines(v)) {
        say(w, ", which are the limit: they are busy %.0f %% of the time", v->e->jpeg_util);
    }
    if (is_rate(given)) {
        say(w, "; decoding gives %s img/s", stk_rates_text(given).text);
        say_taken(w, v);
    }
}

static void say_decode(sentence *w, const verdict_findings *v) {
    double given = stk_rates_of(&v->e->rates, STK_STAGE_DECODE);
    say(w, "%s waits %.0f %% (decode)", who(v), percent(v->shares.wait));
    if (decoded_there(v->e) > 0) {
        say_both(w, v);
    } else if (is_rate(given)) {
        int workers = v->e->rates.workers;
        say(w, "; %d %s %s img/s", workers, workers == 1 ? "worker gives" : "workers give",
            stk_rates_text(given).text);
        say_taken(w, v);
    }
}

static void say_warming(sentence *w, const verdict_findings *v) {
    stk_rates cached = stk_rates_cached(&v->rates);
    double gain = stk_rates_together(&cached, NULL) / stk_rates_together(&v->rates, NULL);
    say(w, "%s waits %.0f %% (storage) while the first epoch fills the cache", who(v),
        percent(v->shares.wait));
    if (v->e->cache_hits >= 0) {
        say(w, ", which answers %.0f %% of the reads", percent(v->e->cache_hits));
    }
    if (is_rate(gain)) {
        say(w, "; predicted %s once it is full", times(gain).text);
    }
}

static void say_copy(sentence *w, const verdict_findings *v) {
    say(w, "GPU waits %.0f %% for copies from the host", percent(v->shares.copy));
    if (is_rate(v->e->rates.copy)) {
        say(w, "; they bring %s img/s", stk_rates_text(v->e->rates.copy).text);
        say_taken(w, v);
    }
}

static void say_launch(sentence *w, const verdict_findings *v) {
    say(w,
        v->e->is_gpu ? "the GPU idles between small pieces of work at %s img/s"
                     : "steps are too small for the cores at %s img/s",
        stk_rates_text(v->e->images_per_second).text);
    if (v->fixed > 0) {
        say(w, ", %.0f %% of a step is the same for any batch", percent(v->fixed));
    }
    if (v->e->sm_activity >= 0) {
        say(w, ", SM activity %.0f %%", v->e->sm_activity);
    }
    if (v->e->gpu_util >= 0) {
        say(w, ", utilisation %.0f %%", v->e->gpu_util);
    }
}

static void say_compute(sentence *w, const verdict_findings *v) {
    say(w, "%s computes %.0f %% of the time at %s img/s", v->e->is_gpu ? "the GPU" : "the machine",
        percent(v->shares.compute), stk_rates_text(v->e->images_per_second).text);
}

static void say_memory(sentence *w, const verdict_findings *v) {
    const stk_evidence *e = v->e;
    say(w, "a batch of %lld is predicted %s as fast and does not fit", (long long)v->batch.batch,
        times(v->batch.gain).text);
    if (e->gpu_memory_used > 0 && e->gpu_memory_total > 0) {
        say(w, " (%.1f of %.1f GB used)", e->gpu_memory_used / 1e9, e->gpu_memory_total / 1e9);
    }
}

static void say_throttled(sentence *w, const verdict_findings *v) {
    say(w, "%s held its clock at %.0f %% of the highest in %.0f %% of the samples", v->e->throttled,
        percent(v->e->gpu_clock), percent(v->e->throttled_share));
}

static void say_neighbour(sentence *w, const verdict_findings *v) {
    say(w, "other programs use %.0f %% of the cores", v->e->cpu - v->e->cpu_own);
    if (waits(v)) {
        say(w, "; %s waits %.0f %% (decode)", who(v), percent(v->shares.wait));
        say_device(w, v);
    } else {
        say(w, ", training %.0f %%", v->e->cpu_own);
    }
}

typedef struct verdict_rule {
    stk_verdict_kind kind;
    const char *name;
    const char *heading; /* the sentence begins with it */
    bool (*fits)(const verdict_findings *v);
    void (*say)(sentence *w, const verdict_findings *v);
    bool warns;            /* adds say_warnings() */
    bool is_fine;          /* needs no remedies */
    const char *otherwise; /* said where there is no remedy; NULL: nothing */
} verdict_rule;

static const verdict_rule rules[] = {
    {STK_VERDICT_UNKNOWN, "unknown", "unknown", is_unknown, say_unknown, false, true, NULL},
    {STK_VERDICT_NEIGHBOUR, "noisy-neighbour", "noisy neighbour", is_neighbour_of_decoding,
     say_neighbour, true, false, NULL},
    {STK_VERDICT_COPY, "copy-bound", "copy-bound", is_copy, say_copy, true, false, NULL},
    {STK_VERDICT_WARMING, "cache-warm-up", "cache warm-up", is_warming, say_warming, false, true,
     NULL},
    {STK_VERDICT_STORAGE, "storage-bound", "input-bound", is_storage, say_storage, false, false,
     "Faster storage would help"},
    {STK_VERDICT_DECODE, "decode-bound", "input-bound", is_engines, say_decode, false, false,
     "Smaller pictures would help"},
    {STK_VERDICT_DECODE, "decode-bound", "input-bound", is_decode, say_decode, false, false,
     "More cores would help"},
    {STK_VERDICT_THROTTLED, "throttled-gpu", "throttled GPU", is_throttled, say_throttled, true,
     false, NULL},
    {STK_VERDICT_MEMORY, "memory-bound-batch", "memory-bound batch", is_memory, say_memory, true,
     false, "More memory would help"},
    {STK_VERDICT_LAUNCH, "launch-bound", "launch-bound", is_launch, say_launch, false, false, NULL},
    {STK_VERDICT_NEIGHBOUR, "noisy-neighbour", "noisy neighbour", is_neighbour_of_step,
     say_neighbour, true, false, NULL},
    {STK_VERDICT_COMPUTE, "compute-bound", "compute-bound", is_compute, say_compute, true, false,
     NULL},
    {STK_VERDICT_FINE, "fine", "fine", is_fine, say_fine, false, true, NULL},
};

#define RULE_COUNT (sizeof rules / sizeof *rules)

static void say_remedies(sentence *w, const verdict_rule *r, const stk_event_verdict *event) {
    for (int i = 0; i < event->remedy_count; i++) {
        const stk_remedy *remedy = &event->remedies[i];
        say(w, "%s%s", i == 0 ? ". Remedies: " : ", ", remedy->text);
        if (is_rate(remedy->gain)) {
            say(w, " (predicted %s)", times(remedy->gain).text);
        }
    }
    if (event->remedy_count == 0 && !r->is_fine && r->otherwise != NULL) {
        say(w, ". %s", r->otherwise);
    }
}

static void say_evidence(sentence *w, const verdict_findings *v) {
    const stk_evidence *e = v->e;
    const stk_shares *s = &v->shares;
    say(w,
        "%.0f s: read %.1f %%, decode %.1f %%, queue %.1f %%, copy %.1f %%, compute %.1f %%, "
        "other %.1f %%; %s img/s, %s batches a minute",
        s->training_s, percent(s->read), percent(s->decode), percent(s->queue), percent(s->copy),
        percent(s->compute), percent(s->other), stk_rates_text(e->images_per_second).text,
        stk_rates_text(v->per_minute).text);
    if (e->gpu_util >= 0) {
        say(w, "; GPU %.0f %%", e->gpu_util);
    }
    if (e->sm_activity >= 0) {
        say(w, ", SM activity %.0f %%", e->sm_activity);
    }
    if (e->gpu_clock >= 0) {
        say(w, ", clock %.0f %%", percent(e->gpu_clock));
    }
    if (decoded_there(e) > 0) {
        say(w, "; decoded by the GPU %.0f %%", percent(decoded_there(e)));
        if (e->jpeg_util >= 0) {
            say(w, ", engines busy %.0f %%", e->jpeg_util);
        }
    }
    if (e->cpu >= 0 && e->cpu_own >= 0) {
        say(w, "; CPU %.0f %%, by this run %.0f %%", e->cpu, e->cpu_own);
    }
    if (e->iowait >= 0) {
        say(w, ", iowait %.0f %%", e->iowait);
    }
}

/* What the first verdict says of the batch size. */
static void say_batch(sentence *w, const verdict_findings *v) {
    stk_larger_batch fitting = stk_remedies_batch(v->e, &v->rates, true);
    say(w, "batch_size=%lld is ", (long long)v->rates.batch);
    if (fitting.gain >= STK_BATCH_WORTH) {
        say(w, "TOO SMALL - should be %lld+ (predicted %s)", (long long)fitting.batch,
            times(fitting.gain).text);
    } else if (v->batch.gain >= STK_BATCH_WORTH) {
        say(w, "fine: a larger one does not fit into the memory");
    } else {
        say(w, "fine: a larger one is not predicted to be faster");
    }
}

void stk_verdict_judge(const stk_evidence *evidence, bool first, stk_verdict *verdict) {
    verdict_findings v = findings_of(evidence, first);
    const verdict_rule *r = rules;
    while (!r->fits(&v)) {
        r++; /* the last rule always fits */
    }
    *verdict = (stk_verdict){.kind = r->kind};
    stk_event_verdict *event = &verdict->event;
    if (!r->is_fine) {
        stk_remedies_find(evidence, &v.shares, &v.rates, verdict);
    }
    sentence text = {.text = verdict->text, .size = sizeof verdict->text};
    say(&text, "%s: ", r->heading);
    r->say(&text, &v);
    if (r->warns && event->remedy_count > 0) {
        say_warnings(&text, &v);
    }
    say_aside(&text, &v);
    say_remedies(&text, r, event);
    say(&text, ".");
    sentence figures = {.text = verdict->evidence, .size = sizeof verdict->evidence};
    say_evidence(&figures, &v);
    if (first && evidence->rates.batch > 0) {
        sentence batch = {.text = verdict->batch, .size = sizeof verdict->batch};
        say_batch(&batch, &v);
        event->batch = verdict->batch;
    }
    event->name = r->name;
    event->text = verdict->text;
    event->evidence = verdict->evidence;
    event->fine = r->is_fine || (r->kind == STK_VERDICT_COMPUTE && event->remedy_count == 0);
    event->first = first;
    event->images_per_second = evidence->images_per_second;
    event->wait_fraction = v.shares.wait;
    event->gpu_util = evidence->gpu_util;
    event->gpu_memory_used = evidence->gpu_memory_used;
    event->gpu_memory_total = evidence->gpu_memory_total;
    event->device_decoded = evidence->device_decoded;
    event->jpeg_util = evidence->jpeg_util;
}

const char *stk_verdict_name(stk_verdict_kind kind) {
    for (size_t i = 0; i < RULE_COUNT; i++) {
        if (rules[i].kind == kind) {
            return rules[i].name;
        }
    }
    return "unknown";
}
