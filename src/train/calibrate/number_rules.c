/*
 * number_rules.c - rules of one number, which is tried at every place of a grid.
 *
 * Probabilistic F1 punishes every small probability of the many negatives, so that 0 and 1 score
 * better than honest probabilities: the number is where 1 begins. In a ranked list the class of
 * strangers has no looks of its own: the number is the score at which it stands in every list.
 */
#include <math.h>

#include "train/calibrate/fitting.h"

/* The most answers that a ranked list is fitted with. */
#define MOST_RANKED 100

/* Finds the place of the grid where `score` is best; it pays for its distance from one half. */
static void search(stk_fitting *f, stk_label_rule *rule,
                   double (*score)(const stk_fitting *, const stk_label_rule *)) {
    double best = -INFINITY;
    double number = 0.5;
    rule->count = 1;
    for (int i = 0; i < STK_FIT_GRID; i++) {
        rule->numbers[0] = f->grid[i];
        double now = score(f, rule) - stk_fit_toll(f) * fabs(rule->numbers[0] - 0.5);
        number = now > best ? rule->numbers[0] : number;
        best = fmax(best, now);
    }
    rule->numbers[0] = number;
}

static double score_step(const stk_fitting *f, const stk_label_rule *rule) {
    stk_pf1_sums sums = {0};
    for (size_t i = 0; i < f->some.count; i++) {
        stk_pf1_add(&sums, stk_label_step(rule, f->probs[2 * i + 1]), f->some.labels[i] == 1);
    }
    return stk_metrics_pf1(&sums);
}

void stk_fit_step(stk_fitting *f, stk_label_rule *rule) {
    rule->kind = STK_LABEL_STEP;
    search(f, rule, score_step);
}

/* From 1; 0: the label is not among the best k. */
static int place_of(const stk_label_rule *rule, const double *probs, int classes, int k,
                    int stranger, int label) {
    int best[MOST_RANKED];
    int count =
        stk_rank_choose(rule, probs, classes, k < MOST_RANKED ? k : MOST_RANKED, stranger, best);
    int place = 0;
    for (int i = 0; i < count; i++) {
        place = best[i] == label ? i + 1 : place;
    }
    return place;
}

static double score_stranger(const stk_fitting *f, const stk_label_rule *rule) {
    double sum = 0;
    for (size_t i = 0; i < f->some.count; i++) {
        int place = place_of(rule, f->probs + i * (size_t)f->outputs, f->outputs, f->k,
                             f->config.stranger, f->some.labels[i]);
        sum += stk_metrics_average_precision(place, f->k);
    }
    return sum / (double)f->some.count;
}

void stk_fit_stranger(stk_fitting *f, stk_label_rule *rule) {
    rule->kind = STK_LABEL_STRANGER;
    search(f, rule, score_stranger);
}

void stk_calibrate_decide(stk_metrics *m, const stk_label_rule *rule, const double *probs,
                          int stranger) {
    stk_metrics_decide_class(m, stk_label_choose(rule, probs, m->outputs));
    if (m->outputs == 2) {
        stk_metrics_decide_probability(m, stk_label_step(rule, probs[1]));
    }
    if (stk_label_rule_is(rule, STK_LABEL_STRANGER, m->outputs)) {
        stk_metrics_decide_place(m,
                                 place_of(rule, probs, m->outputs, m->k, stranger, m->last_label));
    }
}
