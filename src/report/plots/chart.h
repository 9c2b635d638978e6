/*
 * chart.h - inside the report room: lines over epochs or over time, one small picture each, for
 * pages that are read on a phone as well.
 *
 * Threads: safe, nothing is kept.
 */
#ifndef STK_REPORT_PLOTS_CHART_H
#define STK_REPORT_PLOTS_CHART_H

#include "report/plots/canvas.h"

#define STK_CHART_WIDTH_PX 480
#define STK_CHART_HEIGHT_PX 270

typedef struct stk_chart_line {
    const char *label; /* in the legend; NULL: not there */
    uint32_t color;
    double dash_px;          /* 0: unbroken */
    bool right;              /* measured on the right axis */
    const stk_point *points; /* x and y as they were measured; a y that is not finite is a gap */
    size_t count;
} stk_chart_line;

typedef struct stk_chart {
    const char *id;      /* of the picture in its page */
    const char *caption; /* what it shows, with the unit */
    const char *x_label;
    bool x_is_time;     /* seconds; otherwise whole numbers */
    bool percent;       /* between 0 and 100; with from_zero that is the axis */
    bool right_percent; /* the right axis is that */
    bool from_zero;
    double most; /* higher values are cut off; 0: none is */
    const stk_chart_line *lines;
    size_t line_count;
} stk_chart;

/* Whether there is anything to be drawn. */
bool stk_chart_has_points(const stk_chart *chart);

/* Appends the picture as a piece of HTML. */
STK_CHECKED stk_status stk_chart_put(const stk_chart *chart, stk_str *out, stk_error *err);

#endif
