/*
 * tile.h - the functions of a cpu_gemm, written once and compiled by avx512.c, avx2.c, neon.c and
 * plain.c, each for its own instructions. Such a file defines, before it includes this one,
 *     GEMM_LANES   floats in a vector register
 *     GEMM_ROWS    rows of the largest tile; its columns are two vectors
 *     GEMM_TARGET  the attribute that allows the instructions, or nothing
 *     GEMM_HAS_UPPER_HALVES  defined where registers have them, as those of AVX do
 *     GEMM_TABLE   the table that is defined here, and GEMM_LABEL, its name
 * and a function is_here(). Vectors are the compilers' own, so that one text serves all.
 */
#include "backend/cpu/gemm/gemm.h"

#include <string.h>

#define GEMM_COLS (2 * GEMM_LANES)
/* A tile's rows, rounded up to whole vectors. */
#define PACK_FLOATS ((GEMM_ROWS + GEMM_LANES - 1) / GEMM_LANES * GEMM_LANES)
#define PIVOT_ROWS ((size_t)8)
#define SUMMED_ROWS ((size_t)16)

/* Accumulators are registers only if no loop over them is left. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
/*
 * On x86, SSE code is slow while the upper halves of the registers are in use: code after a tile
 * was ten times slower. Compilers should clear the halves at the end of a function, but gcc 12 does
 * not on most of a tile's ways out.
 */
#if defined(GEMM_HAS_UPPER_HALVES)
#define GEMM_LEAVE __builtin_ia32_vzeroupper()
#else
#define GEMM_LEAVE (void)0
#endif

#define INLINE static inline __attribute__((always_inline)) GEMM_TARGET

/* May lie anywhere in an array of floats. */
typedef float vec __attribute__((vector_size(4 * GEMM_LANES), aligned(4), may_alias));
typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));

/* Rows of C that end within a vector. */
static __attribute__((noinline)) void store_part(const float *sums, const cpu_tile *t) {
    for (size_t r = 0; r < t->rows; r++) {
        float *c = t->c[r] + t->at;
        for (size_t j = 0; j < t->cols; j++) {
            float sum = sums[r * GEMM_COLS + j];
            c[j] = t->add ? c[j] + sum : sum;
        }
    }
}

INLINE void store(size_t rows, size_t vecs, vec sum[GEMM_ROWS][2], const cpu_tile *t) {
    if (t->cols < vecs * GEMM_LANES) {
        vec sums[GEMM_ROWS][2];
        UNROLL for (size_t r = 0; r < rows; r++) {
            UNROLL for (size_t v = 0; v < vecs; v++) {
                sums[r][v] = sum[r][v];
            }
        }
        store_part((const float *)sums, t);
        return;
    }
    UNROLL for (size_t r = 0; r < rows; r++) {
        vec *c = (vec *)(t->c[r] + t->at);
        UNROLL for (size_t v = 0; v < vecs; v++) {
            if (t->add) {
                sum[r][v] += c[v];
            }
            c[v] = sum[r][v];
        }
    }
}

/*
 * The product itself. All but the tile are constants where this is called, and every call is
 * compiled by itself.
 */
INLINE void multiply(size_t rows, size_t vecs, size_t a_row, size_t a_step, size_t b_step,
                     const cpu_tile *t) {
    vec sum[GEMM_ROWS][2];
    UNROLL for (size_t r = 0; r < rows; r++) {
        UNROLL for (size_t v = 0; v < vecs; v++) {
            sum[r][v] = (vec){0};
        }
    }
    UNROLL for (size_t r = 0; r < rows; r++) { /* prefetches C, which is needed last */
        UNROLL for (size_t v = 0; v < vecs; v++) {
            __builtin_prefetch(t->c[r] + t->at + v * GEMM_LANES, 1);
        }
    }
    const float *a = t->a;
    const float *b = t->b;
    for (size_t k = t->depth; k > 0; k--) {
        vec line[2];
        UNROLL for (size_t v = 0; v < vecs; v++) {
            line[v] = *(const vec *)(b + v * GEMM_LANES);
        }
        UNROLL for (size_t r = 0; r < rows; r++) {
            float factor = a[r * a_row];
            UNROLL for (size_t v = 0; v < vecs; v++) {
                sum[r][v] += factor * line[v];
            }
        }
        a += a_step;
        b += b_step;
    }
    store(rows, vecs, sum, t);
}

INLINE void choose_width(size_t rows, size_t a_row, size_t a_step, size_t b_step,
                         const cpu_tile *t) {
    if (t->cols > GEMM_LANES) {
        multiply(rows, 2, a_row, a_step, b_step, t);
    } else {
        multiply(rows, 1, a_row, a_step, b_step, t);
    }
}

#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define CASE(count)                                                             \
    case (count):                                                               \
        if ((count) <= GEMM_ROWS) {                                             \
            choose_width(LEAST(count, GEMM_ROWS), a_row, a_step, b_step, tile); \
        }                                                                       \
        break;

/* Compiles the product for every number of rows. */
INLINE void choose_rows(size_t a_row, size_t a_step, size_t b_step, const cpu_tile *tile) {
    switch (tile->rows) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
        CASE(13)
        CASE(14)
    }
}

