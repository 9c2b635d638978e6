/* neon.c - scaling with the vector instructions that every arm64 processor has. */
#include "image/resample/kernels.h"

#if defined(__aarch64__)

#include <arm_neon.h>
#include <string.h>

static bool is_here(void) {
    return true;
}

static void down(const uint8_t *rows, size_t stride, const int16_t *weights, int taps,
                 size_t values, int16_t *out) {
    for (size_t j = 0; j < values; j += 16) {
        int32x4_t sum0 = vdupq_n_s32(0);
        int32x4_t sum1 = sum0;
        int32x4_t sum2 = sum0;
        int32x4_t sum3 = sum0;
        const uint8_t *at = rows + j;
        for (int k = 0; k < taps; k++, at += stride) {
            uint8x16_t bytes = vld1q_u8(at);
            int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes)));
            int16x8_t high = vreinterpretq_s16_u16(vmovl_high_u8(bytes));
            sum0 = vmlal_n_s16(sum0, vget_low_s16(low), weights[k]);
            sum1 = vmlal_high_n_s16(sum1, low, weights[k]);
            sum2 = vmlal_n_s16(sum2, vget_low_s16(high), weights[k]);
            sum3 = vmlal_high_n_s16(sum3, high, weights[k]);
        }
        int16x4_t low = vrshrn_n_s32(sum0, STK_DOWN_SHIFT);
        int16x4_t high = vrshrn_n_s32(sum2, STK_DOWN_SHIFT);
        vst1q_s16(out + j, vrshrn_high_n_s32(low, sum1, STK_DOWN_SHIFT));
        vst1q_s16(out + j + 8, vrshrn_high_n_s32(high, sum3, STK_DOWN_SHIFT));
    }
}

/* The fourth lane holds a neighbour's value and is dropped. */
static inline void sum_pixel(const int16_t *from, const int16_t *weights, int taps, uint8_t *out) {
    int32x4_t even = vdupq_n_s32(0);
    int32x4_t odd = even;
    for (int k = 0; k < taps; k += 2) {
        even = vmlal_n_s16(even, vld1_s16(from + 3 * k), weights[k]);
        odd = vmlal_n_s16(odd, vld1_s16(from + 3 * k + 3), weights[k + 1]);
    }
    int32x4_t sum = vrshrq_n_s32(vaddq_s32(even, odd), STK_ACROSS_SHIFT);
    uint16x4_t narrow = vqmovun_s32(sum);
    uint8x8_t pixel = vqmovn_u16(vcombine_u16(narrow, narrow));
    uint8_t bytes[8];
    vst1_u8(bytes, pixel);
    memcpy(out, bytes, 3);
}

static void across(const int16_t *middle_a, const int16_t *middle_b, const int *first,
                   const int16_t *weights, int stride, int taps, int size, uint8_t *out_a,
                   uint8_t *out_b) {
    for (int i = 0; i < size; i++) {
        size_t from = 3 * (size_t)first[i];
        const int16_t *weight = weights + (size_t)i * (size_t)stride;
        sum_pixel(middle_a + from, weight, taps, out_a + 3 * (size_t)i);
        sum_pixel(middle_b + from, weight, taps, out_b + 3 * (size_t)i);
    }
}

const stk_resample_kernels stk_resample_neon = {
    .name = "neon",
    .is_here = is_here,
    .down = down,
    .across = across,
};

#endif
