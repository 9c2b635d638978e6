/*
 * gemm.h - inside the CPU backend: the innermost products of convolutions, once per kind of
 * vector instructions and once in plain C. One of the tables is chosen when the program runs.
 *
 * A tile is a few rows and columns of a product C = A B, held in registers while its depth is
 * walked. Every element is one chain of multiply-adds in the order of the depth, whatever tile it
 * lies in. So an element's bits depend only on the table and on how its depth was cut into passes.
 */
#ifndef STK_BACKEND_CPU_GEMM_GEMM_H
#define STK_BACKEND_CPU_GEMM_GEMM_H

#include <stdbool.h>
#include <stddef.h>

/* The most depth that one pass over a tile takes: its part of B then stays in the first cache. */
#define CPU_GEMM_DEPTH ((size_t)256)

/*
 * Floats from one row of a block to the next. It is fixed, so that rows are offsets known to the
 * compiler, and no power of two, so that they do not meet in the same places of a cache.
 */
#define CPU_GEMM_PITCH ((size_t)272)

/* No table has larger tiles. */
#define CPU_GEMM_MOST_ROWS ((size_t)14)

/* One product: `rows` x `cols` elements of C from a depth of at most CPU_GEMM_DEPTH. */
typedef struct cpu_tile {
    const float *a;
    const float *b;
    size_t depth;
    size_t rows;     /* 1 .. cpu_gemm.rows */
    size_t cols;     /* 1 .. cpu_gemm.cols */
    float *const *c; /* the rows of C */
    size_t at;       /* first column in each of them */
    bool add;        /* to C, instead of writing it */
} cpu_tile;

struct cpu_patches; /* patches.h */

typedef struct cpu_gemm {
    const char *name;      /* "avx512" */
    bool (*is_here)(void); /* whether this processor has the instructions */
    size_t rows;           /* of the largest tile */
    size_t cols;
    /*
     * A's rows lie PITCH floats apart, each along the depth; B is a panel (depth, cols), all of
     * it readable. The patches of a picture are such rows when they are copied one by one.
     */
    void (*rows_by_panel)(const cpu_tile *tile);
    /* A is a panel (depth, rows); B lies as (depth, PITCH), `cols` floats of it readable. */
    void (*panel_by_rows)(const cpu_tile *tile);
    /*
     * Cuts columns first .. first+count-1 of a matrix (depth, step) into panels A of
     * panel_by_rows(), one for each tile of C; a panel has depth * rows floats.
     */
    void (*pack_columns)(const float *from, size_t step, size_t depth, size_t first, size_t count,
                         float *panels);
    /*
     * Makes a panel B out of `count` rows of a matrix, each `depth` long and `depth` floats apart;
     * the columns that are left are zeros.
     */
    void (*pack_rows)(const float *from, size_t depth, size_t count, float *panel);
    /*
     * For columns from .. to-1 of `count` rows: the mean, and the sum of squared differences from
     * it. The sums are taken about the mean of a few rows, so that large means cost no digits.
     */
    void (*moments)(float *const *rows, size_t count, size_t from, size_t to, float *mean,
                    float *squares);
    /*
     * Lays out floats from .. to-1 of `count` patches, the first being counted over the whole
     * batch, as rows that lie PITCH apart. to - from is at most CPU_GEMM_DEPTH.
     */
    void (*lay_out)(const struct cpu_patches *patches, size_t first, size_t count, size_t from,
                    size_t to, float *out);
} cpu_gemm;

/* Where part i begins when `count` items, such as rows, are divided evenly into `parts`. */
static inline size_t cpu_even(size_t count, size_t parts, size_t i) {
    size_t more = count % parts;
    return count / parts * i + (i < more ? i : more);
}

/* The tables of this build, the fastest first, plain C last; then NULL. */
extern const cpu_gemm *const stk_cpu_gemm_list[];

/* The first of the list that this processor can run. */
const cpu_gemm *stk_cpu_gemm_best(void);

extern const cpu_gemm stk_cpu_gemm_plain;
extern const cpu_gemm stk_cpu_gemm_avx512; /* x86_64 */
extern const cpu_gemm stk_cpu_gemm_avx2;   /* x86_64 */
extern const cpu_gemm stk_cpu_gemm_neon;   /* arm64 */

#endif
