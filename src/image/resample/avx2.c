/* avx2.c - scaling with AVX2; used if the processor has it. */
#include "image/resample/kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))

static bool is_here(void) {
    return __builtin_cpu_supports("avx2") != 0;
}

/* Two neighbouring weights in every pair of 16-bit lanes. */
static inline AVX2 __m256i weight_pair(const int16_t *weights) {
    int32_t pair;
    memcpy(&pair, weights, sizeof pair);
    return _mm256_set1_epi32(pair);
}

/*
 * Handles 32 values of a row at a time. Bytes of two rows are interleaved, so that one multiply-add
 * sums both; packing and one exchange of halves restore the order.
 */
static AVX2 void down(const uint8_t *rows, size_t stride, const int16_t *weights, int taps,
                      size_t values, int16_t *out) {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i half = _mm256_set1_epi32(1 << (STK_DOWN_SHIFT - 1));
    for (size_t j = 0; j < values; j += 32) {
        __m256i sum0 = half;
        __m256i sum1 = half;
        __m256i sum2 = half;
        __m256i sum3 = half;
        const uint8_t *at = rows + j;
        for (int k = 0; k < taps; k += 2, at += 2 * stride) {
            __m256i weight = weight_pair(weights + k);
            __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)at);
            __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(at + stride));
            __m256i low = _mm256_unpacklo_epi8(a, b);
            __m256i high = _mm256_unpackhi_epi8(a, b);
            __m256i pairs0 = _mm256_unpacklo_epi8(low, zero);
            __m256i pairs1 = _mm256_unpackhi_epi8(low, zero);
            __m256i pairs2 = _mm256_unpacklo_epi8(high, zero);
            __m256i pairs3 = _mm256_unpackhi_epi8(high, zero);
            sum0 = _mm256_add_epi32(sum0, _mm256_madd_epi16(pairs0, weight));
            sum1 = _mm256_add_epi32(sum1, _mm256_madd_epi16(pairs1, weight));
            sum2 = _mm256_add_epi32(sum2, _mm256_madd_epi16(pairs2, weight));
            sum3 = _mm256_add_epi32(sum3, _mm256_madd_epi16(pairs3, weight));
        }
        __m256i low = _mm256_packs_epi32(_mm256_srai_epi32(sum0, STK_DOWN_SHIFT),
                                         _mm256_srai_epi32(sum1, STK_DOWN_SHIFT));
        __m256i high = _mm256_packs_epi32(_mm256_srai_epi32(sum2, STK_DOWN_SHIFT),
                                          _mm256_srai_epi32(sum3, STK_DOWN_SHIFT));
        _mm256_storeu_si256((__m256i *)(void *)(out + j),
                            _mm256_permute2x128_si256(low, high, 0x20));
        _mm256_storeu_si256((__m256i *)(void *)(out + j + 16),
                            _mm256_permute2x128_si256(low, high, 0x31));
    }
}

/* The sums of one pixel of both rows: red, green, blue and a zero in each half. */
static inline AVX2 __attribute__((always_inline)) __m256i
sum_pixel(const int16_t *a, const int16_t *b, const int16_t *weights, int taps) {
    /* Red, green, blue of two pixels become pairs: R0 R1 G0 G1 B0 B1 and two zeros. */
    const __m256i pair_up = _mm256_setr_epi8(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1,
                                             0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1);
    __m256i sum = _mm256_set1_epi32(1 << (STK_ACROSS_SHIFT - 1));
    for (int k = 0; k < taps; k += 2) {
        __m128i from_a = _mm_loadu_si128((const __m128i *)(const void *)(a + 3 * k));
        __m128i from_b = _mm_loadu_si128((const __m128i *)(const void *)(b + 3 * k));
        __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(from_a), from_b, 1);
        __m256i pairs = _mm256_shuffle_epi8(both, pair_up);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, weight_pair(weights + k)));
    }
    return _mm256_srai_epi32(sum, STK_ACROSS_SHIFT);
}

/* Stores up to four pixels, twelve bytes, and no byte more: the memory after them may be in use. */
static inline AVX2 void store_pixels(__m128i pixels, uint8_t *out, int count) {
    if (count == 4) {
        int32_t last = _mm_extract_epi32(pixels, 2);
        _mm_storel_epi64((__m128i *)(void *)out, pixels);
        memcpy(out + 8, &last, sizeof last);
        return;
    }
    uint8_t bytes[16];
    _mm_storeu_si128((__m128i *)(void *)bytes, pixels);
    memcpy(out, bytes, 3 * (size_t)count);
}

/* With constant `taps` the compiler unrolls the inner loop. */
static inline AVX2 __attribute__((always_inline)) void
across_taps(const int16_t *middle_a, const int16_t *middle_b, const int *first,
            const int16_t *weights, int stride, int taps, int size, uint8_t *out_a,
            uint8_t *out_b) {
    const __m256i drop_fourth =
        _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2, 4, 5, 6,
                         8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    for (int i = 0; i < size; i += 4) {
        __m256i sums[4];
        int count = size - i < 4 ? size - i : 4;
        for (int n = 0; n < 4; n++) {
            int pixel = n < count ? i + n : i;
            size_t from = 3 * (size_t)first[pixel];
            sums[n] = sum_pixel(middle_a + from, middle_b + from,
                                weights + (size_t)pixel * (size_t)stride, taps);
        }
        __m256i packed = _mm256_packus_epi16(_mm256_packs_epi32(sums[0], sums[1]),
                                             _mm256_packs_epi32(sums[2], sums[3]));
        __m256i pixels = _mm256_shuffle_epi8(packed, drop_fourth);
        store_pixels(_mm256_castsi256_si128(pixels), out_a + 3 * (size_t)i, count);
        store_pixels(_mm256_extracti128_si256(pixels, 1), out_b + 3 * (size_t)i, count);
    }
}

static AVX2 void across(const int16_t *middle_a, const int16_t *middle_b, const int *first,
                        const int16_t *weights, int stride, int taps, int size, uint8_t *out_a,
                        uint8_t *out_b) {
    switch (taps) {
    case 2:
        across_taps(middle_a, middle_b, first, weights, stride, 2, size, out_a, out_b);
        break;
    case 4:
        across_taps(middle_a, middle_b, first, weights, stride, 4, size, out_a, out_b);
        break;
    case 6:
        across_taps(middle_a, middle_b, first, weights, stride, 6, size, out_a, out_b);
        break;
    default:
        across_taps(middle_a, middle_b, first, weights, stride, taps, size, out_a, out_b);
        break;
    }
}

const stk_resample_kernels stk_resample_avx2 = {
    .name = "avx2",
    .is_here = is_here,
    .down = down,
    .across = across,
};

#endif
