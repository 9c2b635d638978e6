/*
 * kernels.h - only for this room: the two inner loops of scaling, in plain C and for each
 * kind of vector instructions. All give the same bytes: products and sums are integers that cannot
 * overflow.
 *
 * First down the columns: 8 bits times weights of 14 bits, rounded to 6 bits of fraction, which
 * fits into 16 bits. Then along the row: times 14 bits again, rounded to 8 bits. Weights may be
 * negative, as those of a cubic, if their absolute values sum to less than two: values may then
 * leave 0 to 255 in between and are clamped at the end.
 */
#ifndef STK_IMAGE_RESAMPLE_KERNELS_H
#define STK_IMAGE_RESAMPLE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STK_WEIGHT_BITS 14
#define STK_WEIGHT_ONE (1 << STK_WEIGHT_BITS)
#define STK_MIDDLE_BITS 6
#define STK_DOWN_SHIFT (STK_WEIGHT_BITS - STK_MIDDLE_BITS)
#define STK_ACROSS_SHIFT (STK_WEIGHT_BITS + STK_MIDDLE_BITS)

/* How many values beyond the requested ones a kernel may read, and `down` may write. */
#define STK_KERNEL_SLACK 32

typedef struct stk_resample_kernels {
    const char *name;      /* "avx2" */
    bool (*is_here)(void); /* whether this processor has the instructions */
    /*
     * Weighs `taps` rows that lie `stride` bytes apart: out[j] is the rounded sum over k of
     * rows[k * stride + j] * weights[k], for j below `values`. taps is even.
     */
    void (*down)(const uint8_t *rows, size_t stride, const int16_t *weights, int taps,
                 size_t values, int16_t *out);
    /*
     * Two rows of RGB at once: pixel i of an output row, (size, 3), is the rounded sum over k below
     * `taps` of pixel first[i] + k of the middle row times weights[i * stride + k]. taps is even.
     */
    void (*across)(const int16_t *middle_a, const int16_t *middle_b, const int *first,
                   const int16_t *weights, int stride, int taps, int size, uint8_t *out_a,
                   uint8_t *out_b);
} stk_resample_kernels;

/* One row of pixels with any number of channels, which no vector instructions are used for. */
void stk_resample_across_any(const int16_t *middle, const int *first, const int16_t *weights,
                             int stride, int taps, int size, int channels, uint8_t *out);

/* The kernels of this build, fastest first; the last is plain C. Ended by NULL. */
extern const stk_resample_kernels *const stk_resample_kernel_list[];

extern const stk_resample_kernels stk_resample_plain;
extern const stk_resample_kernels stk_resample_avx2; /* x86_64 */
extern const stk_resample_kernels stk_resample_neon; /* arm64 */

#endif
