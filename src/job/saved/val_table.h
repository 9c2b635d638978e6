/*
 * val_table.h - validation.csv: what the best epoch of each fold predicted for its validation
 * pictures.
 *
 * Rows are `path,label,predicted,probability,fold`, fold after fold, in the order of the samples.
 * Where a picture has several labels, or numbers, label and predicted are lists (true_answer.h);
 * the probability of numbers is empty. The file is replaced atomically whenever the running fold
 * has a better epoch. Threads: the job's.
 */
#ifndef STK_JOB_SAVED_VAL_TABLE_H
#define STK_JOB_SAVED_VAL_TABLE_H

#include <stdbool.h>

#include "base/str.h"
#include "dataset/dataset.h"
#include "run/run_folder.h"
#include "train/sample_results.h"

typedef struct stk_val_table {
    char *path;                /* owned: validation.csv */
    char *kept;                /* owned: state/validation.csv, for the state saver */
    int fold;                  /* the running fold */
    const stk_sample *samples; /* borrowed: results refer to samples by index */
    stk_sample_results now;    /* of the running validation */
    stk_sample_results best;   /* of the best epoch of this process */
    bool owed;                 /* `best` is not written yet */
    stk_str before;            /* owned: the header and the rows of earlier folds */
    bool others;               /* there are rows of earlier folds */
    double row_s;              /* seconds that writing a row took the last time */
} stk_val_table;

STK_CHECKED stk_status stk_val_table_open(stk_val_table *table, const stk_run_folder *folder,
                                          stk_error *err);
void stk_val_table_free(stk_val_table *table);

/* A fold begins, with `count` validation samples. */
STK_CHECKED stk_status stk_val_table_begin(stk_val_table *table, const stk_dataset *dataset,
                                           int fold, const stk_sample *samples, size_t count,
                                           stk_error *err);

/* Reads the rows of earlier folds, to keep them. If they cannot be read, the table starts empty. */
STK_CHECKED stk_status stk_val_table_take_earlier(stk_val_table *table, stk_error *err);

/* The last validation was of the best epoch: its results are to be written. */
void stk_val_table_take_best(stk_val_table *table);

/* Expected seconds of writing. */
double stk_val_table_seconds(const stk_val_table *table);
STK_CHECKED stk_status stk_val_table_write(stk_val_table *table, const stk_dataset *dataset,
                                           stk_error *err);

/* Removes the rows of the running fold: it has no best epoch any more. */
STK_CHECKED stk_status stk_val_table_drop(stk_val_table *table, stk_error *err);

#endif
