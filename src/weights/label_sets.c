/* label_sets.c - which labels of a row are named together. */
#include "weights/label_sets.h"

#include <string.h>

#define USUAL_THRESHOLD 0.5

/* Chooses the labels above their thresholds; returns how many. Loops this plain are fast: with
 * thousands of labels they take most of the time of a fit. */
static int choose_above(const double *numbers, const double *probs, int labels, bool *chosen) {
    int count = 0;
    for (int l = 0; l < labels; l++) {
        bool above = probs[l] >= (numbers != NULL ? numbers[l + 1] : USUAL_THRESHOLD);
        chosen[l] = above;
        count += above;
    }
    return count;
}

/* Takes away the chosen labels that stand alone; the likeliest of them becomes *alone. Returns how
 * many there were. */
static int take_alone(const double *probs, int labels, const bool *exclusive, bool *chosen,
                      int *alone) {
    int count = 0;
    for (int l = 0; exclusive != NULL && l < labels; l++) {
        if (chosen[l] && exclusive[l]) {
            chosen[l] = false;
            count++;
            *alone = *alone < 0 || probs[l] > probs[*alone] ? l : *alone;
        }
    }
    return count;
}

/* The F1 score of a set, as a ratio of expectations: twice the expected hits over the labels that
 * are chosen and those that are expected to be true. */
static double expected_score(double hits, int count, double sum) {
    return 2 * hits / (count + sum);
}

/* Whether `count` chosen labels are expected to score at least as much as one that stands alone. */
static bool are_better(const double *probs, int labels, const bool *chosen, int count, int alone) {
    double sum = 0; /* as many labels are expected to be true */
    double together = 0;
    for (int l = 0; l < labels; l++) {
        sum += probs[l];
        together += chosen[l] ? probs[l] : 0;
    }
    return expected_score(probs[alone], 1, sum) <= expected_score(together, count, sum);
}

static int find_likeliest(const double *probs, int labels) {
    int likeliest = 0;
    for (int l = 1; l < labels; l++) {
        likeliest = probs[l] > probs[likeliest] ? l : likeliest;
    }
    return likeliest;
}

int stk_labels_choose_set(const stk_label_rule *rule, const double *probs, int labels,
                          const bool *exclusive, bool *chosen) {
    bool ruled = stk_label_rule_is(rule, STK_LABEL_THRESHOLDS, labels);
    const double *numbers = ruled ? rule->numbers : NULL;
    int single = -1;
    int count = choose_above(numbers, probs, labels, chosen);
    count -= take_alone(probs, labels, exclusive, chosen, &single);
    if (single >= 0 && count > 0 && are_better(probs, labels, chosen, count, single)) {
        single = -1;
    } else if (single < 0 && count == 0 && labels > 0 && !(numbers != NULL && numbers[0] > 0.5)) {
        single = find_likeliest(probs, labels);
    }
    if (single >= 0) {
        memset(chosen, 0, (size_t)labels * sizeof *chosen);
        chosen[single] = true;
    }
    return single >= 0 ? 1 : count;
}
