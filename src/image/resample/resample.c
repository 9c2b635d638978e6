/*
 * resample.c - weights, and the window of rows that they are applied to.
 *
 * Each output value is a weighted mean over a triangle as wide as the scale (never narrower than
 * two pixels), or over a cubic twice as wide, first down the columns, then along the row. The crop
 * is rounded to 1/65536 px; after that all arithmetic is on whole numbers, and every set of weights
 * adds up to exactly one. So all machines agree, a constant picture stays constant, and a scale of
 * one copies. As in torchvision's resized_crop, pixels outside of the crop do not count.
 */
#include "image/resample/resample.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define POSITION_BITS 16 /* fraction of a position, in bits */
#define ONE ((int64_t)1 << POSITION_BITS)
#define MAX_SIZE 32768 /* px */

/*
 * Sums of triangle heights stay below 2^SUM_BITS. The weight of one unit of height, 1 / total, is a
 * whole number of 2^-SHARE_BITS. Times a sum it is at most 2^SHARE_BITS, which fits into 64 bits.
 */
#define SUM_BITS 31
#define SHARE_BITS 62

/* Blocks above this size, for unusually large pictures, are freed again. */
#define KEEP_BYTES ((size_t)4 << 20)

const stk_resample_kernels *const stk_resample_kernel_list[] = {
#if defined(__x86_64__)
    &stk_resample_avx2,
#elif defined(__aarch64__)
    &stk_resample_neon,
#endif
    &stk_resample_plain,
    NULL,
};

static const stk_resample_kernels *fastest_kernels(void) {
    const stk_resample_kernels *const *at = stk_resample_kernel_list;
    while (*at != NULL && !(*at)->is_here()) {
        at++;
    }
    return *at != NULL ? *at : &stk_resample_plain;
}

static void free_axis(stk_resample_axis *a) {
    stk_mem_free(a->first);
    stk_mem_free(a->count);
    stk_mem_free(a->weights);
    memset(a, 0, sizeof *a);
}

/* A block of at least `bytes`: the old one or a new one; NULL: no memory. */
static void *make_room(void *block, size_t *room, size_t bytes) {
    if (*room >= bytes && (*room <= KEEP_BYTES || *room / 2 <= bytes)) {
        return block;
    }
    stk_mem_free(block);
    block = stk_mem_aligned(bytes);
    *room = block != NULL ? bytes : 0;
    if (block != NULL) { /* kernels read beyond the last pixel, with weight zero */
        memset(block, 0, bytes);
    }
    return block;
}

/* Rounds to a position within 0 .. limit; NaN becomes 0. */
static int64_t position(double value, int limit) {
    if (!(value > 0)) {
        return 0;
    }
    return value >= limit ? limit * ONE : (int64_t)(value * (double)ONE + 0.5);
}

/* The triangle's height over pixel p. */
static int64_t height_at(int64_t p, int64_t centre, int64_t support) {
    int64_t distance = p * ONE + ONE / 2 - centre;
    distance = distance < 0 ? -distance : distance;
    return distance < support ? support - distance : 0;
}

/*
 * Computes the weights of output pixel i as differences of a rounded running sum, so that rounding
 * errors do not add up and the weights sum to exactly one. `shift` keeps sums of heights below
 * 2^SUM_BITS.
 */
