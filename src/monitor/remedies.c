/*
 * remedies.c - the table of remedies.
 *
 * All rows are tried under every verdict that needs a remedy. The predicted gain sorts them out:
 * where decoding limits, the rates show no gain from a cache.
 */
#include "monitor/remedies.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "budget/batch_choice.h"

/* Least gain of a remedy. A larger batch also changes how the model learns, so it must gain more.
 */
#define LEAST_GAIN 1.03
#define LEAST_BATCH_GAIN 1.05

/* Least gain for which a batch is doubled once more. */
#define DOUBLING_GAIN 1.03
#define MOST_DOUBLINGS 12

/* Estimate: fp16 moves half of the bytes, but not all of a step is bound by memory. */
#define HALF_PRECISION_GAIN 1.5

/* Smaller images show too little. */
#define LEAST_IMG_SIZE 64
#define IMG_SIZE_UNIT 32

/* Bytes of a pixel in a decoded picture. */
#define PIXEL_BYTES 3

/* Input of the table's rows. */
typedef struct remedy_case {
    const stk_evidence *e;
    const stk_shares *shares;
    const stk_rates *rates;
    stk_verdict_kind kind;
    stk_stage_kind narrowest; /* the stage that limits */
    double now;               /* predicted images/s without any change */
} remedy_case;

typedef struct remedy_draft {
    char text[96];
    char flags[96];
    double gain;
    bool most; /* the gain is an upper bound, which is not told */
} remedy_draft;

static double gain_of(const remedy_case *a, stk_rates changed) {
    return stk_rates_together(&changed, NULL) / a->now;
}

static bool is_input_bound(const remedy_case *a) {
    return a->kind == STK_VERDICT_STORAGE || a->kind == STK_VERDICT_DECODE ||
           a->kind == STK_VERDICT_NEIGHBOUR;
}

static bool stage(const remedy_case *a, remedy_draft *d) {
    int side = stk_rates_stage_side(a->rates->img_size);
    bool shrinks = stk_rates_shrinks(a->rates, side);
    if (a->e->is_staged || a->rates->img_size <= 0 || (!shrinks && !a->e->is_remote)) {
        return false;
    }
    if (shrinks) {
        snprintf(d->text, sizeof d->text, "stage at %d px", side);
        snprintf(d->flags, sizeof d->flags,
                 "stoker stage SRC DEST --max-side %d; stoker train --data DEST",
                 stk_rates_max_side(side));
    } else {
        snprintf(d->text, sizeof d->text, "stage near by");
        snprintf(d->flags, sizeof d->flags, "stoker stage SRC DEST; stoker train --data DEST");
    }
    d->gain = gain_of(a, stk_rates_staged(a->rates, side));
    return true;
}

static bool more_workers(const remedy_case *a, remedy_draft *d) {
    int cores = a->rates->cores;
    if (a->e->may_tune_workers || a->rates->workers < 1 || a->rates->workers >= cores) {
        return false;
    }
    snprintf(d->text, sizeof d->text,
             a->e->is_foreign ? "%d loader workers (num_workers)" : "%d workers", cores);
    snprintf(d->flags, sizeof d->flags, "--workers %d", cores);
    d->gain = gain_of(a, stk_rates_with_workers(a->rates, cores));
    return true;
}

static bool cache(const remedy_case *a, remedy_draft *d) {
    if (a->e->has_cache) {
        return false;
    }
    snprintf(d->text, sizeof d->text, "keep what was read %s",
             a->e->is_remote ? "near by" : "in memory");
    snprintf(d->flags, sizeof d->flags, "--cache %s", a->e->is_remote ? "auto" : "ram");
    d->gain = gain_of(a, stk_rates_cached(a->rates));
    return true;
}

static bool decoded_cache(const remedy_case *a, remedy_draft *d) {
    double bytes = (double)a->rates->images * a->rates->source_px * PIXEL_BYTES;
    if (a->e->has_cache || !(bytes > 0) || !(bytes <= a->e->cache_room)) {
        return false;
    }
    snprintf(d->text, sizeof d->text, "keep decoded pictures in memory");
    snprintf(d->flags, sizeof d->flags, "--cache decoded");
    stk_rates decoded = stk_rates_decoded(a->rates);
    d->gain = gain_of(a, decoded);
    /* Decoded pictures are the cores' work, and all that is known may be the device's rate. */
    d->most = a->rates->device_share > 0 && !(decoded.decode > 0);
    return true;
}

