/*
 * label_sets.h - several labels per row: which ones are named together.
 *
 * Some labels stand alone: `healthy` excludes every disease. The data set knows which ones do
 * (stk_targets.exclusive). Threads: safe, nothing is stored.
 */
#ifndef STK_WEIGHTS_LABEL_SETS_H
#define STK_WEIGHTS_LABEL_SETS_H

#include "weights/label_rule.h"

/*
 * Chooses the labels of a row and returns how many there are. Without a rule for so many labels a
 * label is chosen from a probability of one half on, and a row without one gets its likeliest. A
 * label that stands alone is chosen alone, or not at all, whichever is expected to score better.
 */
int stk_labels_choose_set(const stk_label_rule *rule, const double *probs /* (labels) */,
                          int labels, const bool *exclusive /* (labels), or NULL */,
                          bool *chosen /* (labels) */);

#endif
