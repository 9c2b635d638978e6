/*
 * results.h - how a run went, as one picture: loss, accuracy, learning rate and speed over epochs.
 *
 * Rows are the epoch events in the order in which they came. With one fold colours tell the
 * measures apart; with several they tell the folds apart and dashes the measures. A value that is
 * not finite leaves a gap. Threads: safe, nothing is kept.
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
} stk_plot;

/* Draws on all of the canvas. STK_ERR_MEMORY is the only failure. */
STK_CHECKED stk_status stk_plot_draw(const stk_plot *plot, stk_canvas *canvas, stk_error *err);

/* Draws and writes the file atomically; the path ends with .png or .svg. */
STK_CHECKED stk_status stk_plot_write(const stk_plot *plot, const char *path, stk_error *err);

#endif
