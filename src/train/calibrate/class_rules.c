/*
 * class_rules.c - rules that name a class: plain searches.
 *
 * Macro F1, balanced accuracy and Matthews' coefficient: rare classes are named too seldom when the
 * likeliest class is. The rule has one number,
 * a power g: class c is chosen by its probability times (share of the commonest class / its own
 * share)^g. Kappa: the expected step of the scale is cut into classes. The cut points begin at the
 * halves, where they round, and move while that helps.
 */
#include <math.h>
#include <string.h>

#include "train/calibrate/fitting.h"

/* Powers 0, 0.1 and so on up to 1. */
#define POWERS 10

/* Distances by which a cut point is moved, up and down. */
#define CUT_STEP 0.05
#define CUT_REACH 4 /* the greatest is CUT_STEP times 2^(CUT_REACH - 1) */
#define CUT_SWEEPS 4

static double score_of_some(const stk_fitting *f) {
    return stk_metrics_of_labels(f->config.metric, f->outputs, f->some.labels, f->predicted,
                                 f->some.count, f->tally);
}

/* The weights of a power. A class without a picture counts as if it had one. */
static void fill_weights(const stk_fitting *f, double power, double *weights) {
    double most = 1;
    memset(weights, 0, (size_t)f->outputs * sizeof *weights);
    for (size_t i = 0; i < f->some.count; i++) {
        double *count = &weights[f->some.labels[i]];
        *count += 1;
        most = fmax(most, *count);
    }
    for (int c = 0; c < f->outputs; c++) {
        weights[c] = stk_calibration_round(pow(most / fmax(weights[c], 1), power));
    }
}

void stk_fit_weights(stk_fitting *f, stk_label_rule *rule) {
    double best = -INFINITY;
    int best_power = 0;
    rule->kind = STK_LABEL_WEIGHTS;
    rule->count = f->outputs;
    for (int i = 0; i <= POWERS; i++) {
        double power = (double)i / POWERS;
        fill_weights(f, power, rule->numbers);
        for (size_t row = 0; row < f->some.count; row++) {
            f->predicted[row] =
                stk_label_choose(rule, f->probs + row * (size_t)f->outputs, f->outputs);
        }
        double score = score_of_some(f) - stk_fit_toll(f) * power;
        best_power = score > best ? i : best_power;
        best = fmax(best, score);
    }
    fill_weights(f, (double)best_power / POWERS, rule->numbers);
}

/* The score of f->some with these cut points, less what their distance from the halves costs. */
static double score_cuts(stk_fitting *f, const double *cuts, int count) {
    double moved = 0;
    for (int i = 0; i < count; i++) {
        moved += fabs(cuts[i] - (i + 0.5));
    }
    for (size_t i = 0; i < f->some.count; i++) {
        f->predicted[i] = stk_label_cut(cuts, count, f->expected[i]);
    }
    return score_of_some(f) - stk_fit_toll(f) * moved;
}

/* Moves one cut point to where the score is best, between its neighbours; true if it moved. */
static bool move_cut(stk_fitting *f, double *cuts, int count, int at, double *best) {
    double from = cuts[at];
    double to = from;
    memcpy(f->moved, cuts, (size_t)count * sizeof *cuts);
    for (int i = -CUT_REACH; i <= CUT_REACH; i++) {
        double step = i == 0 ? 0 : ldexp(i < 0 ? -CUT_STEP : CUT_STEP, (i < 0 ? -i : i) - 1);
        f->moved[at] = stk_calibration_round(from + step);
        bool rising = (at == 0 || f->moved[at] > cuts[at - 1]) &&
                      (at + 1 == count || f->moved[at] < cuts[at + 1]);
        double score = rising && i != 0 ? score_cuts(f, f->moved, count) : *best;
        to = score > *best ? f->moved[at] : to;
        *best = fmax(*best, score);
    }
    cuts[at] = to;
    return to != from;
}

/* The expected step of each row. */
static void fill_expected(stk_fitting *f) {
    for (size_t i = 0; i < f->some.count; i++) {
        f->expected[i] = 0;
        for (int c = 0; c < f->outputs; c++) {
            f->expected[i] += c * f->probs[i * (size_t)f->outputs + (size_t)c];
        }
    }
}

void stk_fit_cuts(stk_fitting *f, stk_label_rule *rule) {
    bool moved = true;
    fill_expected(f);
    rule->kind = STK_LABEL_CUTS;
    rule->count = f->outputs - 1;
    for (int i = 0; i < rule->count; i++) {
        rule->numbers[i] = i + 0.5;
    }
    double best = score_cuts(f, rule->numbers, rule->count);
    for (int sweep = 0; sweep < CUT_SWEEPS && moved; sweep++) {
        moved = false;
        for (int at = 0; at < rule->count; at++) {
            moved = move_cut(f, rule->numbers, rule->count, at, &best) || moved;
        }
    }
}
