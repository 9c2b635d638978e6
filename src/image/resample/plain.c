/* plain.c - scaling in plain C: the reference for the vector versions, byte for byte. */
#include "image/resample/kernels.h"

#define BLOCK 64 /* values of a row that are summed together */

static bool is_here(void) {
    return true;
}

static void down_block(const uint8_t *rows, size_t stride, const int16_t *weights, int taps,
                       size_t values, int16_t *out) {
    int32_t sums[BLOCK];
    for (size_t j = 0; j < values; j++) {
        sums[j] = 1 << (STK_DOWN_SHIFT - 1);
    }
    for (int k = 0; k < taps; k++) {
        const uint8_t *row = rows + (size_t)k * stride;
        int32_t weight = weights[k];
        for (size_t j = 0; j < values; j++) {
            sums[j] += row[j] * weight;
        }
    }
    for (size_t j = 0; j < values; j++) {
        out[j] = (int16_t)(sums[j] >> STK_DOWN_SHIFT);
    }
}

static void down(const uint8_t *rows, size_t stride, const int16_t *weights, int taps,
                 size_t values, int16_t *out) {
    for (size_t j = 0; j < values; j += BLOCK) {
        size_t count = values - j < BLOCK ? values - j : BLOCK;
        down_block(rows + j, stride, weights, taps, count, out + j);
    }
}

static void across_row(const int16_t *middle, const int *first, const int16_t *weights, int stride,
                       int taps, int size, uint8_t *out) {
    for (int i = 0; i < size; i++) {
        const int16_t *from = middle + 3 * (size_t)first[i];
        const int16_t *weight = weights + (size_t)i * (size_t)stride;
        int32_t sums[3] = {1 << (STK_ACROSS_SHIFT - 1), 1 << (STK_ACROSS_SHIFT - 1),
                           1 << (STK_ACROSS_SHIFT - 1)};
        for (int k = 0; k < taps; k++) {
            for (int c = 0; c < 3; c++) {
                sums[c] += from[3 * k + c] * weight[k];
            }
        }
        for (int c = 0; c < 3; c++) {
            int32_t level = sums[c] >> STK_ACROSS_SHIFT;
            out[3 * i + c] = (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
        }
    }
}

static void across(const int16_t *middle_a, const int16_t *middle_b, const int *first,
                   const int16_t *weights, int stride, int taps, int size, uint8_t *out_a,
                   uint8_t *out_b) {
    across_row(middle_a, first, weights, stride, taps, size, out_a);
    across_row(middle_b, first, weights, stride, taps, size, out_b);
}

/* Pixels of one value; with constant `taps` the compiler unrolls the inner loop. */
static inline __attribute__((always_inline)) void across_grey(const int16_t *middle,
                                                              const int *first,
                                                              const int16_t *weights, int stride,
                                                              int taps, int size, uint8_t *out) {
    for (int i = 0; i < size; i++) {
        const int16_t *from = middle + first[i];
        const int16_t *weight = weights + (size_t)i * (size_t)stride;
        int32_t sum = 1 << (STK_ACROSS_SHIFT - 1);
        for (int k = 0; k < taps; k++) {
            sum += from[k] * weight[k];
        }
        int32_t level = sum >> STK_ACROSS_SHIFT;
        out[i] = (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
    }
}

static void across_one(const int16_t *middle, const int *first, const int16_t *weights, int stride,
                       int taps, int size, uint8_t *out) {
    switch (taps) {
    case 2:
        across_grey(middle, first, weights, stride, 2, size, out);
        break;
    case 4:
        across_grey(middle, first, weights, stride, 4, size, out);
        break;
    case 6:
        across_grey(middle, first, weights, stride, 6, size, out);
        break;
    default:
        across_grey(middle, first, weights, stride, taps, size, out);
        break;
    }
}

void stk_resample_across_any(const int16_t *middle, const int *first, const int16_t *weights,
                             int stride, int taps, int size, int channels, uint8_t *out) {
    if (channels == 1) {
        across_one(middle, first, weights, stride, taps, size, out);
        return;
    }
    for (int i = 0; i < size; i++) {
        const int16_t *from = middle + (size_t)channels * (size_t)first[i];
        const int16_t *weight = weights + (size_t)i * (size_t)stride;
        for (int c = 0; c < channels; c++) {
            int32_t sum = 1 << (STK_ACROSS_SHIFT - 1);
            for (int k = 0; k < taps; k++) {
                sum += from[k * channels + c] * weight[k];
            }
            int32_t level = sum >> STK_ACROSS_SHIFT;
            out[i * channels + c] = (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
        }
    }
}

const stk_resample_kernels stk_resample_plain = {
    .name = "plain",
    .is_here = is_here,
    .down = down,
    .across = across,
};
