/*
 * conv_weight.c - the gradient of a convolution's weights.
 *
 * The depth of this product are the pixels of the batch. Both sides have the pixels as rows, so
 * patches serve as they are laid out and dy needs only to be cut into panels. Where dW is small,
 * parts of the pixels are summed apart and then added in their order.
 */
#include "backend/cpu/convolution/conv_weight.h"

#include <string.h>

#define TASKS_WANTED ((size_t)16)
#define PART_MIN_PIXELS ((size_t)1024) /* of a part at least: adding up parts takes time */
#define PARTS_BYTES ((size_t)16 << 20)
#define SHARE_MIN_FILTERS ((size_t)64)

typedef struct weight_run {
    const cpu_weight_product *product;
    float *scratch;
} weight_run;

/* The share of one task, and the block that it works on at a time. */
typedef struct weight_block {
    size_t pixel_from, pixel_to;
    size_t panel_from, panel_to; /* of columns */
    size_t filter_from, filter_to;
    float *out; /* (filters, depth) */
    bool add;   /* to `out`, instead of writing it */
} weight_block;

static size_t at_least(size_t value, size_t least) {
    return value < least ? least : value;
}

/*
 * Parts cost least: only their sums have to be added. Tasks that share pixels pack the same part
 * of dy when they divide the columns, and lay out the same patches when they divide the filters.
 */
void stk_cpu_weight_divide(cpu_weight_product *p) {
    size_t depth = cpu_patches_depth(&p->patches);
    size_t fit = PARTS_BYTES / (p->filters * depth * sizeof(float));
    p->part_count = cpu_min(cpu_min(TASKS_WANTED, fit), p->pixels / PART_MIN_PIXELS);
    p->part_count = at_least(p->part_count, 1);
    size_t blocks = cpu_tasks(depth, CPU_GEMM_DEPTH);
    p->col_shares = cpu_min(cpu_tasks(TASKS_WANTED, p->part_count), blocks);
    p->filter_shares = cpu_min(cpu_tasks(TASKS_WANTED, p->col_shares * p->part_count),
                               at_least(p->filters / SHARE_MIN_FILTERS, 1));
}

size_t stk_cpu_weight_part_floats(const cpu_weight_product *p) {
    return p->part_count > 1 ? p->part_count * p->filters * cpu_patches_depth(&p->patches) : 0;
}

static weight_block block_of(const cpu_weight_product *p, size_t task) {
    size_t depth = cpu_patches_depth(&p->patches);
    size_t panels = cpu_tasks(depth, p->gemm->cols);
    size_t filter_share = task % p->filter_shares;
    size_t col_share = task / p->filter_shares % p->col_shares;
    size_t part = task / p->filter_shares / p->col_shares;
    bool alone = p->part_count == 1;
    return (weight_block){
        .pixel_from = cpu_even(p->pixels, p->part_count, part),
        .pixel_to = cpu_even(p->pixels, p->part_count, part + 1),
        .panel_from = cpu_even(panels, p->col_shares, col_share),
        .panel_to = cpu_even(panels, p->col_shares, col_share + 1),
        .filter_from = cpu_even(p->filters, p->filter_shares, filter_share),
        .filter_to = cpu_even(p->filters, p->filter_shares, filter_share + 1),
        .out = alone ? p->grad : p->parts + part * p->filters * depth,
        .add = alone,
    };
}

/* Lays out the block's columns of its patches; what fills up the last vector is zero. */
static void lay_out(const cpu_weight_product *p, const weight_block *b, float *rows) {
    size_t from = b->panel_from * p->gemm->cols;
    size_t whole = b->panel_to * p->gemm->cols;
    size_t to = cpu_min(whole, cpu_patches_depth(&p->patches));
    size_t count = b->pixel_to - b->pixel_from;
    p->gemm->lay_out(&p->patches, b->pixel_from, count, from, to, rows);
    for (size_t i = 0; to < whole && i < count; i++) {
        memset(rows + i * CPU_GEMM_PITCH + (to - from), 0, (whole - to) * sizeof *rows);
    }
}

