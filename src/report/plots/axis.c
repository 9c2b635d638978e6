/* axis.c - axes of round numbers. */
#include "report/plots/axis.h"

#include <math.h>
#include <stdio.h>

uint32_t stk_axis_color(size_t i) {
    static const uint32_t palette[STK_AXIS_COLORS] = {0x3b6fb6, 0xe07b39, 0x3f9d6c, 0xc64f4f,
                                                      0x8268ad, 0x8c6d4f, 0xd17fb1, 0x6f7680,
                                                      0xa39a2e, 0x35a2b4};
    return palette[i % STK_AXIS_COLORS];
}

double stk_axis_step(double span, int ticks) {
    double power = pow(10, floor(log10(span / ticks)));
    double ratio = span / ticks / power;
    return power * (ratio <= 1.0001 ? 1 : ratio <= 2.0001 ? 2 : ratio <= 5.0001 ? 5 : 10);
}

stk_chart_axis stk_axis_nice(double low, double high, bool percent, bool from_zero) {
    if (low > high) {
        low = 0;
        high = percent ? 100 : 1;
    }
    if (from_zero && low > 0) {
        low = 0;
    }
    double least = fmax(fabs(high) * 1e-6, 1e-12);
    if (high - low < least) {
        double room = percent ? 5 : fmax(fabs(high) * 0.1, least);
        low -= low > 0 || percent ? room : 0;
        high += room;
    }
    double step = stk_axis_step(high - low, 5);
    stk_chart_axis a = {.step = step};
    a.low = floor(low / step + 1e-9) * step;
    a.high = ceil(high / step - 1e-9) * step;
    if (percent) {
        a.low = fmax(a.low, 0);
        a.high = fmin(a.high, 100);
    }
    return a;
}

double stk_axis_px(const stk_chart_axis *a, double value) {
    return a->from_px + (value - a->low) / (a->high - a->low) * (a->to_px - a->from_px);
}

void stk_axis_tick(char *text, size_t size, double value, double step) {
    int decimals = (int)fmax(0, ceil(-log10(step) - 1e-9));
    if (fabs(value) < step / 2) {
        snprintf(text, size, "0");
    } else if (decimals > 4 || fabs(value) >= 1e6) {
        snprintf(text, size, "%.4g", value);
    } else {
        snprintf(text, size, "%.*f", decimals, value);
    }
}

double stk_axis_label_width(stk_canvas *canvas, const stk_chart_axis *y) {
    const stk_font font = {11, STK_SOFT_INK, false, STK_ALIGN_RIGHT};
    double widest = 0;
    for (int i = 0; y->low + i * y->step <= y->high + y->step / 2; i++) {
        char text[32];
        stk_axis_tick(text, sizeof text, y->low + i * y->step, y->step);
        widest = fmax(widest, stk_canvas_text_width(canvas, text, &font));
    }
    return widest;
}

void stk_axis_draw_y(stk_canvas *canvas, const stk_chart_axis *x, const stk_chart_axis *y,
                     bool right) {
    const stk_font font = {11, STK_SOFT_INK, false, right ? STK_ALIGN_LEFT : STK_ALIGN_RIGHT};
    const stk_pen grid = {STK_GRID, 1, 1, 0};
    for (int i = 0; y->low + i * y->step <= y->high + y->step / 2; i++) {
        char text[32];
        double tick = y->low + i * y->step;
        /* Half pixels, so that a thin line covers one row and not two halves. */
        double at = floor(stk_axis_px(y, tick)) + 0.5;
        stk_axis_tick(text, sizeof text, tick, y->step);
        if (!right) {
            stk_canvas_line(canvas, x->from_px, at, x->to_px, at, &grid);
        }
        stk_canvas_text(canvas, right ? x->to_px + 8 : x->from_px - 8, at + 4, text, &font);
    }
}
