/*
 * results.c - the results plot.
 *
 * Three panels side by side. A panel has one or two measures per axis; a measure is a field of
 * stk_event_epoch, named by its offset, so that one loop draws them all.
 */
#include "report/plots/results.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "report/plots/axis.h"

#define MAX_SERIES 3
#define HEADER_PX 40.0   /* title */
#define CAPTION_PX 30.0  /* a panel's name and legend */
#define FOOTER_PX 44.0   /* epochs below the panels */
#define OUTER_PX 16.0    /* the picture's margin, and between panels */
#define PEAK 3.0         /* times the largest training value: higher ones are cut off */
#define DOTTED_EPOCHS 30 /* up to so many epochs each one gets a dot */

/* One measure: which field, and how it looks. */
typedef struct series {
    const char *label;
    size_t offset;       /* of a double in stk_event_epoch */
    uint32_t color;      /* with one fold */
    double dash_px;      /* with one fold */
    double fold_dash_px; /* with several */
    bool right;          /* belongs to the right axis */
} series;

typedef struct panel {
    const char *caption;
    const series *series;
    size_t count;
    bool percent; /* values lie between 0 and 100 */
    bool from_zero;
    bool right_axis;
    bool mark_best;
} panel;

/* What all panels share. */
typedef struct drawing {
    const stk_plot *plot;
    stk_canvas *canvas;
    stk_point *points; /* owned: room for all rows */
    int folds;         /* 1 + the highest one */
    int first_epoch;
    int last_epoch;
    const stk_event_epoch *best; /* with one fold: the best row; or NULL */
} drawing;

#define AT(field) offsetof(stk_event_epoch, field)

static const series loss_series[] = {
    {"train", AT(train_loss), 0x3b6fb6, 0, 5, false},
    {"val", AT(val_loss), 0xe07b39, 0, 0, false},
};
static const series accuracy_series[] = {
    {"train", AT(train_acc1), 0x3b6fb6, 0, 5, false},
    {"val", AT(val_acc1), 0xe07b39, 0, 0, false},
    {"val top-5", AT(val_acc5), 0xe07b39, 4, 2, false},
};
static const series speed_series[] = {
    {"rate, left", AT(lr), 0x8268ad, 0, 5, false},
    {"images/s, right", AT(images_per_second), 0x3f9d6c, 0, 0, true},
};

/* ---- numbers ---- */

static double value_of(const stk_event_epoch *row, const series *s) {
    double value;
    memcpy(&value, (const char *)row + s->offset, sizeof value);
    return value;
}

static stk_chart_axis range_of(const drawing *d, const panel *p, bool right) {
    double low = INFINITY;
    double high = -INFINITY;
    double first_high = -INFINITY; /* of the first series: the training's own */
    for (size_t i = 0; i < d->plot->count; i++) {
        for (size_t s = 0; s < p->count; s++) {
            double value = value_of(&d->plot->rows[i], &p->series[s]);
            if (p->series[s].right == right && isfinite(value)) {
                low = fmin(low, value);
                high = fmax(high, value);
                first_high = s == 0 ? fmax(first_high, value) : first_high;
            }
        }
    }
    if (!right && first_high > 0) {
        high = fmin(high, PEAK * first_high); /* one wild epoch must not flatten all the others */
    }
    if (right && high > 0) {
        high *= 1.2; /* head room, so that two level lines do not cover each other */
    }
    /* A lone epoch has no course to look at closely: show where it stands between 0 and itself. */
    bool lone = d->first_epoch == d->last_epoch;
    return stk_axis_nice(low, high, p->percent, p->from_zero || lone);
}

/* Whole epochs; a lone one stands in the middle. */
static stk_chart_axis epoch_axis(const drawing *d) {
    double low = d->first_epoch;
    double high = d->last_epoch;
    stk_chart_axis a = {.low = low, .high = high, .step = 1};
    if (high <= low) {
        a.low = low - 1;
        a.high = low + 1;
    } else {
        a.step = fmax(1, stk_axis_step(high - low, 8));
        a.low -= 0.02 * (high - low); /* dots at the ends stand clear of the axes */
        a.high += 0.02 * (high - low);
    }
    return a;
}

/* ---- pieces of a panel ---- */

static void draw_x_axis(const drawing *d, const stk_chart_axis *x, double y) {
    const stk_font font = {11, STK_SOFT_INK, false, STK_ALIGN_CENTER};
    const stk_pen rule = {STK_RULE, 1, 1, 0};
    stk_canvas_line(d->canvas, x->from_px, y, x->to_px, y, &rule);
    double first = ceil((double)d->first_epoch / x->step) * x->step;
    int ticks = (int)floor((d->last_epoch - first) / x->step) + 1;
    for (int i = 0; i < ticks; i++) {
        char text[32];
        double tick = first + i * x->step;
        double at = stk_axis_px(x, tick);
        snprintf(text, sizeof text, "%.0f", tick);
        stk_canvas_line(d->canvas, at, y, at, y + 4, &rule);
        stk_canvas_text(d->canvas, at, y + 17, text, &font);
    }
    stk_canvas_text(d->canvas, (x->from_px + x->to_px) / 2, y + 34, "epoch", &font);
}

