/* label_sets.c - which labels of a row are named together. */
#include "weights/label_sets.h"

#include <math.h>
#include <string.h>

#define USUAL_THRESHOLD 0.5

/* A label that stood alone every time by chance would do so with this probability at most. */
#define CHANCE 0.05

/* Rows from which on labels are believed to exclude each other where no row has two. */
#define TELLING_ROWS 20

void stk_labels_count(const float *targets, int labels, size_t *alone, size_t *all) {
    int present = 0;
    int last = 0;
    for (int l = 0; l < labels; l++) {
        if (targets[l] > 0.5F) {
            all[l]++;
            last = l;
            present++;
        }
    }
    if (present == 1) {
        alone[last]++;
    }
}

void stk_labels_find_exclusive(const size_t *alone, const size_t *all, int labels,
                               bool *exclusive) {
    double all_sum = 0;
    double alone_sum = 0;
    for (int l = 0; l < labels; l++) {
        all_sum += (double)all[l];
        alone_sum += (double)alone[l];
    }
    for (int l = 0; l < labels; l++) {
        double others = all_sum - (double)all[l];
        double share = others > 0 ? (alone_sum - (double)alone[l]) / others : 1;
        bool telling = share < 1 ? pow(share, (double)all[l]) < CHANCE : all_sum >= TELLING_ROWS;
        exclusive[l] = labels > 1 && all[l] > 0 && alone[l] == all[l] && telling;
    }
}

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
