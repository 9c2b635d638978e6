/* bars.c - a column of labels, a column of bars, and the number after each. */
#include "report/plots/plots.h"

#include <math.h>

#include "report/plots/axis.h"

#define TOP_PX 76
#define ROW_PX 26
#define BOTTOM_PX 20
#define LEFT_PX 24.0
#define BARS_PX 250.0 /* where bars begin */
#define TEXT_PX 150.0 /* that the number after a bar needs */
#define BAR_PX 14.0
#define CUT_PX 6.0 /* the gap that shows that a bar goes on */
#define BAR 0x8fb0dbu
#define MARK 0xe07b39u
#define WHITE 0xffffffu

int stk_bar_plot_height(const stk_bar_plot *plot) {
    return TOP_PX + ROW_PX * (int)plot->count + BOTTOM_PX;
}

static void draw_bar(const stk_bar_plot *plot, const stk_bar *bar, double y, stk_canvas *canvas) {
    const stk_font label = {12, STK_INK, bar->marked, STK_ALIGN_LEFT};
    const stk_font text = {12, STK_SOFT_INK, bar->marked, STK_ALIGN_LEFT};
    double room = canvas->width_px - BARS_PX - TEXT_PX;
    double length = 0;
    stk_canvas_text(canvas, LEFT_PX, y, bar->label, &label);
    if (bar->value > 0) {
        length = fmax(room * fmin(bar->value / plot->most, 1), 1);
        stk_canvas_rectangle(canvas, BARS_PX, y - BAR_PX + 3, length, BAR_PX,
                             bar->marked ? MARK : BAR);
    }
    if (bar->value > plot->most) {
        stk_canvas_rectangle(canvas, BARS_PX + length - 3 * CUT_PX, y - BAR_PX + 3, CUT_PX, BAR_PX,
                             WHITE);
    }
    stk_canvas_text(canvas, BARS_PX + length + (length > 0 ? 8 : 0), y, bar->text, &text);
}

void stk_bar_plot_draw(const stk_bar_plot *plot, stk_canvas *canvas) {
    const stk_font title = {17, STK_INK, true, STK_ALIGN_LEFT};
    const stk_font below = {12, STK_SOFT_INK, false, STK_ALIGN_LEFT};
    const stk_font heading = {12, STK_SOFT_INK, true, STK_ALIGN_LEFT};
    const stk_pen rule = {STK_GRID, 1, 1, 0};
    stk_canvas_text(canvas, LEFT_PX, 32, plot->title, &title);
    stk_canvas_text(canvas, LEFT_PX, 54, plot->below, &below);
    for (size_t i = 0; i < plot->count; i++) {
        const stk_bar *bar = &plot->bars[i];
        double y = TOP_PX + ROW_PX * ((double)i + 0.7);
        if (bar->text != NULL) {
            draw_bar(plot, bar, y, canvas);
        } else {
            stk_canvas_text(canvas, LEFT_PX, y, bar->label, &heading);
            stk_canvas_line(canvas, LEFT_PX, y + 6.5, canvas->width_px - LEFT_PX, y + 6.5, &rule);
        }
    }
}

stk_status stk_bar_plot_write(const stk_bar_plot *plot, const char *path, const stk_file_how *how,
                              stk_error *err) {
    stk_canvas *canvas = NULL;
    stk_status status =
        stk_canvas_for(&canvas, path, STK_BAR_PLOT_WIDTH_PX, stk_bar_plot_height(plot), err);
    if (status == STK_OK) {
        stk_bar_plot_draw(plot, canvas);
        status = stk_canvas_save(canvas, path, how, err);
    }
    stk_canvas_free(canvas);
    return status;
}
