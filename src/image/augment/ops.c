/*
 * ops.c - changes of colour, sharpness and levels.
 *
 * The loops work on 16-bit integers without branches, so that compilers vectorise them even for the
 * oldest processors. Red, green and blue are interleaved in memory. An operation that needs all
 * three values of a pixel does not separate the channels: it computes each value from itself and
 * the two others. Saturation and hue are the same function for each channel, except for the order
 * of the other two.
 */
#include "image/augment/ops.h"

#include <stdbool.h>
#include <string.h>

#include "image/augment/compile_twice.h"

#define BLOCK 192      /* values per block; a multiple of whole pixels and whole vectors */
#define LEVELS 256     /* of a value */
#define BLEND_BITS 5   /* bits of fraction of a blend before truncation */
#define HUE_BITS 4     /* bits of fraction of a turned hue */
#define SUM_BLOCKS 256 /* 8-bit values that a 16-bit sum can hold */

/* A part of a picture: each value, and the two other values of its pixel. */
typedef struct channel_block {
    uint8_t own[BLOCK];
    uint8_t next[BLOCK]; /* of red: green, of green: blue, of blue: red */
    uint8_t last[BLOCK]; /* of red: blue, of green: red, of blue: green */
} channel_block;

/* Masks with all bits set for values of one channel. */
typedef struct masks {
    uint8_t is_red[BLOCK];
    uint8_t is_blue[BLOCK];
} masks;

static size_t values_of(int size) {
    return 3 * (size_t)size * (size_t)size;
}

static void make_masks(masks *m) {
    for (int i = 0; i < BLOCK; i++) {
        m->is_red[i] = i % 3 == 0 ? 0xff : 0;
        m->is_blue[i] = i % 3 == 2 ? 0xff : 0;
    }
}

/* Reads two bytes beyond each end. They are never used, because blocks are whole pixels. */
BODY void split(const uint8_t *restrict from, const masks *restrict m, channel_block *restrict to) {
    memcpy(to->own, from, BLOCK);
    for (int i = 0; i < BLOCK; i++) {
        to->next[i] = (uint8_t)((from[i + 1] & ~m->is_blue[i]) | (from[i - 2] & m->is_blue[i]));
    }
    for (int i = 0; i < BLOCK; i++) {
        to->last[i] = (uint8_t)((from[i - 1] & ~m->is_red[i]) | (from[i + 2] & m->is_red[i]));
    }
}

/* The block at `at`; values beyond the picture are zero. */
BODY void take_part(const uint8_t *pixels, size_t count, size_t at, const masks *m,
                    channel_block *to) {
    if (at >= 2 && count - at >= BLOCK + 2) {
        split(pixels + at, m, to);
        return;
    }
    uint8_t padded[2 + BLOCK + 2] = {0};
    memcpy(padded + 2, pixels + at, count - at < BLOCK ? count - at : BLOCK);
    split(padded + 2, m, to);
}

/* Most blocks are whole: a copy of constant size is a few instructions. */
BODY void put_part(const uint8_t *from, uint8_t *pixels, size_t count, size_t at) {
    if (count - at >= BLOCK) {
        memcpy(pixels + at, from, BLOCK);
    } else {
        memcpy(pixels + at, from, count - at);
    }
}

BODY int16_t least(int16_t a, int16_t b) {
    return a < b ? a : b;
}

BODY int16_t most(int16_t a, int16_t b) {
    return a > b ? a : b;
}

/*
 * The upper halves of products. The values are read from memory, where compilers know neither sign
 * nor range, so they use the single instruction for this.
 */
BODY void high_halves(const int16_t *values, int factor, int16_t *to) {
    int16_t by = (int16_t)factor;
    for (int i = 0; i < BLOCK; i++) {
        to[i] = (int16_t)(((int32_t)values[i] * by) >> 16);
    }
}

/*
 * other + factor * (value - other), truncated. The difference has 7 bits of fraction and the factor
 * 14; the upper half of the product keeps BLEND_BITS of them.
 */
BODY void blend(const uint8_t *value, const uint8_t *other, int factor, uint8_t *to) {
    int16_t difference[BLOCK];
    int16_t product[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        difference[i] = (int16_t)((value[i] - other[i]) * 128);
    }
    high_halves(difference, factor, product);
    for (int i = 0; i < BLOCK; i++) {
        int16_t sum = (int16_t)(other[i] * (1 << BLEND_BITS) + product[i]);
        to[i] = (uint8_t)least(most((int16_t)(sum >> BLEND_BITS), 0), 255);
    }
}

