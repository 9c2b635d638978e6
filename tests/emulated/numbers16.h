/*
 * numbers16.h - numbers of 16 bits and of TF32 to and from float, as a GPU rounds: to the nearest,
 * ties to even; what is too large for fp16 becomes infinite.
 */
#ifndef STK_TESTS_EMULATED_NUMBERS16_H
#define STK_TESTS_EMULATED_NUMBERS16_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of_bf16(uint16_t bits) {
    return float_of_bits((uint32_t)bits << 16);
}

/* Drops the last `count` bits of a float's 23, rounded. */
static inline uint32_t rounded_bits(float value, int count) {
    uint32_t bits = bits_of_float(value);
    if (isnan(value)) {
        return bits | 0x400000u;
    }
    uint32_t odd = (bits >> count) & 1;
    return (bits + (1u << (count - 1)) - 1 + odd) & ~((1u << count) - 1);
}

static inline uint16_t bf16_of_float(float value) {
    return (uint16_t)(rounded_bits(value, 16) >> 16);
}

static inline float tf32_of_float(float value) {
    return isfinite(value) ? float_of_bits(rounded_bits(value, 13)) : value;
}

static inline float float_of_half(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t rest = bits & 0x7fffu;
    if (rest >= 0x7c00u) {
        return float_of_bits(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    }
    if (rest < 0x400u) { /* subnormal: a multiple of 2 to the -24 */
        float value = (float)rest * 0x1p-24f;
        return sign ? -value : value;
    }
    return float_of_bits(sign | ((rest << 13) + 0x38000000u));
}

static inline uint16_t half_of_float(float value) {
    uint32_t sign = bits_of_float(value) >> 16 & 0x8000u;
    float size = fabsf(value);
    if (isnan(value)) {
        return (uint16_t)(sign | 0x7e00u);
    }
    if (size < 0x1p-14f) { /* adding a number whose last bit is 2 to the -24 rounds to that */
        float sum = size + 0.5f;
        return (uint16_t)(sign | (bits_of_float(sum) - bits_of_float(0.5f)));
    }
    uint32_t bits = rounded_bits(size, 13);
    return (uint16_t)(sign | (bits >= 0x47800000u ? 0x7c00u : (bits - 0x38000000u) >> 13));
}

#endif
