/*
 * lr.c - the picture of a learning-rate test.
 *
 * The highest losses are cut off: the test ends when the loss explodes, and that last rise would
 * flatten the valley that the picture is about.
 */
#include "report/plots/lr.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#define LEFT_PX 64.0
#define RIGHT_PX 20.0
#define TOP_PX 64.0
#define BOTTOM_PX 52.0
#define PEAK 1.6 /* times the loss at the beginning: higher ones are cut off */
#define TICKS 5  /* of the loss, about */
#define INK 0x26282bu
#define SOFT_INK 0x6b7076u
#define RULE 0x9aa0a6u
#define GRID 0xe6e8ebu
#define RAW 0xb7c6dcu
#define SMOOTH 0x3b6fb6u
#define MARK 0xe07b39u

typedef struct frame {
    const stk_lr_plot *plot;
    stk_canvas *canvas;
    stk_point *points;               /* (plot->count) */
    double left, right, top, bottom; /* px */
    double low_power, high_power;    /* of ten: the ends of the rates' axis */
    double low, high, step;          /* of the losses' axis */
} frame;

static double x_of(const frame *f, double lr) {
    double along = (log10(lr) - f->low_power) / (f->high_power - f->low_power);
    return f->left + along * (f->right - f->left);
}

static double y_of(const frame *f, double loss) {
    double along = (fmin(fmax(loss, f->low), f->high) - f->low) / (f->high - f->low);
    return f->bottom - along * (f->bottom - f->top);
}

/* 1, 2 or 5 times a power of ten. */
static double round_step(double span) {
    double power = pow(10, floor(log10(span / TICKS)));
    double ratio = span / TICKS / power;
    return power * (ratio <= 1 ? 1 : ratio <= 2 ? 2 : ratio <= 5 ? 5 : 10);
}

static void measure(frame *f) {
    const stk_lr_plot *plot = f->plot;
    double low = INFINITY;
    double high = -INFINITY;
    f->low_power = -7;
    f->high_power = 1;
    if (plot->count > 0) {
        f->low_power = floor(log10(plot->points[0].lr) + 1e-9);
        f->high_power = ceil(log10(plot->points[plot->count - 1].lr) - 1e-9);
    }
    f->high_power = fmax(f->high_power, f->low_power + 1);
    for (size_t i = 0; i < plot->count; i++) {
        if (isfinite(plot->points[i].smoothed)) {
            low = fmin(low, plot->points[i].smoothed);
            high = fmax(high, plot->points[i].smoothed);
        }
    }
    low = isfinite(low) ? low : 0;
    high = isfinite(high) ? fmin(high, PEAK * plot->points[0].smoothed) : 1;
    high = high - low > 1e-6 * fabs(high) ? high : low + fmax(fabs(low), 1e-3);
    f->step = round_step(1.1 * (high - low));
    f->low = floor((low - 0.05 * (high - low)) / f->step) * f->step;
    f->high = ceil((high + 0.05 * (high - low)) / f->step) * f->step;
    f->left = LEFT_PX;
    f->right = f->canvas->width_px - RIGHT_PX;
    f->top = TOP_PX;
    f->bottom = f->canvas->height_px - BOTTOM_PX;
}

static void draw_axes(const frame *f) {
    const stk_font below = {11, SOFT_INK, false, STK_ALIGN_CENTER};
    const stk_font beside = {11, SOFT_INK, false, STK_ALIGN_RIGHT};
    const stk_pen grid = {GRID, 1, 1, 0};
    const stk_pen rule = {RULE, 1, 1, 0};
    char text[32];
    int decimals = (int)fmax(0, ceil(-log10(f->step) - 1e-9));
    int rows = (int)lround((f->high - f->low) / f->step);
    for (int i = 0; i <= rows; i++) {
        double loss = f->low + i * f->step;
        double y = floor(y_of(f, loss)) + 0.5;
        snprintf(text, sizeof text, "%.*f", decimals < 6 ? decimals : 6, loss);
        stk_canvas_line(f->canvas, f->left, y, f->right, y, &grid);
        stk_canvas_text(f->canvas, f->left - 8, y + 4, text, &beside);
    }
    for (int power = (int)f->low_power; power <= (int)f->high_power; power++) {
        double x = floor(x_of(f, pow(10, power))) + 0.5;
        snprintf(text, sizeof text, power >= -3 ? "%g" : "%.0e", pow(10, power));
        stk_canvas_line(f->canvas, x, f->bottom, x, f->bottom + 4, &rule);
        stk_canvas_text(f->canvas, x, f->bottom + 18, text, &below);
    }
    stk_canvas_line(f->canvas, f->left, f->bottom + 0.5, f->right, f->bottom + 0.5, &rule);
    stk_canvas_text(f->canvas, (f->left + f->right) / 2, f->bottom + 38, "learning rate", &below);
}

