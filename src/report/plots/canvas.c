/* canvas.c - chooses the implementation of a canvas, and passes the calls on to it. */
#include "report/plots/canvas.h"

#include "base/error.h"
#include "base/files/file.h"

bool stk_canvas_has_png(void) {
#ifdef STK_HAVE_CAIRO
    return true;
#else
    return false;
#endif
}

stk_status stk_canvas_for(stk_canvas **canvas, const char *path, int width_px, int height_px,
                          stk_error *err) {
    if (stk_str_ends_with_nocase(path, ".svg")) {
        return stk_canvas_svg_new(canvas, width_px, height_px, err);
    }
#ifdef STK_HAVE_CAIRO
    return stk_canvas_cairo_new(canvas, width_px, height_px, err);
#else
    return STK_FAIL(err, STK_ERR_USAGE,
                    "cannot draw a PNG: this build has no cairo; ask for SVG, or install "
                    "libcairo2-dev and build again");
#endif
}

void stk_canvas_free(stk_canvas *canvas) {
    if (canvas != NULL) {
        canvas->type->free(canvas);
    }
}

void stk_canvas_polyline(stk_canvas *canvas, const stk_point *points, size_t count,
                         const stk_pen *pen) {
    if (count > 1) {
        canvas->type->polyline(canvas, points, count, pen);
    }
}

void stk_canvas_line(stk_canvas *canvas, double x0, double y0, double x1, double y1,
                     const stk_pen *pen) {
    const stk_point ends[] = {{x0, y0}, {x1, y1}};
    canvas->type->polyline(canvas, ends, 2, pen);
}

void stk_canvas_rectangle(stk_canvas *canvas, double x, double y, double width, double height,
                          uint32_t color) {
    canvas->type->rectangle(canvas, x, y, width, height, color);
}

void stk_canvas_dot(stk_canvas *canvas, double x, double y, double radius, uint32_t color) {
    canvas->type->dot(canvas, x, y, radius, color);
}

void stk_canvas_text(stk_canvas *canvas, double x, double y, const char *text,
                     const stk_font *font) {
    canvas->type->text(canvas, x, y, text, font);
}

double stk_canvas_text_width(stk_canvas *canvas, const char *text, const stk_font *font) {
    return canvas->type->text_width(canvas, text, font);
}

stk_status stk_canvas_finish(stk_canvas *canvas, stk_str *out, stk_error *err) {
    return canvas->type->finish(canvas, out, err);
}

stk_status stk_canvas_save(stk_canvas *canvas, const char *path, const stk_file_how *how,
                           stk_error *err) {
    stk_str bytes = {0};
    stk_status status = stk_canvas_finish(canvas, &bytes, err);
    STK_THEN(status, stk_file_write_how(path, bytes.text, bytes.length, how, err));
    stk_str_free(&bytes);
    return status;
}
