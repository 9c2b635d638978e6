/*
 * features.h - numbers beside the pictures: further columns that training and test table share.
 *
 * feature_code.h says how a column becomes numbers. Read-only once made; any thread may read.
 */
#ifndef STK_DATASET_FEATURES_H
#define STK_DATASET_FEATURES_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

#include "dataset/feature_code.h"

typedef struct stk_features {
    int count;             /* numbers of each record; 0: there are none */
    size_t first;          /* the record of the first row of `values` */
    size_t rows;           /* of the training table, then of the test table */
    float *values;         /* (rows, count), owned */
    float *missing;        /* (count), owned: of a record that is not known; NULL: zeros */
    stk_feature_code code; /* owned */
    char names[120];       /* the first of its columns, for people */
} stk_features;            /* starts zeroed */

/* Makes the code of the two tables, as stk_feature_code_make() does, and the numbers of their rows.
 * `test` may be NULL: then there are no features. */
STK_CHECKED stk_status stk_features_make(stk_features *features, const stk_csv *train,
                                         const stk_csv *test, const bool *wanted, stk_error *err);

/*
 * Makes the numbers of a test table whose first row is record `first`, by a code that was made from
 * other tables. `test` may be NULL: then no record is known. features->code stays empty.
 */
STK_CHECKED stk_status stk_features_of_code(stk_features *features, const stk_feature_code *code,
                                            const stk_csv *test, size_t first,
                                            stk_features_absent *absent, stk_error *err);
void stk_features_free(stk_features *features);

/* The numbers of a record; NULL, which means zeros, where the record is not known. */
const float *stk_features_row(const stk_features *features, size_t record);

#endif
