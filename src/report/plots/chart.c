/*
 * chart.c - one picture with lines.
 *
 * From top to bottom: the caption, as many rows of legend as it takes, the plot, its x axis.
 */
#include "report/plots/chart.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "report/plots/axis.h"

#define MARGIN_PX 10.0
#define CAPTION_PX 24.0
#define LEGEND_PX 17.0 /* a row of it */
#define FOOTER_PX 42.0
#define DOTTED 24 /* up to so many points each one gets a dot */
#define MOST 1e15 /* what is beyond is no measurement */
#define X_TICKS 6

typedef struct frame {
    const stk_chart *chart;
    stk_canvas *canvas;
    stk_point *points; /* owned: room for the longest line */
    stk_chart_axis x;
    stk_chart_axis y;
    stk_chart_axis right;
    bool has_right;
} frame;

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
    high = from_zero && high <= 0 ? 1 : high; /* what is always 0 */
    return stk_axis_nice(low, high, percent, from_zero);
}

/* Seconds between two ticks that people like to read. */
static double time_step(double span) {
    static const double steps[] = {1,   2,   5,    10,   15,   30,    60,    120,  300,
                                   600, 900, 1800, 3600, 7200, 10800, 21600, 43200};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (span / steps[i] <= X_TICKS) {
            return steps[i];
        }
    }
    return 86400 * ceil(span / 86400 / X_TICKS);
}

static stk_chart_axis range_of_x(const stk_chart *chart) {
    double low = INFINITY;
    double high = -INFINITY;
    for (size_t l = 0; l < chart->line_count; l++) {
        const stk_chart_line *line = &chart->lines[l];
        for (size_t i = 0; i < line->count; i++) {
            if (is_shown(&line->points[i])) {
                low = fmin(low, line->points[i].x);
                high = fmax(high, line->points[i].x);
            }
        }
    }
    stk_chart_axis axis = {.low = low, .high = high, .step = 1};
    if (low > high) {
        axis.low = 0;
        axis.high = 1;
    } else if (high - low < 1e-6) {
        axis.low = low - 1; /* a lone point stands in the middle */
        axis.high = low + 1;
    } else {
        double span = high - low;
        axis.step = chart->x_is_time ? time_step(span) : fmax(1, stk_axis_step(span, X_TICKS));
        axis.low -= 0.015 * span; /* what is at the ends stands clear of the axes */
        axis.high += 0.015 * span;
    }
    return axis;
}

static void draw_x_axis(const frame *f) {
    const stk_font font = {11, STK_SOFT_INK, false, STK_ALIGN_CENTER};
    const stk_pen rule = {STK_RULE, 1, 1, 0};
    double y = floor(f->y.from_px) + 0.5;
    stk_canvas_line(f->canvas, f->x.from_px, y, f->x.to_px, y, &rule);
    double first = ceil(f->x.low / f->x.step - 1e-9) * f->x.step;
    int ticks = (int)floor((f->x.high - first) / f->x.step + 1e-9) + 1;
    for (int i = 0; i < ticks && i <= 2 * X_TICKS; i++) {
        char text[32];
        double tick = first + i * f->x.step;
        double at = stk_axis_px(&f->x, tick);
        if (f->chart->x_is_time) {
            stk_format_duration(text, sizeof text, tick);
        } else {
            snprintf(text, sizeof text, "%.0f", tick);
        }
        if (tick >= 0) { /* the axis of a lone point may begin below */
            double half = stk_canvas_text_width(f->canvas, text, &font) / 2;
            stk_canvas_line(f->canvas, at, y, at, y + 4, &rule);
            stk_canvas_text(f->canvas, fmin(at, f->canvas->width_px - half), y + 17, text, &font);
        }
    }
    stk_canvas_text(f->canvas, (f->x.from_px + f->x.to_px) / 2, y + 34, f->chart->x_label, &font);
}

/* ---- lines ---- */

static void draw_run(const frame *f, size_t count, const stk_pen *pen) {
    stk_canvas_polyline(f->canvas, f->points, count, pen);
    bool dots = count <= DOTTED && pen->dash_px <= 0;
    for (size_t i = 0; i < count && (dots || count == 1); i++) {
        stk_canvas_dot(f->canvas, f->points[i].x, f->points[i].y, 2.4, pen->color);
    }
}

