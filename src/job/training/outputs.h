/*
 * outputs.h - everything that a run delivers: its folder, its predictions, its summary.
 *
 * train_job.c opens the files. fold_predict.c fills the ensemble and oof.csv and sets `unread`,
 * `early_epoch` and `early_tried`; the running fold (fold_run.h) fills the rows of validation.csv;
 * deliver.c writes the submission, validation.csv and the summary; fold_calibration.c adds up
 * calibrations. `unpredicted` is set by
 * fold_predict.c and deliver.c. `late_error` keeps the first error of any of them, or of the saver.
 * Threads: the job's.
 */
#ifndef STK_JOB_TRAINING_OUTPUTS_H
#define STK_JOB_TRAINING_OUTPUTS_H

#include <stoker/events.h>

#include "job/saved/oof.h"
#include "job/saved/val_table.h"
#include "predict/ensemble.h"
#include "report/observers/metrics_file.h"
#include "report/runfiles.h"
#include "run/run_folder.h"

typedef struct stk_run_outputs {
    stk_run_folder folder;     /* path NULL until it is opened */
    stk_runfiles *files;       /* owned: events.jsonl, results.csv, the plot and the report */
    stk_metrics_file *metrics; /* owned: --metrics-file; NULL: not asked for */
    int unsynced_before;       /* stk_disk_unsynced() when the run began */
    /* Predictions. */
    size_t row_count; /* rows of the submission; a row may have several pictures of the ensemble */
    stk_ensemble ensemble;          /* predictions of the test set; no rows without a test set */
    stk_oof oof;                    /* out-of-fold predictions; empty without folds */
    stk_val_table val;              /* validation.csv: predictions of the best epochs */
    stk_calibration_mean validated; /* owned: calibrations of the validated models so far */
    double gain;      /* what each of them changes in the best epoch's metric, added up */
    char *submission; /* owned: path of submission.csv; NULL: there are no test rows */
    bool submitted;   /* submission.csv exists */
    int models;       /* models whose average submission.csv holds; 1 for early predictions */
    int early_epoch;  /* whose weights have predicted the test set early; 0: none, or in vain */
    bool early_tried; /* an early prediction was begun, which happens once */
    bool unpredicted; /* there was no time for all rows and views, or to write them */
    bool unread;      /* a model had time for all rows, and no test picture could be read */
    /* The end. */
    size_t val_scored; /* pictures, or rows of pictures, that rate the best weights of the last
                          validated fold; 0: none, or not known */
    char held_out_from[200]; /* text of the summary */
    stk_summary summary;     /* empty until deliver.c fills it in */
    stk_error late_error;    /* an error that does not end the run; reported after delivering */
} stk_run_outputs;

#endif
