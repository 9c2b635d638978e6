/* label_rule.c - the use of rules for one answer per row. */
#include "weights/label_rule.h"

#include <math.h>

int stk_label_rule_count(stk_label_rule_kind kind, int classes) {
    switch (kind) {
    case STK_LABEL_LIKELIEST:
        return 0;
    case STK_LABEL_WEIGHTS:
        return classes;
    case STK_LABEL_CUTS:
        return classes - 1;
    case STK_LABEL_THRESHOLDS:
        return classes + 1;
    case STK_LABEL_STEP:
    case STK_LABEL_STRANGER:
        return 1;
    }
    return 0;
}

bool stk_label_rule_is_sound(const stk_label_rule *rule) {
    bool sound = true;
    for (int i = 0; i < rule->count && sound; i++) {
        double number = rule->numbers[i];
        bool share = number >= 0 && number <= 1;
        bool rising = isfinite(number) && (i == 0 || number >= rule->numbers[i - 1]);
        sound = rule->kind == STK_LABEL_WEIGHTS ? isfinite(number) && number >= 1
                : rule->kind == STK_LABEL_CUTS  ? rising
                                                : share;
    }
    return sound;
}

bool stk_label_rule_is(const stk_label_rule *rule, stk_label_rule_kind kind, int classes) {
    return rule != NULL && rule->kind == kind && rule->count > 0 &&
           rule->count == stk_label_rule_count(kind, classes);
}

int stk_label_cut(const double *cuts, int count, double expected) {
    int below = 0;
    while (below < count && expected > cuts[below]) {
        below++;
    }
    return below;
}

int stk_label_choose(const stk_label_rule *rule, const double *probs, int classes) {
    bool weighted = stk_label_rule_is(rule, STK_LABEL_WEIGHTS, classes);
    const double *weights = weighted ? rule->numbers : NULL;
    int best = 0;
    if (stk_label_rule_is(rule, STK_LABEL_CUTS, classes)) {
        double expected = 0;
        for (int c = 0; c < classes; c++) {
            expected += c * probs[c];
        }
        return stk_label_cut(rule->numbers, rule->count, expected);
    }
    for (int c = 1; c < classes; c++) {
        bool more = weights != NULL ? probs[c] * weights[c] > probs[best] * weights[best]
                                    : probs[c] > probs[best];
        best = more ? c : best;
    }
    return best;
}

double stk_label_step(const stk_label_rule *rule, double probability) {
    bool steps = stk_label_rule_is(rule, STK_LABEL_STEP, 2) && !isnan(probability);
    return steps ? probability >= rule->numbers[0] : probability;
}

/* Puts a class behind those that are not worse; the last one of a full list is dropped. */
static int insert(int *best, double *scores, int count, int k, int c, double score) {
    int at = count;
    while (at > 0 && score > scores[at - 1]) {
        at--;
    }
    if (at >= k) {
        return count;
    }
    count = count < k ? count + 1 : k;
    for (int i = count - 1; i > at; i--) {
        best[i] = best[i - 1];
        scores[i] = scores[i - 1];
    }
    best[at] = c;
    scores[at] = score;
    return count;
}

/* Longer lists than this one are asked for by nobody, so that scores need no memory. */
#define LONGEST 1000

int stk_rank_choose(const stk_label_rule *rule, const double *probs, int classes, int k,
                    int stranger, int *best) {
    double scores[LONGEST];
    int count = 0;
    bool ruled = stk_label_rule_is(rule, STK_LABEL_STRANGER, classes);
    k = k < LONGEST ? k : LONGEST;
    for (int c = 0; c < classes; c++) {
        bool late = ruled && c == stranger;
        count = late ? count : insert(best, scores, count, k, c, isnan(probs[c]) ? -1 : probs[c]);
    }
    if (ruled && stranger >= 0 && stranger < classes) {
        count = insert(best, scores, count, k, stranger, rule->numbers[0]);
    }
    return count;
}
