/*
 * pooled_rows.h - a validation rated by rows, where a row of the submission has several pictures.
 *
 * Keeps what a validation says of each picture, and pools it in each way that there is
 * (metrics/pooling.h). A row whose pictures have different labels or targets has no known answer
 * and is left out. What is kept takes 256 MiB at most; where all rows would take more, every k-th
 * row is kept. Threads: one at a time.
 */
#ifndef STK_TRAIN_CALIBRATE_POOLED_ROWS_H
#define STK_TRAIN_CALIBRATE_POOLED_ROWS_H

#include "metrics/pooling.h"
#include "train/calibrate/calibrate.h"

typedef struct stk_pooled_rows {
    stk_metric metric;
    stk_pooling pool;                  /* the way that counts, or STK_POOL_AUTO */
    size_t every;                      /* one row of so many is kept */
    size_t count;                      /* kept pictures */
    size_t capacity;                   /* fixed by open */
    stk_row_picture *pictures;         /* (capacity), owned; places are those of these lists: */
    int *labels;                       /* (capacity), owned; 0 where there are targets */
    float *outputs;                    /* (capacity, outputs), owned: logits or numbers */
    float *targets;                    /* (capacity, outputs), owned; NULL: the task has classes */
    size_t several;                    /* rows of several pictures when they were last pooled */
    stk_metrics pooled[STK_POOL_WAYS]; /* owned: the rows, as they were last pooled */
    double *values;                    /* (2, outputs), owned: scratch */
    float *logits;                     /* (outputs), owned: scratch */
} stk_pooled_rows;

/* `row_of` has for each sample that may be added the number of its row; `rated` as for its
 * metrics, with their number as capacity. */
STK_CHECKED stk_status stk_pooled_rows_open(stk_pooled_rows *rows, const stk_metrics_config *rated,
                                            const int64_t *row_of, stk_pooling pool,
                                            stk_error *err);
void stk_pooled_rows_free(stk_pooled_rows *rows);
void stk_pooled_rows_reset(stk_pooled_rows *rows);

/* Adds a picture: its logits or numbers, and its label or its targets. */
void stk_pooled_rows_add(stk_pooled_rows *rows, int64_t row, const float *outputs, int label,
                         const float *targets /* (outputs) or NULL */);

/* The metric of the rows, pooled in the way that counts or in the better one; NaN: no row has a
 * known answer. */
double stk_pooled_rows_value(stk_pooled_rows *rows);

/*
 * Chooses how rows are pooled, and fits the rule of the metric to rows that are pooled so, at the
 * temperature that *calibration has. Their largest values have to score better by more than chance
 * gives; otherwise, with too few rows, and for numbers, the means count.
 */
STK_CHECKED stk_status stk_pooled_rows_fit(stk_pooled_rows *rows,
                                           const stk_calibrate_config *config,
                                           stk_calibration *calibration, stk_error *err);

#endif
