/*
 * widen.c - converts the numbers of weight files to floats. Denormal numbers are kept.
 */
#include "weights/safetensors.h"

#include "base/numbers/half.h"

#include <stdint.h>
#include <string.h>

static void widen_halves(const unsigned char *restrict from, size_t count, float *restrict to) {
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, from + 2 * i, sizeof half);
        to[i] = stk_float_of_half(half);
    }
}

/* A bfloat16 is the upper half of a float. */
static void widen_brains(const unsigned char *restrict from, size_t count, float *restrict to) {
    for (size_t i = 0; i < count; i++) {
        uint16_t upper;
        memcpy(&upper, from + 2 * i, sizeof upper);
        to[i] = stk_float_of_bits((uint32_t)upper << 16);
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
