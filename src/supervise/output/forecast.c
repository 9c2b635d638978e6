/* forecast.c - how long a training will take by its own words, and what fits. */
#include "supervise/output/forecast.h"

#include <math.h>
#include <stdio.h>

#include "base/str.h"

/* A speed is believed after so many steps, or such a part of an epoch. */
#define STEPS_LEAST 20
#define PART_LEAST 0.02

/* What the speed is taken over: the first, slow steps of a training leave it soon. */
#define WINDOW_S 20

/* Steps per second, NaN while too few were heard of. */
static double step_rate(const stk_words *words, double now_s) {
    bool enough = words->done >= STEPS_LEAST ||
                  (words->steps > 0 && words->done >= PART_LEAST * (double)words->steps);
    if (!enough || words->steps <= 0) {
        return NAN;
    }
    double rate = stk_words_steps_per_second(words, now_s - WINDOW_S, now_s);
    return isnan(rate) ? stk_words_steps_per_second(words, words->began_s, now_s) : rate;
}

/* The seconds of an epoch by its last whole one, or by steps. */
static double epoch_seconds(const stk_words *words, double now_s) {
    if (words->epoch_s > 0) {
        return words->epoch_s;
    }
    double rate = step_rate(words, now_s);
    if (isnan(rate) && words->told_late && words->epoch > 1) { /* with all that came before it */
        return (words->epoch_began_s - words->began_s) / (words->epoch - 1);
    }
    return (double)words->steps / rate;
}

/* Of the epoch in work, 0 to 1. */
static double part_done(const stk_words *words, double now_s, double epoch_s) {
    double part = words->steps > 0 && words->step >= 0 ? (double)words->step / (double)words->steps
                                                       : (now_s - words->epoch_began_s) / epoch_s;
    return part >= 0 ? fmin(part, 1) : 0;
}

/* Steps that count through all epochs: what is left follows from them alone. */
static bool make_whole(const stk_words *words, double now_s, stk_forecast *estimate) {
    double rate = step_rate(words, now_s);
    if (isnan(rate)) {
        return false;
    }
    estimate->left_s = (double)(words->steps - words->step) / rate;
    estimate->epoch_s = words->epochs > 0 ? (double)words->steps / rate / words->epochs : NAN;
    return true;
}

/* Whole epochs that will be done after time_s, all of them left out. */
static int count_fitting(const stk_forecast *estimate, double epochs_done, double time_s) {
    double done = epochs_done + fmax(time_s, 0) / estimate->epoch_s;
    return (int)fmin(floor(done + 1e-9), estimate->epochs - 1);
}

bool stk_forecast_make(const stk_words *words, double now_s, double end_s, stk_forecast *estimate) {
    *estimate = (stk_forecast){.epoch_s = NAN,
                               .total_s = NAN,
                               .left_s = NAN,
                               .epochs = words->epochs,
                               .fitting = -1,
                               .time_s = end_s - words->began_s};
    bool whole = words->whole || words->epoch < 0;
    double epochs_done = 0;
    if (whole) {
        if (!make_whole(words, now_s, estimate)) {
            return false;
        }
        epochs_done = words->epochs * (double)words->step / (double)words->steps;
    } else {
        estimate->epoch_s = epoch_seconds(words, now_s);
        if (!(estimate->epoch_s > 0)) {
            return false;
        }
        epochs_done = words->epoch - 1 + part_done(words, now_s, estimate->epoch_s);
        estimate->left_s =
            words->epochs > 0 ? fmax(0, words->epochs - epochs_done) * estimate->epoch_s : NAN;
    }
    estimate->total_s = now_s - words->began_s + estimate->left_s;
    if (words->epochs > 0 && now_s + estimate->left_s > end_s) {
        estimate->fitting = count_fitting(estimate, epochs_done, end_s - now_s);
    }
    return true;
}

/* "7.5 min": minutes also where the usual words are seconds. */
static stk_span span(double seconds) {
    stk_span text = stk_format_span(seconds);
    if (seconds >= 99.5 && seconds < 599.5) {
        snprintf(text.text, sizeof text.text, "%.3g min", round(seconds / 6) / 10);
    }
    return text;
}

void stk_forecast_say(const stk_forecast *estimate, double budget_s, char *text, size_t room) {
    if (isnan(estimate->total_s)) {
        snprintf(text, room, "an epoch takes about %s", span(estimate->epoch_s).text);
        return;
    }
    stk_span total = span(estimate->total_s);
    stk_span budget = span(budget_s);
    char needs[60] = "training needs";
    if (estimate->epochs > 0) {
        snprintf(needs, sizeof needs, "%d %s", estimate->epochs,
                 estimate->epochs == 1 ? "epoch needs" : "epochs need");
    }
    char limit[80] = "";
    bool late = estimate->time_s > 0 && estimate->total_s > estimate->time_s;
    if (late && estimate->total_s <= budget_s) { /* the reserve is what it does not fit in with */
        snprintf(limit, sizeof limit, ", %s %s of %s",
                 estimate->epochs > 0 ? "training has" : "it has", span(estimate->time_s).text,
                 budget.text);
    } else if (!isnan(budget_s)) {
        snprintf(limit, sizeof limit, ", budget %s", budget.text);
    }
    if (estimate->fitting > 0) {
        snprintf(text, room, "%s %s%s: stopping in epoch %d; consider --epochs %d", needs,
                 total.text, limit, estimate->fitting + 1, estimate->fitting);
    } else if (estimate->fitting == 0) {
        snprintf(text, room, "%s %s%s: stopping before the first epoch is over", needs, total.text,
                 limit);
    } else if (isnan(budget_s)) {
        snprintf(text, room, "%s about %s", needs, total.text);
    } else if (late || estimate->total_s > budget_s) {
        snprintf(text, room, "%s %s%s: stopping before its end", needs, total.text, limit);
    } else {
        snprintf(text, room, "%s %s of %s", needs, total.text, budget.text);
    }
}
