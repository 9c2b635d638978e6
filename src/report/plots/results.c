/*
 * results.c - the results plot: three or four charts side by side, a title and legends.
 */
#include "report/plots/plots.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "report/plots/epoch_lines.h"

#define HEADER_PX 40.0  /* title */
#define CAPTION_PX 30.0 /* a panel's name and legend */
#define FOOTER_PX 44.0  /* epochs below the panels */
#define OUTER_PX 16.0   /* the picture's margin, and half of the gap between panels */
#define EPOCH_TICKS 8
#define EPOCH_PADDING 0.02
#define DOTTED_EPOCHS 30
#define LINE_PX 2.0 /* with one fold, dashed or not */
#define FOLD_LINE_PX 1.8
#define FOLD_DASHED_PX 1.2

/* One chart of the picture. */
typedef struct results_panel {
    stk_chart chart; /* without its lines */
    const stk_epoch_measure *measures;
    size_t count;
    bool mark_best; /* the best epoch is marked */
    size_t best_at; /* offset of that number in stk_event_epoch */
} results_panel;

/* What all panels share. */
typedef struct results_drawing {
    const stk_plot *plot;
    stk_canvas *canvas;
    int first_epoch;
    int last_epoch;
} results_drawing;

#define AT STK_EPOCH_FIELD

static const stk_epoch_measure loss_measures[] = {
    {"train", AT(train_loss), 0x3b6fb6, 0, 5, 1, false},
    {"val", AT(val_loss), 0xe07b39, 0, 0, 1, false},
};
static const stk_epoch_measure accuracy_measures[] = {
    {"train", AT(train_acc1), 0x3b6fb6, 0, 5, 1, false},
    {"val", AT(val_acc1), 0xe07b39, 0, 0, 1, false},
    {"val top-5", AT(val_acc5), 0xe07b39, 4, 2, 1, false},
};
static const stk_epoch_measure metric_measures[] = {
    {"val", AT(val_metric), 0xe07b39, 0, 0, 1, false},
};
static const stk_epoch_measure speed_measures[] = {
    {"rate, left", AT(lr), 0x8268ad, 0, 5, 1, false},
    {"images/s, right", AT(images_per_second), 0x3f9d6c, 0, 0, 1, true},
};

/* ---- panels ---- */

/* From right to left at the end of the caption's line, so that it never meets the caption. */
static void draw_legend(const results_drawing *d, const results_panel *panel, double right_px,
                        double y) {
    const stk_font font = {11, STK_SOFT_INK, false, STK_ALIGN_RIGHT};
    double x = right_px;
    for (size_t i = panel->count; i-- > 0;) {
        const stk_epoch_measure *m = &panel->measures[i];
        stk_pen pen = {m->color, 1, 2.5, m->dash_px};
        if (d->plot->folds > 1) {
            pen = (stk_pen){STK_SOFT_INK, 1, m->fold_dash_px > 0 ? 1.2 : 2, m->fold_dash_px};
        }
        stk_canvas_text(d->canvas, x, y, m->label, &font);
        x -= stk_canvas_text_width(d->canvas, m->label, &font) + 6;
        stk_canvas_line(d->canvas, x - 18, y - 4, x, y - 4, &pen);
        x -= 18 + 14;
    }
}

static void draw_best(const results_drawing *d, const results_panel *panel, const stk_chart_axis *x,
                      const stk_chart_axis *y) {
    const stk_event_epoch *best = d->plot->best;
    if (best == NULL) {
        return;
    }
    const double *value = (const void *)((const char *)best + panel->best_at);
    if (!isfinite(*value)) {
        return;
    }
    char text[32];
    double at_x = stk_axis_px(x, best->epoch);
    double at_y = stk_axis_px(y, *value);
    stk_font font = {12, 0xb85a1c, true, STK_ALIGN_CENTER};
    snprintf(text, sizeof text, panel->chart.percent ? "%.1f%%" : "%.4g", *value);
    double half = stk_canvas_text_width(d->canvas, text, &font) / 2;
    at_x = fmin(fmax(at_x, x->from_px + half), x->to_px - half);
    bool below = at_y + 22 < y->from_px - 4; /* below a peak the curve leaves room */
    stk_canvas_dot(d->canvas, stk_axis_px(x, best->epoch), at_y, 5.5, 0xe07b39);
    stk_canvas_dot(d->canvas, stk_axis_px(x, best->epoch), at_y, 2.8, 0xffffff);
    stk_canvas_text(d->canvas, at_x, below ? at_y + 22 : at_y - 10, text, &font);
}

static stk_status draw_panel(const results_drawing *d, const results_panel *panel, double left_px,
                             double right_px, stk_error *err) {
    const stk_font caption = {13, STK_INK, true, STK_ALIGN_LEFT};
    const stk_chart_box box = {left_px, right_px, HEADER_PX + CAPTION_PX,
                               d->canvas->height_px - FOOTER_PX};
    stk_chart chart = panel->chart;
    stk_chart_frame frame;
    stk_epoch_lines lines;
    stk_status status = stk_epoch_lines_make(&lines, d->plot->rows, d->plot->count, panel->measures,
                                             panel->count, d->plot->folds, err);
    if (status != STK_OK) {
        return status;
    }
    for (size_t i = 0; i < lines.count; i++) {
        bool dashed = lines.lines[i].dash_px > 0;
        lines.lines[i].width_px = d->plot->folds == 1 ? LINE_PX
                                  : dashed            ? FOLD_DASHED_PX
                                                      : FOLD_LINE_PX;
    }
    stk_canvas_text(d->canvas, left_px, HEADER_PX + 14, chart.caption, &caption);
    draw_legend(d, panel, right_px, HEADER_PX + 14);
    chart.x_label = "epoch";
    chart.x_ticks = EPOCH_TICKS;
    chart.x_padding = EPOCH_PADDING;
    chart.dotted = DOTTED_EPOCHS;
    /* A single epoch is no curve: the axis goes from 0 to its value. */
    chart.from_zero = chart.from_zero || d->first_epoch == d->last_epoch;
    chart.lines = lines.lines;
    chart.line_count = lines.count;
    status = stk_chart_draw(&chart, d->canvas, &box, &frame, err);
    if (status == STK_OK && panel->mark_best) {
        draw_best(d, panel, &frame.x, &frame.y);
    }
    stk_epoch_lines_free(&lines);
    return status;
}

