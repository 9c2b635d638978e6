/*
 * chart.c - axes and lines.
 *
 * A chart of a page has, from top to bottom: the caption, as many rows of legend as it takes, the
 * lines, the x axis.
 */
#include "report/plots/chart.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#define MARGIN_PX 10.0
#define CAPTION_PX 24.0
#define LEGEND_PX 17.0 /* a row of it */
#define FOOTER_PX 42.0
#define MOST 1e15 /* what is beyond is no measurement */

/* What a stk_chart leaves at 0. */
#define X_TICKS 6
#define X_PADDING 0.015
#define DOTTED 24

/* A chart that is being drawn. */
typedef struct chart_drawing {
    const stk_chart *chart;
    stk_canvas *canvas;
    stk_point *points; /* owned: room for the longest line */
    stk_chart_frame frame;
} chart_drawing;

static bool is_shown(const stk_point *point) {
    return fabs(point->x) < MOST && fabs(point->y) < MOST; /* false for NaN */
}

static bool any_shown(const stk_chart_line *line) {
    for (size_t i = 0; i < line->count; i++) {
        if (is_shown(&line->points[i])) {
            return true;
        }
    }
    return false;
}

bool stk_chart_has_points(const stk_chart *chart) {
    for (size_t i = 0; i < chart->line_count; i++) {
        if (any_shown(&chart->lines[i])) {
            return true;
        }
    }
    return false;
}

/* ---- axes ---- */

static stk_chart_axis range_of_y(const stk_chart *chart, bool right) {
    bool percent = right ? chart->right_percent : chart->percent;
    bool from_zero = right || chart->from_zero;
    if (percent && from_zero) {
        return (stk_chart_axis){.high = 100, .step = 20}; /* a little must not look like a lot */
    }
    if (!right && chart->range != NULL) {
        return stk_axis_nice(chart->range[0], chart->range[1], percent, from_zero);
    }
    double low = INFINITY;
    double high = -INFINITY;
    for (size_t l = 0; l < chart->line_count; l++) {
        const stk_chart_line *line = &chart->lines[l];
        for (size_t i = 0; i < line->count && line->right == right; i++) {
            if (is_shown(&line->points[i])) {
                low = fmin(low, line->points[i].y);
                high = fmax(high, line->points[i].y);
            }
        }
    }
    if (!right && chart->most > 0) {
        high = fmin(high, fmax(chart->most, low));
    }
    if (right && high > 0) {
        high *= 1.2; /* head room, so that two level lines do not cover each other */
    }
    high = from_zero && high <= 0 ? 1 : high; /* all values are 0 */
    return stk_axis_nice(low, high, percent, from_zero);
}

/* Seconds between two ticks that people like to read. */
static double time_step(double span, int ticks) {
    static const double steps[] = {1,   2,   5,    10,   15,   30,    60,    120,  300,
                                   600, 900, 1800, 3600, 7200, 10800, 21600, 43200};
    for (size_t i = 0; i < STK_COUNT(steps); i++) {
        if (span / steps[i] <= ticks) {
            return steps[i];
        }
    }
    return 86400 * ceil(span / 86400 / ticks);
}

static int x_ticks(const stk_chart *chart) {
    return chart->x_ticks > 0 ? chart->x_ticks : X_TICKS;
}

/* The lowest and the highest x of all points; false without points. */
static bool span_of_x(const stk_chart *chart, double *low, double *high) {
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t l = 0; l < chart->line_count; l++) {
        const stk_chart_line *line = &chart->lines[l];
        for (size_t i = 0; i < line->count; i++) {
            if (is_shown(&line->points[i])) {
                *low = fmin(*low, line->points[i].x);
                *high = fmax(*high, line->points[i].x);
            }
        }
    }
    return *low <= *high;
}