static void draw_curve(const frame *f, bool smoothed) {
    const stk_pen pen = {smoothed ? SMOOTH : RAW, 1, smoothed ? 2.2 : 1.2, 0};
    size_t run = 0;
    for (size_t i = 0; i < f->plot->count; i++) {
        const stk_lr_point *point = &f->plot->points[i];
        double loss = smoothed ? point->smoothed : point->loss;
        if (isfinite(loss)) {
            f->points[run++] = (stk_point){x_of(f, point->lr), y_of(f, loss)};
        }
    }
    stk_canvas_polyline(f->canvas, f->points, run, &pen);
}

static void draw_suggestion(const frame *f) {
    const stk_pen pen = {MARK, 1, 1.6, 5};
    double lr = f->plot->suggestion;
    if (!isfinite(lr) || !(lr > 0)) {
        return;
    }
    double x = fmin(fmax(x_of(f, lr), f->left), f->right);
    bool left_half = x < (f->left + f->right) / 2;
    stk_font font = {12, MARK, true, left_half ? STK_ALIGN_LEFT : STK_ALIGN_RIGHT};
    char text[48];
    snprintf(text, sizeof text, "suggested %g", lr);
    stk_canvas_line(f->canvas, x, f->top, x, f->bottom, &pen);
    stk_canvas_text(f->canvas, x + (left_half ? 6 : -6), f->top + 12, text, &font);
}

static void draw_header(const frame *f) {
    const stk_font title = {16, INK, true, STK_ALIGN_LEFT};
    const stk_font legend = {11, SOFT_INK, false, STK_ALIGN_LEFT};
    const stk_pen raw = {RAW, 1, 2, 0};
    const stk_pen smooth = {SMOOTH, 1, 2.5, 0};
    if (f->plot->title != NULL) {
        stk_canvas_text(f->canvas, 16, 27, f->plot->title, &title);
    }
    stk_canvas_line(f->canvas, 16, 44, 34, 44, &smooth);
    stk_canvas_text(f->canvas, 40, 48, "loss, smoothed", &legend);
    stk_canvas_line(f->canvas, 136, 44, 154, 44, &raw);
    stk_canvas_text(f->canvas, 160, 48, "of each step", &legend);
}

stk_status stk_lr_plot_draw(const stk_lr_plot *plot, stk_canvas *canvas, stk_error *err) {
    frame f = {.plot = plot, .canvas = canvas};
    f.points = stk_mem_new(plot->count > 0 ? plot->count : 1, sizeof *f.points);
    if (f.points == NULL) {
        return STK_FAIL_MEMORY(err, "a plot");
    }
    measure(&f);
    draw_header(&f);
    draw_axes(&f);
    draw_curve(&f, false);
    draw_curve(&f, true);
    draw_suggestion(&f);
    stk_mem_free(f.points);
    return STK_OK;
}

stk_status stk_lr_plot_write(const stk_lr_plot *plot, const char *path, stk_error *err) {
    stk_canvas *canvas = NULL;
    stk_status status =
        stk_canvas_for(&canvas, path, STK_LR_PLOT_WIDTH_PX, STK_LR_PLOT_HEIGHT_PX, err);
    if (status == STK_OK) {
        status = stk_lr_plot_draw(plot, canvas, err);
    }
    if (status == STK_OK) {
        status = stk_canvas_save(canvas, path, NULL, err);
    }
    stk_canvas_free(canvas);
    return status;
}
