/*
 * oof.h - out-of-fold predictions: for each training sample the prediction of the one model that
 * was not trained on it. oof.csv is rewritten after every fold with the rows so far. Threads: the
 * job's.
 */
#ifndef STK_JOB_SAVED_OOF_H
#define STK_JOB_SAVED_OOF_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/status.h>

#include "dataset/dataset.h"
#include "loader/loader.h"
#include "metrics/metrics.h"
#include "predict/predictions.h"
#include "weights/calibration.h"

typedef struct stk_oof {
    const stk_dataset *dataset; /* borrowed */
    stk_predictions probs;      /* (train samples, outputs), owned: probabilities, or numbers */
    int *fold;                  /* per train sample, owned: which fold predicted it; -1: none yet */
    double number_s;            /* seconds that writing one number took the last time */
    double acc1;                /* percent, of all rows when they were last scored; NaN: never, or
                                   the task has numbers */
    size_t scored;              /* rows that both figures are of */
    double metric;              /* the run's metric (--metric) of the same rows; NaN: never */
} stk_oof;

STK_CHECKED stk_status stk_oof_open(stk_oof *oof, const stk_dataset *dataset, stk_error *err);
void stk_oof_free(stk_oof *oof);

/* Adds a fold's predictions of its validation samples: row i of probs is sample indices[i]. */
void stk_oof_add(stk_oof *oof, int fold, const size_t *indices, size_t count,
                 const stk_predictions *probs, const bool *have);

/* Scores all rows so far: sets oof->acc1, of the likeliest classes or of the chosen sets of labels,
 * and oof->metric, where it is one of answers with those that `rule` chooses. Where the data set
 * has rows of several pictures (stk_dataset.train_has_rows) they are pooled first; rows whose
 * pictures have different answers are left out. *rows becomes the number of what was scored. */
STK_CHECKED stk_status stk_oof_score(stk_oof *oof, stk_metric metric, const stk_label_rule *rule,
                                     stk_pooling pool, size_t *rows, stk_error *err);

/* Expected seconds of writing the rows so far and more_rows. */
double stk_oof_write_seconds(const stk_oof *oof, size_t more_rows);

/*
 * Writes columns id, label, fold, then one per class, label or number to predict. The label is the
 * true answer (true_answer.h). STK_ERR_STOPPED: `late` became true before the file was complete,
 * and it stays as it was. Where only the likeliest classes are kept, nothing is written.
 */
STK_CHECKED stk_status stk_oof_write(stk_oof *oof, const char *path, stk_halt late, stk_error *err);

#endif
