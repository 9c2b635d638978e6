/*
 * augment_warp.c - changes of place: rotation, shear, translation, erasing.
 *
 * A picture's pixel is looked up where an affine map says that it comes from. Places are whole
 * numbers of 1/65536 px. Within the picture eight bytes of each of two rows hold the four pixels
 * that are blended; at its border those bytes are put together first, with the fill colour for
 * what lies outside, and the same blend follows.
 */
#include "image/augment_ops.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define PLACE_BITS 16
#define PLACE_ONE (1 << PLACE_BITS)
#define WEIGHT_BITS 8 /* fraction of a place that blending sees */
#define HALF_WEIGHT (1 << (PLACE_BITS - WEIGHT_BITS - 1)) /* rounds places to weights */
#define PAIR_BYTES 8 /* two pixels and what a vector has more */
#define RADIANS_PER_MILLIDEGREE (3.14159265358979323846 / 180000)

/* Where output pixel (x, y) comes from: x_x * x + x_y * y + x_at, and so on; in 1/65536 px. */
typedef struct map {
    int64_t x_x, x_y, x_at;
    int64_t y_x, y_y, y_at;
} map;

static const uint8_t fill[3] = {STK_FILL_RED, STK_FILL_GREEN, STK_FILL_BLUE};

static void fill_pixels(uint8_t *to, size_t count) {
    for (size_t i = 0; i < count; i++) {
        memcpy(to + 3 * i, fill, sizeof fill);
    }
}

/*
 * Blends two rows of two pixels; weights are 0 .. 255 of 256 for the right pixel and the lower row.
 * The first loop's sums have 16 bits, of which one is dropped so that differences fit.
 */
static inline void blend_four(const uint8_t *upper, const uint8_t *lower, int right, int down,
                              uint8_t to[4]) {
    int16_t rows[PAIR_BYTES];
    uint16_t up = (uint16_t)(256 - down);
    uint16_t low = (uint16_t)down;
    for (int i = 0; i < PAIR_BYTES; i++) {
        rows[i] = (int16_t)((uint16_t)(upper[i] * up + lower[i] * low) >> 1);
    }
    int16_t weight = (int16_t)(right * 128);
    for (int i = 0; i < 4; i++) {
        int16_t difference = (int16_t)(rows[i + 3] - rows[i]);
        int16_t step = (int16_t)(((int32_t)difference * weight) >> 16);
        to[i] = (uint8_t)(((rows[i] >> 1) + step + 32) >> 6);
    }
}

static void blend_at_border(const uint8_t *from, int size, int64_t x, int64_t y, int right,
                            int down, uint8_t to[3]) {
    uint8_t rows[2][PAIR_BYTES] = {{0}};
    for (int64_t j = 0; j < 2; j++) {
        for (int64_t i = 0; i < 2; i++) {
            bool is_inside = x + i >= 0 && x + i < size && y + j >= 0 && y + j < size;
            memcpy(rows[j] + 3 * i, is_inside ? from + 3 * ((y + j) * size + x + i) : fill, 3);
        }
    }
    uint8_t pixel[4];
    blend_four(rows[0], rows[1], right, down, pixel);
    memcpy(to, pixel, 3);
}

/*
 * Most pixels take the first way. blend_four reads 8 bytes of a row and writes 4, which would be
 * too much at the very end of a picture.
 */