BODY void blend_with_level_body(int size, uint8_t *pixels, int level, int factor) {
    uint8_t other[BLOCK];
    memset(other, level, sizeof other);
    size_t count = values_of(size);
    size_t at = 0;
    for (; at + BLOCK <= count; at += BLOCK) {
        uint8_t to[BLOCK];
        blend(pixels + at, other, factor, to);
        memcpy(pixels + at, to, BLOCK);
    }
    uint8_t rest[BLOCK] = {0};
    memcpy(rest, pixels + at, count - at);
    blend(rest, other, factor, rest);
    memcpy(pixels + at, rest, count - at);
}
COMPILE_TWICE(blend_with_level, (int size, uint8_t *pixels, int level, int factor),
              (size, pixels, level, factor))

void stk_augment_brightness(int size, uint8_t *pixels, int factor) {
    blend_with_level(size, pixels, 0, factor);
}

/* Sums each channel. */
static void sum_channels(const uint8_t *pixels, size_t count, uint64_t totals[3]) {
    uint16_t sums[BLOCK] = {0};
    totals[0] = totals[1] = totals[2] = 0;
    size_t whole = count / BLOCK;
    for (size_t block = 0; block < whole; block++) {
        for (size_t i = 0; i < BLOCK; i++) {
            sums[i] = (uint16_t)(sums[i] + pixels[block * BLOCK + i]);
        }
        if (block % SUM_BLOCKS == SUM_BLOCKS - 1 || block == whole - 1) {
            for (size_t i = 0; i < BLOCK; i++) {
                totals[i % 3] += sums[i];
                sums[i] = 0;
            }
        }
    }
    for (size_t i = whole * BLOCK; i < count; i++) {
        totals[i % 3] += pixels[i];
    }
}

/* The mean is rounded to a whole level, as Pillow does. */
void stk_augment_contrast(int size, uint8_t *pixels, int factor) {
    uint64_t totals[3];
    sum_channels(pixels, values_of(size), totals);
    uint64_t grey =
        STK_GREY_RED * totals[0] + STK_GREY_GREEN * totals[1] + STK_GREY_BLUE * totals[2];
    uint64_t one = (uint64_t)size * (uint64_t)size * 65536;
    blend_with_level(size, pixels, (int)((grey + one / 2) / one), factor);
}

/*
 * Rounded grey for each value of a block; weights are (own, next, last). Three halves of 1/256
 * compensate for the truncated bits.
 */
BODY void grey_of(const channel_block *from, const uint16_t weights[3][BLOCK], uint8_t *to) {
    for (int i = 0; i < BLOCK; i++) {
        uint16_t own = (uint16_t)(from->own[i] << 8);
        uint16_t next = (uint16_t)(from->next[i] << 8);
        uint16_t last = (uint16_t)(from->last[i] << 8);
        own = (uint16_t)(((uint32_t)own * weights[0][i]) >> 16);
        next = (uint16_t)(((uint32_t)next * weights[1][i]) >> 16);
        last = (uint16_t)(((uint32_t)last * weights[2][i]) >> 16);
        to[i] = (uint8_t)((uint16_t)(own + next + last + 129) >> 8);
    }
}

BODY void saturate_body(int size, uint8_t *pixels, int factor) {
    static const uint16_t weight_of[3] = {STK_GREY_RED, STK_GREY_GREEN, STK_GREY_BLUE};
    uint16_t weights[3][BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        weights[0][i] = weight_of[i % 3];
        weights[1][i] = weight_of[(i + 1) % 3];
        weights[2][i] = weight_of[(i + 2) % 3];
    }
    masks m;
    make_masks(&m);
    size_t count = values_of(size);
    for (size_t at = 0; at < count; at += BLOCK) {
        channel_block from;
        uint8_t grey[BLOCK];
        uint8_t to[BLOCK];
        take_part(pixels, count, at, &m, &from);
        grey_of(&from, (const uint16_t(*)[BLOCK])weights, grey);
        blend(from.own, grey, factor, to);
        put_part(to, pixels, count, at);
    }
}
COMPILE_TWICE(saturate, (int size, uint8_t *pixels, int factor), (size, pixels, factor))

void stk_augment_saturation(int size, uint8_t *pixels, int factor) {
    saturate(size, pixels, factor);
}

/*
 * A row of means over 3x3 values, the middle one with weight 5: the sum divided by 13, rounded.
 * 5042/65536 is 1/13 to within 1/6500 and a sum is at most 13 * 255, so this is exact.
 */
BODY void blur(const uint8_t *from, size_t stride, size_t length, uint8_t *to) {
    int16_t sums[BLOCK] = {0};
    int16_t means[BLOCK];
    const uint8_t *here = from - 3;
    const uint8_t *above = here - stride;
    const uint8_t *below = here + stride;
    for (size_t i = 0; i < length; i++) {
        sums[i] = (int16_t)(above[i] + above[i + 3] + above[i + 6] + here[i] + 5 * here[i + 3] +
                            here[i + 6] + below[i] + below[i + 3] + below[i + 6] + 6);
    }
    high_halves(sums, 5042, means);
    for (int i = 0; i < BLOCK; i++) {
        to[i] = (uint8_t)means[i];
    }
}

