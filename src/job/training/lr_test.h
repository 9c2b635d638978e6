/*
 * lr_test.h - the learning-rate test of a run (train/lr_find.h), with its files lr.csv and lr.png.
 */
#ifndef STK_JOB_TRAINING_LR_TEST_H
#define STK_JOB_TRAINING_LR_TEST_H

#include "job/training/job.h"
#include "train/lr_find.h"

/* Name of the plot in the run folder: lr.png, or lr.svg without cairo. */
const char *stk_job_lr_plot_name(void);

/*
 * Runs the test from the weights in the state, which are restored afterwards, for `seconds` at
 * most, and writes the curve into the run folder. `data` has the training samples of a fold. The
 * curve is freed by the caller; after an error it is empty.
 */
STK_CHECKED stk_status stk_job_test_lr(stk_job *job, const stk_loader_config *data, int steps,
                                       double seconds, stk_lr_curve *curve, stk_error *err);

/*
 * Runs the test before training, for `--lr auto`, and makes a recipe with the rate that it found,
 * or with the default rate. After a request to stop the recipe stays as it is.
 */
STK_CHECKED stk_status stk_job_find_lr(stk_job *job, const stk_loader_config *data, stk_error *err);

#endif
