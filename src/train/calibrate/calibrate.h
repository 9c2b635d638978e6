/*
 * calibrate.h - fits a model's temperature and label rule to a validation. Pure arithmetic.
 *
 * The temperature gives the least log loss. Where another answer than the likeliest scores better
 * in the metric (stk_metric_has_rule()), a rule is fitted as well. Every fit is drawn towards "no
 * change", the more the fewer pictures there are. It is judged by pictures that it has not seen:
 * each quarter of the pictures by a fit to the other three. A temperature that does not help there
 * is 1. Whether a rule helps enough is decided over all models of a run
 * (stk_calibration_mean_rule()). Threads: one at a time.
 */
#ifndef STK_TRAIN_CALIBRATE_CALIBRATE_H
#define STK_TRAIN_CALIBRATE_CALIBRATE_H

#include <stdbool.h>

#include "metrics/metrics.h"
#include "weights/calibration.h"

typedef struct stk_calibrate_config {
    stk_metric metric;
    int stranger;          /* of a ranking: the class of strangers; below 0: there is none */
    const bool *exclusive; /* (outputs), borrowed: labels that stand alone; NULL: none does */
    bool tempered;         /* the rows are at the model's temperature: none is fitted to them */
} stk_calibrate_config;

/*
 * Fits to the rows that `metrics` has kept. Rows with numbers that are not finite do not count.
 * *calibration becomes zeros where nothing is left, and for regressions. Freed with
 * stk_calibration_free().
 */
STK_CHECKED stk_status stk_calibrate(const stk_metrics *metrics, const stk_calibrate_config *config,
                                     stk_calibration *calibration, stk_error *err);

/* The held-out pictures are divided into so many parts. */
#define STK_JUDGED_PARTS 4

/* What the pictures of one part came to, judged by fits to the others. */
typedef struct stk_judged_part {
    size_t count;       /* pictures */
    double loss;        /* mean log loss; at temperature 1 where others do not help all parts */
    double plain_score; /* the metric of the likeliest classes; NaN where no rule was fitted */
    double score;       /* the metric with the rule */
} stk_judged_part;

/* stk_calibrate() for tasks of one class; tells of each part, too. Without a calibration all counts
 * are 0. The same samples are in the same parts whatever their outputs, as long as those are
 * finite. */
STK_CHECKED stk_status stk_calibrate_parts(const stk_metrics *metrics,
                                           const stk_calibrate_config *config,
                                           stk_calibration *calibration,
                                           stk_judged_part *parts /* (STK_JUDGED_PARTS) */,
                                           stk_error *err);

/*
 * The sample of one class that was last added to `metrics` counts with these probabilities and the
 * answer of a rule: the named class, the place in the ranked list, the positive's probability.
 * (Sets of labels: stk_labels_choose_set() and stk_metrics_add_chosen().)
 */
void stk_calibrate_decide(stk_metrics *metrics, const stk_label_rule *rule,
                          const double *probs /* (outputs) */, int stranger);

#endif