static void weigh(stk_resample_axis *a, int i, int64_t centre, int64_t support, int shift) {
    int64_t from = (centre - support) >> POSITION_BITS;
    int64_t to = ((centre + support) >> POSITION_BITS) + 1;
    from = from > a->from ? from : a->from;
    to = to < a->to ? to : a->to;
    while (from + 1 < to && height_at(from, centre, support) >> shift == 0) {
        from++;
    }
    while (from + 1 < to && height_at(to - 1, centre, support) >> shift == 0) {
        to--;
    }
    uint32_t total = 0;
    for (int64_t p = from; p < to; p++) {
        total += (uint32_t)(height_at(p, centre, support) >> shift);
    }
    int16_t *weights = a->weights + (size_t)i * (size_t)a->taps;
    memset(weights, 0, (size_t)a->taps * sizeof *weights);
    a->first[i] = (int)from - a->from;
    a->count[i] = (int)(to - from);
    a->used = a->count[i] > a->used ? (a->count[i] + 1) / 2 * 2 : a->used;
    if (total == 0) { /* a single pixel at the very edge of the triangle */
        weights[0] = STK_WEIGHT_ONE;
        return;
    }
    const uint64_t share = ((uint64_t)1 << SHARE_BITS) / total;
    const int drop = SHARE_BITS - STK_WEIGHT_BITS;
    uint32_t sum = 0;
    int before = 0;
    for (int64_t p = from; p < to; p++) {
        sum += (uint32_t)(height_at(p, centre, support) >> shift);
        int rounded = (int)((sum * share + ((uint64_t)1 << (drop - 1))) >> drop);
        weights[p - from] = (int16_t)(rounded - before);
        before = rounded;
    }
    weights[to - from - 1] = (int16_t)(weights[to - from - 1] + STK_WEIGHT_ONE - before);
}

/* Bits of fraction of distances in the cubic, and its height in the middle. */
#define CUBIC_BITS 18
#define CUBIC_HEIGHT_BITS 30
#define CUBIC_INVERSE_BITS 60

/*
 * Twice the height of Keys' cubic with a = -0.5 over pixel p: 3t^3 - 5t^2 + 2 up to a distance t of
 * one scale, -t^3 + 5t^2 - 8t + 4 up to two. `inverse` is 2^CUBIC_INVERSE_BITS / scale.
 */
static int64_t cubic_at(int64_t p, int64_t centre, int64_t inverse) {
    int64_t distance = p * ONE + ONE / 2 - centre;
    distance = distance < 0 ? -distance : distance;
    const int64_t one = (int64_t)1 << CUBIC_BITS;
    int64_t t = (distance * inverse) >> (CUBIC_INVERSE_BITS - CUBIC_BITS);
    int64_t height = 0;
    if (t < one) {
        height = (3 * t - 5 * one) * t * t + 2 * one * one * one;
    } else if (t < 2 * one) {
        height = ((5 * one - t) * t - 8 * one * one) * t + 4 * one * one * one;
    }
    /* The lobes are negative; shifted up, they are rounded like all others. */
    const int64_t lift = (int64_t)1 << (3 * CUBIC_BITS);
    const int bits = 3 * CUBIC_BITS - CUBIC_HEIGHT_BITS;
    return ((height + lift) >> bits) - (lift >> bits);
}

/* The integer nearest to count / of; `of` is above 0. */
static int64_t nearest_share(int64_t count, int64_t of) {
    int64_t twice = 2 * count + of;
    int64_t share = twice / (2 * of);
    return share * 2 * of > twice ? share - 1 : share;
}

/*
 * Computes the weights of output pixel i under a cubic, which has negative lobes. Where the crop's
 * edge cuts the cubic off, the remaining weights still sum to one. Rounded like those of the
 * triangle.
 */
static void weigh_cubic(stk_resample_axis *a, int i, int64_t centre, int64_t scale) {
    int64_t from = (centre - 2 * scale) >> POSITION_BITS;
    int64_t to = ((centre + 2 * scale) >> POSITION_BITS) + 1;
    from = from > a->from ? from : a->from;
    to = to < a->to ? to : a->to;
    const int64_t inverse = ((int64_t)1 << CUBIC_INVERSE_BITS) / scale;
    while (from + 1 < to && cubic_at(from, centre, inverse) == 0) {
        from++;
    }
    while (from + 1 < to && cubic_at(to - 1, centre, inverse) == 0) {
        to--;
    }
    int64_t total = 0;
    for (int64_t p = from; p < to; p++) {
        total += cubic_at(p, centre, inverse);
    }
    int16_t *weights = a->weights + (size_t)i * (size_t)a->taps;
    memset(weights, 0, (size_t)a->taps * sizeof *weights);
    a->first[i] = (int)from - a->from;
    a->count[i] = (int)(to - from);
    a->used = a->count[i] > a->used ? (a->count[i] + 1) / 2 * 2 : a->used;
    int64_t sum = 0;
    int before = 0;
    /* The middle weighs more than the lobes. If a cut ever made the sum zero or negative, the last
     * pixel would get all the weight. */
    for (int64_t p = from; p < to - 1 && total > 0; p++) {
        sum += cubic_at(p, centre, inverse);
        int rounded = (int)nearest_share(sum * STK_WEIGHT_ONE, total);
        weights[p - from] = (int16_t)(rounded - before);
        before = rounded;
    }
    weights[to - from - 1] = (int16_t)(STK_WEIGHT_ONE - before);
}

