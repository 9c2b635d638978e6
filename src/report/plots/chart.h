/*
 * chart.h - inside the report room: the chart engine. Lines over epochs, over time or over powers
 * of ten, with one or two axes for their values.
 *
 * All line charts come from here: those of the pages (stk_chart_put), the panels of results.png
 * (results.c) and the learning-rate test (lr.c). A caller describes a chart and says where it is
 * drawn; titles, legends and marks around it are the caller's. Threads: safe, nothing is stored.
 */
#ifndef STK_REPORT_PLOTS_CHART_H
#define STK_REPORT_PLOTS_CHART_H

#include "report/plots/axis.h"

#define STK_CHART_WIDTH_PX 480
#define STK_CHART_HEIGHT_PX 270

typedef struct stk_chart_line {
    const char *label; /* in the legend; NULL: the line is not in the legend */
    uint32_t color;
    double width_px;         /* 0: 1.9, or 1.4 when it is dashed */
    double dash_px;          /* 0: unbroken */
    bool right;              /* measured on the right axis */
    const stk_point *points; /* borrowed; as measured. A y that is not finite is a gap */
    size_t count;            /* 0: the line stands in the legend only */
} stk_chart_line;

typedef enum stk_chart_scale {
    STK_CHART_WHOLE, /* whole numbers; ticks lie between the first and the last point */
    STK_CHART_TIME,  /* seconds */
    STK_CHART_POWERS /* powers of ten: a point's x is the exponent; the axis ends at whole ones */
} stk_chart_scale;

/* All pointers are borrowed. */
typedef struct stk_chart {
    const char *id;      /* of the picture in its page */
    const char *caption; /* what it shows, with the unit */
    const char *x_label;
    stk_chart_scale x_scale;
    int x_ticks;         /* at most about so many; 0: 6 */
    double x_padding;    /* between axis and outermost points, as a share of their span; 0: 0.015 */
    bool percent;        /* values lie between 0 and 100; with from_zero the axis shows all of it */
    bool right_percent;  /* the right axis shows 0 to 100 */
    bool from_zero;      /* the left axis begins at 0; the right one always does */
    double most;         /* higher values are cut off; 0: no limit */
    const double *range; /* lowest and highest value of the left axis; NULL: those of the lines */
    size_t dotted;       /* a piece of at most this many points gets a dot on each; 0: 24 */
    const stk_chart_line *lines;
    size_t line_count;
} stk_chart;

/* Where a chart is drawn, in px. The numbers of the y axes lie inside the box, those of the x axis
 * below it. */
typedef struct stk_chart_box {
    double left, right, top, bottom; /* bottom: the x axis */
} stk_chart_box;

/* The axes of a chart that was drawn, for marks on it. */
typedef struct stk_chart_frame {
    stk_chart_axis x;
    stk_chart_axis y;
    stk_chart_axis right;
} stk_chart_frame;

/* Whether any line has a point to be drawn. */
bool stk_chart_has_points(const stk_chart *chart);

/* Draws axes and lines; `frame` may be NULL. STK_ERR_MEMORY is the only failure. */
STK_CHECKED stk_status stk_chart_draw(const stk_chart *chart, stk_canvas *canvas,
                                      const stk_chart_box *box, stk_chart_frame *frame,
                                      stk_error *err);

/* Appends the chart with caption and legend as a piece of HTML. */
STK_CHECKED stk_status stk_chart_put(const stk_chart *chart, stk_str *out, stk_error *err);

#endif
