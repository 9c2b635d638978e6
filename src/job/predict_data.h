/*
 * predict_data.h - the pictures that `stoker predict` predicts, with what lies beside them.
 *
 * Without --data they are the test set of the run's own data set. With --data they are those of
 * another folder, which may be a data set of the same task, or just pictures. Threads: the
 * caller's.
 */
#ifndef STK_JOB_PREDICT_DATA_H
#define STK_JOB_PREDICT_DATA_H

#include "dataset/dataset.h"
#include "job/members.h"

typedef struct stk_predict_data {
    const char *run;                    /* the first run folder, for errors */
    const stk_dataset_options *given;   /* of the command line */
    const stk_storage_options *storage; /* with the run's stop and deadline */
    const stk_members *members;
    const stk_events *events;
} stk_predict_data;

/*
 * Opens them. Where the models need more than pictures (columns of a table, rows of several
 * pictures, another answer than a class), the folder is first opened as a data set with labels; it
 * is used as one if it has the same classes, labels or numbers.
 */
STK_CHECKED stk_status stk_predict_data_open(const stk_predict_data *wanted, stk_dataset **dataset,
                                             stk_error *err);

/*
 * The numbers beside the pictures of the data set as a model takes them: in the code that its
 * checkpoint keeps, whatever tables the data set has. Columns that are not there count as empty; a
 * warning goes to `told`, which may be NULL. STK_ERR_DATA: a model of an earlier version takes
 * another count of numbers.
 */
STK_CHECKED stk_status stk_predict_data_features(const stk_dataset *dataset,
                                                 const stk_member *member, const stk_events *told,
                                                 stk_features *features, stk_error *err);
void stk_predict_data_features_free(stk_features *features, const stk_dataset *dataset);

#endif