/* The device decodes beside the cores. A device that decoded all that it can gets their help. */
static bool device_decoding(const remedy_case *a, remedy_draft *d) {
    bool idles = !a->e->device_used && !(a->e->device_decoded > 0);
    bool alone = a->rates->device_share > 0 && a->rates->device_first;
    if (!a->e->is_gpu || !a->e->device_decodes || !(idles || alone) ||
        a->narrowest != STK_STAGE_DECODE) {
        return false;
    }
    double rate =
        alone ? a->rates->device_decode : stk_rates_of_engines(a->rates, a->e->decode_engines);
    d->most = alone ? !(a->rates->decode > 0) : isnan(rate);
    snprintf(d->text, sizeof d->text, "decode on the %s too%s", alone ? "cores" : "GPU",
             !d->most ? ""
             : alone  ? ": the GPU then waits less for decoding"
                      : ": the GPU then does not wait for decoding");
    snprintf(d->flags, sizeof d->flags, "--decode both");
    d->gain = gain_of(a, stk_rates_with_device(a->rates, d->most ? INFINITY : rate));
    return true;
}

static bool larger_cache(const remedy_case *a, remedy_draft *d) {
    if (!a->e->has_cache || a->e->first_epoch || !(a->e->cache_hits < STK_CACHE_FULL)) {
        return false;
    }
    snprintf(d->text, sizeof d->text, "a larger cache");
    snprintf(d->flags, sizeof d->flags, "--cache-size SIZE");
    d->gain = gain_of(a, stk_rates_cached(a->rates));
    return true;
}

/* Time in the queue shrinks when more batches are ready. */
static bool prefetch(const remedy_case *a, remedy_draft *d) {
    if (!is_input_bound(a) || a->e->prefetch < 1) {
        return false;
    }
    snprintf(d->text, sizeof d->text, "%d batches ahead per worker", 2 * a->e->prefetch);
    snprintf(d->flags, sizeof d->flags, "--prefetch %d", 2 * a->e->prefetch);
    d->gain = 1 / (1 - a->shares->queue);
    return true;
}

static bool half_precision(const remedy_case *a, remedy_draft *d) {
    const char *precision = a->e->precision;
    if (!a->e->is_gpu || precision == NULL || strncmp(precision, "fp32", 4) != 0) {
        return false;
    }
    snprintf(d->text, sizeof d->text, "compute in fp16");
    snprintf(d->flags, sizeof d->flags, "--precision fp16");
    stk_rates faster = *a->rates;
    faster.step *= HALF_PRECISION_GAIN;
    d->gain = gain_of(a, faster);
    return true;
}

static bool larger_batch(const remedy_case *a, remedy_draft *d) {
    stk_larger_batch larger = stk_remedies_batch(a->e, a->rates, true);
    if (larger.gain < LEAST_BATCH_GAIN) {
        return false;
    }
    snprintf(d->text, sizeof d->text, "a batch of %lld", (long long)larger.batch);
    snprintf(d->flags, sizeof d->flags, "--batch %lld", (long long)larger.batch);
    d->gain = larger.gain;
    return true;
}

/* Three quarters of the side: about half of the work, for little loss of accuracy. */
static bool smaller_images(const remedy_case *a, remedy_draft *d) {
    int size = a->rates->img_size * 3 / 4 / IMG_SIZE_UNIT * IMG_SIZE_UNIT;
    bool helps = a->narrowest == STK_STAGE_STEP || a->narrowest == STK_STAGE_COPY;
    if (!helps || size < LEAST_IMG_SIZE) {
        return false;
    }
    snprintf(d->text, sizeof d->text, "train at %d px", size);
    snprintf(d->flags, sizeof d->flags, "--img-size %d", size);
    d->gain = gain_of(a, stk_rates_with_img_size(a->rates, size));
    return true;
}

static bool higher_clock(const remedy_case *a, remedy_draft *d) {
    if (a->kind != STK_VERDICT_THROTTLED) {
        return false;
    }
    bool by_power = strstr(a->e->throttled, "power") != NULL;
    bool by_heat = strstr(a->e->throttled, "heat") != NULL;
    snprintf(d->text, sizeof d->text, "%s",
             by_heat    ? "cool the GPU better"
             : by_power ? "raise the GPU's power limit"
                        : "look into what holds the GPU back");
    snprintf(d->flags, sizeof d->flags, "%s",
             by_power && !by_heat ? "nvidia-smi -pl WATTS" : "nvidia-smi -q -d PERFORMANCE");
    stk_rates faster = *a->rates;
    faster.step /= a->e->gpu_clock;
    d->gain = gain_of(a, faster);
    return true;
}

/* The rates were measured on the cores that other programs left. */
static bool no_neighbours(const remedy_case *a, remedy_draft *d) {
    if (a->kind != STK_VERDICT_NEIGHBOUR) {
        return false;
    }
    snprintf(d->text, sizeof d->text, "end what else runs on these cores");
    d->flags[0] = '\0';
    double left = 1 - (a->e->cpu - a->e->cpu_own) / 100;
    stk_rates alone = *a->rates;
    alone.decode /= left;
    alone.step /= a->rates->on_host ? left : 1;
    d->gain = gain_of(a, alone);
    return true;
}

