/*
 * half.h - IEEE 754 binary16 becomes a float by its bits, since not every compiler has a type for
 * it. Inline, so that loops over many become vector instructions.
 */
#ifndef STK_BASE_NUMBERS_HALF_H
#define STK_BASE_NUMBERS_HALF_H

#include <stdint.h>
#include <string.h>

static inline float stk_float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/*
 * The exponent's bias grows from 15 to 127, for infinities and NaN from 31 to 255. A denormal is a
 * whole number of 2^-24, which the float unit makes a normal one. All three are computed and one
 * is taken by masks, so that compilers do it with vectors.
 */
static inline float stk_float_of_half(uint16_t half) {
    const uint32_t shift = (127u - 15u) << 23;
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t rest = half & 0x7FFFu;
    uint32_t is_normal = 0u - (uint32_t)(rest >= 0x0400u);
    uint32_t is_special = 0u - (uint32_t)(rest >= 0x7C00u);
    uint32_t normal = (rest << 13) + shift + (shift & is_special);
    float small = (float)(int32_t)rest * 0x1p-24f;
    uint32_t denormal;
    memcpy(&denormal, &small, sizeof denormal);
    return stk_float_of_bits(sign | (normal & is_normal) | (denormal & ~is_normal));
}

#endif
