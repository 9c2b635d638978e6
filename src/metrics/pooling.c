/* pooling.c - which pictures are of one row; means and largest values over them. */
#include "metrics/pooling.h"

#include <stdlib.h>
#include <string.h>

const char *stk_pooling_name(stk_pooling pool) {
    static const char *const names[] = {"mean", "max", "auto"}; /* as STK_POOL_NAMES */
    return names[pool];
}

/* ---- rows ---- */

stk_row_picture stk_row_picture_of(int64_t row, size_t place) {
    return (stk_row_picture){row > 0 ? row : -(int64_t)place - 1, place};
}

static int by_row(const void *a, const void *b) {
    const stk_row_picture *x = a;
    const stk_row_picture *y = b;
    return x->row != y->row ? (x->row > y->row) - (x->row < y->row)
                            : (x->place > y->place) - (x->place < y->place);
}

void stk_rows_sort(stk_row_picture *pictures, size_t count) {
    if (count > 1) {
        qsort(pictures, count, sizeof *pictures, by_row);
    }
}

size_t stk_rows_end(const stk_row_picture *pictures, size_t count, size_t first) {
    size_t end = first + 1;
    while (end < count && pictures[end].row == pictures[first].row) {
        end++;
    }
    return end;
}

/* ---- values ---- */

void stk_pooling_add(stk_pooling pool, const double *values, size_t count, size_t before,
                     double *row) {
    if (before == 0) {
        memcpy(row, values, count * sizeof *row);
        return;
    }
    for (size_t k = 0; k < count; k++) {
        if (pool != STK_POOL_MAX) {
            row[k] += values[k];
        } else if (values[k] > row[k]) {
            row[k] = values[k];
        }
    }
}

void stk_pooling_end(stk_pooling pool, stk_task task, size_t count, size_t pictures, double *row) {
    double sum = (double)pictures;
    if (pictures < 2) {
        return;
    }
    if (pool == STK_POOL_MAX) {
        sum = 0;
        for (size_t k = 0; k < count && stk_task_has_classes(task); k++) {
            sum += row[k];
        }
    }
    for (size_t k = 0; k < count && sum > 0; k++) {
        row[k] /= sum;
    }
}