static stk_chart_axis range_of_x(const stk_chart *chart) {
    double low;
    double high;
    bool known = span_of_x(chart, &low, &high);
    stk_chart_axis axis = {.low = low, .high = high, .step = 1};
    if (!known) {
        axis.low = 0;
        axis.high = 1;
    } else if (chart->x_scale == STK_CHART_POWERS) {
        axis.low = floor(low + 1e-9);
        axis.high = fmax(ceil(high - 1e-9), axis.low + 1);
    } else if (high - low < 1e-6) {
        axis.low = low - 1; /* a lone point stands in the middle */
        axis.high = low + 1;
    } else {
        double span = high - low;
        double padding = chart->x_padding > 0 ? chart->x_padding : X_PADDING;
        axis.step = chart->x_scale == STK_CHART_TIME ? time_step(span, x_ticks(chart))
                                                     : fmax(1, stk_axis_step(span, x_ticks(chart)));
        axis.low -= padding * span; /* points at the ends stand clear of the axes */
        axis.high += padding * span;
    }
    return axis;
}

static void format_tick(char *text, size_t size, stk_chart_scale scale, double tick) {
    if (scale == STK_CHART_TIME) {
        stk_format_duration(text, size, tick);
    } else if (scale == STK_CHART_POWERS) {
        snprintf(text, size, tick >= -3 ? "%g" : "%.0e", pow(10, tick));
    } else {
        snprintf(text, size, "%.0f", tick);
    }
}

static void draw_x_axis(const chart_drawing *d) {
    const stk_font font = {11, STK_SOFT_INK, false, STK_ALIGN_CENTER};
    const stk_pen rule = {STK_RULE, 1, 1, 0};
    const stk_chart_axis *x = &d->frame.x;
    stk_chart_scale scale = d->chart->x_scale;
    double y = floor(d->frame.y.from_px) + 0.5;
    double from = x->low;
    double to = x->high;
    stk_canvas_line(d->canvas, x->from_px, y, x->to_px, y, &rule);
    if (scale == STK_CHART_WHOLE && !span_of_x(d->chart, &from, &to)) {
        from = x->low;
        to = x->high;
    }
    double first = ceil(from / x->step - 1e-9) * x->step;
    int ticks = (int)floor((to - first) / x->step + 1e-9) + 1;
    for (int i = 0; i < ticks && i <= 2 * x_ticks(d->chart); i++) {
        char text[32];
        double tick = first + i * x->step;
        double at = stk_axis_px(x, tick);
        format_tick(text, sizeof text, scale, tick);
        if (tick >= 0 || scale == STK_CHART_POWERS) { /* time before the start is padding */
            double half = stk_canvas_text_width(d->canvas, text, &font) / 2;
            stk_canvas_line(d->canvas, at, y, at, y + 4, &rule);
            stk_canvas_text(d->canvas, fmin(at, d->canvas->width_px - half), y + 17, text, &font);
        }
    }
    stk_canvas_text(d->canvas, (x->from_px + x->to_px) / 2, y + 34, d->chart->x_label, &font);
}

/* ---- lines ---- */

/* A piece of a line without gaps: a line, and dots where a line alone would not show its points. */
static void draw_piece(const chart_drawing *d, size_t count, const stk_pen *pen) {
    size_t dotted = d->chart->dotted > 0 ? d->chart->dotted : DOTTED;
    stk_canvas_polyline(d->canvas, d->points, count, pen);
    bool dots = count <= dotted && pen->dash_px <= 0;
    for (size_t i = 0; i < count && (dots || count == 1); i++) {
        stk_canvas_dot(d->canvas, d->points[i].x, d->points[i].y, count == 1 ? 3.5 : 2.4,
                       pen->color);
    }
}

static void draw_line(const chart_drawing *d, const stk_chart_line *line) {
    const stk_chart_axis *y = line->right ? &d->frame.right : &d->frame.y;
    double width = line->width_px > 0 ? line->width_px : line->dash_px > 0 ? 1.4 : 1.9;
    const stk_pen pen = {line->color, 1, width, line->dash_px};
    size_t piece = 0;
    for (size_t i = 0; i < line->count; i++) {
        if (!is_shown(&line->points[i])) {
            draw_piece(d, piece, &pen);
            piece = 0;
            continue;
        }
        double value = fmin(fmax(line->points[i].y, y->low), y->high);
        d->points[piece++] =
            (stk_point){stk_axis_px(&d->frame.x, line->points[i].x), stk_axis_px(y, value)};
    }
    draw_piece(d, piece, &pen);
}

