/*
 * warp.c - geometric changes: rotation, shear, translation, erasing.
 *
 * An affine map says where each output pixel comes from. Coordinates are integers in units of
 * 1/65536 px. In each output row, a run of pixels has all four neighbours inside the picture. This
 * run is processed in chunks: neighbours are collected pixel by pixel, then vector instructions do
 * the arithmetic. The few other pixels go one by one through the same arithmetic, with the fill
 * colour for neighbours outside. So do all pixels of pictures that are not RGB.
 */
#include "image/augment/ops.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "image/augment/compile_twice.h"

#define PLACE_BITS 16
#define PLACE_ONE (1 << PLACE_BITS)
#define WEIGHT_BITS 8                                     /* bits of fraction that blending uses */
#define HALF_WEIGHT (1 << (PLACE_BITS - WEIGHT_BITS - 1)) /* rounds positions to weights */
#define MOST_CHANNELS 64
#define CHUNK 64 /* pixels that are processed together */
#define RADIANS_PER_MILLIDEGREE (3.14159265358979323846 / 180000)

/* The neighbours of a chunk of pixels, four bytes each: red, green, blue, one unused. */
typedef struct chunk {
    uint32_t places[CHUNK]; /* offset in bytes of the upper left neighbour */
    uint32_t right[CHUNK];  /* weight of the right neighbours in each byte, 0 .. 255 of 256 */
    uint32_t down[CHUNK];   /* weight of the lower neighbours, in the same form */
    uint8_t upper_left[4 * CHUNK], upper_right[4 * CHUNK];
    uint8_t lower_left[4 * CHUNK], lower_right[4 * CHUNK];
    uint8_t out[4 * CHUNK];
} chunk;

static const uint8_t fill[3] = {STK_FILL_RED, STK_FILL_GREEN, STK_FILL_BLUE};

static void fill_pixels(uint8_t *to, size_t count, int channels) {
    if (channels != 3) {
        memset(to, STK_FILL_OTHER, count * (size_t)channels);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(to + 3 * i, fill, sizeof fill);
    }
}

/*
 * Blends upper and lower neighbours to 16 bits, drops one bit so that differences fit, then blends
 * left and right. Differences and weights pass through memory, where compilers know nothing of
 * their signs: only then do they use the instruction for the upper half of a product.
 */
BODY void blend_neighbours(chunk *c) {
    const uint8_t *right = (const uint8_t *)c->right;
    const uint8_t *down = (const uint8_t *)c->down;
    int16_t left[4 * CHUNK];
    int16_t difference[4 * CHUNK];
    int16_t weight[4 * CHUNK];
    for (int i = 0; i < 4 * CHUNK; i++) {
        uint16_t a =
            (uint16_t)(c->upper_left[i] * 256 + (c->lower_left[i] - c->upper_left[i]) * down[i]);
        uint16_t b =
            (uint16_t)(c->upper_right[i] * 256 + (c->lower_right[i] - c->upper_right[i]) * down[i]);
        left[i] = (int16_t)(a >> 1);
        difference[i] = (int16_t)((b >> 1) - (a >> 1));
        weight[i] = (int16_t)(right[i] * 128);
    }
    for (int i = 0; i < 4 * CHUNK; i++) {
        difference[i] = (int16_t)(((int32_t)difference[i] * weight[i]) >> 16);
    }
    for (int i = 0; i < 4 * CHUNK; i++) {
        c->out[i] = (uint8_t)((uint16_t)((left[i] >> 1) + difference[i] + 32) >> 6);
    }
}

/* Writes a run of pixels, the first of which comes from (x, y). */
BODY void warp_run_body(const uint8_t *from, uint32_t stride, const stk_augment_map *m, int64_t x,
                        int64_t y, int count, chunk *c, uint8_t *to) {
    uint32_t x_step = (uint32_t)m->x_x;
    uint32_t y_step = (uint32_t)m->y_x;
    for (int done = 0; done < count; done += CHUNK) {
        uint32_t from_x = (uint32_t)x + (uint32_t)done * x_step;
        uint32_t from_y = (uint32_t)y + (uint32_t)done * y_step;
        for (uint32_t k = 0; k < CHUNK; k++) {
            uint32_t at_x = from_x + k * x_step;
            uint32_t at_y = from_y + k * y_step;
            c->places[k] = (at_y >> PLACE_BITS) * stride + 3 * (at_x >> PLACE_BITS);
            c->right[k] = (at_x >> (PLACE_BITS - WEIGHT_BITS) & 255) * 0x01010101u;
            c->down[k] = (at_y >> (PLACE_BITS - WEIGHT_BITS) & 255) * 0x01010101u;
        }
        int length = count - done < CHUNK ? count - done : CHUNK;
        for (int k = 0; k < length; k++) {
            const uint8_t *upper = from + c->places[k];
            const uint8_t *lower = upper + stride;
            memcpy(c->upper_left + 4 * k, upper, 4);
            memcpy(c->upper_right + 4 * k, upper + 3, 4);
            memcpy(c->lower_left + 4 * k, lower, 4);
            memcpy(c->lower_right + 4 * k, lower + 3, 4);
        }
        blend_neighbours(c);
        for (int k = 0; k < length - 1; k++, to += 3) {
            memcpy(to, c->out + 4 * k, 4); /* the next pixel overwrites the fourth byte */
        }
        memcpy(to, c->out + 4 * (length - 1), 3);
        to += 3;
    }
}
COMPILE_TWICE(warp_run,
              (const uint8_t *from, uint32_t stride, const stk_augment_map *m, int64_t x, int64_t y,
               int count, chunk *c, uint8_t *to),
              (from, stride, m, x, y, count, c, to))

