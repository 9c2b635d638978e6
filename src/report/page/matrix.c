/*
 * matrix.c - the confusion matrix of a page and the worst pictures.
 *
 * A cell's colour is its share of the pictures of its class. Up to LABELLED classes have their
 * names beside the rows and numbers above the columns; of more, neighbouring classes share a cell
 * and the pairs that are mixed up most often are named in a table.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "report/plots/axis.h"
#include "report/page/html.h"
#include "report/page/page.h"
#include "report/text/text.h"

#define LABELLED 40
#define COUNTED 16 /* up to so many classes the cells have numbers */
#define PAIRS 15
#define SIDE_PX 480
#define NAME_PX 130.0
#define NAME_LETTERS 18

typedef struct matrix {
    const stk_confusion *confusion;
    stk_canvas *canvas;
    double *counts; /* owned: (size, size) pictures */
    int size;       /* rows, and columns */
    int per_cell;   /* classes */
} matrix;

static uint32_t mix(uint32_t from, uint32_t to, double share) {
    uint32_t color = 0;
    for (int shift = 0; shift <= 16; shift += 8) {
        double a = (from >> shift) & 0xff;
        double b = (to >> shift) & 0xff;
        color |= (uint32_t)lround(a + (b - a) * share) << shift;
    }
    return color;
}

static void count(matrix *m) {
    for (size_t i = 0; i < m->confusion->cell_count; i++) {
        const stk_confusion_cell *cell = &m->confusion->cells[i];
        int row = cell->label / m->per_cell;
        int column = cell->predicted / m->per_cell;
        m->counts[row * m->size + column] += (double)cell->count;
    }
}

static double row_sum(const matrix *m, int row) {
    double sum = 0;
    for (int i = 0; i < m->size; i++) {
        sum += m->counts[row * m->size + i];
    }
    return sum;
}

/* "a long na… 3": the class with the number that stands above its column. */
static void draw_name(const matrix *m, int row, double y, double size_px) {
    const stk_font font = {size_px, STK_SOFT_INK, false, STK_ALIGN_RIGHT};
    const char *name = m->confusion->classes[row];
    size_t left = strlen(name);
    stk_str text = {0};
    for (int letters = 0; left > 0 && letters < NAME_LETTERS; letters++) {
        size_t length = stk_utf8_length(name, left);
        length = length > 0 ? length : 1; /* the canvas replaces a byte that is no UTF-8 */
        stk_str_append_bytes(&text, name, length);
        name += length;
        left -= length;
    }
    stk_str_appendf(&text, "%s %d", left > 0 ? "…" : "", row + 1);
    stk_canvas_text(m->canvas, NAME_PX - 6, y, stk_str_text(&text), &font);
    stk_str_free(&text);
}

static void draw_cells(const matrix *m, double left, double top, double side) {
    const double font_px = fmin(11, side * 0.42);
    for (int row = 0; row < m->size; row++) {
        double sum = row_sum(m, row);
        for (int column = 0; column < m->size; column++) {
            double pictures = m->counts[row * m->size + column];
            double x = left + column * side;
            double y = top + row * side;
            if (!(pictures > 0)) {
                continue;
            }
            double share = pictures / sum;
            uint32_t full = row == column ? 0x1f5fa8 : 0xb33a2a;
            uint32_t pale = row == column ? 0xd6e4f5 : 0xf7ddd6;
            stk_canvas_rectangle(m->canvas, x, y, side - (side > 6 ? 1 : 0),
                                 side - (side > 6 ? 1 : 0), mix(pale, full, share));
            if (m->confusion->class_count <= COUNTED) {
                char text[32];
                stk_font font = {font_px, share > 0.45 ? 0xfffffe : 0x26282c, false,
                                 STK_ALIGN_CENTER};
                snprintf(text, sizeof text, "%.0f", pictures);
                stk_canvas_text(m->canvas, x + side / 2, y + side / 2 + font_px * 0.35, text,
                                &font);
            }
        }
    }
}

static void draw_matrix(const matrix *m) {
    const stk_pen rule = {STK_GRID, 1, 1, 0};
    bool labelled = m->confusion->class_count <= LABELLED;
    double left = labelled ? NAME_PX : 10;
    double top = 22;
    double side = (SIDE_PX - left - 4) / m->size;
    double font_px = fmax(6, fmin(11, side * 0.8));
    for (int i = 0; i <= m->size && labelled; i++) {
        double at = i * side;
        stk_canvas_line(m->canvas, left, top + at, left + m->size * side, top + at, &rule);
        stk_canvas_line(m->canvas, left + at, top, left + at, top + m->size * side, &rule);
    }
    draw_cells(m, left, top, side);
    for (int i = 0; i < m->size && labelled; i++) {
        const stk_font font = {font_px, STK_SOFT_INK, false, STK_ALIGN_CENTER};
        char number[16];
        snprintf(number, sizeof number, "%d", i + 1);
        draw_name(m, i, top + (i + 0.5) * side + font_px * 0.35, font_px);
        stk_canvas_text(m->canvas, left + (i + 0.5) * side, top - 5, number, &font);
    }
}

