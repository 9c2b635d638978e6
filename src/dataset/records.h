/*
 * records.h - only for this room: what each row of a table of labels trains a picture to say.
 *
 * The rows become classes, or targets of the data set. Threads: one.
 */
#ifndef STK_DATASET_RECORDS_H
#define STK_DATASET_RECORDS_H

#include "dataset/ask.h"

typedef struct stk_records {
    int *strata; /* owned: of each row its class or, where the task has none, its stratum */
} stk_records;   /* starts zeroed */

/* Reads the label columns into the data set's targets, or those of wanted rows into its classes. */
STK_CHECKED stk_status stk_records_read(stk_records *records, stk_listing *listing,
                                        const stk_csv *csv, const stk_ask *ask, const bool *wanted,
                                        stk_error *err);
void stk_records_free(stk_records *records);

#endif
