/* pooling.c - means and largest values over the pictures of a row. */
#include "metrics/pooling.h"

#include <string.h>

const char *stk_pooling_name(stk_pooling pool) {
    static const char *const names[] = {"mean", "max", "auto"}; /* as STK_POOL_NAMES */
    return names[pool];
}

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
