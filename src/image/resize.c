/*
 * resize.c - a part of a picture to a square, antialiased.
 *
 * Each output value is a weighted mean over a triangle as wide as the scale (never narrower than
 * two pixels), first down the columns, then along the row, so that only one row of the middle
 * result exists at a time. Everything behind the rounding of the crop to 1/65536 px is arithmetic
 * on whole numbers, in floats too, and every set of weights adds up to exactly one, so all machines
 * agree, a constant picture stays as it is and a scale of one copies. The inner loops have fixed
 * lengths: that is what makes compilers turn them into vector instructions at -O2.
 */
#include "image/image.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define POSITION_BITS 16 /* places between pixels */
#define ONE ((int64_t)1 << POSITION_BITS)
#define WEIGHT_BITS 13 /* with the next one and the 8 of a pixel: the 24 that a float has */
#define MIDDLE_BITS 3  /* fraction that the middle result keeps */
#define SUM_BITS (WEIGHT_BITS + MIDDLE_BITS)
#define HALF_SUM (1 << (SUM_BITS - 1))
#define BLOCK 64       /* values of a row that are summed together */
#define MAX_SIZE 32768 /* px; keeps positions within 64 bits */
#define SUM_LIMIT ((int64_t)1 << 48)

/* Which pixels make output pixel i along one axis, and how much each counts. */
typedef struct axis {
    int *first;     /* owned: the first pixel */
    int *count;     /* owned: how many; 1 .. taps */
    float *weights; /* owned: (size, taps), whole numbers; behind count[i] come zeros */
    size_t taps;
    int widest; /* the largest count */
} axis;

static void free_axis(axis *a) {
    stk_mem_free(a->first);
    stk_mem_free(a->count);
    stk_mem_free(a->weights);
}

/* Rounds to the grid of positions and into 0 .. limit; what is not a number becomes 0. */
static int64_t position(double value, int limit) {
    if (!(value > 0)) {
        return 0;
    }
    return value >= limit ? limit * ONE : (int64_t)(value * (double)ONE + 0.5);
}

/* The triangle's height over pixel p, in positions; right shifts keep sums within 64 bits. */
static int64_t height_at(int64_t p, int64_t centre, int64_t support, int shift) {
    int64_t distance = p * ONE + ONE / 2 - centre;
    distance = distance < 0 ? -distance : distance;
    return distance < support ? (support - distance) >> shift : 0;
}

/*
 * Weights are differences of a rounded running sum, so that their rounding errors do not add up
 * and the last running sum is exactly one.
 */
static void weigh(axis *a, int i, int64_t centre, int64_t support, int pixels) {
    int shift = 0;
    while (support >> shift > SUM_LIMIT / (support / ONE + 2)) {
        shift++;
    }
    int64_t from = (centre - support) >> POSITION_BITS;
    int64_t to = ((centre + support) >> POSITION_BITS) + 1;
    from = from > 0 ? from : 0;
    to = to < pixels ? to : pixels;
    while (height_at(from, centre, support, shift) == 0) {
        from++;
    }
    while (height_at(to - 1, centre, support, shift) == 0) {
        to--;
    }
    int64_t total = 0;
    for (int64_t p = from; p < to; p++) {
        total += height_at(p, centre, support, shift);
    }
    assert(total > 0); /* the pixel nearest to the centre always counts */
    float *weights = a->weights + (size_t)i * a->taps;
    int64_t sum = 0;
    int64_t before = 0;
    for (int64_t p = from; p < to; p++) {
        sum += height_at(p, centre, support, shift);
        int64_t rounded = ((sum << WEIGHT_BITS) + total / 2) / total;
        weights[p - from] = (float)(rounded - before);
        before = rounded;
    }
    a->first[i] = (int)from;
    a->count[i] = (int)(to - from);
    a->widest = a->count[i] > a->widest ? a->count[i] : a->widest;
}

static stk_status make_axis(axis *a, double start, double length, int pixels, int size,
                            stk_error *err) {
    int64_t low = position(start, pixels);
    int64_t high = position(start + length, pixels);
    int64_t span = high > low ? high - low : 0;
    int64_t support = span / size > ONE ? span / size : ONE;
    a->taps = (size_t)(2 * (support / ONE) + 3);
    a->first = stk_mem_raw((size_t)size, sizeof *a->first);
    a->count = stk_mem_raw((size_t)size, sizeof *a->count);
    a->weights = stk_mem_new((size_t)size * a->taps, sizeof *a->weights);
    if (a->first == NULL || a->count == NULL || a->weights == NULL) {
        return STK_FAIL_MEMORY(err, "scaling a picture");
    }
    for (int i = 0; i < size; i++) {
        weigh(a, i, low + span * (2 * (int64_t)i + 1) / (2 * (int64_t)size), support, pixels);
    }
    return STK_OK;
}

