/*
 * widen.c - converts fp16 and bf16 by their bits, since not every compiler has types for them.
 * Denormal numbers are kept.
 */
#include "weights/safetensors.h"

#include <stdint.h>
#include <string.h>

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/*
 * IEEE 754 binary16: the exponent's bias grows from 15 to 127, for infinities and NaN from 31 to
 * 255. A denormal is a whole number of 2^-24, which the float unit makes a normal one. All three
 * are computed and one is taken by masks, so that compilers do it with vectors.
 */
static float from_half(uint16_t half) {
    const uint32_t shift = (127u - 15u) << 23;
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t rest = half & 0x7FFFu;
    uint32_t is_normal = 0u - (uint32_t)(rest >= 0x0400u);
    uint32_t is_special = 0u - (uint32_t)(rest >= 0x7C00u);
    uint32_t normal = (rest << 13) + shift + (shift & is_special);
    uint32_t denormal = to_bits((float)(int32_t)rest * 0x1p-24f);
    return from_bits(sign | (normal & is_normal) | (denormal & ~is_normal));
}

static void widen_halves(const unsigned char *restrict from, size_t count, float *restrict to) {
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, from + 2 * i, sizeof half);
        to[i] = from_half(half);
    }
}

/* A bfloat16 is the upper half of a float. */
static void widen_brains(const unsigned char *restrict from, size_t count, float *restrict to) {
    for (size_t i = 0; i < count; i++) {
        uint16_t upper;
        memcpy(&upper, from + 2 * i, sizeof upper);
        to[i] = from_bits((uint32_t)upper << 16);
    }
}

static void narrow_doubles(const unsigned char *restrict from, size_t count, float *restrict to) {
    for (size_t i = 0; i < count; i++) {
        double value;
        memcpy(&value, from + 8 * i, sizeof value);
        to[i] = (float)value;
    }
}

bool stk_widen(const char *dtype, const void *from, size_t count, float *to) {
    if (strcmp(dtype, "F32") == 0) {
        memcpy(to, from, count * sizeof *to);
    } else if (strcmp(dtype, "F16") == 0) {
        widen_halves(from, count, to);
    } else if (strcmp(dtype, "BF16") == 0) {
        widen_brains(from, count, to);
    } else if (strcmp(dtype, "F64") == 0) {
        narrow_doubles(from, count, to);
    } else {
        return false;
    }
    return true;
}
