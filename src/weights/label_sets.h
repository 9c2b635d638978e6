/*
 * label_sets.h - several labels per row: which ones are named together.
 *
 * Some labels stand alone: `healthy` excludes every disease. Which ones do is found from counts of
 * the training labels. Threads: safe, nothing is stored.
 */
#ifndef STK_WEIGHTS_LABEL_SETS_H
#define STK_WEIGHTS_LABEL_SETS_H

#include "weights/label_rule.h"

/* Counts one training row: all[l] is how often label l is true, alone[l] how often without others.
 * Both begin with zeros. NaN targets are not known and count as false. */
void stk_labels_count(const float *targets /* (labels) */, int labels, size_t *alone, size_t *all);

/*
 * Which labels exclude all others: those that were never seen with another one, and seen so often
 * that this is no chance.
 */
void stk_labels_find_exclusive(const size_t *alone, const size_t *all, int labels,
                               bool *exclusive /* (labels) */);

/*
 * Chooses the labels of a row and returns how many there are. Without a rule for so many labels a
 * label is chosen from a probability of one half on, and a row without one gets its likeliest. A
 * label that stands alone is chosen alone, or not at all, whichever is expected to score better.
 */
int stk_labels_choose_set(const stk_label_rule *rule, const double *probs /* (labels) */,
                          int labels, const bool *exclusive /* (labels), or NULL */,
                          bool *chosen /* (labels) */);

#endif
