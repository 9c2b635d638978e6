/*
 * canvas.h - inside the report room: what a plot is drawn on. Lines, filled rectangles, dots, text.
 *
 * Coordinates are pixels from the upper left corner. Two implementations draw the same picture:
 * canvas_cairo.c makes PNG in builds with cairo; canvas_svg.c writes SVG in all builds. Drawing
 * calls do not fail: stk_canvas_finish returns the first failure. Threads: one at a time.
 */
#ifndef STK_REPORT_PLOTS_CANVAS_H
#define STK_REPORT_PLOTS_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stoker/status.h>

#include "base/files/file.h"
#include "base/str.h"

typedef struct stk_point {
    double x; /* px */
    double y; /* px, downwards */
} stk_point;

typedef struct stk_pen {
    uint32_t color; /* 0xRRGGBB */
    double opacity; /* 0 to 1 */
    double width_px;
    double dash_px; /* length of a dash; gaps are a little shorter. 0: one unbroken line */
} stk_pen;

typedef enum stk_align { STK_ALIGN_LEFT, STK_ALIGN_CENTER, STK_ALIGN_RIGHT } stk_align;

typedef struct stk_font {
    double size_px;
    uint32_t color; /* 0xRRGGBB */
    bool bold;
    stk_align align; /* which point of the text is at x; its base line is at y */
} stk_font;

typedef struct stk_canvas stk_canvas;

/* The calls of an implementation. Colours are 0xRRGGBB; texts are foreign UTF-8. */
typedef struct stk_canvas_type {
    void (*polyline)(stk_canvas *canvas, const stk_point *points, size_t count, const stk_pen *pen);
    void (*rectangle)(stk_canvas *canvas, double x, double y, double width, double height,
                      uint32_t color);
    void (*dot)(stk_canvas *canvas, double x, double y, double radius, uint32_t color);
    void (*text)(stk_canvas *canvas, double x, double y, const char *text, const stk_font *font);
    double (*text_width)(stk_canvas *canvas, const char *text, const stk_font *font);
    stk_status (*finish)(stk_canvas *canvas, stk_str *out, stk_error *err);
    void (*free)(stk_canvas *canvas);
} stk_canvas_type;

/* The first member of every implementation's struct. */
struct stk_canvas {
    const stk_canvas_type *type;
    int width_px;
    int height_px;
};

/* A white canvas for a file of this name: SVG if the name ends with .svg, otherwise PNG. PNG
 * without cairo is STK_ERR_USAGE. */
STK_CHECKED stk_status stk_canvas_for(stk_canvas **canvas, const char *path, int width_px,
                                      int height_px, stk_error *err);
void stk_canvas_free(stk_canvas *canvas);

/* Whether this build can make PNG. */
bool stk_canvas_has_png(void);

void stk_canvas_polyline(stk_canvas *canvas, const stk_point *points, size_t count,
                         const stk_pen *pen);
void stk_canvas_line(stk_canvas *canvas, double x0, double y0, double x1, double y1,
                     const stk_pen *pen);
void stk_canvas_rectangle(stk_canvas *canvas, double x, double y, double width, double height,
                          uint32_t color);
void stk_canvas_dot(stk_canvas *canvas, double x, double y, double radius, uint32_t color);
void stk_canvas_text(stk_canvas *canvas, double x, double y, const char *text,
                     const stk_font *font);

/* The width of a text in px; estimated by canvas_svg.c, which has no font. */
double stk_canvas_text_width(stk_canvas *canvas, const char *text, const stk_font *font);

/* Appends the file's bytes to `out`. Nothing may be drawn afterwards. */
STK_CHECKED stk_status stk_canvas_finish(stk_canvas *canvas, stk_str *out, stk_error *err);

/* The same into a file, which is replaced in one step. */
STK_CHECKED stk_status stk_canvas_save(stk_canvas *canvas, const char *path,
                                       const stk_file_how *how, stk_error *err);

/* The implementations. stk_canvas_cairo_new() exists only if STK_HAVE_CAIRO is defined. */
STK_CHECKED stk_status stk_canvas_cairo_new(stk_canvas **canvas, int width_px, int height_px,
                                            stk_error *err);
STK_CHECKED stk_status stk_canvas_svg_new(stk_canvas **canvas, int width_px, int height_px,
                                          stk_error *err);

/*
 * Appends a canvas of stk_canvas_svg_new as a piece of an HTML page: of the class "plot", as wide
 * as the page allows. `title` is for screen readers.
 */
STK_CHECKED stk_status stk_canvas_svg_embed(stk_canvas *canvas, const char *id, const char *title,
                                            stk_str *out, stk_error *err);

#endif