/* Makes room for `size` output pixels with `taps` weights each. */
static stk_status grow_axis(stk_resample_axis *a, int size, int taps, stk_error *err) {
    if (a->sizes < size) {
        stk_mem_free(a->first);
        stk_mem_free(a->count);
        a->first = stk_mem_raw((size_t)size, sizeof *a->first);
        a->count = stk_mem_raw((size_t)size, sizeof *a->count);
        a->sizes = a->first != NULL && a->count != NULL ? size : 0;
    }
    a->taps = taps;
    a->weights = make_room(a->weights, &a->room, (size_t)size * (size_t)taps * sizeof *a->weights);
    if (a->sizes < size || a->weights == NULL) {
        return STK_FAIL_MEMORY(err, "scaling a picture");
    }
    return STK_OK;
}

static stk_status make_axis(stk_resample_axis *a, double start, double length, int pixels, int size,
                            stk_interpolation filter, bool mirror, stk_error *err) {
    int64_t low = position(start, pixels);
    int64_t high = position(start + length, pixels);
    int64_t span = high > low ? high - low : 0;
    int64_t scale = span / size > ONE ? span / size : ONE;
    int64_t support = filter == STK_BICUBIC ? 2 * scale : scale;
    stk_status status = grow_axis(a, size, (int)(2 * ((support + ONE - 1) / ONE) + 2), err);
    if (status != STK_OK) {
        return status;
    }
    a->from = (int)(low / ONE < pixels ? low / ONE : pixels - 1);
    a->to = (int)((high + ONE - 1) / ONE);
    a->to = a->to > a->from ? a->to : a->from + 1;
    a->used = 0;
    int shift = 0;
    while (((support / ONE + 1) * support) >> shift >= (int64_t)1 << SUM_BITS) {
        shift++;
    }
    for (int i = 0; i < size; i++) {
        int64_t centre = low + span * (2 * (int64_t)i + 1) / (2 * (int64_t)size);
        int column = mirror ? size - 1 - i : i;
        if (filter == STK_BICUBIC) {
            weigh_cubic(a, column, centre, scale);
        } else {
            weigh(a, column, centre, support, shift);
        }
    }
    return STK_OK;
}

stk_status stk_resampler_begin(stk_resampler *r, const stk_resample_task *task, uint8_t *out,
                               stk_error *err) {
    int size_down = task->size_down != 0 ? task->size_down : task->size;
    if (task->size < 1 || task->size > MAX_SIZE || size_down < 1 || size_down > MAX_SIZE) {
        return STK_FAIL(err, STK_ERR_USAGE, "cannot scale a picture to %d px: 1 to %d is possible",
                        task->size < 1 || task->size > MAX_SIZE ? task->size : size_down, MAX_SIZE);
    }
    r->kernels = r->kernels != NULL ? r->kernels : fastest_kernels();
    r->channels = task->channels > 0 ? task->channels : 3;
    r->size = task->size;
    r->size_down = size_down;
    r->out = out;
    r->mirror_y = task->mirror_y;
    r->next = 0;
    r->rows = 0;
    r->waiting = 0;
    stk_status status = make_axis(&r->across, task->crop.x, task->crop.width, task->width,
                                  task->size, task->filter, task->mirror_x, err);
    STK_THEN(status, make_axis(&r->down, task->crop.y, task->crop.height, task->height, size_down,
                               task->filter, false, err));
    if (status != STK_OK) {
        return status;
    }
    r->first_row = 0;
    /* Taps beyond the last pixel have weight 0, but read memory that must exist. */
    r->middle_values =
        (size_t)r->channels * (size_t)(r->across.to - r->across.from + r->across.taps) +
        2 * STK_KERNEL_SLACK;
    size_t bytes = 2 * r->middle_values * sizeof *r->middle;
    r->middle = make_room(r->middle, &r->middle_room, bytes);
    if (r->middle == NULL) {
        return STK_FAIL_MEMORY(err, "scaling a picture");
    }
    memset(r->middle, 0, bytes);
    return STK_OK;
}

