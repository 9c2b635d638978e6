/*
 * fold_predict.h - predictions with the weights of one fold: of the test set, and of its own
 * validation samples.
 */
#ifndef STK_JOB_TRAINING_FOLD_PREDICT_H
#define STK_JOB_TRAINING_FOLD_PREDICT_H

#include "job/training/job.h"

/* Predicts the test set with the weights in the state, adds the predictions to the ensemble, and
 * replaces the submission. *whole is false where there was no time for all rows and views, or no
 * picture could be read. */
STK_CHECKED stk_status stk_job_predict_test(stk_job *job, bool *whole, stk_error *err);

/* Predicts the fold's own validation samples and writes oof.csv, which with many classes takes
 * long. */
STK_CHECKED stk_status stk_job_predict_oof(stk_job *job, const stk_split *split,
                                           const stk_sample *val_samples, stk_error *err);

/* A fold that an earlier process finished: its model predicts both sets again, so that the ensemble
 * and the out-of-fold predictions have it. Writes no file. *whole: there was time for all
 * predictions. */
STK_CHECKED stk_status stk_job_repeat_predictions(stk_job *job, bool *whole, stk_error *err);

#endif