static bool has_right_axis(const stk_chart *chart) {
    for (size_t i = 0; i < chart->line_count; i++) {
        if (chart->lines[i].right && any_shown(&chart->lines[i])) {
            return true;
        }
    }
    return false;
}

/* Chooses the axes and places them in the box. */
static stk_chart_frame make_frame(const stk_chart *chart, stk_canvas *canvas,
                                  const stk_chart_box *box, bool has_right) {
    stk_chart_frame frame = {
        .x = range_of_x(chart), .y = range_of_y(chart, false), .right = range_of_y(chart, true)};
    frame.y.from_px = frame.right.from_px = box->bottom;
    frame.y.to_px = frame.right.to_px = box->top;
    frame.x.from_px = box->left + stk_axis_label_width(canvas, &frame.y) + 10;
    frame.x.to_px = box->right - (has_right ? stk_axis_label_width(canvas, &frame.right) + 10 : 0);
    return frame;
}

stk_status stk_chart_draw(const stk_chart *chart, stk_canvas *canvas, const stk_chart_box *box,
                          stk_chart_frame *frame, stk_error *err) {
    bool has_right = has_right_axis(chart);
    chart_drawing d = {
        .chart = chart, .canvas = canvas, .frame = make_frame(chart, canvas, box, has_right)};
    size_t longest = 1;
    for (size_t i = 0; i < chart->line_count; i++) {
        longest = chart->lines[i].count > longest ? chart->lines[i].count : longest;
    }
    d.points = stk_mem_new(longest, sizeof *d.points);
    if (d.points == NULL) {
        return STK_FAIL_MEMORY(err, "a plot");
    }
    stk_axis_draw_y(canvas, &d.frame.x, &d.frame.y, false);
    if (has_right) {
        stk_axis_draw_y(canvas, &d.frame.x, &d.frame.right, true);
    }
    draw_x_axis(&d);
    for (size_t i = 0; i < chart->line_count; i++) {
        draw_line(&d, &chart->lines[i]);
    }
    if (frame != NULL) {
        *frame = d.frame;
    }
    stk_mem_free(d.points);
    return STK_OK;
}

/* ---- charts of a page ---- */

/* Draws the legend, from left to right on as many rows as it takes; returns where it ends. */
static double draw_legend(const stk_chart *chart, stk_canvas *canvas, double top) {
    const stk_font font = {11, STK_SOFT_INK, false, STK_ALIGN_LEFT};
    double x = MARGIN_PX;
    double y = top;
    bool any = false;
    for (size_t i = 0; i < chart->line_count; i++) {
        const stk_chart_line *line = &chart->lines[i];
        if (line->label == NULL || (line->count > 0 && !any_shown(line))) {
            continue;
        }
        double width = 24 + stk_canvas_text_width(canvas, line->label, &font) + 12;
        if (x > MARGIN_PX && x + width > canvas->width_px) {
            x = MARGIN_PX;
            y += LEGEND_PX;
        }
        const stk_pen pen = {line->color, 1, 2.5, line->dash_px};
        stk_canvas_line(canvas, x, y + 7, x + 18, y + 7, &pen);
        stk_canvas_text(canvas, x + 24, y + 11, line->label, &font);
        x += width;
        any = true;
    }
    return any ? y + LEGEND_PX : top;
}

stk_status stk_chart_put(const stk_chart *chart, stk_str *out, stk_error *err) {
    const stk_font caption = {13, STK_INK, true, STK_ALIGN_LEFT};
    stk_canvas *canvas = NULL;
    stk_status status = stk_canvas_svg_new(&canvas, STK_CHART_WIDTH_PX, STK_CHART_HEIGHT_PX, err);
    if (status != STK_OK) {
        return status;
    }
    stk_canvas_text(canvas, MARGIN_PX, 17, chart->caption, &caption);
    const stk_chart_box box = {.left = MARGIN_PX,
                               .right = canvas->width_px - MARGIN_PX,
                               .top = draw_legend(chart, canvas, CAPTION_PX) + 8,
                               .bottom = canvas->height_px - FOOTER_PX};
    status = stk_chart_draw(chart, canvas, &box, NULL, err);
    STK_THEN(status, stk_canvas_svg_embed(canvas, chart->id, chart->caption, out, err));
    stk_canvas_free(canvas);
    return status;
}