static void warp(int size, uint8_t *restrict pixels, uint8_t *restrict spare, const map *m) {
    size_t stride = 3 * (size_t)size;
    size_t bytes = stride * (size_t)size;
    memcpy(spare, pixels, bytes);
    uint64_t inside = (uint64_t)(size - 1);
    const uint8_t *last = spare + bytes - stride - PAIR_BYTES;
    const uint8_t *last_to = pixels + bytes - 3;
    for (int y = 0; y < size; y++) {
        int64_t from_x = m->x_y * y + m->x_at + HALF_WEIGHT;
        int64_t from_y = m->y_y * y + m->y_at + HALF_WEIGHT;
        uint8_t *to = pixels + (size_t)y * stride;
        for (int x = 0; x < size; x++, to += 3, from_x += m->x_x, from_y += m->y_x) {
            int64_t column = from_x >> PLACE_BITS;
            int64_t row = from_y >> PLACE_BITS;
            int right = (int)(from_x >> (PLACE_BITS - WEIGHT_BITS)) & 255;
            int down = (int)(from_y >> (PLACE_BITS - WEIGHT_BITS)) & 255;
            bool is_inside = (uint64_t)column < inside && (uint64_t)row < inside;
            if (is_inside) {
                const uint8_t *upper = spare + (size_t)row * stride + 3 * (size_t)column;
                if (upper <= last && to < last_to) {
                    blend_four(upper, upper + stride, right, down, to);
                    continue;
                }
            } else if (column < -1 || column >= size || row < -1 || row >= size) {
                memcpy(to, fill, sizeof fill);
                continue;
            }
            blend_at_border(spare, size, column, row, right, down, to);
        }
    }
}

/*
 * Sine and cosine are rounded to 1/65536, so that the last bits of a machine's mathematics library
 * do not matter. A pixel's place is its centre's, hence half pixels.
 */
void stk_augment_rotate(int size, uint8_t *pixels, uint8_t *spare, int millidegrees) {
    double angle = millidegrees * RADIANS_PER_MILLIDEGREE;
    int64_t cosine = lround(cos(angle) * PLACE_ONE);
    int64_t sine = lround(sin(angle) * PLACE_ONE);
    int64_t centre_halves = size - 1;
    map m = {
        .x_x = cosine,
        .x_y = -sine,
        .x_at = centre_halves * (PLACE_ONE - cosine + sine) / 2,
        .y_x = sine,
        .y_y = cosine,
        .y_at = centre_halves * (PLACE_ONE - cosine - sine) / 2,
    };
    warp(size, pixels, spare, &m);
}

void stk_augment_shear_x(int size, uint8_t *pixels, uint8_t *spare, int shear) {
    map m = {.x_x = PLACE_ONE, .x_y = shear, .x_at = shear / 2, .y_y = PLACE_ONE};
    warp(size, pixels, spare, &m);
}

void stk_augment_shear_y(int size, uint8_t *pixels, uint8_t *spare, int shear) {
    map m = {.x_x = PLACE_ONE, .y_x = shear, .y_y = PLACE_ONE, .y_at = shear / 2};
    warp(size, pixels, spare, &m);
}

/* How many of `size` rows or columns a shift uncovers. */
static size_t uncovered(int shift_px, int size) {
    int64_t px = shift_px < 0 ? -(int64_t)shift_px : shift_px;
    return (size_t)(px < size ? px : size);
}

void stk_augment_translate_x(int size, uint8_t *pixels, int shift_px) {
    size_t bare = uncovered(shift_px, size);
    size_t kept = (size_t)size - bare;
    for (int y = 0; y < size; y++) {
        uint8_t *row = pixels + 3 * (size_t)y * (size_t)size;
        if (shift_px > 0) {
            memmove(row + 3 * bare, row, 3 * kept);
            fill_pixels(row, bare);
        } else {
            memmove(row, row + 3 * bare, 3 * kept);
            fill_pixels(row + 3 * kept, bare);
        }
    }
}

void stk_augment_translate_y(int size, uint8_t *pixels, int shift_px) {
    size_t bare = uncovered(shift_px, size) * (size_t)size;
    size_t kept = (size_t)size * (size_t)size - bare;
    if (shift_px > 0) {
        memmove(pixels + 3 * bare, pixels, 3 * kept);
        fill_pixels(pixels, bare);
    } else {
        memmove(pixels, pixels + 3 * bare, 3 * kept);
        fill_pixels(pixels + 3 * kept, bare);
    }
}

void stk_augment_erase(int size, uint8_t *pixels, int x, int y, int width, int height) {
    for (int j = y; j < y + height; j++) {
        fill_pixels(pixels + 3 * ((size_t)j * (size_t)size + (size_t)x), (size_t)width);
    }
}