/* ---- the picture ---- */

/* Draws which colour is which fold, from right to left. */
static void draw_fold_legend(const results_drawing *d, double right_px, double y) {
    const stk_font font = {11, STK_SOFT_INK, false, STK_ALIGN_RIGHT};
    double x = right_px;
    int shown = d->plot->folds < STK_AXIS_COLORS ? d->plot->folds : STK_AXIS_COLORS;
    for (int fold = shown; fold-- > 0;) {
        char text[32];
        snprintf(text, sizeof text, "fold %d", fold + 1);
        stk_canvas_text(d->canvas, x, y, text, &font);
        x -= stk_canvas_text_width(d->canvas, text, &font) + 6;
        stk_canvas_rectangle(d->canvas, x - 10, y - 9, 10, 10, stk_axis_color((size_t)fold));
        x -= 10 + 14;
    }
}

static void draw_header(const results_drawing *d) {
    const stk_font title = {16, STK_INK, true, STK_ALIGN_LEFT};
    const stk_font note = {12, STK_SOFT_INK, false, STK_ALIGN_RIGHT};
    double right = d->canvas->width_px - OUTER_PX;
    if (d->plot->title != NULL) {
        stk_canvas_text(d->canvas, OUTER_PX, 27, d->plot->title, &title);
    }
    if (d->plot->folds > 1) {
        draw_fold_legend(d, right, 26);
    } else if (d->plot->best != NULL && isfinite(d->plot->best->val_acc1)) {
        char text[128];
        snprintf(text, sizeof text, "best validation accuracy %.1f%% at epoch %d of %d",
                 d->plot->best->val_acc1, d->plot->best->epoch, d->last_epoch);
        stk_canvas_text(d->canvas, right, 26, text, &note);
    }
}

/* Finds the first and the last epoch. */
static void survey(results_drawing *d) {
    const stk_plot *plot = d->plot;
    d->first_epoch = plot->count > 0 ? plot->rows[0].epoch : 1;
    d->last_epoch = d->first_epoch;
    for (size_t i = 0; i < plot->count; i++) {
        const stk_event_epoch *row = &plot->rows[i];
        d->first_epoch = row->epoch < d->first_epoch ? row->epoch : d->first_epoch;
        d->last_epoch = row->epoch > d->last_epoch ? row->epoch : d->last_epoch;
    }
}

/* Whether some epoch has a validation accuracy. */
static bool has_accuracy(const stk_plot *plot) {
    bool known = false;
    for (size_t i = 0; i < plot->count; i++) {
        known = known || isfinite(plot->rows[i].val_acc1);
    }
    return known;
}

stk_status stk_plot_draw(const stk_plot *plot, stk_canvas *canvas, stk_error *err) {
    const results_panel all[] = {
        {.chart = {.caption = "Loss", .most = stk_epoch_highest_loss(plot->rows, plot->count)},
         .measures = loss_measures,
         .count = 2},
        {.chart = {.caption = "Accuracy, %", .percent = true},
         .measures = accuracy_measures,
         .count = stk_epoch_top5_matters(plot->rows, plot->count) ? 3 : 2,
         .mark_best = true,
         .best_at = offsetof(stk_event_epoch, val_acc1)},
        {.chart = {.caption = plot->metric},
         .measures = metric_measures,
         .count = 1,
         .mark_best = true,
         .best_at = offsetof(stk_event_epoch, val_metric)},
        {.chart = {.caption = "Learning rate, speed", .from_zero = true},
         .measures = speed_measures,
         .count = 2},
    };
    results_panel panels[sizeof all / sizeof *all];
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool metric = all[i].measures == metric_measures;
        bool accuracy = all[i].measures == accuracy_measures;
        if (metric ? plot->metric != NULL
                   : !accuracy || plot->metric == NULL || has_accuracy(plot)) {
            panels[count++] = all[i];
        }
    }
    stk_status status = STK_OK;
    results_drawing d = {.plot = plot, .canvas = canvas};
    survey(&d);
    draw_header(&d);
    double width =
        (canvas->width_px - OUTER_PX * 2 - OUTER_PX * 2 * (double)(count - 1)) / (double)count;
    for (size_t i = 0; i < count && status == STK_OK; i++) {
        double left = OUTER_PX + (double)i * (width + OUTER_PX * 2);
        status = draw_panel(&d, &panels[i], left, left + width, err);
    }
    return status;
}

stk_status stk_plot_write(const stk_plot *plot, const char *path, stk_error *err) {
    stk_canvas *canvas = NULL;
    int width = plot->metric != NULL ? STK_WIDE_PLOT_WIDTH_PX : STK_PLOT_WIDTH_PX;
    stk_status status = stk_canvas_for(&canvas, path, width, STK_PLOT_HEIGHT_PX, err);
    STK_THEN(status, stk_plot_draw(plot, canvas, err));
    STK_THEN(status, stk_canvas_save(canvas, path, NULL, err));
    stk_canvas_free(canvas);
    return status;
}