/* A run of neighbouring points: a line, and dots where a line alone would not show them. */
static void draw_run(const drawing *d, size_t count, const stk_pen *pen) {
    stk_canvas_polyline(d->canvas, d->points, count, pen);
    bool dots = d->last_epoch - d->first_epoch < DOTTED_EPOCHS && pen->dash_px <= 0;
    for (size_t i = 0; i < count && (dots || count == 1); i++) {
        stk_canvas_dot(d->canvas, d->points[i].x, d->points[i].y, count == 1 ? 3.5 : 2.4,
                       pen->color);
    }
}

static void draw_series(const drawing *d, const series *s, const stk_chart_axis *x,
                        const stk_chart_axis *y, int fold) {
    bool many = d->folds > 1;
    stk_pen pen = {.color = s->color, .opacity = 1, .width_px = 2, .dash_px = s->dash_px};
    if (many) {
        pen.color = stk_axis_color((size_t)fold);
        pen.dash_px = s->fold_dash_px;
        pen.width_px = pen.dash_px > 0 ? 1.2 : 1.8;
    }
    size_t run = 0;
    for (size_t i = 0; i < d->plot->count; i++) {
        const stk_event_epoch *row = &d->plot->rows[i];
        double value = value_of(row, s);
        if (row->fold != fold) {
            continue;
        }
        if (!isfinite(value)) {
            draw_run(d, run, &pen);
            run = 0;
            continue;
        }
        d->points[run++] =
            (stk_point){stk_axis_px(x, row->epoch), stk_axis_px(y, fmin(value, y->high))};
    }
    draw_run(d, run, &pen);
}

/* From right to left at the end of the caption's line, so that it never meets the caption. */
static void draw_legend(const drawing *d, const panel *p, double right_px, double y) {
    const stk_font font = {11, STK_SOFT_INK, false, STK_ALIGN_RIGHT};
    double x = right_px;
    for (size_t i = p->count; i-- > 0;) {
        const series *s = &p->series[i];
        stk_pen pen = {s->color, 1, 2.5, s->dash_px};
        if (d->folds > 1) {
            pen = (stk_pen){STK_SOFT_INK, 1, s->fold_dash_px > 0 ? 1.2 : 2, s->fold_dash_px};
        }
        stk_canvas_text(d->canvas, x, y, s->label, &font);
        x -= stk_canvas_text_width(d->canvas, s->label, &font) + 6;
        stk_canvas_line(d->canvas, x - 18, y - 4, x, y - 4, &pen);
        x -= 18 + 14;
    }
}

static void draw_best(const drawing *d, const panel *p, const stk_chart_axis *x,
                      const stk_chart_axis *y) {
    const stk_event_epoch *best = d->best;
    if (!p->mark_best || best == NULL || !isfinite(best->val_acc1)) {
        return;
    }
    char text[32];
    double at_x = stk_axis_px(x, best->epoch);
    double at_y = stk_axis_px(y, best->val_acc1);
    stk_font font = {12, 0xb85a1c, true, STK_ALIGN_CENTER};
    snprintf(text, sizeof text, "%.1f%%", best->val_acc1);
    double half = stk_canvas_text_width(d->canvas, text, &font) / 2;
    at_x = fmin(fmax(at_x, x->from_px + half), x->to_px - half);
    bool below = at_y + 22 < y->from_px - 4; /* there the curve leaves room: it rose to here */
    stk_canvas_dot(d->canvas, stk_axis_px(x, best->epoch), at_y, 5.5, 0xe07b39);
    stk_canvas_dot(d->canvas, stk_axis_px(x, best->epoch), at_y, 2.8, 0xffffff);
    stk_canvas_text(d->canvas, at_x, below ? at_y + 22 : at_y - 10, text, &font);
}

static void draw_panel(const drawing *d, const panel *p, double left_px, double right_px) {
    const stk_font caption = {13, STK_INK, true, STK_ALIGN_LEFT};
    double bottom = d->canvas->height_px - FOOTER_PX;
    double top = HEADER_PX + CAPTION_PX;
    stk_chart_axis y = range_of(d, p, false);
    stk_chart_axis y_right = range_of(d, p, true);
    stk_chart_axis x = epoch_axis(d);
    y.from_px = y_right.from_px = bottom;
    y.to_px = y_right.to_px = top;
    x.from_px = left_px + stk_axis_label_width(d->canvas, &y) + 10;
    x.to_px = right_px - (p->right_axis ? stk_axis_label_width(d->canvas, &y_right) + 10 : 0);
    stk_canvas_text(d->canvas, left_px, HEADER_PX + 14, p->caption, &caption);
    draw_legend(d, p, right_px, HEADER_PX + 14);
    stk_axis_draw_y(d->canvas, &x, &y, false);
    if (p->right_axis) {
        stk_axis_draw_y(d->canvas, &x, &y_right, true);
    }
    draw_x_axis(d, &x, floor(bottom) + 0.5);
    for (int fold = 0; fold < d->folds; fold++) {
        for (size_t i = 0; i < p->count; i++) {
            draw_series(d, &p->series[i], &x, p->series[i].right ? &y_right : &y, fold);
        }
    }
    draw_best(d, p, &x, &y);
}

