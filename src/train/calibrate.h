/*
 * calibrate.h - fits a model's temperature and label rule to a validation. Pure arithmetic.
 *
 * The temperature gives the least log loss. Where the metric is macro F1 or kappa, a label rule is
 * fitted as well. Every fit is drawn towards "no change", the more the fewer pictures there are. It
 * is judged by pictures that it has not seen: each quarter of the pictures by a fit to the other
 * three. A temperature that does not help there is 1. Whether a rule helps enough is decided over
 * all models of a run (stk_calibration_mean_rule()). Threads: one at a time.
 */
#ifndef STK_TRAIN_CALIBRATE_H
#define STK_TRAIN_CALIBRATE_H

#include "metrics/metrics.h"
#include "weights/calibration.h"

/*
 * Fits to the logits that `metrics` has kept. Rows with numbers that are not finite do not count.
 * *calibration becomes zeros where nothing is left. Freed with stk_calibration_free().
 */
STK_CHECKED stk_status stk_calibrate(const stk_metrics *metrics, stk_metric metric,
                                     stk_calibration *calibration, stk_error *err);

#endif