/* The product of packed filters and laid out columns, both of the block. */
static void multiply_block(const cpu_weight_product *p, const weight_block *b, const float *packed,
                           const float *rows) {
    const cpu_gemm *gemm = p->gemm;
    size_t depth = cpu_patches_depth(&p->patches);
    size_t filters = b->filter_to - b->filter_from;
    size_t pixels = b->pixel_to - b->pixel_from;
    size_t tiles = cpu_tasks(filters, gemm->rows);
    float *c[CPU_WEIGHT_FILTERS];
    for (size_t i = 0; i < filters; i++) {
        c[i] = b->out + (b->filter_from + i) * depth;
    }
    for (size_t panel = b->panel_from; panel < b->panel_to; panel++) {
        cpu_tile tile = {.b = rows + (panel - b->panel_from) * gemm->cols,
                         .depth = pixels,
                         .at = panel * gemm->cols,
                         .add = b->add};
        tile.cols = cpu_min(gemm->cols, depth - tile.at);
        for (size_t t = 0; t < tiles; t++) {
            size_t row = cpu_even(filters, tiles, t);
            tile.rows = cpu_even(filters, tiles, t + 1) - row;
            tile.a = packed + t * pixels * gemm->rows;
            tile.c = c + row;
            gemm->panel_by_rows(&tile);
        }
    }
}

/* Some filters of some pixels with all columns of the task. */
static void multiply_filters(const cpu_weight_product *p, const weight_block *whole, weight_block b,
                             float *scratch) {
    float *rows = scratch;
    float *packed = scratch + CPU_GEMM_DEPTH * CPU_GEMM_PITCH;
    size_t pixels = b.pixel_to - b.pixel_from;
    size_t panels = whole->panel_to - whole->panel_from;
    size_t runs = cpu_tasks(panels, CPU_GEMM_DEPTH / p->gemm->cols);
    p->gemm->pack_columns(p->dy + b.pixel_from * p->filters, p->filters, pixels, b.filter_from,
                          b.filter_to - b.filter_from, packed);
    for (size_t i = 0; i < runs; i++) {
        b.panel_from = whole->panel_from + cpu_even(panels, runs, i);
        b.panel_to = whole->panel_from + cpu_even(panels, runs, i + 1);
        lay_out(p, &b, rows);
        multiply_block(p, &b, packed, rows);
    }
}

static void weight_task(void *context, size_t task, int thread) {
    const weight_run *run = context;
    const cpu_weight_product *p = run->product;
    weight_block whole = block_of(p, task);
    size_t pixels = whole.pixel_to - whole.pixel_from;
    size_t filters = whole.filter_to - whole.filter_from;
    size_t passes = cpu_tasks(pixels, CPU_GEMM_DEPTH);
    size_t groups = cpu_tasks(filters, CPU_WEIGHT_FILTERS);
    for (size_t i = 0; i < passes; i++) {
        for (size_t g = 0; g < groups; g++) {
            weight_block b = whole;
            b.pixel_from = whole.pixel_from + cpu_even(pixels, passes, i);
            b.pixel_to = whole.pixel_from + cpu_even(pixels, passes, i + 1);
            b.filter_from = whole.filter_from + cpu_even(filters, groups, g);
            b.filter_to = whole.filter_from + cpu_even(filters, groups, g + 1);
            b.add = whole.add || i > 0;
            multiply_filters(p, &whole, b, run->scratch + (size_t)thread * CPU_WEIGHT_SCRATCH);
        }
    }
}

/* Adds the parts, always in the same order, to the gradient. */
static void sum_task(void *context, size_t task, int thread) {
    (void)thread;
    const cpu_weight_product *p = ((const weight_run *)context)->product;
    size_t count = p->filters * cpu_patches_depth(&p->patches);
    size_t from = task * CPU_GRAIN;
    size_t to = cpu_min(from + CPU_GRAIN, count);
    for (size_t part = 0; part < p->part_count; part++) {
        const float *values = p->parts + part * count;
        for (size_t i = from; i < to; i++) {
            p->grad[i] += values[i];
        }
    }
}

void stk_cpu_weight_run(const cpu_weight_product *p, stk_pool *pool, float *scratch) {
    weight_run run = {p, scratch};
    stk_pool_run(pool, p->part_count * p->col_shares * p->filter_shares, weight_task, &run);
    if (p->part_count > 1) {
        size_t count = p->filters * cpu_patches_depth(&p->patches);
        stk_pool_run(pool, cpu_tasks(count, CPU_GRAIN), sum_task, &run);
    }
}
