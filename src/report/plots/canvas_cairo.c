/* canvas_cairo.c - a canvas on cairo, which makes PNG. */
#include "report/plots/canvas.h"

#ifdef STK_HAVE_CAIRO

#include <cairo.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/machine.h"
#include "base/mem.h"
#include "image/image.h"
#include "report/text/text.h"

typedef struct cairo_canvas {
    stk_canvas base;
    cairo_surface_t *surface; /* owned */
    cairo_t *cairo;           /* owned */
    bool failed;              /* a text found no memory */
    bool wordless;            /* there are no fonts to be had */
} cairo_canvas;

/* Width of a letter as a part of its size, if there is no font. */
#define LETTER_WIDTH 0.6

static cairo_canvas *of(stk_canvas *canvas) {
    return (cairo_canvas *)canvas;
}

static void set_color(cairo_t *cairo, uint32_t color, double opacity) {
    cairo_set_source_rgba(cairo, (color >> 16 & 0xff) / 255.0, (color >> 8 & 0xff) / 255.0,
                          (color & 0xff) / 255.0, opacity);
}

static void paint_polyline(stk_canvas *canvas, const stk_point *points, size_t count,
                           const stk_pen *pen) {
    cairo_t *cairo = of(canvas)->cairo;
    const double dashes[] = {pen->dash_px, pen->dash_px * 0.7};
    cairo_set_dash(cairo, dashes, pen->dash_px > 0 ? 2 : 0, 0);
    cairo_set_line_width(cairo, pen->width_px);
    cairo_set_line_join(cairo, CAIRO_LINE_JOIN_ROUND);
    set_color(cairo, pen->color, pen->opacity);
    for (size_t i = 0; i < count; i++) {
        cairo_line_to(cairo, points[i].x, points[i].y);
    }
    cairo_stroke(cairo);
}

static void paint_rectangle(stk_canvas *canvas, double x, double y, double width, double height,
                            uint32_t color) {
    cairo_t *cairo = of(canvas)->cairo;
    set_color(cairo, color, 1);
    cairo_rectangle(cairo, x, y, width, height);
    cairo_fill(cairo);
}

static void paint_dot(stk_canvas *canvas, double x, double y, double radius, uint32_t color) {
    cairo_t *cairo = of(canvas)->cairo;
    set_color(cairo, color, 1);
    cairo_arc(cairo, x, y, radius, 0, 2 * 3.14159265358979323846);
    cairo_fill(cairo);
}

static void set_font(cairo_t *cairo, const stk_font *font) {
    cairo_select_font_face(cairo, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           font->bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cairo, font->size_px);
}

/* The advance, not the ink: digits of the same count then line up. */
static double measure(cairo_canvas *canvas, const char *text, const stk_font *font) {
    cairo_text_extents_t extents;
    set_font(canvas->cairo, font);
    cairo_text_extents(canvas->cairo, text, &extents);
    return extents.x_advance;
}

/* Cairo refuses everything after a text that is not UTF-8, so texts are cleaned first. */
static double paint_text_width(stk_canvas *canvas, const char *text, const stk_font *font) {
    if (of(canvas)->wordless) {
        return LETTER_WIDTH * font->size_px * (double)strlen(text);
    }
    stk_str clean = {0};
    stk_report_append_line(&clean, text);
    double width = measure(of(canvas), stk_str_text(&clean), font);
    of(canvas)->failed = of(canvas)->failed || !stk_str_ok(&clean);
    stk_str_free(&clean);
    return width;
}

static void paint_text(stk_canvas *canvas, double x, double y, const char *text,
                       const stk_font *font) {
    static const double shares[] = {
        [STK_ALIGN_LEFT] = 0, [STK_ALIGN_CENTER] = 0.5, [STK_ALIGN_RIGHT] = 1};
    cairo_t *cairo = of(canvas)->cairo;
    if (of(canvas)->wordless) {
        return;
    }
    stk_str clean = {0};
    stk_report_append_line(&clean, text);
    double width = measure(of(canvas), stk_str_text(&clean), font);
    set_color(cairo, font->color, 1);
    cairo_move_to(cairo, x - width * shares[font->align], y);
    cairo_show_text(cairo, stk_str_text(&clean));
    cairo_new_path(cairo);
    of(canvas)->failed = of(canvas)->failed || !stk_str_ok(&clean);
    stk_str_free(&clean);
}

