/*
 * bars.h - rates as bars beneath each other, in sections. Threads: safe, nothing is kept.
 */
#ifndef STK_REPORT_PLOTS_BARS_H
#define STK_REPORT_PLOTS_BARS_H

#include <stdbool.h>
#include <stddef.h>

#include "report/plots/canvas.h"

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

/* Draws on the whole canvas, which has the height of stk_bar_plot_height. */
void stk_bar_plot_draw(const stk_bar_plot *plot, stk_canvas *canvas);
int stk_bar_plot_height(const stk_bar_plot *plot);

/* Draws and writes the file atomically; the path ends with .png or .svg. */
STK_CHECKED stk_status stk_bar_plot_write(const stk_bar_plot *plot, const char *path,
                                          const stk_file_how *how, stk_error *err);

#endif