static stk_status put_matrix(const stk_confusion *confusion, stk_str *out, stk_error *err) {
    matrix m = {.confusion = confusion};
    m.per_cell = (confusion->class_count + LABELLED - 1) / LABELLED;
    m.size = (confusion->class_count + m.per_cell - 1) / m.per_cell;
    m.counts = stk_mem_new((size_t)m.size * (size_t)m.size, sizeof *m.counts);
    if (m.counts == NULL) {
        return STK_FAIL_MEMORY(err, "a plot");
    }
    count(&m);
    double left = confusion->class_count <= LABELLED ? NAME_PX : 10;
    int height = 22 + (int)ceil(SIDE_PX - left - 4) + 4;
    stk_status status = stk_canvas_svg_new(&m.canvas, SIDE_PX, height, err);
    if (status == STK_OK) {
        draw_matrix(&m);
        status = stk_canvas_svg_embed(m.canvas, "plot-confusion",
                                      "Confusion matrix: a row per true class, a column per "
                                      "predicted one",
                                      out, err);
    }
    stk_canvas_free(m.canvas);
    stk_mem_free(m.counts);
    return status;
}

static void put_pairs(const stk_confusion *confusion, stk_str *out) {
    stk_confusion_cell pairs[PAIRS];
    size_t count_of_pairs = stk_confusion_pairs(confusion, pairs, PAIRS);
    if (count_of_pairs == 0) {
        return;
    }
    stk_str_append(out, "<div><h3>Mixed up most often</h3>\n<div class=\"scroll\"><table>\n"
                        "<tr><th class=\"n\">pictures</th><th>of</th><th>taken for</th></tr>\n");
    for (size_t i = 0; i < count_of_pairs; i++) {
        stk_str_appendf(out, "<tr><td class=\"n\">%zu</td>", pairs[i].count);
        stk_page_put_cell(out, confusion->classes[pairs[i].label]);
        stk_page_put_cell(out, confusion->classes[pairs[i].predicted]);
        stk_str_append(out, "</tr>\n");
    }
    stk_str_append(out, "</table></div></div>\n");
}

/* ---- the worst pictures ---- */

static void put_base64(stk_str *out, const uint8_t *bytes, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16;
        three |= i + 1 < size ? (uint32_t)bytes[i + 1] << 8 : 0;
        three |= i + 2 < size ? bytes[i + 2] : 0;
        char four[4] = {digits[three >> 18], digits[three >> 12 & 63], digits[three >> 6 & 63],
                        digits[three & 63]};
        four[2] = i + 1 < size ? four[2] : '=';
        four[3] = i + 2 < size ? four[3] : '=';
        stk_str_append_bytes(out, four, 4);
    }
}

static void put_picture(const stk_confusion *confusion, const stk_confusion_miss *miss,
                        const stk_thumb *thumb, stk_str *out) {
    stk_str_append(out, "<figure>");
    if (thumb != NULL && thumb->jpeg != NULL) {
        stk_page_put_in(out, "<img alt=\"", miss->path, "\" src=\"data:image/jpeg;base64,");
        put_base64(out, thumb->jpeg, thumb->size);
        stk_str_append(out, "\">");
    }
    stk_page_put_in(out, "<figcaption><strong>", confusion->classes[miss->label],
                    "</strong> taken for <strong>");
    stk_report_append_markup(out, confusion->classes[miss->predicted]);
    stk_str_appendf(out, "</strong>; the true class had %.2g %%<br><code>",
                    100 * miss->probability);
    stk_report_append_markup(out, miss->path);
    stk_str_append(out, "</code>");
    if (thumb != NULL && thumb->jpeg == NULL && thumb->why[0] != '\0') {
        stk_page_put_in(out, "<br><span class=\"soft\">no picture: ", thumb->why, "</span>");
    }
    stk_str_append(out, "</figcaption></figure>\n");
}

static void put_worst(const stk_page *page, stk_str *out) {
    const stk_confusion *confusion = page->confusion;
    if (confusion->worst_count == 0) {
        return;
    }
    stk_page_open_section(out, "worst", "Pictures that were furthest off");
    stk_str_append(out, "<div class=\"pictures\">\n");
    for (int i = 0; i < confusion->worst_count; i++) {
        bool has = page->thumbs != NULL && i < page->thumbs->count;
        put_picture(confusion, &confusion->worst[i], has ? &page->thumbs->items[i] : NULL, out);
    }
    stk_str_append(out, "</div>\n");
    stk_page_close_section(out);
}

stk_status stk_page_put_confusion(const stk_page *page, stk_str *out, stk_error *err) {
    const stk_confusion *confusion = page->confusion;
    if (confusion == NULL || confusion->class_count < 1 || confusion->pictures == 0) {
        return STK_OK;
    }
    stk_page_open_section(out, "confusion", "Confusion");
    stk_str_appendf(out,
                    "<p>%zu of %zu validation pictures (%.2f %%) were recognised by the best "
                    "epoch%s. A row is a true class, a column what it was taken for%s.</p>\n"
                    "<div class=\"grid\">\n",
                    confusion->right, confusion->pictures,
                    100.0 * (double)confusion->right / (double)confusion->pictures,
                    stk_run_history_folds(page->history) > 1 ? " of each fold" : "",
                    confusion->class_count > LABELLED ? "; neighbouring classes share a cell" : "");
    stk_status status = put_matrix(confusion, out, err);
    put_pairs(confusion, out);
    stk_str_append(out, "</div>\n");
    stk_page_close_section(out);
    put_worst(page, out);
    return status;
}
