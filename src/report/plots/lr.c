/*
 * lr.c - the picture of a learning-rate test.
 *
 * The highest losses are cut off: the test ends when the loss explodes, and that last rise would
 * flatten the valley that the picture is about.
 */
#include "report/plots/plots.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"
#include "report/plots/chart.h"

#define MARGIN_PX 16.0
#define TOP_PX 64.0
#define BOTTOM_PX 52.0
#define PEAK 1.6   /* times the loss at the beginning: higher ones are cut off */
#define ROOM 0.05  /* above and below the losses, as a share of their span */
#define UNDOTTED 1 /* no dots but on a lone point */
#define RAW 0xb7c6dcu
#define SMOOTH 0x3b6fb6u
#define MARK 0xe07b39u

/* The lowest and the highest value of the axis of losses, from the smoothed ones. */
static void find_range(const stk_lr_plot *plot, double range[2]) {
    double low = INFINITY;
    double high = -INFINITY;
    for (size_t i = 0; i < plot->count; i++) {
        if (isfinite(plot->points[i].smoothed)) {
            low = fmin(low, plot->points[i].smoothed);
            high = fmax(high, plot->points[i].smoothed);
        }
    }
    low = isfinite(low) ? low : 0;
    high = isfinite(high) ? fmin(high, PEAK * plot->points[0].smoothed) : 1;
    high = high - low > 1e-6 * fabs(high) ? high : low + fmax(fabs(low), 1e-3);
    range[0] = low - ROOM * (high - low);
    range[1] = high + ROOM * (high - low);
}

static void draw_suggestion(const stk_lr_plot *plot, stk_canvas *canvas,
                            const stk_chart_frame *frame) {
    const stk_pen pen = {MARK, 1, 1.6, 5};
    const stk_chart_axis *axis = &frame->x;
    double top = frame->y.to_px;
    if (!isfinite(plot->suggestion) || !(plot->suggestion > 0)) {
        return;
    }
    double x = stk_axis_px(axis, log10(plot->suggestion));
    x = fmin(fmax(x, axis->from_px), axis->to_px);
    bool left_half = x < (axis->from_px + axis->to_px) / 2;
    stk_font font = {12, MARK, true, left_half ? STK_ALIGN_LEFT : STK_ALIGN_RIGHT};
    char text[48];
    snprintf(text, sizeof text, "suggested %g", plot->suggestion);
    stk_canvas_line(canvas, x, top, x, frame->y.from_px, &pen);
    stk_canvas_text(canvas, x + (left_half ? 6 : -6), top + 12, text, &font);
}

static void draw_header(const stk_lr_plot *plot, stk_canvas *canvas) {
    const stk_font title = {16, STK_INK, true, STK_ALIGN_LEFT};
    const stk_font legend = {11, STK_SOFT_INK, false, STK_ALIGN_LEFT};
    const stk_pen raw = {RAW, 1, 2, 0};
    const stk_pen smooth = {SMOOTH, 1, 2.5, 0};
    if (plot->title != NULL) {
        stk_canvas_text(canvas, MARGIN_PX, 27, plot->title, &title);
    }
    stk_canvas_line(canvas, 16, 44, 34, 44, &smooth);
    stk_canvas_text(canvas, 40, 48, "loss, smoothed", &legend);
    stk_canvas_line(canvas, 136, 44, 154, 44, &raw);
    stk_canvas_text(canvas, 160, 48, "of each step", &legend);
}

stk_status stk_lr_plot_draw(const stk_lr_plot *plot, stk_canvas *canvas, stk_error *err) {
    size_t count = plot->count;
    stk_point *points = stk_mem_new(count > 0 ? 2 * count : 1, sizeof *points);
    if (points == NULL) {
        return STK_FAIL_MEMORY(err, "a plot");
    }
    for (size_t i = 0; i < count; i++) {
        double power = log10(plot->points[i].lr);
        points[i] = (stk_point){power, plot->points[i].loss};
        points[count + i] = (stk_point){power, plot->points[i].smoothed};
    }
    const stk_chart_line lines[] = {
        {.color = RAW, .width_px = 1.2, .points = points, .count = count},
        {.color = SMOOTH, .width_px = 2.2, .points = points + count, .count = count},
    };
    double range[2];
    find_range(plot, range);
    const stk_chart chart = {.x_label = "learning rate",
                             .x_scale = STK_CHART_POWERS,
                             .range = range,
                             .dotted = UNDOTTED,
                             .lines = lines,
                             .line_count = 2};
    const stk_chart_box box = {MARGIN_PX, canvas->width_px - MARGIN_PX, TOP_PX,
                               canvas->height_px - BOTTOM_PX};
    stk_chart_frame frame;
    draw_header(plot, canvas);
    stk_status status = stk_chart_draw(&chart, canvas, &box, &frame, err);
    if (status == STK_OK) {
        draw_suggestion(plot, canvas, &frame);
    }
    stk_mem_free(points);
    return status;
}

stk_status stk_lr_plot_write(const stk_lr_plot *plot, const char *path, stk_error *err) {
    stk_canvas *canvas = NULL;
    stk_status status =
        stk_canvas_for(&canvas, path, STK_LR_PLOT_WIDTH_PX, STK_LR_PLOT_HEIGHT_PX, err);
    STK_THEN(status, stk_lr_plot_draw(plot, canvas, err));
    STK_THEN(status, stk_canvas_save(canvas, path, NULL, err));
    stk_canvas_free(canvas);
    return status;
}
