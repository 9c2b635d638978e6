/*
 * sample_values.c - numbers of any type become floats.
 *
 * The loops over a row know the type and the step at compile time where it matters, so that
 * compilers use vector instructions.
 */
#include "image/decode/samples.h"

#include "base/numbers/half.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

size_t stk_sample_bytes(stk_sample_type type) {
    switch (type) {
    case STK_SAMPLE_U16:
    case STK_SAMPLE_I16:
    case STK_SAMPLE_F16:
        return 2;
    case STK_SAMPLE_U32:
    case STK_SAMPLE_I32:
    case STK_SAMPLE_F32:
        return 4;
    case STK_SAMPLE_U64:
    case STK_SAMPLE_I64:
    case STK_SAMPLE_F64:
        return 8;
    default:
        return 1;
    }
}

/* ---- values ---- */

INLINE uint16_t get16(const uint8_t *from, bool swapped) {
    uint16_t value;
    memcpy(&value, from, sizeof value);
    return swapped ? __builtin_bswap16(value) : value;
}

INLINE uint32_t get32(const uint8_t *from, bool swapped) {
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return swapped ? __builtin_bswap32(value) : value;
}

INLINE uint64_t get64(const uint8_t *from, bool swapped) {
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return swapped ? __builtin_bswap64(value) : value;
}

INLINE double as_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE void read_row(const uint8_t *at, stk_sample_type type, size_t step, bool swapped,
                     size_t count, float *out) {
#define EACH(value)                       \
    for (size_t i = 0; i < count; i++) {  \
        const uint8_t *p = at + i * step; \
        out[i] = (float)(value);          \
    }                                     \
    break
    switch (type) {
    case STK_SAMPLE_U8:
        EACH(*p);
    case STK_SAMPLE_I8:
        EACH((int8_t)*p);
    case STK_SAMPLE_BOOL:
        EACH(*p != 0 ? 1 : 0);
    case STK_SAMPLE_U16:
        EACH(get16(p, swapped));
    case STK_SAMPLE_I16:
        EACH((int16_t)get16(p, swapped));
    case STK_SAMPLE_U32:
        EACH(get32(p, swapped));
    case STK_SAMPLE_I32:
        EACH((int32_t)get32(p, swapped));
    case STK_SAMPLE_U64:
        EACH(get64(p, swapped));
    case STK_SAMPLE_I64:
        EACH((int64_t)get64(p, swapped));
    case STK_SAMPLE_F16:
        EACH(stk_float_of_half(get16(p, swapped)));
    case STK_SAMPLE_F32:
        EACH(stk_float_of_bits(get32(p, swapped)));
    case STK_SAMPLE_F64:
        EACH(as_double(get64(p, swapped)));
    }
#undef EACH
}

/* With constant steps the compiler makes vector instructions of the usual layouts. */
INLINE void read_type(const uint8_t *at, stk_sample_type type, size_t step, bool swapped,
                      size_t count, float *out) {
    size_t bytes = stk_sample_bytes(type);
    if (!swapped && step == bytes) {
        read_row(at, type, bytes, false, count, out);
    } else {
        read_row(at, type, step, swapped, count, out);
    }
}

void stk_samples_read(const stk_samples *s, int channel, int x, int y, int count, float *out) {
    const uint8_t *at = s->bytes + (size_t)y * s->row_bytes + (size_t)x * s->column_bytes +
                        (size_t)channel * s->channel_bytes;
    size_t values = (size_t)count;
    switch (s->type) {
    case STK_SAMPLE_U16:
        read_type(at, STK_SAMPLE_U16, s->column_bytes, s->swapped, values, out);
        break;
    case STK_SAMPLE_I16:
        read_type(at, STK_SAMPLE_I16, s->column_bytes, s->swapped, values, out);
        break;
    case STK_SAMPLE_F16:
        read_type(at, STK_SAMPLE_F16, s->column_bytes, s->swapped, values, out);
        break;
    case STK_SAMPLE_F32:
        read_type(at, STK_SAMPLE_F32, s->column_bytes, s->swapped, values, out);
        break;
    default:
        read_type(at, s->type, s->column_bytes, s->swapped, values, out);
        break;
    }
}
