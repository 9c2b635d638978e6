/*
 * features.h - numbers beside the pictures: further columns that training and test table share.
 *
 * A column of numbers becomes one number with mean 0 and deviation 1; empty cells become 0, and a
 * second number says so. A column of few different texts becomes a 0 or 1 for each of them. Means,
 * deviations and texts are those of the training table. Read-only once the data set is open; any
 * thread may read.
 */
#ifndef STK_DATASET_FEATURES_H
#define STK_DATASET_FEATURES_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

#include "base/text/csv.h"

typedef struct stk_features {
    int count;       /* numbers of each record; 0: there are none */
    size_t records;  /* rows of the training table, then rows of the test table */
    float *values;   /* (records, count), owned */
    int columns;     /* columns of the tables that they come from */
    char names[120]; /* the first of these, for people */
} stk_features;      /* starts zeroed */

/*
 * Makes the features of the training table's columns with wanted[column] that the test table has
 * under the same name and that say something: not always the same, not different in every row
 * unless they are numbers. `test` may be NULL: then there are no features.
 */
STK_CHECKED stk_status stk_features_make(stk_features *features, const stk_csv *train,
                                         const stk_csv *test, const bool *wanted, stk_error *err);
void stk_features_free(stk_features *features);

/* The numbers of a record. */
const float *stk_features_row(const stk_features *features, size_t record);

#endif
