/*
 * plots.h - the pictures that are made of charts and bars: results.png, the picture of a
 * learning-rate test, the bars of a diagnosis.
 *
 * _draw fills a whole canvas; STK_ERR_MEMORY is its only failure. _write draws and writes the file
 * atomically; the path ends with .png or .svg. Threads: safe, nothing is stored.
 */
#ifndef STK_REPORT_PLOTS_PLOTS_H
#define STK_REPORT_PLOTS_PLOTS_H

#include <stdbool.h>
#include <stddef.h>

#include <stoker/events.h>

#include "report/plots/canvas.h"

/*
 * ---- results.c: loss, accuracy, learning rate and speed of a run over its epochs ----
 *
 * Rows are the epoch events in order. A value that is not finite leaves a gap.
 */

#define STK_PLOT_WIDTH_PX 1200
#define STK_WIDE_PLOT_WIDTH_PX 1600 /* with a metric */
#define STK_PLOT_HEIGHT_PX 400

typedef struct stk_plot {
    const char *title;           /* borrowed; NULL: none */
    const stk_event_epoch *rows; /* borrowed */
    size_t count;
    int folds;                   /* 1 + the highest one of the rows; 1 without rows */
    const stk_event_epoch *best; /* borrowed: the best epoch; NULL: none is marked */
    const char *metric;          /* borrowed: gets a panel of its own; NULL: none does */
} stk_plot;

STK_CHECKED stk_status stk_plot_draw(const stk_plot *plot, stk_canvas *canvas, stk_error *err);
STK_CHECKED stk_status stk_plot_write(const stk_plot *plot, const char *path, stk_error *err);

/*
 * ---- lr.c: loss over the learning rate on a logarithmic axis, with the suggested rate marked ----
 */

#define STK_LR_PLOT_WIDTH_PX 720
#define STK_LR_PLOT_HEIGHT_PX 420

typedef struct stk_lr_plot {
    const char *title;          /* borrowed; NULL: none */
    const stk_lr_point *points; /* borrowed; rates above 0 and rising */
    size_t count;
    double suggestion; /* NaN: none */
} stk_lr_plot;

STK_CHECKED stk_status stk_lr_plot_draw(const stk_lr_plot *plot, stk_canvas *canvas,
                                        stk_error *err);
STK_CHECKED stk_status stk_lr_plot_write(const stk_lr_plot *plot, const char *path, stk_error *err);

/* ---- bars.c: rates as bars beneath each other, in sections ---- */

#define STK_BAR_PLOT_WIDTH_PX 760

typedef struct stk_bar {
    const char *label;
    const char *text; /* beside the bar; NULL makes the row a heading */
    double value;     /* NaN: no bar */
    bool marked;      /* drawn in the colour that catches the eye */
} stk_bar;

typedef struct stk_bar_plot {
    const char *title; /* all texts are borrowed */
    const char *below; /* a line under the title */
    const stk_bar *bars;
    size_t count;
    double most; /* value of the longest bar; above 0. A longer bar is cut and has a gap */
} stk_bar_plot;

/* The canvas has the height of stk_bar_plot_height. */
void stk_bar_plot_draw(const stk_bar_plot *plot, stk_canvas *canvas);
int stk_bar_plot_height(const stk_bar_plot *plot);
STK_CHECKED stk_status stk_bar_plot_write(const stk_bar_plot *plot, const char *path,
                                          const stk_file_how *how, stk_error *err);

#endif