BODY void sharpen_block(const uint8_t *from, size_t stride, size_t length, int factor,
                        uint8_t *to) {
    uint8_t value[BLOCK] = {0};
    uint8_t other[BLOCK];
    uint8_t result[BLOCK];
    memcpy(value, from, length);
    blur(from, stride, length, other);
    blend(value, other, factor, result);
    memcpy(to, result, length);
}

/* Sharpens all but the border, `from` to `to`. The last block is moved back to end inside the row.
 */
BODY void sharpen_body(int size, const uint8_t *from, uint8_t *to, int factor) {
    size_t stride = 3 * (size_t)size;
    for (size_t y = 1; y + 1 < (size_t)size; y++) {
        size_t at = y * stride + 3;
        size_t end = (y + 1) * stride - 3;
        if (end - at < BLOCK) {
            sharpen_block(from + at, stride, end - at, factor, to + at);
            continue;
        }
        for (; at < end; at += BLOCK) {
            size_t start = end - at < BLOCK ? end - BLOCK : at;
            sharpen_block(from + start, stride, BLOCK, factor, to + start);
        }
    }
}
COMPILE_TWICE(sharpen, (int size, const uint8_t *from, uint8_t *to, int factor),
              (size, from, to, factor))

void stk_augment_sharpness(int size, uint8_t *pixels, uint8_t *spare, int factor) {
    memcpy(spare, pixels, values_of(size));
    sharpen(size, spare, pixels, factor);
}

/*
 * The new values of all channels. In HSV a hue is an angle on a circle of six sixths, on which red,
 * green and blue are two sixths apart. A channel has the largest value of a pixel if the hue is
 * within one sixth of it, and the smallest from two sixths on. In units of spread = largest -
 * smallest value, the distance between the hue and a channel is an integer:
 *     own is the largest:   |next - last|
 *     own is the smallest:  3 spread - |next - last|
 *     own is in between:    2 spread - (own - smallest), where |next - last| is the spread
 * The hue lies on the side of the larger one of next and last. All three cases are
 *     2 spread - (own - smallest) + rest, where rest = spread - |next - last|,
 * or with minus rest if own is the largest.
 */
BODY void turn_hue(const channel_block *from, int turn, uint8_t *to) {
    uint8_t lowest[BLOCK];
    uint8_t highest[BLOCK];
    int16_t spreads[BLOCK];
    int16_t turns[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        uint8_t greater = from->next[i] > from->last[i] ? from->next[i] : from->last[i];
        uint8_t less = from->next[i] < from->last[i] ? from->next[i] : from->last[i];
        highest[i] = from->own[i] > greater ? from->own[i] : greater;
        lowest[i] = from->own[i] < less ? from->own[i] : less;
    }
    for (int i = 0; i < BLOCK; i++) {
        spreads[i] = (int16_t)((highest[i] - lowest[i]) * 128);
    }
    high_halves(spreads, turn, turns);
    for (int i = 0; i < BLOCK; i++) {
        int16_t spread = (int16_t)(spreads[i] >> 7);
        int16_t sides = (int16_t)(from->next[i] - from->last[i]);
        int16_t rest = (int16_t)(spread - most(sides, (int16_t)-sides));
        int16_t flip = from->own[i] == highest[i] ? -1 : 0;
        int16_t place = (int16_t)(2 * spread + lowest[i] - from->own[i] + ((rest ^ flip) - flip));
        int16_t side = (int16_t)(sides >> 15);
        int16_t turned = (int16_t)(place * (1 << HUE_BITS) + ((turns[i] ^ side) - side));
        int16_t away = most(turned, (int16_t)-turned);
        spread = (int16_t)(spread * (1 << HUE_BITS));
        away = least(away, (int16_t)(6 * spread - away)); /* the shorter way around the circle */
        int16_t above = least(most((int16_t)(2 * spread - away), 0), spread);
        to[i] = (uint8_t)(lowest[i] + ((above + (1 << (HUE_BITS - 1))) >> HUE_BITS));
    }
}

BODY void turn_hues_body(int size, uint8_t *pixels, int turn) {
    masks m;
    make_masks(&m);
    size_t count = values_of(size);
    for (size_t at = 0; at < count; at += BLOCK) {
        channel_block from;
        uint8_t to[BLOCK];
        take_part(pixels, count, at, &m, &from);
        turn_hue(&from, turn, to);
        put_part(to, pixels, count, at);
    }
}
COMPILE_TWICE(turn_hues, (int size, uint8_t *pixels, int turn), (size, pixels, turn))

void stk_augment_hue(int size, uint8_t *pixels, int turn) {
    turn_hues(size, pixels, turn);
}

