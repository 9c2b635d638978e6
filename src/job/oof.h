/*
 * oof.h - out-of-fold predictions: each training sample as the one model saw it that was not
 * trained on it. The file oof.csv is written anew after every fold with the rows there are.
 */
#ifndef STK_JOB_OOF_H
#define STK_JOB_OOF_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

#include "dataset/dataset.h"
#include "loader/loader.h"
#include "train/metrics.h"

typedef struct stk_oof {
    const stk_dataset *dataset; /* borrowed */
    double *probs;              /* (train samples, classes), owned */
    int *fold;                  /* per train sample, owned: which fold predicted it; -1: none yet */
    double number_s;            /* what writing one number took the last time */
} stk_oof;

STK_CHECKED stk_status stk_oof_open(stk_oof *oof, const stk_dataset *dataset, stk_error *err);
void stk_oof_free(stk_oof *oof);

/* Adds what a fold's model says of its validation samples: rows of probs belong to indices. */
void stk_oof_add(stk_oof *oof, int fold, const size_t *indices, size_t count, const double *probs,
                 const bool *have);

/* Adds the rows there are to empty metrics with room for all training samples. */
STK_CHECKED stk_status stk_oof_score(const stk_oof *oof, stk_metrics *metrics, stk_error *err);

/* Seconds that writing all rows there are and so many more is expected to take. */
double stk_oof_write_seconds(const stk_oof *oof, size_t more_rows);

/*
 * id, label, fold, then one column per class. STK_ERR_STOPPED when it is late before the text is
 * made: the file stays as it was.
 */
STK_CHECKED stk_status stk_oof_write(stk_oof *oof, const char *path, stk_halt late, stk_error *err);

#endif