/* Writes one pixel that comes from (x, y) and may have neighbours outside. */
static inline __attribute__((always_inline)) void warp_pixel(const uint8_t *from, int size,
                                                             int channels, const uint8_t *outside,
                                                             int64_t x, int64_t y, uint8_t *to) {
    int64_t column = x >> PLACE_BITS;
    int64_t row = y >> PLACE_BITS;
    if (column < -1 || column >= size || row < -1 || row >= size) {
        memcpy(to, outside, (size_t)channels);
        return;
    }
    const uint8_t *neighbours[4];
    for (int i = 0; i < 4; i++) {
        int64_t at_x = column + i % 2;
        int64_t at_y = row + i / 2;
        bool is_inside = at_x >= 0 && at_x < size && at_y >= 0 && at_y < size;
        neighbours[i] = is_inside ? from + channels * (at_y * size + at_x) : outside;
    }
    int right = (int)(x >> (PLACE_BITS - WEIGHT_BITS) & 255);
    int down = (int)(y >> (PLACE_BITS - WEIGHT_BITS) & 255);
    for (int c = 0; c < channels; c++) {
        int left = (neighbours[0][c] * (256 - down) + neighbours[2][c] * down) >> 1;
        int other = (neighbours[1][c] * (256 - down) + neighbours[3][c] * down) >> 1;
        int difference = ((other - left) * (right * 128)) >> 16;
        to[c] = (uint8_t)(((left >> 1) + difference + 32) >> 6);
    }
}

/* Cuts the run first .. end-1 to those i with 0 <= at + i * step < limit. */
static void cut_run(int64_t at, int64_t step, int64_t limit, int64_t *first, int64_t *end) {
    if (step < 0) {
        step = -step;
        at = limit - 1 - at;
    }
    int64_t low = 0;
    int64_t high = at >= 0 && at < limit ? *end : 0;
    if (step > 0) {
        low = at < 0 ? (-at + step - 1) / step : 0;
        high = at < limit ? (limit - at + step - 1) / step : 0;
    }
    *first = low > *first ? low : *first;
    *end = high < *end ? high : *end;
}

/* Pictures that are not RGB, pixel by pixel. */
static void warp_any(int size, int channels, uint8_t *pixels, uint8_t *spare,
                     const stk_augment_map *m) {
    uint8_t outside[MOST_CHANNELS];
    memset(outside, STK_FILL_OTHER, sizeof outside);
    memcpy(spare, pixels, (size_t)channels * (size_t)size * (size_t)size);
    for (int64_t y = 0; y < size; y++) {
        int64_t from_x = m->x_y * y + m->x_at + HALF_WEIGHT;
        int64_t from_y = m->y_y * y + m->y_at + HALF_WEIGHT;
        for (int64_t x = 0; x < size; x++, pixels += channels) {
            warp_pixel(spare, size, channels, outside, from_x + x * m->x_x, from_y + x * m->y_x,
                       pixels);
        }
    }
}

/* Runs end one column early, because four bytes are read for each three-byte pixel. */
static void warp_rgb(int size, uint8_t *pixels, uint8_t *spare, const stk_augment_map *m) {
    size_t stride = 3 * (size_t)size;
    memcpy(spare, pixels, stride * (size_t)size);
    chunk c;
    memset(&c, 0, sizeof c);
    for (int64_t y = 0; y < size; y++) {
        int64_t from_x = m->x_y * y + m->x_at + HALF_WEIGHT;
        int64_t from_y = m->y_y * y + m->y_at + HALF_WEIGHT;
        uint8_t *to = pixels + (size_t)y * stride;
        int64_t first = 0;
        int64_t end = size;
        cut_run(from_x, m->x_x, (int64_t)(size - 2) * PLACE_ONE, &first, &end);
        cut_run(from_y, m->y_x, (int64_t)(size - 1) * PLACE_ONE, &first, &end);
        if (first >= end) {
            first = end = size;
        }
        for (int64_t x = 0; x < first; x++) {
            warp_pixel(spare, size, 3, fill, from_x + x * m->x_x, from_y + x * m->y_x, to + 3 * x);
        }
        if (first < end) {
            warp_run(spare, (uint32_t)stride, m, from_x + first * m->x_x, from_y + first * m->y_x,
                     (int)(end - first), &c, to + 3 * first);
        }
        for (int64_t x = end; x < size; x++) {
            warp_pixel(spare, size, 3, fill, from_x + x * m->x_x, from_y + x * m->y_x, to + 3 * x);
        }
    }
}

