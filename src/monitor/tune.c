/*
 * tune.c - trials of loader settings, one after another.
 *
 * A trial only raises a setting, and between two trials that helped each verdict tries a setting
 * once. So the number of trials is bounded.
 */
#include "monitor/tune.h"

#include <stdio.h>

/* Shorter intervals are ignored. */
#define LEAST_SECONDS 1.0

/* A smaller rise of images/s is noise. */
#define GAIN 1.03

/* A cache turned on within an epoch answers all reads from the second epoch after it on. */
#define CACHE_EPOCHS 2

static const char *const setting_names[STK_TUNE_SETTINGS] = {"workers", "batches ahead", "cache"};

/* Settings that each verdict tries, in order; STK_TUNE_SETTINGS ends the list. */
static const stk_tune_setting decode_order[] = {STK_TUNE_WORKERS, STK_TUNE_SLOTS,
                                                STK_TUNE_SETTINGS};
static const stk_tune_setting storage_order[] = {STK_TUNE_CACHE, STK_TUNE_SLOTS, STK_TUNE_SETTINGS};
static const stk_tune_setting no_order[] = {STK_TUNE_SETTINGS};

static const stk_tune_setting *order_of(stk_verdict_kind verdict) {
    switch (verdict) {
    case STK_VERDICT_DECODE:
        return decode_order;
    case STK_VERDICT_STORAGE:
        return storage_order;
    default:
        return no_order;
    }
}

static int next_value(stk_tune_setting setting, int now, int most) {
    int next = setting == STK_TUNE_CACHE ? now + 1 : 2 * now;
    return next < most ? next : most;
}

static void name_change(stk_tune_advice *advice, int from) {
    if (advice->setting == STK_TUNE_CACHE) {
        snprintf(advice->what, sizeof advice->what, "cache %s", advice->value > 0 ? "on" : "off");
    } else {
        snprintf(advice->what, sizeof advice->what, "%s %d to %d", setting_names[advice->setting],
                 from, advice->value);
    }
}

static void name_rates(stk_tune_advice *advice, double before, double after) {
    snprintf(advice->why, sizeof advice->why, "images/s went from %s to %s: %s",
             stk_rates_text(before).text, stk_rates_text(after).text,
             advice->action == STK_TUNE_KEEP ? "kept" : "taken back");
}

static stk_tune_advice try_next(stk_tune *tune, const stk_tune_interval *s) {
    stk_tune_advice advice = {.action = STK_TUNE_NOTHING};
    for (const stk_tune_setting *k = order_of(s->verdict); *k != STK_TUNE_SETTINGS; k++) {
        if (tune->failed[s->verdict][*k] || s->now[*k] >= s->most[*k]) {
            continue;
        }
        advice.action = STK_TUNE_TRY;
        advice.setting = *k;
        advice.value = next_value(*k, s->now[*k], s->most[*k]);
        name_change(&advice, s->now[*k]);
        snprintf(advice.why, sizeof advice.why, "%s at %s img/s", stk_verdict_name(s->verdict),
                 stk_rates_text(s->images_per_second).text);
        tune->is_trying = true;
        tune->setting = *k;
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

/* Whether a trial of the cache cannot show its effect yet. */
static bool is_too_early(const stk_tune *tune, const stk_tune_interval *s) {
    return tune->setting == STK_TUNE_CACHE && s->epoch < tune->epoch + CACHE_EPOCHS;
}

static stk_tune_advice judge(stk_tune *tune, const stk_tune_interval *s) {
    stk_tune_advice advice = {
        .action = STK_TUNE_NOTHING, .setting = tune->setting, .value = tune->tried};
    bool helped = s->images_per_second > GAIN * tune->rate;
    if (!helped && is_too_early(tune, s)) {
        return advice;
    }
    tune->is_trying = false;
    if (helped) {
        advice.action = STK_TUNE_KEEP;
        name_change(&advice, tune->before);
        for (int v = 0; v < STK_VERDICT_COUNT; v++) {
            for (int k = 0; k < STK_TUNE_SETTINGS; k++) {
                tune->failed[v][k] = false;
            }
        }
    } else {
        advice.action = STK_TUNE_TAKE_BACK;
        advice.value = tune->before;
        name_change(&advice, tune->tried);
        tune->failed[tune->verdict][tune->setting] = true;
        tune->is_settling = true;
    }
    name_rates(&advice, tune->rate, s->images_per_second);
    return advice;
}

stk_tune_advice stk_tune_after(stk_tune *tune, const stk_tune_interval *s) {
    stk_tune_advice nothing = {.action = STK_TUNE_NOTHING};
    if (!(s->seconds >= LEAST_SECONDS) || !(s->images_per_second > 0) ||
        s->verdict == STK_VERDICT_UNKNOWN) {
        return nothing;
    }
    if (tune->is_settling) {
        tune->is_settling = false;
        return nothing;
    }
    return tune->is_trying ? judge(tune, s) : try_next(tune, s);
}

void stk_tune_fold_ended(stk_tune *tune) {
    tune->is_trying = tune->is_trying && tune->setting == STK_TUNE_CACHE;
    tune->is_settling = tune->is_trying && tune->is_settling;
    tune->epoch = 0;
}
