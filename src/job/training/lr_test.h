/*
 * lr_test.h - the learning-rate test of a run (train/lr_find.h), with its files lr.csv and lr.png.
 */
#ifndef STK_JOB_TRAINING_LR_TEST_H
#define STK_JOB_TRAINING_LR_TEST_H

#include "events/events.h"
#include "job/recipe/network.h"
#include "run/run_folder.h"
#include "train/lr_find.h"

/* What a test works on; borrowed. */
typedef struct stk_lr_test {
    const stk_job_network *network;
    const stk_recipe *recipe;
    stk_options *options; /* stk_lr_test_find() writes "lr" */
    stk_run_clock *clock;
    const stk_events *events;
    const stk_run_folder *folder; /* for the curve and its plot */
} stk_lr_test;

/* Name of the plot in the run folder: lr.png, or lr.svg without cairo. */
const char *stk_lr_test_plot_name(void);

/*
 * Runs the test from the weights in the state, which are restored afterwards, for `seconds` at
 * most, and writes the curve into the run folder. `data` has the training samples of a fold. The
 * curve is freed by the caller; after an error it is empty.
 */
STK_CHECKED stk_status stk_lr_test_run(const stk_lr_test *test, const stk_loader_config *data,
                                       int steps, double seconds, stk_lr_curve *curve,
                                       stk_error *err);

/*
 * Runs the test before training, for `--lr auto`. *lr becomes the rate that it found, or the
 * default rate, and is emitted and stored in the options. After a request to stop *lr is
 * STK_AUTO_DOUBLE.
 */
STK_CHECKED stk_status stk_lr_test_find(const stk_lr_test *test, const stk_loader_config *data,
                                        double *lr, stk_error *err);

#endif
