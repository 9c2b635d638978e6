/*
 * axis.h - inside the report room: axes of round numbers, and the colours that all plots share.
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
    double low;
    double high;
    double step; /* between ticks */
    double from_px;
    double to_px;
} stk_chart_axis;

/* A colour for the i-th of many; after STK_AXIS_COLORS they come again. */
uint32_t stk_axis_color(size_t i);

/* 1, 2 or 5 times a power of ten, the least that makes at most `ticks` steps of `span`. */
double stk_axis_step(double span, int ticks);

/* An axis of round numbers around low..high, which may be empty (low > high) or one point. */
stk_chart_axis stk_axis_nice(double low, double high, bool percent, bool from_zero);

/* Where a value stands. */
double stk_axis_px(const stk_chart_axis *axis, double value);

/* A tick's label with the decimals that its step needs. */
void stk_axis_tick(char *text, size_t size, double value, double step);

/* The widest label of an axis. */
double stk_axis_label_width(stk_canvas *canvas, const stk_chart_axis *axis);

/* Labels beside the plot, on the left with lines of a grid. */
void stk_axis_draw_y(stk_canvas *canvas, const stk_chart_axis *x, const stk_chart_axis *y,
                     bool right);

#endif
