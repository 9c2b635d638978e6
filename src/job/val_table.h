/*
 * val_table.h - validation.csv: what the best epoch of each fold said of its validation pictures.
 *
 * Rows `path,label,predicted,probability,fold`, fold after fold, in the order of the samples. The
 * file is written anew, in one step, whenever the running fold has a better epoch.
 */
#ifndef STK_JOB_VAL_TABLE_H
#define STK_JOB_VAL_TABLE_H

#include <stdbool.h>

#include "base/str.h"
#include "dataset/dataset.h"
#include "run/run_folder.h"
#include "train/sample_results.h"

typedef struct stk_val_table {
    char *path;                /* owned */
    char *kept;                /* owned: where the one is kept that a saved state speaks of */
    int fold;                  /* the running one */
    const stk_sample *samples; /* borrowed: what the numbers of judgements are of */
    stk_sample_results now;    /* of the running validation */
    stk_sample_results best;   /* of the best epoch of this process */
    bool owed;                 /* it is not written yet */
    stk_str before;            /* the header and the rows of the folds before */
    bool others;               /* there are such rows */
    double row_s;              /* what a row took the last time */
} stk_val_table;

STK_CHECKED stk_status stk_val_table_open(stk_val_table *table, const stk_run_folder *folder,
                                          stk_error *err);
void stk_val_table_free(stk_val_table *table);

/* A fold begins, with so many samples to validate. */
STK_CHECKED stk_status stk_val_table_begin(stk_val_table *table, int fold,
                                           const stk_sample *samples, size_t count, stk_error *err);

/* Rows of the folds before stay; where they cannot be read the table begins anew. */
STK_CHECKED stk_status stk_val_table_take_earlier(stk_val_table *table, stk_error *err);

/* The running validation was that of the best epoch: it is to be written. */
void stk_val_table_take_best(stk_val_table *table);

/* Seconds that writing it is expected to take. */
double stk_val_table_seconds(const stk_val_table *table);
STK_CHECKED stk_status stk_val_table_write(stk_val_table *table, const stk_dataset *dataset,
                                           stk_error *err);

/* The running fold has no best epoch any more: its rows go. */
STK_CHECKED stk_status stk_val_table_drop(stk_val_table *table, stk_error *err);

#endif
