/* label_sets.c - which labels of a row are named together. */
#include "weights/label_sets.h"

#include <string.h>

#define USUAL_THRESHOLD 0.5

/* What choosing has found in a row. */
typedef struct found_labels {
    double sum;      /* of all probabilities: as many labels are expected to be true */
    double together; /* of the chosen labels that may stand together */
    int count;       /* of these */
    int likeliest;   /* label */
    int alone;       /* the label that would stand alone: above its threshold; -1: none is */
} found_labels;

static found_labels find(const double *numbers, const double *probs, int labels,
                         const bool *exclusive, bool *chosen) {
    found_labels f = {.alone = -1};
    for (int l = 0; l < labels; l++) {
        bool stands_alone = exclusive != NULL && exclusive[l];
        bool above = probs[l] >= (numbers != NULL ? numbers[l + 1] : USUAL_THRESHOLD);
        chosen[l] = above && !stands_alone;
        f.sum += probs[l];
        f.together += chosen[l] ? probs[l] : 0;
        f.count += chosen[l];
        f.likeliest = probs[l] > probs[f.likeliest] ? l : f.likeliest;
        if (above && stands_alone && (f.alone < 0 || probs[l] > probs[f.alone])) {
            f.alone = l;
        }
    }
    return f;
}

/* The F1 score of a set, as a ratio of expectations: twice the expected hits over the labels that
 * are chosen and those that are expected to be true. */
static double expected_score(double hits, int count, double sum) {
    return 2 * hits / (count + sum);
}

int stk_labels_choose_set(const stk_label_rule *rule, const double *probs, int labels,
                          const bool *exclusive, bool *chosen) {
    bool ruled = stk_label_rule_is(rule, STK_LABEL_THRESHOLDS, labels);
    const double *numbers = ruled ? rule->numbers : NULL;
    found_labels f = find(numbers, probs, labels, exclusive, chosen);
    int single = f.alone;
    if (f.alone >= 0 && f.count > 0 &&
        expected_score(probs[f.alone], 1, f.sum) <= expected_score(f.together, f.count, f.sum)) {
        single = -1;
    }
    if (f.count == 0 && f.alone < 0 && labels > 0 && !(numbers != NULL && numbers[0] > 0.5)) {
        single = f.likeliest;
    }
    if (single >= 0) {
        memset(chosen, 0, (size_t)labels * sizeof *chosen);
        chosen[single] = true;
    }
    return single >= 0 ? 1 : f.count;
}