void stk_augment_posterize(int size, uint8_t *pixels, int bits) {
    uint8_t mask = (uint8_t)(0xff << bits);
    size_t count = values_of(size);
    for (size_t i = 0; i < count; i++) {
        pixels[i] &= mask;
    }
}

void stk_augment_solarize(int size, uint8_t *pixels, int threshold) {
    if (threshold > 255) {
        return;
    }
    uint8_t from = (uint8_t)threshold;
    size_t count = values_of(size);
    for (size_t i = 0; i < count; i++) {
        uint8_t mask = pixels[i] >= from ? 0xff : 0;
        pixels[i] ^= mask;
    }
}

static void look_up(uint8_t *pixels, size_t count, const uint8_t table[3][LEVELS]) {
    for (size_t i = 0; i < count; i += 3) {
        pixels[i] = table[0][pixels[i]];
        pixels[i + 1] = table[1][pixels[i + 1]];
        pixels[i + 2] = table[2][pixels[i + 2]];
    }
}

/* Finds the smallest and the largest value of each channel. */
static void find_limits(const uint8_t *pixels, size_t count, uint8_t low[3], uint8_t high[3]) {
    uint8_t lows[BLOCK];
    uint8_t highs[BLOCK];
    memset(lows, 255, sizeof lows);
    memset(highs, 0, sizeof highs);
    size_t at = 0;
    for (; at + BLOCK <= count; at += BLOCK) {
        for (size_t i = 0; i < BLOCK; i++) {
            uint8_t value = pixels[at + i];
            lows[i] = value < lows[i] ? value : lows[i];
            highs[i] = value > highs[i] ? value : highs[i];
        }
    }
    for (size_t i = 0; at + i < count; i++) {
        uint8_t value = pixels[at + i];
        lows[i] = value < lows[i] ? value : lows[i];
        highs[i] = value > highs[i] ? value : highs[i];
    }
    memcpy(low, lows, 3);
    memcpy(high, highs, 3);
    for (size_t i = 3; i < BLOCK; i++) {
        low[i % 3] = lows[i] < low[i % 3] ? lows[i] : low[i % 3];
        high[i % 3] = highs[i] > high[i % 3] ? highs[i] : high[i % 3];
    }
}

void stk_augment_autocontrast(int size, uint8_t *pixels) {
    uint8_t low[3];
    uint8_t high[3];
    find_limits(pixels, values_of(size), low, high);
    uint8_t table[3][LEVELS];
    for (int c = 0; c < 3; c++) {
        int range = high[c] - low[c];
        for (int v = 0; v < LEVELS; v++) {
            bool is_inside = range > 0 && v >= low[c] && v <= high[c];
            table[c][v] = (uint8_t)(is_inside ? 255 * (v - low[c]) / range : v);
        }
    }
    look_up(pixels, values_of(size), (const uint8_t(*)[LEVELS])table);
}

/* Even and odd pixels have separate counts, so that equal neighbours do not wait for each other. */
static void count_values(const uint8_t *pixels, size_t count, uint32_t counts[3][LEVELS]) {
    uint32_t odd[3][LEVELS] = {{0}};
    memset(counts, 0, 3 * sizeof *counts);
    size_t at = 0;
    for (; at + 6 <= count; at += 6) {
        for (size_t c = 0; c < 3; c++) {
            counts[c][pixels[at + c]]++;
            odd[c][pixels[at + 3 + c]]++;
        }
    }
    for (; at < count; at++) {
        counts[at % 3][pixels[at]]++;
    }
    for (size_t c = 0; c < 3; c++) {
        for (size_t v = 0; v < LEVELS; v++) {
            counts[c][v] += odd[c][v];
        }
    }
}

/*
 * Table of the histogram equalisation: a value becomes the number of smaller values in units of
 * `step`, of which 255 span the picture. A picture too small for a step stays as it is.
 */
static void equal_table(const uint32_t counts[LEVELS], uint32_t total, uint8_t table[LEVELS]) {
    int highest = LEVELS - 1;
    while (counts[highest] == 0) {
        highest--;
    }
    uint32_t step = (total - counts[highest]) / 255;
    uint32_t below = step / 2;
    for (int v = 0; v < LEVELS; v++) {
        uint32_t level = step > 0 ? below / step : (uint32_t)v;
        table[v] = (uint8_t)(level < 255 ? level : 255);
        below += counts[v];
    }
}

void stk_augment_equalize(int size, uint8_t *pixels) {
    uint32_t counts[3][LEVELS];
    count_values(pixels, values_of(size), counts);
    uint8_t table[3][LEVELS];
    for (int c = 0; c < 3; c++) {
        equal_table(counts[c], (uint32_t)size * (uint32_t)size, table[c]);
    }
    look_up(pixels, values_of(size), (const uint8_t(*)[LEVELS])table);
}
