/* cpu_patches.c - laying out patches, and multiplying them. */
#include "backend/cpu/cpu_patches.h"

#include <string.h>

/* Tasks that a product should at least be divided into, and what a task should at least have. */
#define TASKS_WANTED ((size_t)16)
#define TASK_MIN_COLS ((size_t)64)

/* Tiles whose rows are laid out at a time: they stay in the first cache. Where there are many
 * panels to walk, two tiles share the way. */
#define GROUP_TILES(panels) ((size_t)((panels) > 4 ? 2 : 1))

/* Where a patch lies; walks along the grid. */
typedef struct place {
    const float *picture;
    int row, col;
} place;

static place place_of(const cpu_patches *p, size_t patch) {
    size_t per_picture = (size_t)p->rows * (size_t)p->cols;
    size_t inside = patch % per_picture;
    return (place){p->pictures + patch / per_picture * stk_shape_count(p->image),
                   (int)(inside / (size_t)p->cols), (int)(inside % (size_t)p->cols)};
}

static void step_on(const cpu_patches *p, place *at) {
    if (++at->col == p->cols) {
        at->col = 0;
        if (++at->row == p->rows) {
            at->row = 0;
            at->picture += stk_shape_count(p->image);
        }
    }
}

/* Short runs are copied in line: a call costs more than they do. */
static inline void copy(float *out, const float *from, size_t count) {
    if (count < 8) {
        for (size_t i = 0; i < count; i++) {
            out[i] = from[i];
        }
    } else if (count <= 32) {
        for (size_t i = 0; i + 8 < count; i += 8) {
            memcpy(out + i, from + i, 8 * sizeof *out);
        }
        memcpy(out + count - 8, from + count - 8, 8 * sizeof *out);
    } else {
        memcpy(out, from, count * sizeof *out);
    }
}

/* Floats from .. to-1 of one row of a window, of which those in low .. high-1 are in the picture.
 */
static inline void lay_run(const float *run, size_t low, size_t high, size_t from, size_t to,
                           float *out) {
    size_t begin = low < from ? from : cpu_min(low, to);
    size_t end = high < begin ? begin : cpu_min(high, to);
    if (begin > from) {
        memset(out, 0, (begin - from) * sizeof *out);
    }
    copy(out + (begin - from), run + begin, end - begin);
    if (end < to) {
        memset(out + (end - from), 0, (to - end) * sizeof *out);
    }
}

/* Floats from .. to-1 of the patch at a place. */
static void lay_patch(const cpu_patches *p, const place *at, size_t from, size_t to, float *out) {
    ptrdiff_t channels = p->image.channels;
    ptrdiff_t run_floats = p->width * channels;
    ptrdiff_t line_floats = p->image.width * channels;
    ptrdiff_t left = (ptrdiff_t)(p->left + at->col * p->stride) * channels;
    size_t low = left < 0 ? (size_t)-left : 0;
    size_t high = left >= line_floats ? 0 : (size_t)(line_floats - left);
    size_t run = (size_t)run_floats;
    size_t line = from / run;
    for (size_t k = line * run; k < to; k += run, line++) {
        size_t begin = k < from ? from - k : 0;
        size_t end = cpu_min(to - k, run);
        int y = p->top + at->row * p->stride + (int)line;
        bool inside = y >= 0 && y < p->image.height;
        const float *pixels = at->picture + (inside ? y * line_floats : 0);
        lay_run(pixels + (inside ? left : 0), inside ? low : run, inside ? high : run, begin, end,
                out + (k + begin - from));
    }
}

void stk_cpu_patches_lay_out(const cpu_patches *patches, size_t first, size_t count, size_t from,
                             size_t to, float *out) {
    place at = place_of(patches, first);
    for (size_t i = 0; i < count; i++, out += CPU_GEMM_PITCH) {
        lay_patch(patches, &at, from, to, out);
        step_on(patches, &at);
    }
}

size_t stk_cpu_product_blocks(size_t patches) {
    return cpu_tasks(patches, CPU_PRODUCT_ROWS);
}

size_t stk_cpu_product_block_start(size_t patches, size_t block) {
    return cpu_even(patches, stk_cpu_product_blocks(patches), block);
}

/* How many tasks share the columns of a block. */
static size_t column_tasks(const cpu_patch_product *p) {
    size_t wanted = cpu_tasks(TASKS_WANTED, stk_cpu_product_blocks(p->count));
    size_t most = p->width / TASK_MIN_COLS;
    return most < 1 ? 1 : cpu_min(wanted, most);
}

