/*
 * cpu_conv_weight.c - the gradient of a convolution's weights.
 *
 * The depth of this product are the pixels of the batch. Both sides have the pixels as rows, so
 * patches serve as they are laid out and dy needs only to be cut into panels. Where dW is small,
 * parts of the pixels are summed apart and then added in their order.
 */
#include "backend/cpu/cpu_conv_weight.h"

#include <string.h>

#define TASKS_WANTED ((size_t)16)
#define PART_MIN_PIXELS ((size_t)512) /* fewer are not worth adding up one more part */
#define PARTS_BYTES ((size_t)16 << 20)
#define TASK_MIN_FILTERS ((size_t)64)

typedef struct weight_run {
    const cpu_weight_product *product;
    float *scratch;
} weight_run;

/* One task. */
typedef struct block {
    size_t pixel_from, pixel_to;
    size_t panel_from, panel_to; /* of columns */
    size_t filter_from, filter_to;
    float *out; /* (filters, depth) */
    bool add;   /* to what is there */
} block;

static size_t at_least(size_t value, size_t least) {
    return value < least ? least : value;
}

void stk_cpu_weight_divide(cpu_weight_product *p) {
    size_t depth = cpu_patches_depth(&p->patches);
    p->col_blocks = cpu_tasks(cpu_tasks(depth, p->gemm->cols), CPU_GEMM_DEPTH / p->gemm->cols);
    size_t fit = PARTS_BYTES / (p->filters * depth * sizeof(float));
    p->part_count = cpu_min(cpu_tasks(TASKS_WANTED, p->col_blocks), p->pixels / PART_MIN_PIXELS);
    p->part_count = at_least(cpu_min(p->part_count, fit), 1);
    p->filter_blocks = cpu_min(cpu_tasks(TASKS_WANTED, p->col_blocks * p->part_count),
                               at_least(p->filters / TASK_MIN_FILTERS, 1));
}

size_t stk_cpu_weight_part_floats(const cpu_weight_product *p) {
    return p->part_count > 1 ? p->part_count * p->filters * cpu_patches_depth(&p->patches) : 0;
}

static block block_of(const cpu_weight_product *p, size_t task) {
    size_t depth = cpu_patches_depth(&p->patches);
    size_t panels = cpu_tasks(depth, p->gemm->cols);
    size_t filter_block = task % p->filter_blocks;
    size_t col_block = task / p->filter_blocks % p->col_blocks;
    size_t part = task / p->filter_blocks / p->col_blocks;
    bool alone = p->part_count == 1;
    return (block){
        .pixel_from = cpu_even(p->pixels, p->part_count, part),
        .pixel_to = cpu_even(p->pixels, p->part_count, part + 1),
        .panel_from = cpu_even(panels, p->col_blocks, col_block),
        .panel_to = cpu_even(panels, p->col_blocks, col_block + 1),
        .filter_from = cpu_even(p->filters, p->filter_blocks, filter_block),
        .filter_to = cpu_even(p->filters, p->filter_blocks, filter_block + 1),
        .out = alone ? p->grad : p->parts + part * p->filters * depth,
        .add = alone,
    };
}

/* Lays out the block's columns of some patches; what fills up the last vector is zero. */
static void lay_out(const cpu_weight_product *p, const block *b, size_t first, size_t count,
                    float *rows) {
    size_t from = b->panel_from * p->gemm->cols;
    size_t whole = b->panel_to * p->gemm->cols;
    size_t to = cpu_min(whole, cpu_patches_depth(&p->patches));
    p->gemm->lay_out(&p->patches, first, count, from, to, rows);
    for (size_t i = 0; to < whole && i < count; i++) {
        memset(rows + i * CPU_GEMM_PITCH + (to - from), 0, (whole - to) * sizeof *rows);
    }
}

/* Filters from .. to-1, at most CPU_WEIGHT_FILTERS, of `count` pixels from `first` on. */
static void multiply_filters(const cpu_weight_product *p, const block *b, size_t from, size_t to,
                             size_t first, size_t count, const float *rows, float *packed) {
    const cpu_gemm *gemm = p->gemm;
    size_t depth = cpu_patches_depth(&p->patches);
    size_t tiles = cpu_tasks(to - from, gemm->rows);
    float *c[CPU_WEIGHT_FILTERS];
    for (size_t i = from; i < to; i++) {
        c[i - from] = b->out + i * depth;
    }
    gemm->pack_columns(p->dy + first * p->filters, p->filters, count, from, to - from, packed);
    for (size_t panel = b->panel_from; panel < b->panel_to; panel++) {
        cpu_tile tile = {.b = rows + (panel - b->panel_from) * gemm->cols,
                         .depth = count,
                         .at = panel * gemm->cols,
                         .add = b->add || first > b->pixel_from};
        tile.cols = cpu_min(gemm->cols, depth - tile.at);
        for (size_t t = 0; t < tiles; t++) {
            size_t row = cpu_even(to - from, tiles, t);
            tile.rows = cpu_even(to - from, tiles, t + 1) - row;
            tile.a = packed + t * count * gemm->rows;
            tile.c = c + row;
            gemm->panel_by_rows(&tile);
        }
    }
}

static void weight_task(void *context, size_t task, int thread) {
    const weight_run *run = context;
    const cpu_weight_product *p = run->product;
    float *rows = run->scratch + (size_t)thread * CPU_WEIGHT_SCRATCH;
    float *packed = rows + CPU_GEMM_DEPTH * CPU_GEMM_PITCH;
    block b = block_of(p, task);
    size_t pixels = b.pixel_to - b.pixel_from;
    size_t filters = b.filter_to - b.filter_from;
    size_t passes = cpu_tasks(pixels, CPU_GEMM_DEPTH);
    size_t groups = cpu_tasks(filters, CPU_WEIGHT_FILTERS);
    for (size_t i = 0; i < passes; i++) {
        size_t first = b.pixel_from + cpu_even(pixels, passes, i);
        size_t count = b.pixel_from + cpu_even(pixels, passes, i + 1) - first;
        lay_out(p, &b, first, count, rows);
        for (size_t g = 0; g < groups; g++) {
            multiply_filters(p, &b, b.filter_from + cpu_even(filters, groups, g),
                             b.filter_from + cpu_even(filters, groups, g + 1), first, count, rows,
                             packed);
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
    stk_pool_run(pool, p->part_count * p->col_blocks * p->filter_blocks, weight_task, &run);
    if (p->part_count > 1) {
        size_t count = p->filters * cpu_patches_depth(&p->patches);
        stk_pool_run(pool, cpu_tasks(count, CPU_GRAIN), sum_task, &run);
    }
}