/* Which runs a remedy is for. */
typedef enum remedy_for {
    OURS,    /* `stoker train` only */
    BY_HAND, /* also supervised commands, without our flags: users know how to set it there */
    ANYONE   /* also supervised commands, with the same flags */
} remedy_for;

static const struct {
    bool (*ask)(const remedy_case *a, remedy_draft *d);
    remedy_for whom;
} remedies[] = {
    {stage, OURS},          {more_workers, BY_HAND}, {device_decoding, OURS},
    {cache, OURS},          {decoded_cache, OURS},   {larger_cache, OURS},
    {prefetch, OURS},       {half_precision, OURS},  {larger_batch, BY_HAND},
    {smaller_images, OURS}, {higher_clock, ANYONE},  {no_neighbours, ANYONE},
};

#define REMEDY_COUNT (sizeof remedies / sizeof *remedies)

bool stk_remedies_memory_full(const stk_evidence *e) {
    if (e->largest_batch >= 0) {
        return e->largest_batch <= e->rates.batch;
    }
    return e->gpu_memory_used > STK_MEMORY_FULL * e->gpu_memory_total;
}

/* If the largest batch is unknown, assumes that all GPU memory in use grows with the batch. */
static bool fits(const stk_evidence *e, int64_t batch) {
    if (e->largest_batch >= 0) {
        return batch <= e->largest_batch;
    }
    double growth = (double)batch / (double)e->rates.batch;
    return !e->is_gpu || e->gpu_memory_used * growth <= STK_MEMORY_FULL * e->gpu_memory_total;
}

static bool leaves_steps(const stk_rates *rates, int64_t batch) {
    stk_batch_facts facts = {.policy = STK_BATCH_SPEED};
    return rates->images <= 0 ||
           rates->images / batch >= stk_batch_least_steps(&facts, (size_t)batch);
}

stk_larger_batch stk_remedies_batch(const stk_evidence *e, const stk_rates *rates, bool that_fits) {
    stk_larger_batch found = {.batch = rates->batch, .gain = 1};
    double now = stk_rates_together(rates, NULL);
    if (rates->batch < 1 || !(now > 0)) {
        return found;
    }
    for (int i = 0; i < MOST_DOUBLINGS; i++) {
        int64_t batch = 2 * found.batch;
        stk_rates changed = stk_rates_with_batch(rates, batch);
        double gain = stk_rates_together(&changed, NULL) / now;
        if (!(gain >= DOUBLING_GAIN * found.gain) || !leaves_steps(rates, batch) ||
            (that_fits && !fits(e, batch))) {
            break;
        }
        found = (stk_larger_batch){.batch = batch, .gain = gain};
    }
    return found;
}

/* Whether a row of the table applies and gains enough. */
static bool offers(const remedy_case *a, size_t row, remedy_draft *d) {
    if (a->e->is_foreign && remedies[row].whom == OURS) {
        return false;
    }
    if (!remedies[row].ask(a, d)) {
        return false;
    }
    if (a->e->is_foreign && remedies[row].whom == BY_HAND) {
        d->flags[0] = '\0';
    }
    return d->gain >= LEAST_GAIN && isfinite(d->gain);
}

/* Where a remedy with this gain belongs among `count` drafts, greatest gain first. */
static int position_of(const remedy_draft *drafts, int count, double gain) {
    int position = count;
    while (position > 0 && drafts[position - 1].gain < gain) {
        position--;
    }
    return position;
}

void stk_remedies_find(const stk_evidence *e, const stk_shares *shares, const stk_rates *rates,
                       stk_verdict *verdict) {
    remedy_case a = {.e = e, .shares = shares, .rates = rates, .kind = verdict->kind};
    a.now = stk_rates_together(rates, &a.narrowest);
    remedy_draft drafts[REMEDY_COUNT];
    int count = 0;
    for (size_t i = 0; i < REMEDY_COUNT; i++) {
        remedy_draft d = {.gain = NAN};
        if (offers(&a, i, &d)) {
            int position = position_of(drafts, count, d.gain);
            memmove(drafts + position + 1, drafts + position,
                    (size_t)(count - position) * sizeof *drafts);
            drafts[position] = d;
            count++;
        }
    }
    count = count < STK_MOST_REMEDIES ? count : STK_MOST_REMEDIES;
    for (int i = 0; i < count; i++) {
        memcpy(verdict->remedy_texts[i], drafts[i].text, sizeof drafts[i].text);
        memcpy(verdict->remedy_flags[i], drafts[i].flags, sizeof drafts[i].flags);
        verdict->event.remedies[i] = (stk_remedy){.text = verdict->remedy_texts[i],
                                                  .flags = verdict->remedy_flags[i],
                                                  .gain = drafts[i].most ? NAN : drafts[i].gain};
    }
    verdict->event.remedy_count = count;
}
