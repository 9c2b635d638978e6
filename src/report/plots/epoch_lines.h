/*
 * epoch_lines.h - inside the report room: rows of epochs as the lines of a chart.
 *
 * With one fold colours tell the measures apart. With several folds colours tell the folds apart
 * and dashes the measures. Threads: safe, nothing is stored.
 */
#ifndef STK_REPORT_PLOTS_EPOCH_LINES_H
#define STK_REPORT_PLOTS_EPOCH_LINES_H

#include <stoker/events.h>

#include "report/plots/chart.h"

/* One number of an epoch, and how its line looks. */
typedef struct stk_epoch_measure {
    const char *label;
    size_t offset;       /* of a double in stk_event_epoch */
    uint32_t color;      /* with one fold */
    double dash_px;      /* with one fold */
    double fold_dash_px; /* with several folds */
    double factor;       /* multiplies the number, for the unit that is shown */
    bool right;          /* measured on the right axis */
} stk_epoch_measure;

#define STK_EPOCH_FIELD(field) offsetof(stk_event_epoch, field)

typedef struct stk_epoch_lines {
    stk_chart_line *lines; /* owned: fold by fold, each with all measures; they have no labels */
    size_t count;
    stk_point *points; /* owned: the points of all lines */
} stk_epoch_lines;

/* Lines of all measures for the first `folds` folds; a fold without rows has none. */
STK_CHECKED stk_status stk_epoch_lines_make(stk_epoch_lines *lines, const stk_event_epoch *rows,
                                            size_t row_count, const stk_epoch_measure *measures,
                                            size_t measure_count, int folds, stk_error *err);
void stk_epoch_lines_free(stk_epoch_lines *lines);

/* The highest loss to show: three times the highest training loss, so that one wild validation does
 * not flatten all other epochs; 0: not known. */
double stk_epoch_highest_loss(const stk_event_epoch *rows, size_t count);

/* Whether the top-5 accuracy says anything: it is known and not always 100. */
bool stk_epoch_top5_matters(const stk_event_epoch *rows, size_t count);

#endif
