/*
 * job.h - one run of training, as the parts that it consists of.
 *
 * Each part of the struct has one header; the table in src/job/README.md says which files write the
 * part. Functions that need a few parts take these parts. Only the files that put the parts
 * together (job.c, prepare.c, the files of fold_run.h, fold_predict.c, deliver.c and the verbs)
 * take a whole stk_job. A job stays at its address while it is open: parts point to each other.
 * Threads: the caller's alone.
 */
#ifndef STK_JOB_TRAINING_JOB_H
#define STK_JOB_TRAINING_JOB_H

#include <stoker/job.h>

#include "dataset/dataset.h"
#include "events/events.h"
#include "job/recipe/batch_search.h"
#include "job/recipe/job_options.h"
#include "job/recipe/model_search.h"
#include "job/recipe/network.h"
#include "job/recipe/recipe.h"
#include "job/saved/resume.h"
#include "job/saved/state_saver.h"
#include "job/steering/fold_tally.h"
#include "job/steering/time_plan.h"
#include "job/steering/training_monitor.h"
#include "job/training/lr_test.h"
#include "job/training/outputs.h"
#include "run/run_clock.h"
#include "weights/outputs.h"

typedef struct stk_job {
    const char *verb; /* "train", "plan", "lr", "doctor": the default name of a run folder */
    bool fits;        /* the verb fits the run to its time: stk_job_fit() follows */
    /* What was asked for. */
    stk_options *options; /* borrowed, as are its structs below */
    const stk_dataset_options *dataset_options;
    const stk_loader_options *loader_options;
    const stk_job_options *job_options;
    stk_storage_options storage; /* the options' own, with the run's stop and deadline */
    /* Surroundings. */
    stk_events events;
    stk_run_clock clock;
    stk_map bad_told; /* bad images so far; events.bad_told refers to it */
    stk_dataset *dataset;
    stk_outputs outputs; /* owned: what the network's outputs mean */
    /* What will be done. */
    stk_recipe recipe;
    float *positive_weights; /* owned: of each label, for the recipe; NULL: 1 */
    stk_str chosen;          /* owned: the recipe as one line for people */
    /* Parts. */
    stk_model_search models; /* which model to train, where that was left to Stoker */
    stk_job_network network;
    stk_batch_search batch_search;
    stk_time_plan time;
    stk_fold_tally tally;
    stk_run_outputs out;
    stk_state_saver saver;
    stk_resume resume;             /* the earlier run, where one is resumed */
    stk_training_monitor *monitor; /* owned; NULL until training begins */
} stk_job;

/* Takes the options and the surroundings of a run. The caller has set `verb` and, to resume a run,
 * `out.folder` and `resume`. */
void stk_job_open(stk_job *job, stk_options *options, const stk_run *run);
void stk_job_close(stk_job *job);

/* What a verb does with an opened job. `observer` is the caller's; the verb fills in `result`. */
typedef stk_status stk_job_look(stk_job *job, const stk_observer *observer, void *result,
                                stk_error *err);

/* Opens a job for a verb that looks at the beginning of a training, calls `look`, and closes the
 * job. Refuses --resume. */
STK_CHECKED stk_status stk_job_look_at_first(const char *verb, stk_options *options,
                                             const stk_run *run, stk_job_look *look, void *result,
                                             stk_error *err);

/* Turns --deadline into a budget; `observer` receives that decision. */
STK_CHECKED stk_status stk_job_take_deadline(stk_job *job, const stk_observer *observer,
                                             stk_error *err);

/* The loader configuration of training, or of validation and prediction, for these samples.
 * `indices` NULL: the first `count` samples. `batch` is not set: whoever compiles a network sets it
 * to that of the executable. */
stk_loader_config stk_job_loader_config(stk_job *job, bool train, const stk_sample *samples,
                                        const size_t *indices, size_t count);

/* Writes args.yaml and args.json with the options as far as they are resolved. */
STK_CHECKED stk_status stk_job_write_args(const stk_run_folder *folder, stk_options *options,
                                          stk_error *err);

/* Emits the first event of a run. `train` and `val` are the images of a fold. */
void stk_job_emit_start(stk_job *job, size_t train, size_t val);

/* Emits the decisions of the recipe that need a reason of their own. */
void stk_job_emit_recipe(const stk_job *job, size_t train);

/* What the learning-rate test of this job works with; it borrows the job's parts. */
stk_lr_test stk_job_lr_test(stk_job *job);

/*
 * ---- prepare.c: from options to a run that can begin: data set, recipe, device, network ----
 *
 * Every verb that trains calls stk_job_prepare() first. Nothing is written until
 * stk_job_claim_folder(), so that the input may still be refused.
 */

