/* epoch_lines.c - a line for each measure of each fold. */
#include "report/plots/epoch_lines.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define PEAK 3.0

static double value_of(const stk_event_epoch *row, const stk_epoch_measure *measure) {
    double value;
    memcpy(&value, (const char *)row + measure->offset, sizeof value);
    return value * measure->factor;
}

/* An epoch that was not validated has no point: the line goes on to the next one that was. */
static bool is_passed_over(const stk_event_epoch *row, double value) {
    return isnan(row->val_acc1) && isnan(value);
}

stk_status stk_epoch_lines_make(stk_epoch_lines *out, const stk_event_epoch *rows, size_t row_count,
                                const stk_epoch_measure *measures, size_t measure_count, int folds,
                                stk_error *err) {
    *out = (stk_epoch_lines){0};
    out->lines = stk_mem_new((size_t)folds * measure_count, sizeof *out->lines);
    out->points = stk_mem_new(row_count * measure_count, sizeof *out->points);
    if (out->lines == NULL || out->points == NULL) {
        stk_epoch_lines_free(out);
        return STK_FAIL_MEMORY(err, "a plot");
    }
    stk_point *next = out->points;
    for (int fold = 0; fold < folds; fold++) {
        for (size_t m = 0; m < measure_count; m++) {
            const stk_epoch_measure *measure = &measures[m];
            stk_chart_line line = {.color =
                                       folds > 1 ? stk_axis_color((size_t)fold) : measure->color,
                                   .dash_px = folds > 1 ? measure->fold_dash_px : measure->dash_px,
                                   .right = measure->right,
                                   .points = next};
            for (size_t i = 0; i < row_count; i++) {
                double value = value_of(&rows[i], measure);
                if (rows[i].fold == fold && !is_passed_over(&rows[i], value)) {
                    *next++ = (stk_point){rows[i].epoch, value};
                    line.count++;
                }
            }
            if (line.count > 0) {
                out->lines[out->count++] = line;
            }
        }
    }
    return STK_OK;
}

void stk_epoch_lines_free(stk_epoch_lines *lines) {
    stk_mem_free(lines->lines);
    stk_mem_free(lines->points);
    *lines = (stk_epoch_lines){0};
}

double stk_epoch_highest_loss(const stk_event_epoch *rows, size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, rows[i].train_loss); /* fmax ignores NaN */
    }
    return isfinite(most) ? PEAK * most : 0;
}

bool stk_epoch_top5_matters(const stk_event_epoch *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (rows[i].val_acc5 < 99.95) {
            return true;
        }
    }
    return false;
}