static GEMM_TARGET void rows_by_panel(const cpu_tile *tile) {
    choose_rows(CPU_GEMM_PITCH, 1, GEMM_COLS, tile);
    GEMM_LEAVE;
}

static GEMM_TARGET void panel_by_rows(const cpu_tile *tile) {
    choose_rows(1, GEMM_ROWS, CPU_GEMM_PITCH, tile);
    GEMM_LEAVE;
}

/* Whole vectors are copied where the matrix has them; what follows goes over the surplus. */
static GEMM_TARGET void pack_columns(const float *from, size_t step, size_t depth, size_t first,
                                     size_t count, float *panels) {
    size_t tiles = (count + GEMM_ROWS - 1) / GEMM_ROWS;
    size_t least = count / tiles;
    size_t more = count % tiles; /* tiles have one row more, as cpu_even() deals them */
    const float *end = from + depth * step;
    for (size_t k = 0; k < depth; k++) {
        const float *columns = from + k * step + first;
        for (size_t t = 0; t < tiles; t++) {
            size_t rows = least + (t < more ? 1 : 0);
            float *panel = panels + (t * depth + k) * GEMM_ROWS;
            if (end - columns >= PACK_FLOATS && k + 1 < depth) {
                memcpy(panel, columns, PACK_FLOATS * sizeof *panel);
            } else {
                memcpy(panel, columns, rows * sizeof *panel);
            }
            columns += rows;
        }
    }
}

/* Four floats of four rows that lie `step` apart become four rows of a panel. */
INLINE void turn_four(const float *from, size_t step, float *panel) {
    quad a = *(const quad *)from;
    quad b = *(const quad *)(from + step);
    quad c = *(const quad *)(from + 2 * step);
    quad d = *(const quad *)(from + 3 * step);
    quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    quad cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    *(quad *)panel = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(quad *)(panel + GEMM_COLS) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(quad *)(panel + 2 * GEMM_COLS) = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(quad *)(panel + 3 * GEMM_COLS) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

/* Some of the depth at a time, so that what is read of each row stays in the cache. */
static GEMM_TARGET void pack_rows(const float *from, size_t depth, size_t count, float *panel) {
    if (count < GEMM_COLS) {
        memset(panel, 0, depth * GEMM_COLS * sizeof *panel);
    }
    size_t fours = count / 4 * 4;
    size_t k0 = 0;
    for (; k0 + 16 <= depth; k0 += 16) {
        for (size_t j = 0; j < fours; j += 4) {
            for (size_t k = k0; k < k0 + 16; k += 4) {
                turn_four(from + j * depth + k, depth, panel + k * GEMM_COLS + j);
            }
        }
    }
    for (size_t j = 0; j < count; j++) { /* what is no multiple of four, and the last few */
        for (size_t k = j < fours ? k0 : 0; k < depth; k++) {
            panel[k * GEMM_COLS + j] = from[j * depth + k];
        }
    }
}

/*
 * The moments of as many columns as `type` holds, from column j on. The pivot is near the mean, and
 * few rows are added up at a time, since sums of many lose digits.
 */
#define DEFINE_MOMENTS(name, type)                                                              \
    INLINE void name(float *const *rows, size_t count, size_t j, float *mean, float *squares) { \
        type pivot = *(const type *)(rows[0] + j);                                              \
        size_t near = LEAST(count, PIVOT_ROWS);                                                 \
        for (size_t i = 1; i < near; i++) {                                                     \
            pivot += *(const type *)(rows[i] + j);                                              \
        }                                                                                       \
        pivot *= 1 / (float)near;                                                               \
        type sum = pivot - pivot;                                                               \
        type square = sum;                                                                      \
        for (size_t i = 0; i < count;) {                                                        \
            type some = pivot - pivot;                                                          \
            type some_square = some;                                                            \
            for (size_t end = LEAST(i + SUMMED_ROWS, count); i < end; i++) {                    \
                type away = *(const type *)(rows[i] + j) - pivot;                               \
                some += away;                                                                   \
                some_square += away * away;                                                     \
            }                                                                                   \
            sum += some;                                                                        \
            square += some_square;                                                              \
        }                                                                                       \
        type shift = sum * (1 / (float)count);                                                  \
        *(type *)(mean + j) = pivot + shift;                                                    \
        *(type *)(squares + j) = square - shift * sum;                                          \
    }

DEFINE_MOMENTS(vec_moments, vec)
DEFINE_MOMENTS(float_moments, float)

static GEMM_TARGET void moments(float *const *rows, size_t count, size_t from, size_t to,
                                float *mean, float *squares) {
    size_t j = from;
    for (; j + GEMM_LANES <= to; j += GEMM_LANES) {
        vec_moments(rows, count, j, mean, squares);
    }
    for (; j < to; j++) {
        float_moments(rows, count, j, mean, squares);
    }
}

#include "backend/cpu/gemm/patches_lay.h"

const cpu_gemm GEMM_TABLE = {
    .name = GEMM_LABEL,
    .is_here = is_here,
    .rows = GEMM_ROWS,
    .cols = GEMM_COLS,
    .rows_by_panel = rows_by_panel,
    .panel_by_rows = panel_by_rows,
    .pack_columns = pack_columns,
    .pack_rows = pack_rows,
    .moments = moments,
    .lay_out = lay_out,
};
