/*
 * canvas_svg.c - a canvas that writes SVG 1.1 as text, without any library.
 *
 * Whoever shows the picture brings the font, so widths of text are estimated.
 */
#include "report/plots/canvas.h"

#include "base/error.h"
#include "base/mem.h"
#include "report/text/text.h"

/* The mean width of a letter of a sans-serif font, as a part of its size. */
#define LETTER_WIDTH 0.56
#define LETTER_WIDTH_BOLD 0.61

typedef struct svg_canvas {
    stk_canvas base;
    stk_str text; /* the elements so far */
} svg_canvas;

static void svg_polyline(stk_canvas *canvas, const stk_point *points, size_t count,
                         const stk_pen *pen) {
    stk_str *out = &((svg_canvas *)canvas)->text;
    stk_str_append(out, "<polyline points=\"");
    for (size_t i = 0; i < count; i++) {
        stk_str_appendf(out, "%s%.2f,%.2f", i > 0 ? " " : "", points[i].x, points[i].y);
    }
    stk_str_appendf(out, "\" stroke=\"#%06x\" stroke-width=\"%.2f\" fill=\"none\"",
                    (unsigned)pen->color, pen->width_px);
    if (pen->opacity < 1) {
        stk_str_appendf(out, " stroke-opacity=\"%.2f\"", pen->opacity);
    }
    if (pen->dash_px > 0) {
        stk_str_appendf(out, " stroke-dasharray=\"%.2f %.2f\"", pen->dash_px, pen->dash_px * 0.7);
    }
    stk_str_append(out, " stroke-linejoin=\"round\"/>\n");
}

static void svg_rectangle(stk_canvas *canvas, double x, double y, double width, double height,
                          uint32_t color) {
    stk_str_appendf(&((svg_canvas *)canvas)->text,
                    "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#%06x\"/>\n",
                    x, y, width, height, (unsigned)color);
}

static void svg_dot(stk_canvas *canvas, double x, double y, double radius, uint32_t color) {
    stk_str_appendf(&((svg_canvas *)canvas)->text,
                    "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\" fill=\"#%06x\"/>\n", x, y, radius,
                    (unsigned)color);
}

static void svg_text(stk_canvas *canvas, double x, double y, const char *text,
                     const stk_font *font) {
    static const char *const anchors[] = {
        [STK_ALIGN_LEFT] = "start", [STK_ALIGN_CENTER] = "middle", [STK_ALIGN_RIGHT] = "end"};
    stk_str *out = &((svg_canvas *)canvas)->text;
    stk_str_appendf(out,
                    "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.2f\" fill=\"#%06x\" "
                    "text-anchor=\"%s\"%s>",
                    x, y, font->size_px, (unsigned)font->color, anchors[font->align],
                    font->bold ? " font-weight=\"bold\"" : "");
    stk_report_append_markup(out, text);
    stk_str_append(out, "</text>\n");
}

static double svg_text_width(stk_canvas *canvas, const char *text, const stk_font *font) {
    (void)canvas;
    size_t letters = 0;
    for (const char *p = text; *p != '\0'; p++) {
        letters += ((unsigned char)*p & 0xc0) != 0x80; /* not the later bytes of a character */
    }
    return (double)letters * font->size_px * (font->bold ? LETTER_WIDTH_BOLD : LETTER_WIDTH);
}

#define FONTS "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\""

/* Everything after the opening tag. */
static stk_status put_elements(const stk_canvas *canvas, stk_str *out, stk_error *err) {
    const stk_str *text = &((const svg_canvas *)canvas)->text;
    stk_str_append(out, stk_str_text(text));
    stk_str_append(out, "</svg>\n");
    return stk_str_ok(text) && stk_str_ok(out) ? STK_OK : STK_FAIL_MEMORY(err, "an SVG picture");
}

static stk_status svg_finish(stk_canvas *canvas, stk_str *out, stk_error *err) {
    int width = canvas->width_px;
    int height = canvas->height_px;
    stk_str_appendf(out,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                    "viewBox=\"0 0 %d %d\" " FONTS ">\n",
                    width, height, width, height);
    return put_elements(canvas, out, err);
}

static void svg_free(stk_canvas *canvas) {
    stk_str_free(&((svg_canvas *)canvas)->text);
    stk_mem_free(canvas);
}

static const stk_canvas_type svg_type = {
    .polyline = svg_polyline,
    .rectangle = svg_rectangle,
    .dot = svg_dot,
    .text = svg_text,
    .text_width = svg_text_width,
    .finish = svg_finish,
    .free = svg_free,
};

stk_status stk_canvas_svg_new(stk_canvas **out, int width_px, int height_px, stk_error *err) {
    svg_canvas *canvas = stk_mem_new(1, sizeof *canvas);
    if (canvas == NULL) {
        return STK_FAIL_MEMORY(err, "an SVG picture");
    }
    canvas->base = (stk_canvas){&svg_type, width_px, height_px};
    svg_rectangle(&canvas->base, 0, 0, width_px, height_px, 0xffffff);
    *out = &canvas->base;
    return STK_OK;
}

stk_status stk_canvas_svg_embed(stk_canvas *canvas, const char *id, const char *title, stk_str *out,
                                stk_error *err) {
    stk_str_appendf(out,
                    "<svg class=\"plot\" id=\"%s\" role=\"img\" viewBox=\"0 0 %d %d\" "
                    "width=\"100%%\" " FONTS " aria-label=\"",
                    id, canvas->width_px, canvas->height_px);
    stk_report_append_markup(out, title);
    stk_str_append(out, "\">\n");
    return put_elements(canvas, out, err);
}