/* Sums BLOCK values of `count` rows that lie `stride` bytes apart. */
static void blend_block(const uint8_t *from, size_t stride, const float *weights, int count,
                        float *restrict to) {
    int32_t sums[BLOCK];
    for (int j = 0; j < BLOCK; j++) {
        sums[j] = 1 << (WEIGHT_BITS - MIDDLE_BITS - 1);
    }
    for (int k = 0; k < count; k++) {
        const uint8_t *row = from + (size_t)k * stride;
        int16_t weight = (int16_t)weights[k];
        for (int j = 0; j < BLOCK; j++) {
            sums[j] += (int16_t)row[j] * weight;
        }
    }
    for (int j = 0; j < BLOCK; j++) {
        to[j] = (float)(sums[j] >> (WEIGHT_BITS - MIDDLE_BITS));
    }
}

/* The middle result's row out of picture rows; a last block that would stick out overlaps. */
static void blend_rows(const uint8_t *from, size_t stride, const float *weights, int count,
                       size_t values, float *to) {
    if (values >= BLOCK) {
        for (size_t i = 0; i < values; i += BLOCK) {
            size_t at = i + BLOCK <= values ? i : values - BLOCK;
            blend_block(from + at, stride, weights, count, to + at);
        }
        return;
    }
    for (size_t i = 0; i < values; i++) {
        int32_t sum = 1 << (WEIGHT_BITS - MIDDLE_BITS - 1);
        for (int k = 0; k < count; k++) {
            sum += from[(size_t)k * stride + i] * (int32_t)weights[k];
        }
        to[i] = (float)(sum >> (WEIGHT_BITS - MIDDLE_BITS));
    }
}

/*
 * One output row; `middle` begins with pixel `offset` of the picture. Floats because they have the
 * fastest products where vectors are short; every sum is a whole number of at most 24 bits, hence
 * exact. The fourth lane holds a neighbour's value and is dropped. The sums go through `sums`,
 * (size, 4), because reading them back at once would wait for the store.
 */
static void blend_columns(const float *middle, int offset, const axis *across, int size, bool flip,
                          float *restrict sums, uint8_t *restrict out) {
    int taps = across->widest; /* the same for all: a loop of one length is predicted well */
    for (int i = 0; i < size; i++) {
        const float *from = middle + 3 * (size_t)(across->first[i] - offset);
        const float *weights = across->weights + (size_t)i * across->taps;
        float sum[4] = {0, 0, 0, 0};
        for (int k = 0; k < taps; k++) {
            for (int c = 0; c < 4; c++) {
                sum[c] += weights[k] * from[3 * k + c];
            }
        }
        memcpy(sums + 4 * (size_t)(flip ? size - 1 - i : i), sum, sizeof sum);
    }
    for (int i = 0; i < size; i++) {
        out[3 * i] = (uint8_t)(((int32_t)sums[4 * i] + HALF_SUM) >> SUM_BITS);
        out[3 * i + 1] = (uint8_t)(((int32_t)sums[4 * i + 1] + HALF_SUM) >> SUM_BITS);
        out[3 * i + 2] = (uint8_t)(((int32_t)sums[4 * i + 2] + HALF_SUM) >> SUM_BITS);
    }
}

stk_status stk_image_resize(const stk_image *image, stk_crop crop, int size, bool flip,
                            uint8_t *out, stk_error *err) {
    if (size < 1 || size > MAX_SIZE) {
        return STK_FAIL(err, STK_ERR_USAGE, "cannot scale a picture to %d px: 1 to %d is possible",
                        size, MAX_SIZE);
    }
    axis across = {0};
    axis down = {0};
    float *middle = NULL;
    stk_status status = make_axis(&across, crop.x, crop.width, image->width, size, err);
    if (status == STK_OK) {
        status = make_axis(&down, crop.y, crop.height, image->height, size, err);
    }
    if (status != STK_OK) {
        goto done;
    }
    int left = across.first[0];
    size_t values = 3 * (size_t)(across.first[size - 1] + across.count[size - 1] - left);
    /* What the last pixels read behind the row has the weight 0, but must be a number. */
    size_t middle_values = values + 3 * (size_t)across.widest + 1;
    middle = stk_mem_new(middle_values + 4 * (size_t)size, sizeof *middle);
    if (middle == NULL) {
        status = STK_FAIL_MEMORY(err, "scaling a picture");
        goto done;
    }
    size_t stride = 3 * (size_t)image->width;
    for (int y = 0; y < size; y++) {
        const uint8_t *from = image->pixels + (size_t)down.first[y] * stride + 3 * (size_t)left;
        blend_rows(from, stride, down.weights + (size_t)y * down.taps, down.count[y], values,
                   middle);
        blend_columns(middle, left, &across, size, flip, middle + middle_values,
                      out + 3 * (size_t)y * (size_t)size);
    }
done:
    stk_mem_free(middle);
    free_axis(&down);
    free_axis(&across);
    return status;
}
