/*
 * pooling.h - the values of a row from those of its pictures.
 *
 * A row of a submission may have several pictures: all exposures of a breast, all photos of a
 * product. Each is predicted alone; then their probabilities or numbers are averaged, or the
 * largest one of each class counts: a finding that one exposure shows is there. Threads: safe.
 */
#ifndef STK_METRICS_POOLING_H
#define STK_METRICS_POOLING_H

#include <stddef.h>
#include <stdint.h>

#include "metrics/task.h"

/* In the order of the choices of --pool. */
typedef enum stk_pooling {
    STK_POOL_MEAN,
    STK_POOL_MAX,
    STK_POOL_AUTO /* the one that validates better */
} stk_pooling;

#define STK_POOL_NAMES "mean max auto"

/* The ways that have a result; STK_POOL_AUTO has none. */
#define STK_POOL_WAYS STK_POOL_AUTO

/* "mean"; for files. */
const char *stk_pooling_name(stk_pooling pool);

/* ---- which pictures are of one row ---- */

typedef struct stk_row_picture {
    int64_t row;  /* pictures with the same one are pooled */
    size_t place; /* in the caller's lists */
} stk_row_picture;

/* `row` says which of several pictures it is; 0: the picture in this place is a row alone. */
stk_row_picture stk_row_picture_of(int64_t row, size_t place);

/* Puts the pictures of a row beside each other, in the order of their places. */
void stk_rows_sort(stk_row_picture *pictures, size_t count);

/* Where the row ends whose pictures begin at `first`. */
size_t stk_rows_end(const stk_row_picture *pictures, size_t count, size_t first);

/* ---- their values ---- */

/* Takes the next picture of a row, of which `before` pictures were taken. */
void stk_pooling_add(stk_pooling pool, const double *values, size_t count, size_t before,
                     double *row);

/* Once all `pictures` of the row were taken. The largest probabilities of classes sum to more than
 * 1 and are divided by their sum; those of labels stand each for itself. */
void stk_pooling_end(stk_pooling pool, stk_task task, size_t count, size_t pictures, double *row);

#endif
