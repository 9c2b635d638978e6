/*
 * patches.h - inside the CPU backend: the patches of pictures that a convolution looks at, and
 * products of all patches with a matrix.
 *
 * In NHWC a patch is one run of floats per row of its window, so that laying patches out as the
 * rows of a matrix is copying; it is done a block at a time, just before the block is used.
 */
#ifndef STK_BACKEND_CPU_GEMM_PATCHES_H
#define STK_BACKEND_CPU_GEMM_PATCHES_H

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/kernels/kernels.h"

/* A grid of windows on each picture of a batch; what lies outside of a picture is zero. */
typedef struct cpu_patches {
    const float *pictures; /* (batch, image) */
    stk_shape image;
    int rows, cols;    /* windows in a picture */
    int stride;        /* pixels from window to window */
    int top, left;     /* pixel where the first window begins; may be negative */
    int height, width; /* of a window */
} cpu_patches;

static inline size_t cpu_patches_depth(const cpu_patches *p) {
    return (size_t)p->height * (size_t)p->width * (size_t)p->image.channels;
}

/* Where a patch lies; walks along the grid. */
typedef struct cpu_place {
    const float *picture;
    int row, col;
} cpu_place;

static inline cpu_place cpu_place_of(const cpu_patches *p, size_t patch) {
    size_t per_picture = (size_t)p->rows * (size_t)p->cols;
    size_t inside = patch % per_picture;
    return (cpu_place){p->pictures + patch / per_picture * stk_shape_count(p->image),
                       (int)(inside / (size_t)p->cols), (int)(inside % (size_t)p->cols)};
}

static inline void cpu_place_next(const cpu_patches *p, cpu_place *at) {
    if (++at->col == p->cols) {
        at->col = 0;
        if (++at->row == p->rows) {
            at->row = 0;
            at->picture += stk_shape_count(p->image);
        }
    }
}

/*
 * Patches times a matrix of panels: row i of the product belongs to patch i and is written to a
 * pixel of `out`. Nothing else is written.
 */
typedef struct cpu_patch_product {
    const cpu_gemm *gemm;
    cpu_patches patches;
    size_t count;        /* patches of the batch */
    size_t width;        /* columns of the matrix */
    const float *panels; /* (panels, depth, gemm->cols) */
    float *out;          /* (batch, out_shape), of which width is the channels */
    stk_shape out_shape;
    int step; /* patch (row, col) belongs to the pixel (top + row * step, left + col * step) */
    int top, left;
    bool add;          /* to `out`, instead of writing it */
    const float *bias; /* (width), added; or NULL */
    float *stats;      /* (row blocks, 2, width), see conv.h; or NULL */
} cpu_patch_product;

#define CPU_PRODUCT_ROWS ((size_t)224) /* of a block at most */

/* A product is so many tasks; each needs CPU_PRODUCT_SCRATCH floats of its thread. */
#define CPU_PRODUCT_SCRATCH (2 * CPU_GEMM_MOST_ROWS * CPU_GEMM_PITCH)
size_t stk_cpu_product_tasks(const cpu_patch_product *product);
void stk_cpu_product_task(const cpu_patch_product *product, size_t task, float *scratch);

/* Row blocks: how many, and where one begins. */
size_t stk_cpu_product_blocks(size_t patches);
size_t stk_cpu_product_block_start(size_t patches, size_t block);

#endif