size_t stk_cpu_product_tasks(const cpu_patch_product *product) {
    bool nothing = product->add && cpu_patches_depth(&product->patches) == 0;
    if (product->count == 0 || nothing) {
        return 0;
    }
    return stk_cpu_product_blocks(product->count) * column_tasks(product);
}

/* One task: some rows and some panels of the product. */
typedef struct block {
    size_t first, rows;          /* patches */
    size_t panel_from, panel_to; /* of B */
    float *c[CPU_PRODUCT_ROWS];  /* where the rows are written */
} block;

static void find_rows(const cpu_patch_product *p, block *b) {
    place at = place_of(&p->patches, b->first);
    size_t picture = b->first / ((size_t)p->patches.rows * (size_t)p->patches.cols);
    float *out = p->out + picture * stk_shape_count(p->out_shape);
    for (size_t i = 0; i < b->rows; i++) {
        const float *before = at.picture;
        ptrdiff_t y = p->top + (ptrdiff_t)at.row * p->step;
        ptrdiff_t x = p->left + (ptrdiff_t)at.col * p->step;
        b->c[i] = out + (y * p->out_shape.width + x) * p->out_shape.channels;
        step_on(&p->patches, &at);
        if (at.picture != before) {
            out += stk_shape_count(p->out_shape);
        }
    }
}

/* Adds the products over depth from .. to-1 of rows row_from .. row_to-1 to the block. */
static void multiply_rows(const cpu_patch_product *p, const block *b, size_t row_from,
                          size_t row_to, size_t from, size_t to, const float *rows, bool add) {
    const cpu_gemm *gemm = p->gemm;
    size_t depth = cpu_patches_depth(&p->patches);
    size_t tiles = cpu_tasks(row_to - row_from, gemm->rows);
    for (size_t panel = b->panel_from; panel < b->panel_to; panel++) {
        cpu_tile tile = {.b = p->panels + (panel * depth + from) * gemm->cols,
                         .depth = to - from,
                         .at = panel * gemm->cols,
                         .add = add};
        tile.cols = cpu_min(gemm->cols, p->width - tile.at);
        for (size_t t = 0; t < tiles; t++) {
            size_t row = cpu_even(row_to - row_from, tiles, t);
            tile.rows = cpu_even(row_to - row_from, tiles, t + 1) - row;
            tile.a = rows + row * CPU_GEMM_PITCH;
            tile.c = b->c + row_from + row;
            gemm->rows_by_panel(&tile);
        }
    }
}

static void finish_block(const cpu_patch_product *p, const block *b, size_t row_block) {
    size_t from = b->panel_from * p->gemm->cols;
    size_t to = cpu_min(b->panel_to * p->gemm->cols, p->width);
    if (p->bias != NULL) {
        for (size_t i = 0; i < b->rows; i++) {
            for (size_t j = from; j < to; j++) {
                b->c[i][j] += p->bias[j];
            }
        }
    }
    if (p->stats != NULL) {
        float *stats = p->stats + row_block * 2 * p->width;
        p->gemm->moments(b->c, b->rows, from, to, stats, stats + p->width);
    }
}

void stk_cpu_product_task(const cpu_patch_product *p, size_t task, float *scratch) {
    size_t shares = column_tasks(p);
    size_t row_block = task / shares;
    size_t panels = cpu_tasks(p->width, p->gemm->cols);
    block b = {.first = stk_cpu_product_block_start(p->count, row_block),
               .panel_from = cpu_even(panels, shares, task % shares),
               .panel_to = cpu_even(panels, shares, task % shares + 1)};
    b.rows = stk_cpu_product_block_start(p->count, row_block + 1) - b.first;
    find_rows(p, &b);
    size_t depth = cpu_patches_depth(&p->patches);
    size_t passes = depth > 0 ? cpu_tasks(depth, CPU_GEMM_DEPTH) : 1;
    size_t groups = cpu_tasks(b.rows, GROUP_TILES(b.panel_to - b.panel_from) * p->gemm->rows);
    for (size_t i = 0; i < passes; i++) {
        size_t from = cpu_even(depth, passes, i);
        size_t to = cpu_even(depth, passes, i + 1);
        for (size_t g = 0; g < groups; g++) {
            size_t row = cpu_even(b.rows, groups, g);
            size_t next = cpu_even(b.rows, groups, g + 1);
            if (to > from) {
                stk_cpu_patches_lay_out(&p->patches, b.first + row, next - row, from, to, scratch);
            }
            multiply_rows(p, &b, row, next, from, to, scratch, p->add || i > 0);
        }
    }
    finish_block(p, &b, row_block);
}
