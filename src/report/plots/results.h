/*
 * results.h - results.png: loss, accuracy, learning rate and speed of a run over its epochs.
 *
 * Rows are the epoch events in order. A value that is not finite leaves a gap. Threads: safe,
 * nothing is stored.
 */
#ifndef STK_REPORT_PLOTS_RESULTS_H
#define STK_REPORT_PLOTS_RESULTS_H

#include <stddef.h>

#include <stoker/events.h>

#include "report/plots/canvas.h"

#define STK_PLOT_WIDTH_PX 1200
#define STK_PLOT_HEIGHT_PX 400

typedef struct stk_plot {
    const char *title;           /* borrowed; NULL: none */
    const stk_event_epoch *rows; /* borrowed */
    size_t count;
    int folds;                   /* 1 + the highest one of the rows; 1 without rows */
    const stk_event_epoch *best; /* borrowed: the best epoch; NULL: none is marked */
} stk_plot;

/* Draws on the whole canvas. STK_ERR_MEMORY is the only failure. */
STK_CHECKED stk_status stk_plot_draw(const stk_plot *plot, stk_canvas *canvas, stk_error *err);

/* Draws and writes the file atomically; the path ends with .png or .svg. */
STK_CHECKED stk_status stk_plot_write(const stk_plot *plot, const char *path, stk_error *err);

#endif
