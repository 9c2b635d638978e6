/*
 * label_rule.h - how answers are chosen from probabilities.
 *
 * The likeliest class is not the answer that scores best in every metric. A rule is a kind and some
 * numbers, fitted to held-out pictures (src/train/calibrate) and kept in a checkpoint
 * (calibration.h). A rule of zeros, and one for another number of classes, changes nothing.
 * Threads: safe, nothing is stored.
 */
#ifndef STK_WEIGHTS_LABEL_RULE_H
#define STK_WEIGHTS_LABEL_RULE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum stk_label_rule_kind {
    STK_LABEL_LIKELIEST,  /* no numbers */
    STK_LABEL_WEIGHTS,    /* the class with the greatest probability times its weight */
    STK_LABEL_CUTS,       /* classes are steps of a scale: the expected step, cut into classes */
    STK_LABEL_THRESHOLDS, /* several labels: those with at least a probability of their own */
    STK_LABEL_STEP,       /* the positive's probability becomes 1 from this one on, otherwise 0 */
    STK_LABEL_STRANGER    /* a ranked list: the class of strangers has this score in every row */
} stk_label_rule_kind;

#define STK_LABEL_RULE_KINDS (STK_LABEL_STRANGER + 1)

typedef struct stk_label_rule {
    stk_label_rule_kind kind;
    int count; /* of `numbers` */
    /* Owned. Weights: one per class, at least 1. Cuts: rising, the cut point between each class and
     * the next. Thresholds: first 1 where a row may be empty, 0 where it gets its likeliest label;
     * then one per label. Step and stranger: one. */
    double *numbers;
} stk_label_rule;

/* How many numbers a rule for so many classes or labels has. */
int stk_label_rule_count(stk_label_rule_kind kind, int classes);

/* Whether the numbers are such as a fit gives. */
bool stk_label_rule_is_sound(const stk_label_rule *rule);

/* Whether the rule is of this kind and for so many classes. */
bool stk_label_rule_is(const stk_label_rule *rule, stk_label_rule_kind kind, int classes);

/* The class that is named for these probabilities. */
int stk_label_choose(const stk_label_rule *rule, const double *probs /* (classes) */, int classes);

/* The class of an expected step: the number of cut points below it. */
int stk_label_cut(const double *cuts, int count, double expected);

/* What is written for the probability of the positive one of two classes. */
double stk_label_step(const stk_label_rule *rule, double probability);

/*
 * The best k classes, best first; returns how many there are. `stranger` is the class of strangers,
 * below 0: there is none. Of equal scores the earlier class comes first, and strangers come last.
 */
int stk_rank_choose(const stk_label_rule *rule, const double *probs /* (classes) */, int classes,
                    int k, int stranger, int *best /* (k) */);

#endif