/* ---- the picture ---- */

/* Which colour is which fold, right to left. */
static void draw_fold_legend(const drawing *d, double right_px, double y) {
    const stk_font font = {11, STK_SOFT_INK, false, STK_ALIGN_RIGHT};
    double x = right_px;
    int shown = d->folds < STK_AXIS_COLORS ? d->folds : STK_AXIS_COLORS;
    for (int fold = shown; fold-- > 0;) {
        char text[32];
        snprintf(text, sizeof text, "fold %d", fold + 1);
        stk_canvas_text(d->canvas, x, y, text, &font);
        x -= stk_canvas_text_width(d->canvas, text, &font) + 6;
        stk_canvas_rectangle(d->canvas, x - 10, y - 9, 10, 10, stk_axis_color((size_t)fold));
        x -= 10 + 14;
    }
}

static void draw_header(const drawing *d) {
    const stk_font title = {16, STK_INK, true, STK_ALIGN_LEFT};
    const stk_font note = {12, STK_SOFT_INK, false, STK_ALIGN_RIGHT};
    double right = d->canvas->width_px - OUTER_PX;
    if (d->plot->title != NULL) {
        stk_canvas_text(d->canvas, OUTER_PX, 27, d->plot->title, &title);
    }
    if (d->folds > 1) {
        draw_fold_legend(d, right, 26);
    } else if (d->best != NULL && isfinite(d->best->val_acc1)) {
        char text[128];
        snprintf(text, sizeof text, "best validation accuracy %.1f%% at epoch %d of %d",
                 d->best->val_acc1, d->best->epoch, d->last_epoch);
        stk_canvas_text(d->canvas, right, 26, text, &note);
    }
}

static void survey(drawing *d) {
    const stk_plot *plot = d->plot;
    d->folds = 1;
    d->first_epoch = plot->count > 0 ? plot->rows[0].epoch : 1;
    d->last_epoch = d->first_epoch;
    for (size_t i = 0; i < plot->count; i++) {
        const stk_event_epoch *row = &plot->rows[i];
        d->folds = row->fold >= d->folds ? row->fold + 1 : d->folds;
        d->first_epoch = row->epoch < d->first_epoch ? row->epoch : d->first_epoch;
        d->last_epoch = row->epoch > d->last_epoch ? row->epoch : d->last_epoch;
        d->best = row->best ? row : d->best;
    }
    d->best = d->folds > 1 ? NULL : d->best;
}

/* Top-5 accuracy says nothing where it is unknown or always 100. */
static bool top5_is_telling(const stk_plot *plot) {
    for (size_t i = 0; i < plot->count; i++) {
        if (plot->rows[i].val_acc5 < 99.95) {
            return true;
        }
    }
    return false;
}

stk_status stk_plot_draw(const stk_plot *plot, stk_canvas *canvas, stk_error *err) {
    const panel panels[] = {
        {.caption = "Loss", .series = loss_series, .count = 2},
        {.caption = "Accuracy, %",
         .series = accuracy_series,
         .count = top5_is_telling(plot) ? 3 : 2,
         .percent = true,
         .mark_best = true},
        {.caption = "Learning rate, speed",
         .series = speed_series,
         .count = 2,
         .from_zero = true,
         .right_axis = true},
    };
    size_t count = sizeof panels / sizeof *panels;
    drawing d = {.plot = plot, .canvas = canvas};
    d.points = stk_mem_new(plot->count, sizeof *d.points);
    if (d.points == NULL) {
        return STK_FAIL_MEMORY(err, "a plot");
    }
    survey(&d);
    draw_header(&d);
    double width =
        (canvas->width_px - OUTER_PX * 2 - OUTER_PX * 2 * (double)(count - 1)) / (double)count;
    for (size_t i = 0; i < count; i++) {
        double left = OUTER_PX + (double)i * (width + OUTER_PX * 2);
        draw_panel(&d, &panels[i], left, left + width);
    }
    stk_mem_free(d.points);
    return STK_OK;
}

stk_status stk_plot_write(const stk_plot *plot, const char *path, stk_error *err) {
    stk_canvas *canvas = NULL;
    stk_status status = stk_canvas_for(&canvas, path, STK_PLOT_WIDTH_PX, STK_PLOT_HEIGHT_PX, err);
    if (status == STK_OK) {
        status = stk_plot_draw(plot, canvas, err);
    }
    if (status == STK_OK) {
        status = stk_canvas_save(canvas, path, NULL, err);
    }
    stk_canvas_free(canvas);
    return status;
}
