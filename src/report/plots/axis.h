/*
 * axis.h - inside the report room: axes of round numbers, and the colours that all plots share.
 *
 * Threads: safe, nothing is stored.
 */
#ifndef STK_REPORT_PLOTS_AXIS_H
#define STK_REPORT_PLOTS_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/plots/canvas.h"

#define STK_INK 0x26282bu      /* titles */
#define STK_SOFT_INK 0x6b7076u /* tick labels and legends */
#define STK_RULE 0x9aa0a6u     /* axes */
#define STK_GRID 0xe6e8ebu
#define STK_AXIS_COLORS 10

typedef struct stk_chart_axis {
    double low;     /* value at from_px */
    double high;    /* value at to_px */
    double step;    /* between ticks */
    double from_px; /* where the axis begins on the canvas */
    double to_px;
} stk_chart_axis;

/* A colour for number i; after STK_AXIS_COLORS the colours repeat. */
uint32_t stk_axis_color(size_t i);

/* The smallest of 1, 2 or 5 times a power of ten that divides `span` into at most `ticks` steps. */
double stk_axis_step(double span, int ticks);

/* An axis of round numbers around low..high, which may be empty (low > high) or one point. */
stk_chart_axis stk_axis_nice(double low, double high, bool percent, bool from_zero);

/* The pixel of a value. */
double stk_axis_px(const stk_chart_axis *axis, double value);

/* A tick's label with the decimals that its step needs. */
void stk_axis_tick(char *text, size_t size, double value, double step);

/* The width of the widest tick label, in px. */
double stk_axis_label_width(stk_canvas *canvas, const stk_chart_axis *axis);

/* Draws the labels of a y axis beside the plot, for the left axis also grid lines. */
void stk_axis_draw_y(stk_canvas *canvas, const stk_chart_axis *x, const stk_chart_axis *y,
                     bool right);

#endif