static void warp(int size, int channels, uint8_t *pixels, uint8_t *spare,
                 const stk_augment_map *m) {
    assert(channels <= MOST_CHANNELS);
    if (channels == 3) {
        warp_rgb(size, pixels, spare, m);
    } else {
        warp_any(size, channels, pixels, spare, m);
    }
}

/*
 * Sine and cosine are rounded to 1/65536, so that the last bits of a machine's mathematics library
 * do not matter. The position of a pixel is its centre, hence half pixels.
 */
stk_augment_map stk_augment_rotate_map(int size, int millidegrees) {
    double angle = millidegrees * RADIANS_PER_MILLIDEGREE;
    int64_t cosine = lround(cos(angle) * PLACE_ONE);
    int64_t sine = lround(sin(angle) * PLACE_ONE);
    int64_t centre_halves = size - 1;
    return (stk_augment_map){
        .x_x = cosine,
        .x_y = -sine,
        .x_at = centre_halves * (PLACE_ONE - cosine + sine) / 2,
        .y_x = sine,
        .y_y = cosine,
        .y_at = centre_halves * (PLACE_ONE - cosine - sine) / 2,
    };
}

stk_augment_map stk_augment_shear_x_map(int shear) {
    return (stk_augment_map){.x_x = PLACE_ONE, .x_y = shear, .x_at = shear / 2, .y_y = PLACE_ONE};
}

stk_augment_map stk_augment_shear_y_map(int shear) {
    return (stk_augment_map){.x_x = PLACE_ONE, .y_x = shear, .y_y = PLACE_ONE, .y_at = shear / 2};
}

void stk_augment_rotate(int size, int channels, uint8_t *pixels, uint8_t *spare, int millidegrees) {
    stk_augment_map m = stk_augment_rotate_map(size, millidegrees);
    warp(size, channels, pixels, spare, &m);
}

void stk_augment_shear_x(int size, int channels, uint8_t *pixels, uint8_t *spare, int shear) {
    stk_augment_map m = stk_augment_shear_x_map(shear);
    warp(size, channels, pixels, spare, &m);
}

void stk_augment_shear_y(int size, int channels, uint8_t *pixels, uint8_t *spare, int shear) {
    stk_augment_map m = stk_augment_shear_y_map(shear);
    warp(size, channels, pixels, spare, &m);
}

/* Number of rows or columns, at most `size`, that a shift leaves without a source. */
static size_t uncovered(int shift_px, int size) {
    int64_t px = shift_px < 0 ? -(int64_t)shift_px : shift_px;
    return (size_t)(px < size ? px : size);
}

void stk_augment_translate_x(int size, int channels, uint8_t *pixels, int shift_px) {
    size_t each = (size_t)channels;
    size_t bare = uncovered(shift_px, size);
    size_t kept = (size_t)size - bare;
    for (int y = 0; y < size; y++) {
        uint8_t *row = pixels + each * (size_t)y * (size_t)size;
        if (shift_px > 0) {
            memmove(row + each * bare, row, each * kept);
            fill_pixels(row, bare, channels);
        } else {
            memmove(row, row + each * bare, each * kept);
            fill_pixels(row + each * kept, bare, channels);
        }
    }
}

void stk_augment_translate_y(int size, int channels, uint8_t *pixels, int shift_px) {
    size_t each = (size_t)channels;
    size_t bare = uncovered(shift_px, size) * (size_t)size;
    size_t kept = (size_t)size * (size_t)size - bare;
    if (shift_px > 0) {
        memmove(pixels + each * bare, pixels, each * kept);
        fill_pixels(pixels, bare, channels);
    } else {
        memmove(pixels, pixels + each * bare, each * kept);
        fill_pixels(pixels + each * kept, bare, channels);
    }
}

void stk_augment_erase(int size, int channels, uint8_t *pixels, int x, int y, int width,
                       int height) {
    for (int j = y; j < y + height; j++) {
        fill_pixels(pixels + (size_t)channels * ((size_t)j * (size_t)size + (size_t)x),
                    (size_t)width, channels);
    }
}
