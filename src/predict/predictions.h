/*
 * predictions.h - what models say of many samples: every value, or the largest of each sample.
 *
 * With 65,000 classes every value of 200,000 samples would take 100 GB. Where an answer is made of
 * the likeliest classes or labels only these are kept, and the others of a row share what is left
 * evenly: the row still sums to 1. Where all values fit, or all of them are written, nothing is
 * left out. Threads: one at a time.
 */
#ifndef STK_PREDICT_PREDICTIONS_H
#define STK_PREDICT_PREDICTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "dataset/dataset.h"

/* So many values are always kept in full: 256 MiB. */
#define STK_PREDICTIONS_FULL ((size_t)1 << 25)

typedef struct stk_predictions {
    size_t rows;
    size_t outputs;  /* classes, labels or numbers of each row */
    double *all;     /* (rows, outputs), owned; NULL: only the largest are kept */
    size_t kept;     /* values of each row that are kept otherwise */
    int32_t *places; /* (rows, kept), owned: which outputs they are */
    float *values;   /* (rows, kept + 1), owned: theirs, and the mean of all others */
} stk_predictions;   /* starts zeroed */

/* How many values of a row of so many outputs are kept for an answer; 0: all. */
size_t stk_predictions_kept(const stk_answer *answer, size_t rows, size_t outputs);

/* Rows of zeros. `kept` is what stk_predictions_kept() says. */
STK_CHECKED stk_status stk_predictions_open(stk_predictions *predictions, size_t rows,
                                            size_t outputs, size_t kept, stk_error *err);
void stk_predictions_free(stk_predictions *predictions);

/* The values of a row, which are in `scratch` (outputs) where not all are kept. */
const double *stk_predictions_row(const stk_predictions *predictions, size_t row, double *scratch);

/* Replaces the values of a row. Output `also` is kept whatever its value; below 0: none is. */
void stk_predictions_set(stk_predictions *predictions, size_t row, const double *values, int also);

/* Replaces the values of a row by those of another's row; as many are kept in both. */
void stk_predictions_copy(stk_predictions *predictions, size_t row, const stk_predictions *from,
                          size_t from_row);

#endif