static void draw_line(const frame *f, const stk_chart_line *line) {
    const stk_chart_axis *y = line->right ? &f->right : &f->y;
    stk_pen pen = {line->color, 1, line->dash_px > 0 ? 1.4 : 1.9, line->dash_px};
    size_t run = 0;
    for (size_t i = 0; i < line->count; i++) {
        if (!is_shown(&line->points[i])) {
            draw_run(f, run, &pen);
            run = 0;
            continue;
        }
        double value = fmin(fmax(line->points[i].y, y->low), y->high);
        f->points[run++] =
            (stk_point){stk_axis_px(&f->x, line->points[i].x), stk_axis_px(y, value)};
    }
    draw_run(f, run, &pen);
}

/* Draws the legend, from left to right and on as many rows as it takes; gives where it ends. */
static double draw_legend(const frame *f, double top) {
    const stk_font font = {11, STK_SOFT_INK, false, STK_ALIGN_LEFT};
    double x = MARGIN_PX;
    double y = top;
    bool any = false;
    for (size_t i = 0; i < f->chart->line_count; i++) {
        const stk_chart_line *line = &f->chart->lines[i];
        if (line->label == NULL || (line->count > 0 && !any_shown(line))) {
            continue;
        }
        double width = 24 + stk_canvas_text_width(f->canvas, line->label, &font) + 12;
        if (x > MARGIN_PX && x + width > f->canvas->width_px) {
            x = MARGIN_PX;
            y += LEGEND_PX;
        }
        const stk_pen pen = {line->color, 1, 2.5, line->dash_px};
        stk_canvas_line(f->canvas, x, y + 7, x + 18, y + 7, &pen);
        stk_canvas_text(f->canvas, x + 24, y + 11, line->label, &font);
        x += width;
        any = true;
    }
    return any ? y + LEGEND_PX : top;
}

static void draw(frame *f) {
    const stk_font caption = {13, STK_INK, true, STK_ALIGN_LEFT};
    stk_canvas_text(f->canvas, MARGIN_PX, 17, f->chart->caption, &caption);
    double top = draw_legend(f, CAPTION_PX) + 8;
    f->y = range_of_y(f->chart, false);
    f->right = range_of_y(f->chart, true);
    f->x = range_of_x(f->chart);
    f->y.from_px = f->right.from_px = f->canvas->height_px - FOOTER_PX;
    f->y.to_px = f->right.to_px = top;
    f->x.from_px = MARGIN_PX + stk_axis_label_width(f->canvas, &f->y) + 10;
    f->x.to_px = f->canvas->width_px - MARGIN_PX;
    if (f->has_right) {
        f->x.to_px -= stk_axis_label_width(f->canvas, &f->right) + 10;
    }
    stk_axis_draw_y(f->canvas, &f->x, &f->y, false);
    if (f->has_right) {
        stk_axis_draw_y(f->canvas, &f->x, &f->right, true);
    }
    draw_x_axis(f);
    for (size_t i = 0; i < f->chart->line_count; i++) {
        draw_line(f, &f->chart->lines[i]);
    }
}

stk_status stk_chart_put(const stk_chart *chart, stk_str *out, stk_error *err) {
    frame f = {.chart = chart};
    size_t longest = 1;
    for (size_t i = 0; i < chart->line_count; i++) {
        longest = chart->lines[i].count > longest ? chart->lines[i].count : longest;
        f.has_right = f.has_right || (chart->lines[i].right && any_shown(&chart->lines[i]));
    }
    f.points = stk_mem_new(longest, sizeof *f.points);
    if (f.points == NULL) {
        return STK_FAIL_MEMORY(err, "a plot");
    }
    stk_status status = stk_canvas_svg_new(&f.canvas, STK_CHART_WIDTH_PX, STK_CHART_HEIGHT_PX, err);
    if (status == STK_OK) {
        draw(&f);
        status = stk_canvas_svg_embed(f.canvas, chart->id, chart->caption, out, err);
    }
    stk_canvas_free(f.canvas);
    stk_mem_free(f.points);
    return status;
}
