/* patches.c - products of all patches of a batch with a matrix, a block at a time. */
#include "backend/cpu/gemm/patches.h"

/* Tasks that a product should at least be divided into, and what a task should at least have. */
#define TASKS_WANTED ((size_t)16)
#define TASK_MIN_COLS ((size_t)64)

/* Tiles whose rows are laid out at a time: they stay in the first cache. Where there are many
 * panels to walk, two tiles share the way. */
#define GROUP_TILES(panels) ((size_t)((panels) > 4 ? 2 : 1))

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
typedef struct product_block {
    size_t first, rows;          /* patches */
    size_t panel_from, panel_to; /* of B */
    float *c[CPU_PRODUCT_ROWS];  /* where the rows are written */
} product_block;

static void find_rows(const cpu_patch_product *p, product_block *b) {
    cpu_place at = cpu_place_of(&p->patches, b->first);
    size_t picture = b->first / ((size_t)p->patches.rows * (size_t)p->patches.cols);
    float *out = p->out + picture * stk_shape_count(p->out_shape);
    for (size_t i = 0; i < b->rows; i++) {
        const float *before = at.picture;
        ptrdiff_t y = p->top + (ptrdiff_t)at.row * p->step;
        ptrdiff_t x = p->left + (ptrdiff_t)at.col * p->step;
        b->c[i] = out + (y * p->out_shape.width + x) * p->out_shape.channels;
        cpu_place_next(&p->patches, &at);
        if (at.picture != before) {
            out += stk_shape_count(p->out_shape);
        }
    }
}

/* Adds the products over depth from .. to-1 of rows row_from .. row_to-1 to the block. */
static void multiply_rows(const cpu_patch_product *p, const product_block *b, size_t row_from,
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

static void finish_block(const cpu_patch_product *p, const product_block *b, size_t row_block) {
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
    product_block b = {.first = stk_cpu_product_block_start(p->count, row_block),
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
                p->gemm->lay_out(&p->patches, b.first + row, next - row, from, to, scratch);
            }
            multiply_rows(p, &b, row, next, from, to, scratch, p->add || i > 0);
        }
    }
    finish_block(p, &b, row_block);
}