/*
 * Opens the data set, makes the recipe, opens the device and builds the network. `observer`
 * receives the warnings and decisions meanwhile. *train and *val become the number of images of a
 * fold.
 */
STK_CHECKED stk_status stk_job_prepare(stk_job *job, const stk_observer *observer, size_t *train,
                                       size_t *val, stk_error *err);

/* Whether stk_job_fit() will choose by measured times. */
bool stk_job_is_to_fit(const stk_job *job);

/* Builds the network of a recipe that has changed, plans its batch and completes the recipe. *train
 * and *val become the number of images of a fold. */
STK_CHECKED stk_status stk_job_plan_network(stk_job *job, size_t *train, size_t *val,
                                            stk_error *err);

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

/* ---- fold_predict.c: predictions with the weights of one fold ---- */

/* Predicts the test set with the weights in the state and their calibration, adds the predictions
 * to the ensemble, and replaces the submission. *whole is false where there was no time for all
 * rows and views, or no picture could be read. */
STK_CHECKED stk_status stk_job_predict_test(stk_job *job, const stk_calibration *calibration,
                                            bool *whole, stk_error *err);

/* There is no time to predict the test set at all: warns, and says what the submission has. */
void stk_job_miss_test(stk_job *job);

/*
 * Predicts the test set while training goes on, with the weights in the state, for which `exec` is
 * compiled, and submits the predictions; they stand in for rows that no model predicts later. It
 * ends after most_s with the rows that it has. A failure is a warning and nothing more.
 */
void stk_job_predict_early(stk_job *job, stk_exec *exec, const stk_calibration *calibration,
                           int epoch, double most_s);

/* Predicts the fold's own validation samples and writes oof.csv, which with many classes takes
 * long. */
STK_CHECKED stk_status stk_job_predict_oof(stk_job *job, const stk_calibration *calibration,
                                           const stk_split *split, const stk_sample *val_samples,
                                           stk_error *err);

/* A fold that an earlier process finished: its model predicts both sets again, so that the ensemble
 * and the out-of-fold predictions have it. Writes no file. *whole: there was time for all
 * predictions. */
STK_CHECKED stk_status stk_job_repeat_predictions(stk_job *job, bool *whole, stk_error *err);

/* ---- fold_calibration.c: the calibrations of the models of a run ---- */

/* Reads the calibration of a checkpoint in place of *calibration; zeros where it has none.
 * *img_size becomes the size of the pictures that the weights are for. */
STK_CHECKED stk_status stk_job_read_calibration(const char *path, stk_calibration *calibration,
                                                int *img_size, stk_error *err);

/* A model that was validated has this calibration: it counts for refits and for the held-out
 * figure. */
void stk_job_add_validated(stk_job *job, const stk_calibration *calibration);

/* Emits the temperature of the running fold, how labels are chosen, and what both gain. */
void stk_job_emit_calibration(stk_job *job, const stk_calibration *calibration);

/* How the pictures of a row are pooled: as --pool says or as the first validated model has it;
 * STK_POOL_AUTO before that one. */
stk_pooling stk_job_pool(const stk_job *job);

/* The metric of the best epochs with what calibrations change in it, as a mean over the validated
 * models. */
double stk_job_held_out(const stk_job *job, double best_metric);

/* ", at temperature 0.71" where the held-out figure depends on the calibration, else "". */
void stk_job_describe_calibration(stk_job *job, char *text, size_t size);

/* ---- deliver.c: what a run hands over: submission, summary, outcome or error ---- */

/*
 * Writes the submission from the ensemble as it stands; `status` is "prior", "partial" or
 * "complete". If there is no time to write another one, an existing submission stays, with a
 * warning.
 */
STK_CHECKED stk_status stk_job_submit(stk_job *job, const char *status, stk_error *err);

/*
 * Writes validation.csv when the running fold has a better epoch and there is time for it. If there
 * is no time at the `last` call of a fold, a warning says so.
 */
void stk_job_write_validation(stk_job *job, bool last);

/* Emits why no model was trained, where the budget was the reason. */
void stk_job_emit_untrained(stk_job *job);

/* Fills in the summary; `status` is that of the run. */
void stk_job_finish_summary(stk_job *job, stk_status status);

/* For a resumed run that has nothing left to do, instead of the calls above: emits that, and
 * delivers what the run folder has. */
STK_CHECKED stk_status stk_job_deliver_complete(stk_job *job, stk_error *err);

void stk_job_fill_outcome(const stk_run_outputs *out, stk_outcome *outcome);

/* Fails where the run has nothing to deliver, or an error was put off until now. */
STK_CHECKED stk_status stk_job_check_delivered(const stk_job *job, stk_error *err);

#endif
