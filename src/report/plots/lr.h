/*
 * lr.h - the picture of a learning-rate test: loss over the rate on a logarithmic axis, with the
 * suggested rate marked. Threads: safe, nothing is stored.
 */
#ifndef STK_REPORT_PLOTS_LR_H
#define STK_REPORT_PLOTS_LR_H

#include <stddef.h>

#include <stoker/events.h>

#include "report/plots/canvas.h"

#define STK_LR_PLOT_WIDTH_PX 720
#define STK_LR_PLOT_HEIGHT_PX 420

typedef struct stk_lr_plot {
    const char *title;          /* borrowed; NULL: none */
    const stk_lr_point *points; /* borrowed; rates above 0 and rising */
    size_t count;
    double suggestion; /* NaN: none */
} stk_lr_plot;

/* Draws on the whole canvas. STK_ERR_MEMORY is the only failure. */
STK_CHECKED stk_status stk_lr_plot_draw(const stk_lr_plot *plot, stk_canvas *canvas,
                                        stk_error *err);

/* Draws and writes the file atomically; the path ends with .png or .svg. */
STK_CHECKED stk_status stk_lr_plot_write(const stk_lr_plot *plot, const char *path, stk_error *err);

#endif
