/*
 * remedies.c - the table of remedies. Each row is asked in every verdict that something can be done
 * about: the rates know by themselves that a cache is no help where decoding limits.
 */
#include "monitor/remedies.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "budget/batch_choice.h"

/* What brings less is no remedy; a larger batch changes learning too, and has to bring more. */
#define LEAST_GAIN 1.03
#define LEAST_BATCH_GAIN 1.05

/* A batch twice as large that brings less than this is not worth it. */
#define DOUBLING_GAIN 1.03
#define MOST_DOUBLINGS 12

/* A step in two-byte numbers moves half of the bytes; a part of it is not bound by them. */
#define HALF_PRECISION_GAIN 1.5

/* Images smaller than this show too little. */
#define LEAST_IMG_SIZE 64
#define IMG_SIZE_UNIT 32

/* A decoded picture has three bytes per pixel. */
#define PIXEL_BYTES 3

typedef struct asking {
    const stk_evidence *e;
    const stk_shares *shares;
    const stk_rates *rates;
    stk_verdict_kind kind;
    stk_stage_kind narrowest;
    double now; /* images/s that the rates predict without any change */
} asking;

typedef struct draft {
    char text[96];
    char flags[96];
    double gain;
} draft;

static double gain_of(const asking *a, stk_rates changed) {
    return stk_rates_together(&changed, NULL) / a->now;
}

static bool is_input_bound(const asking *a) {
    return a->kind == STK_VERDICT_STORAGE || a->kind == STK_VERDICT_DECODE ||
           a->kind == STK_VERDICT_NEIGHBOUR;
}

static bool stage(const asking *a, draft *d) {
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

static bool more_workers(const asking *a, draft *d) {
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

static bool cache(const asking *a, draft *d) {
    if (a->e->has_cache) {
        return false;
    }
    snprintf(d->text, sizeof d->text, "keep what was read %s",
             a->e->is_remote ? "near by" : "in memory");
    snprintf(d->flags, sizeof d->flags, "--cache %s", a->e->is_remote ? "auto" : "ram");
    d->gain = gain_of(a, stk_rates_cached(a->rates));
    return true;
}

static bool decoded_cache(const asking *a, draft *d) {
    double bytes = (double)a->rates->images * a->rates->source_px * PIXEL_BYTES;
    if (a->e->has_cache || !(bytes > 0) || !(bytes <= a->e->cache_room)) {
        return false;
    }
    snprintf(d->text, sizeof d->text, "keep decoded pictures in memory");
    snprintf(d->flags, sizeof d->flags, "--cache decoded");
    d->gain = gain_of(a, stk_rates_decoded(a->rates));
    return true;
}

static bool larger_cache(const asking *a, draft *d) {
    if (!a->e->has_cache || a->e->first_epoch || !(a->e->cache_hits < STK_CACHE_FULL)) {
        return false;
    }
    snprintf(d->text, sizeof d->text, "a larger cache");
    snprintf(d->flags, sizeof d->flags, "--cache-size SIZE");
    d->gain = gain_of(a, stk_rates_cached(a->rates));
    return true;
}

/* Batches that were ready and did not come in time are a matter of how many there are. */
static bool prefetch(const asking *a, draft *d) {
    if (!is_input_bound(a) || a->e->prefetch < 1) {
        return false;
    }
    snprintf(d->text, sizeof d->text, "%d batches ahead per worker", 2 * a->e->prefetch);
    snprintf(d->flags, sizeof d->flags, "--prefetch %d", 2 * a->e->prefetch);
    d->gain = 1 / (1 - a->shares->queue);
    return true;
}

static bool half_precision(const asking *a, draft *d) {
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

static bool larger_batch(const asking *a, draft *d) {
    stk_larger_batch larger = stk_remedies_batch(a->e, a->rates, true);
    if (larger.gain < LEAST_BATCH_GAIN) {
        return false;
    }
    snprintf(d->text, sizeof d->text, "a batch of %lld", (long long)larger.batch);
    snprintf(d->flags, sizeof d->flags, "--batch %lld", (long long)larger.batch);
    d->gain = larger.gain;
    return true;
}

/* About three quarters of the side: half of the work, for the least accuracy. */
static bool smaller_images(const asking *a, draft *d) {
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

static bool higher_clock(const asking *a, draft *d) {
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

/* What was measured beside others was measured with the cores that they left. */
static bool no_neighbours(const asking *a, draft *d) {
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

/* For whom a remedy is. */
typedef enum remedy_for {
    OURS,    /* trainings of Stoker alone */
    BY_HAND, /* others as well, which have no such flag: people know how to tell them */
    ANYONE   /* others as well, in the same way */
} remedy_for;

static const struct {
    bool (*ask)(const asking *a, draft *d);
    remedy_for whom;
} table[] = {
    {stage, OURS},          {more_workers, BY_HAND}, {cache, OURS},
    {decoded_cache, OURS},  {larger_cache, OURS},    {prefetch, OURS},
    {half_precision, OURS}, {larger_batch, BY_HAND}, {smaller_images, OURS},
    {higher_clock, ANYONE}, {no_neighbours, ANYONE},
};

#define TABLE_SIZE (sizeof table / sizeof *table)

bool stk_remedies_memory_full(const stk_evidence *e) {
    if (e->largest_batch >= 0) {
        return e->largest_batch <= e->rates.batch;
    }
    return e->gpu_memory_used > STK_MEMORY_FULL * e->gpu_memory_total;
}

/* What is not known of a GPU's memory is estimated as if all in use grew with the batch. */
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

/* Whether a row of the table has something to offer here. */
static bool offers(const asking *a, size_t row, draft *d) {
    if (a->e->is_foreign && table[row].whom == OURS) {
        return false;
    }
    if (!table[row].ask(a, d)) {
        return false;
    }
    if (a->e->is_foreign && table[row].whom == BY_HAND) {
        d->flags[0] = '\0';
    }
    return d->gain >= LEAST_GAIN && isfinite(d->gain);
}

/* Where a new draft belongs among `count` that are in order. */
static int place_of(const draft *drafts, int count, double gain) {
    int place = count;
    while (place > 0 && drafts[place - 1].gain < gain) {
        place--;
    }
    return place;
}

void stk_remedies_find(const stk_evidence *e, const stk_shares *shares, const stk_rates *rates,
                       stk_verdict *verdict) {
    asking a = {.e = e, .shares = shares, .rates = rates, .kind = verdict->kind};
    a.now = stk_rates_together(rates, &a.narrowest);
    draft drafts[TABLE_SIZE];
    int count = 0;
    for (size_t i = 0; i < TABLE_SIZE; i++) {
        draft d = {.gain = NAN};
        if (offers(&a, i, &d)) {
            int place = place_of(drafts, count, d.gain);
            memmove(drafts + place + 1, drafts + place, (size_t)(count - place) * sizeof *drafts);
            drafts[place] = d;
            count++;
        }
    }
    count = count < STK_MOST_REMEDIES ? count : STK_MOST_REMEDIES;
    for (int i = 0; i < count; i++) {
        memcpy(verdict->remedy_texts[i], drafts[i].text, sizeof drafts[i].text);
        memcpy(verdict->remedy_flags[i], drafts[i].flags, sizeof drafts[i].flags);
        verdict->event.remedies[i] = (stk_remedy){.text = verdict->remedy_texts[i],
                                                  .flags = verdict->remedy_flags[i],
                                                  .gain = drafts[i].gain};
    }
    verdict->event.remedy_count = count;
}
