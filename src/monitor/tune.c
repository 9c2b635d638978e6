/*
 * tune.c - trials, one after another.
 *
 * Knobs only go up but for what is taken back, and each verdict tries a knob in vain once between
 * two changes that helped: the number of trials is bounded.
 */
#include "monitor/tune.h"

#include <stddef.h>
#include <stdio.h>

/* A shorter stretch says nothing. */
#define LEAST_SECONDS 1.0

/* Images/s that rose by less are noise. */
#define GAIN 1.03

/* A cache that was turned on within an epoch answers everything in the second after it. */
#define CACHE_EPOCHS 2

static const char *const knob_names[STK_TUNE_KNOBS] = {"workers", "batches ahead", "cache"};

/* What each verdict tries, in order; STK_TUNE_KNOBS ends the list. */
static const stk_tune_knob decode_order[] = {STK_TUNE_WORKERS, STK_TUNE_SLOTS, STK_TUNE_KNOBS};
static const stk_tune_knob storage_order[] = {STK_TUNE_CACHE, STK_TUNE_SLOTS, STK_TUNE_KNOBS};
static const stk_tune_knob no_order[] = {STK_TUNE_KNOBS};

static const stk_tune_knob *order_of(stk_verdict_kind verdict) {
    switch (verdict) {
    case STK_VERDICT_DECODE:
        return decode_order;
    case STK_VERDICT_STORAGE:
        return storage_order;
    default:
        return no_order;
    }
}

static int next_value(stk_tune_knob knob, int now, int most) {
    int next = knob == STK_TUNE_CACHE ? now + 1 : 2 * now;
    return next < most ? next : most;
}

static void name_change(stk_tune_advice *advice, int from) {
    if (advice->knob == STK_TUNE_CACHE) {
        snprintf(advice->what, sizeof advice->what, "cache %s", advice->value > 0 ? "on" : "off");
    } else {
        snprintf(advice->what, sizeof advice->what, "%s %d to %d", knob_names[advice->knob], from,
                 advice->value);
    }
}

static void name_rates(stk_tune_advice *advice, double before, double after) {
    snprintf(advice->why, sizeof advice->why, "images/s went from %s to %s: %s",
             stk_rates_text(before).text, stk_rates_text(after).text,
             advice->act == STK_TUNE_KEEP ? "kept" : "taken back");
}

static stk_tune_advice try_next(stk_tune *tune, const stk_tune_stretch *s) {
    stk_tune_advice advice = {.act = STK_TUNE_NOTHING};
    for (const stk_tune_knob *k = order_of(s->verdict); *k != STK_TUNE_KNOBS; k++) {
        if (tune->in_vain[s->verdict][*k] || s->now[*k] >= s->most[*k]) {
            continue;
        }
        advice.act = STK_TUNE_TRY;
        advice.knob = *k;
        advice.value = next_value(*k, s->now[*k], s->most[*k]);
        name_change(&advice, s->now[*k]);
        snprintf(advice.why, sizeof advice.why, "%s at %s img/s", stk_verdict_name(s->verdict),
                 stk_rates_text(s->images_per_second).text);
        tune->on_trial = true;
        tune->knob = *k;
        tune->before = s->now[*k];
        tune->tried = advice.value;
        tune->rate = s->images_per_second;
        tune->verdict = s->verdict;
        tune->epoch = s->epoch;
        tune->is_settling = true;
        break;
    }
    return advice;
}

/* Whether the trial has had the time that it needs to show something. */
static bool is_too_early(const stk_tune *tune, const stk_tune_stretch *s) {
    return tune->knob == STK_TUNE_CACHE && s->epoch < tune->epoch + CACHE_EPOCHS;
}

static stk_tune_advice judge(stk_tune *tune, const stk_tune_stretch *s) {
    stk_tune_advice advice = {.act = STK_TUNE_NOTHING, .knob = tune->knob, .value = tune->tried};
    bool helped = s->images_per_second > GAIN * tune->rate;
    if (!helped && is_too_early(tune, s)) {
        return advice;
    }
    tune->on_trial = false;
    if (helped) {
        advice.act = STK_TUNE_KEEP;
        name_change(&advice, tune->before);
        for (int v = 0; v < STK_VERDICT_COUNT; v++) {
            for (int k = 0; k < STK_TUNE_KNOBS; k++) {
                tune->in_vain[v][k] = false;
            }
        }
    } else {
        advice.act = STK_TUNE_TAKE_BACK;
        advice.value = tune->before;
        name_change(&advice, tune->tried);
        tune->in_vain[tune->verdict][tune->knob] = true;
        tune->is_settling = true;
    }
    name_rates(&advice, tune->rate, s->images_per_second);
    return advice;
}

stk_tune_advice stk_tune_after(stk_tune *tune, const stk_tune_stretch *s) {
    stk_tune_advice nothing = {.act = STK_TUNE_NOTHING};
    if (!(s->seconds >= LEAST_SECONDS) || !(s->images_per_second > 0) ||
        s->verdict == STK_VERDICT_UNKNOWN) {
        return nothing;
    }
    if (tune->is_settling) {
        tune->is_settling = false;
        return nothing;
    }
    return tune->on_trial ? judge(tune, s) : try_next(tune, s);
}

void stk_tune_fold_ended(stk_tune *tune) {
    tune->on_trial = tune->on_trial && tune->knob == STK_TUNE_CACHE;
    tune->is_settling = tune->on_trial && tune->is_settling;
    tune->epoch = 0;
}
