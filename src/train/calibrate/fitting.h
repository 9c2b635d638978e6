/* fitting.h - the state of one fit; for the files of this folder only. */
#ifndef STK_TRAIN_CALIBRATE_FITTING_H
#define STK_TRAIN_CALIBRATE_FITTING_H

#include <math.h>

#include "train/calibrate/calibrate.h"

/* A score of n pictures has a noise of about 1 / sqrt(n). A number of a rule that moves by 1 pays
 * such a part of it. */
#define STK_FIT_TOLL 0.1

/* Probabilities that thresholds and scores are tried at. */
#define STK_FIT_GRID 23

/* Some of the held-out pictures. */
typedef struct stk_held_rows {
    size_t count;
    const float **logits;   /* (count), owned: each (outputs), borrowed */
    const int8_t **answers; /* (count), owned: each (outputs), borrowed; several labels only */
    int *labels;            /* (count), owned: not with several labels */
} stk_held_rows;

typedef struct stk_fitting {
    stk_calibrate_config config;
    stk_task task;
    int outputs;
    int k;                     /* of MAP@k */
    bool ruled;                /* the metric has a rule that can be fitted */
    double grid[STK_FIT_GRID]; /* rising, even in their logits; one of them is 1/2 */
    stk_held_rows all;
    stk_held_rows some;      /* those that are fitted to, or judged */
    double *probs;           /* (some.count, outputs), owned: at the fitted temperature */
    double *expected;        /* (some.count), owned: the expected step of a scale */
    int *predicted;          /* (some.count), owned: scratch */
    size_t *tally;           /* (outputs, 2), owned: scratch of a score */
    double *moved;           /* (outputs), owned: scratch for numbers of a rule */
    bool *chosen;            /* (outputs), owned: scratch for a set of labels */
    float *targets;          /* (outputs), owned: scratch */
    stk_set_tally sets;      /* owned: scratch of a score */
    stk_label_rule each;     /* owned: the rule with a threshold of its own for every label */
    stk_metrics plain;       /* owned: held-out pictures without a rule */
    stk_metrics judged;      /* owned: with rules that had not seen the picture */
    stk_metrics judged_each; /* owned: the same with f->each */
    stk_judged_part *parts;  /* (STK_JUDGED_PARTS), the caller's: filled in; NULL: not asked for */
    stk_metrics part_plain;  /* owned: the pictures of one part, where the metric has a rule */
    stk_metrics part_judged;
} stk_fitting;

/* What moving the numbers of a rule by 1 in all costs. */
static inline double stk_fit_toll(const stk_fitting *f) {
    return STK_FIT_TOLL / sqrt((double)f->some.count);
}

/* ---- temperature.c ---- */

/* The sum of the losses of f->some, with its derivatives by 1 / temperature. With several labels
 * the loss of a picture is a sum, too. */
double stk_fit_loss_at(const stk_fitting *f, double temperature, double *slope, double *bend);

/* The temperature of f->some with the least loss. */
double stk_fit_temperature(const stk_fitting *f);

/* ---- the fits of rules to f->some at f->probs; `rule` has room for its numbers ---- */

void stk_fit_weights(stk_fitting *f, stk_label_rule *rule);
void stk_fit_cuts(stk_fitting *f, stk_label_rule *rule);
void stk_fit_step(stk_fitting *f, stk_label_rule *rule);
void stk_fit_stranger(stk_fitting *f, stk_label_rule *rule);

/* One threshold for all labels; and from there one for each, which f->each gets. */
void stk_fit_thresholds(stk_fitting *f, stk_label_rule *rule);

#endif