/* Twice the rows that one output row needs, so that rows are rarely moved. */
static int window_rows(const stk_resampler *r) {
    int all = r->down.to - r->down.from;
    int enough = 2 * r->down.taps + STK_RESAMPLE_ROWS;
    return enough < all ? enough : all;
}

/* One row more: an odd number of rows reads a further one with weight 0. */
size_t stk_resampler_window_bytes(const stk_resampler *r, int width) {
    return (size_t)(window_rows(r) + 1) * (size_t)r->channels * (size_t)width + STK_KERNEL_SLACK;
}

stk_status stk_resampler_rows(stk_resampler *r, int column, int width, stk_error *err) {
    r->column = column;
    r->stride = (size_t)r->channels * (size_t)width;
    r->most_rows = window_rows(r);
    r->window = make_room(r->window, &r->window_bytes, stk_resampler_window_bytes(r, width));
    return r->window != NULL ? STK_OK : STK_FAIL_MEMORY(err, "scaling a picture");
}

uint8_t *stk_resampler_room(stk_resampler *r, int count) {
    assert(count <= STK_RESAMPLE_ROWS);
    if (r->rows + count > r->most_rows) {
        int needed = r->next < r->size_down ? r->down.first[r->next] : r->first_row + r->rows;
        int gone = needed - r->first_row < r->rows ? needed - r->first_row : r->rows;
        memmove(r->window, r->window + (size_t)gone * r->stride,
                (size_t)(r->rows - gone) * r->stride);
        r->first_row += gone;
        r->rows -= gone;
    }
    return r->window + (size_t)r->rows * r->stride;
}

static uint8_t *output_row(const stk_resampler *r, int row) {
    return r->out + (size_t)r->channels * (size_t)r->size *
                        (size_t)(r->mirror_y ? r->size_down - 1 - row : row);
}

static void across_any(const stk_resampler *r, const int16_t *middle, uint8_t *out) {
    stk_resample_across_any(middle, r->across.first, r->across.weights, r->across.taps,
                            r->across.used, r->size, r->channels, out);
}

/* Makes one middle row; the second of a pair completes two output rows. */
static void make_row(stk_resampler *r) {
    const stk_resample_axis *down = &r->down;
    const stk_resample_axis *across = &r->across;
    int16_t *second = r->middle + r->middle_values;
    const uint8_t *rows = r->window + (size_t)(down->first[r->next] - r->first_row) * r->stride +
                          (size_t)r->channels * (size_t)(across->from - r->column);
    r->kernels->down(rows, r->stride, down->weights + (size_t)r->next * (size_t)down->taps,
                     (down->count[r->next] + 1) / 2 * 2,
                     (size_t)r->channels * (size_t)(across->to - across->from),
                     r->waiting == 0 ? r->middle : second);
    r->waiting++;
    r->next++;
    if (r->waiting == 2 || r->next == r->size_down) {
        bool pair = r->waiting == 2;
        uint8_t *last = output_row(r, r->next - 1);
        uint8_t *first = pair ? output_row(r, r->next - 2) : last;
        if (r->channels == 3) {
            r->kernels->across(r->middle, pair ? second : r->middle, across->first, across->weights,
                               across->taps, across->used, r->size, first, last);
        } else {
            across_any(r, r->middle, first);
            across_any(r, pair ? second : r->middle, last);
        }
        r->waiting = 0;
    }
}

void stk_resampler_take(stk_resampler *r, int count) {
    r->rows += count;
    while (r->next < r->size_down &&
           r->down.first[r->next] + r->down.count[r->next] <= r->first_row + r->rows) {
        make_row(r);
    }
}

void stk_resampler_free(stk_resampler *r) {
    free_axis(&r->across);
    free_axis(&r->down);
    stk_mem_free(r->window);
    stk_mem_free(r->middle);
    memset(r, 0, sizeof *r);
}