/* The pixels as PNG. Cairo's own call takes seven times as long, and plots are drawn often. */
static stk_status encode(cairo_canvas *canvas, stk_str *out, stk_error *err) {
    stk_image image;
    stk_status status = stk_image_new(&image, canvas->base.width_px, canvas->base.height_px, err);
    if (status != STK_OK) {
        return status;
    }
    cairo_surface_flush(canvas->surface);
    const unsigned char *rows = cairo_image_surface_get_data(canvas->surface);
    size_t stride = (size_t)cairo_image_surface_get_stride(canvas->surface);
    uint8_t *to = image.pixels;
    for (int y = 0; y < image.height; y++) {
        const uint32_t *row = (const void *)(rows + (size_t)y * stride);
        for (int x = 0; x < image.width; x++) {
            *to++ = (uint8_t)(row[x] >> 16);
            *to++ = (uint8_t)(row[x] >> 8);
            *to++ = (uint8_t)row[x];
        }
    }
    uint8_t *bytes = NULL;
    size_t size = 0;
    status = stk_image_encode_drawing(&image, &bytes, &size, err);
    if (status == STK_OK) {
        stk_str_append_bytes(out, bytes, size);
        status = stk_str_ok(out) ? STK_OK : STK_FAIL_MEMORY(err, "a picture");
    }
    stk_mem_free(bytes);
    stk_image_free(&image);
    return status;
}

static stk_status paint_finish(stk_canvas *canvas, stk_str *out, stk_error *err) {
    cairo_canvas *c = of(canvas);
    cairo_status_t status = cairo_status(c->cairo);
    if (status == CAIRO_STATUS_NO_MEMORY || c->failed) {
        return STK_FAIL_MEMORY(err, "a picture");
    }
    if (status != CAIRO_STATUS_SUCCESS) {
        return STK_FAIL(err, STK_ERR_INTERNAL, "cannot draw a picture: cairo says: %s",
                        cairo_status_to_string(status));
    }
    return encode(c, out, err);
}

static void paint_free(stk_canvas *canvas) {
    cairo_canvas *c = of(canvas);
    cairo_destroy(c->cairo);
    cairo_surface_destroy(c->surface);
    stk_mem_free(c);
}

static const stk_canvas_type cairo_type = {
    .polyline = paint_polyline,
    .rectangle = paint_rectangle,
    .dot = paint_dot,
    .text = paint_text,
    .text_width = paint_text_width,
    .finish = paint_finish,
    .free = paint_free,
};

/* fontconfig crashes where it finds no memory while it reads its settings: some megabytes. */
#define FONTS_BYTES ((size_t)64 << 20)

/* Makes cairo look for fonts, which it does once in a process. */
static void find_fonts(void *state) {
    (void)state;
    const stk_font font = {.size_px = 8};
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1);
    cairo_t *cairo = cairo_create(surface);
    cairo_text_extents_t extents;
    set_font(cairo, &font);
    cairo_text_extents(cairo, "0", &extents);
    cairo_destroy(cairo);
    cairo_surface_destroy(surface);
}

static void drop_nothing(void *state) {
    (void)state;
}

/*
 * Whether there are fonts. The search also looks into the home folder and would never return if its
 * disk does not answer. Then, and when memory is short, pictures have no words.
 */
static bool has_fonts(void) {
    const char *home = getenv("HOME");
    char *fonts = stk_path_join(home != NULL ? home : "/", ".fonts");
    if (fonts == NULL) {
        return false;
    }
    struct stat info; /* a dead disk does not answer; a slow disk does, and gets more time below */
    stk_disk_root(fonts, true);
    bool alive = stk_disk_look(fonts, &info) == 0 || errno != ETIMEDOUT;
    bool found = alive && stk_machine_can_map(FONTS_BYTES) &&
                 stk_disk_run(fonts, find_fonts, NULL, drop_nothing);
    stk_mem_free(fonts);
    return found;
}

stk_status stk_canvas_cairo_new(stk_canvas **out, int width_px, int height_px, stk_error *err) {
    cairo_canvas *canvas = stk_mem_new(1, sizeof *canvas);
    if (canvas == NULL) {
        return STK_FAIL_MEMORY(err, "a picture");
    }
    canvas->base = (stk_canvas){&cairo_type, width_px, height_px};
    canvas->wordless = !has_fonts();
    canvas->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width_px, height_px);
    canvas->cairo = cairo_create(canvas->surface);
    if (cairo_status(canvas->cairo) != CAIRO_STATUS_SUCCESS) {
        stk_status status = STK_FAIL(
            err, STK_ERR_INTERNAL, "cannot make a picture of %d x %d pixels: cairo says: %s",
            width_px, height_px, cairo_status_to_string(cairo_status(canvas->cairo)));
        paint_free(&canvas->base);
        return status;
    }
    paint_rectangle(&canvas->base, 0, 0, width_px, height_px, 0xffffff);
    *out = &canvas->base;
    return STK_OK;
}

#endif
