/*
 * prepare.h - from options to a run that can begin: data set, recipe, device, network.
 *
 * Every verb that trains calls this first. Nothing is written until stk_job_claim_folder(), so that
 * the input may still be refused.
 */
#ifndef STK_JOB_TRAINING_PREPARE_H
#define STK_JOB_TRAINING_PREPARE_H

#include "job/training/job.h"

/*
 * Opens the data set, makes the recipe, opens the device and builds the network. `observer`
 * receives the warnings and decisions meanwhile. *train and *val become the number of images of a
 * fold.
 */
STK_CHECKED stk_status stk_job_prepare(stk_job *job, const stk_observer *observer, size_t *train,
                                       size_t *val, stk_error *err);

/* Opens a new run folder, once nothing can be refused any more: the folder of --out, or a new one
 * below runs/ with the name of --name or else of the verb. */
STK_CHECKED stk_status stk_job_claim_folder(stk_run_folder *folder, const stk_job_options *options,
                                            const char *verb, stk_error *err);

/*
 * Measures the batch if the search asks for it (to_be_measured), and completes the recipe with the
 * result. Emits the batch and writes the options again. Overwrites the weights.
 */
STK_CHECKED stk_status stk_job_measure_batch(stk_job *job, stk_error *err);

/*
 * Begins the first fold for a verb that looks at it: emits the recipe, measures the batch, splits
 * the samples. `split` and `val_samples` are as for stk_fold_split().
 */
STK_CHECKED stk_status stk_job_begin_first_fold(stk_job *job, size_t train, stk_split *split,
                                                const stk_sample **val_samples, stk_error *err);

#endif
