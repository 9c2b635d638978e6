/*
 * set_rules.c - from which probability on a label is named.
 *
 * One threshold for all labels is found first, then whether a row may be empty. From there each
 * label that has enough positives moves its own threshold. Macro F1 is a mean of figures of the
 * labels, which are judged one by one. The other scores count all labels together: a label's
 * threshold is good where 2 hits - F (chosen + true) is large, F being the score so far, since the
 * ratio 2 hits / (chosen + true) of all labels is greatest where that difference is (Dinkelbach).
 */
#include <math.h>
#include <string.h>

#include "train/calibrate/fitting.h"
#include "weights/label_sets.h"

/* A label with fewer positives keeps the common threshold. */
#define LEAST_POSITIVES 10

/* The score of f->some with a rule. */
static double score_sets(stk_fitting *f, const stk_label_rule *rule) {
    stk_set_tally_reset(&f->sets);
    for (size_t i = 0; i < f->some.count; i++) {
        (void)stk_labels_choose_set(rule, f->probs + i * (size_t)f->outputs, f->outputs,
                                    f->config.exclusive, f->chosen);
        stk_set_tally_add(&f->sets, f->some.answers[i], f->chosen);
    }
    return stk_set_tally_value(&f->sets, f->config.metric);
}

static void set_all(stk_label_rule *rule, double threshold) {
    for (int i = 1; i < rule->count; i++) {
        rule->numbers[i] = threshold;
    }
}

static void fit_common(stk_fitting *f, stk_label_rule *rule) {
    double best = -INFINITY;
    double number = 0.5;
    rule->kind = STK_LABEL_THRESHOLDS;
    rule->count = f->outputs + 1;
    rule->numbers[0] = 0;
    for (int i = 0; i < STK_FIT_GRID; i++) {
        set_all(rule, f->grid[i]);
        double score = score_sets(f, rule) - stk_fit_toll(f) * fabs(f->grid[i] - 0.5);
        number = score > best ? f->grid[i] : number;
        best = fmax(best, score);
    }
    set_all(rule, number);
    double filled = score_sets(f, rule);
    rule->numbers[0] = 1;
    rule->numbers[0] = score_sets(f, rule) > filled;
}

/* What one label comes to at each threshold of the grid. */
typedef struct label_counts {
    double positives;
    double hits[STK_FIT_GRID];
    double chosen[STK_FIT_GRID];
} label_counts;

static label_counts count_label(const stk_fitting *f, int label) {
    label_counts c = {0};
    for (size_t i = 0; i < f->some.count; i++) {
        double p = f->probs[i * (size_t)f->outputs + (size_t)label];
        int8_t answer = f->some.answers[i][label];
        int above = -1; /* the highest threshold that it reaches */
        while (above + 1 < STK_FIT_GRID && p >= f->grid[above + 1]) {
            above++;
        }
        c.positives += answer == 1;
        if (above >= 0 && answer != STK_TARGET_UNKNOWN) {
            c.chosen[above]++;
            c.hits[above] += answer == 1;
        }
    }
    for (int g = STK_FIT_GRID - 2; g >= 0; g--) {
        c.chosen[g] += c.chosen[g + 1];
        c.hits[g] += c.hits[g + 1];
    }
    return c;
}

/* The threshold of one label. What it is worth is counted per positive, and noisier by as much. */
static double fit_label(const stk_fitting *f, const label_counts *c, double score, double common) {
    bool macro = f->config.metric == STK_METRIC_MACRO_F1;
    double best = -INFINITY;
    double number = common;
    for (int g = 0; g < STK_FIT_GRID && c->positives >= LEAST_POSITIVES; g++) {
        double named = c->chosen[g] + c->positives;
        double worth =
            macro ? 2 * c->hits[g] / named : (2 * c->hits[g] - score * named) / (2 * c->positives);
        worth -= STK_FIT_TOLL * fabs(f->grid[g] - common) / sqrt(c->positives);
        number = worth > best ? f->grid[g] : number;
        best = fmax(best, worth);
    }
    return number;
}

void stk_fit_thresholds(stk_fitting *f, stk_label_rule *rule) {
    fit_common(f, rule);
    double score = score_sets(f, rule);
    f->each.kind = rule->kind;
    f->each.count = rule->count;
    f->each.numbers[0] = rule->numbers[0];
    for (int l = 0; l < f->outputs; l++) {
        label_counts counts = count_label(f, l);
        f->each.numbers[l + 1] = fit_label(f, &counts, score, rule->numbers[l + 1]);
    }
}
