/* forecast.c - estimates how long a training takes and how many epochs fit. */
#include "supervise/decide/forecast.h"

#include <math.h>
#include <stdio.h>

#include "base/str.h"

/* A speed counts after this many steps, or this share of an epoch. */
#define STEPS_LEAST 20
#define PART_LEAST 0.02

/* Window of the speed: the slow first steps soon drop out of it. */
#define WINDOW_S 20

/* Steps per second; NaN: too few steps so far. */
static double step_rate(const stk_command_progress *progress, double now_s) {
    bool enough = progress->done >= STEPS_LEAST ||
                  (progress->steps > 0 && progress->done >= PART_LEAST * (double)progress->steps);
    if (!enough || progress->steps <= 0) {
        return NAN;
    }
    double rate = stk_progress_step_rate(progress, now_s - WINDOW_S, now_s);
    return isnan(rate) ? stk_progress_step_rate(progress, progress->began_s, now_s) : rate;
}

/* Seconds per epoch: from the last whole epochs, or from the step rate. */
static double epoch_seconds(const stk_command_progress *progress, double now_s) {
    if (progress->epoch_s > 0) {
        return progress->epoch_s;
    }
    double rate = step_rate(progress, now_s);
    if (isnan(rate) && progress->epoch_printed_at_end &&
        progress->epoch > 1) { /* includes the preparations */
        return (progress->epoch_began_s - progress->began_s) / (progress->epoch - 1);
    }
    return (double)progress->steps / rate;
}

/* Share of the running epoch that is done, 0 to 1. */
static double part_done(const stk_command_progress *progress, double now_s, double epoch_s) {
    double part = progress->steps > 0 && progress->step >= 0
                      ? (double)progress->step / (double)progress->steps
                      : (now_s - progress->epoch_began_s) / epoch_s;
    return part >= 0 ? fmin(part, 1) : 0;
}

/* If steps count through all epochs, they alone give the rest. */
static bool forecast_by_steps(const stk_command_progress *progress, double now_s,
                              stk_forecast *estimate) {
    double rate = step_rate(progress, now_s);
    if (isnan(rate)) {
        return false;
    }
    estimate->left_s = (double)(progress->steps - progress->step) / rate;
    estimate->epoch_s =
        progress->epochs > 0 ? (double)progress->steps / rate / progress->epochs : NAN;
    return true;
}

/* Whole epochs that will be done after time_s; called only if not all epochs fit. */
static int count_fitting(const stk_forecast *estimate, double epochs_done, double time_s) {
    double done = epochs_done + fmax(time_s, 0) / estimate->epoch_s;
    return (int)fmin(floor(done + 1e-9), estimate->epochs - 1);
}

bool stk_forecast_make(const stk_command_progress *progress, double now_s, double end_s,
                       stk_forecast *estimate) {
    *estimate = (stk_forecast){.epoch_s = NAN,
                               .total_s = NAN,
                               .left_s = NAN,
                               .epochs = progress->epochs,
                               .fitting = -1,
                               .time_s = end_s - progress->began_s};
    bool by_steps = progress->steps_span_epochs || progress->epoch < 0;
    double epochs_done = 0;
    if (by_steps) {
        if (!forecast_by_steps(progress, now_s, estimate)) {
            return false;
        }
        epochs_done = progress->epochs * (double)progress->step / (double)progress->steps;
    } else {
        estimate->epoch_s = epoch_seconds(progress, now_s);
        if (!(estimate->epoch_s > 0)) {
            return false;
        }
        epochs_done = progress->epoch - 1 + part_done(progress, now_s, estimate->epoch_s);
        estimate->left_s = progress->epochs > 0
                               ? fmax(0, progress->epochs - epochs_done) * estimate->epoch_s
                               : NAN;
    }
    estimate->total_s = now_s - progress->began_s + estimate->left_s;
    if (progress->epochs > 0 && now_s + estimate->left_s > end_s) {
        estimate->fitting = count_fitting(estimate, epochs_done, end_s - now_s);
    }
    return true;
}

/* As stk_format_span(), but in minutes ("7.5 min") from 100 seconds on. */
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
    if (late &&
        estimate->total_s <= budget_s) { /* fits the budget, but not the budget minus the reserve */
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
